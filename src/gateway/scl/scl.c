/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading an SCL file, and finding control blocks in it; see scl.h. */
#include "gateway/scl/scl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/plugin/plugin.h"
#include "gateway/scl/scl_file.h"
#include "util/container_of.h"

int scl_fail(struct scl *s, unsigned line, const char *fmt, ...)
{
	int len = snprintf(s->why, SCL_WHY_MAX, "%.200s:%u: ", s->name, line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why + len, SCL_WHY_MAX - (size_t)len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int scl_fail_memory(struct scl *s)
{
	snprintf(s->why, SCL_WHY_MAX, "%.200s: out of memory", s->name);
	return -ENOMEM;
}

int scl_note_looks(struct scl *s, unsigned line, unsigned long count)
{
	s->looked += count;
	return s->looked <= SCL_LOOKS_MAX ? 0 :
	       scl_fail(s, line, "finding what the file names takes too long; it has too many elements side by side");
}

int scl_find_one(struct scl *s, const struct scl_element *parent, const char *name,
		 const char *attribute, const char *value, struct scl_element **out)
{
	unsigned long looks = 0;

	*out = NULL;
	for (struct scl_element *e = parent ? parent->first : NULL; e; e = e->next) {
		const char *has = scl_is(e, name) ? scl_attribute(e, attribute) : NULL;

		looks++;
		if (!has || strcmp(has, value))
			continue;
		if (*out)
			return scl_fail(s, e->line,
					"a second %s with %s \"%.80s\", which is in line %u, too",
					name, attribute, value, (*out)->line);
		*out = e;
	}
	return looks ? scl_note_looks(s, parent->line, looks) : 0;
}

bool scl_read_number(const char *text, int base, unsigned long max, unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, base);
	/* strtoul() takes blanks, signs and "0x", too. */
	return !errno && end != text && !*end &&
		strspn(text, "0123456789abcdefABCDEF") == strlen(text) &&
	       *out <= max;
}

const struct scl_element *scl_around(const struct scl_element *e, const char *name)
{
	while (e && !scl_is(e, name))
		e = e->parent;
	return e;
}

const char *scl_text_of(const struct scl_element *e, const char *name)
{
	const char *value = e ? scl_attribute(e, name) : NULL;

	return value ? value : "";
}

const char *scl_node_name(struct scl *s, const struct scl_element *node)
{
	const char *class = scl_text_of(node, "lnClass");

	return scl_tree_print(&s->tree, "%s%s%s", scl_text_of(node, "prefix"),
			      *class ? class : "LLN0", scl_text_of(node, "inst"));
}

/* ---- the list of control blocks ---- */

/* The element behind `e` in the order of the file. */
static struct scl_element *next_of(struct scl_element *e)
{
	if (e->first)
		return e->first;
	while (e && !e->next)
		e = e->parent;
	return e ? e->next : NULL;
}

static bool is_control(const struct scl_element *e)
{
	return (scl_is(e, "GSEControl") || scl_is(e, "SampledValueControl")) &&
	       (scl_is(e->parent, "LN0") || scl_is(e->parent, "LN")) &&
	       scl_is(e->parent->parent, "LDevice");
}

static int add_control(struct scl *s, const struct scl_element *e, struct scl_control *c)
{
	const struct scl_element *ied = scl_around(e, "IED");
	const char *node = scl_node_name(s, e->parent);

	*c = (struct scl_control){
		.kind = scl_is(e, "GSEControl") ? SCL_GOOSE : SCL_SAMPLED_VALUES,
		.element = e, .node = e->parent, .line = e->line,
		.ied = scl_text_of(ied, "name"),
	};
	if (!*c->ied)
		return scl_fail(s, e->line, "the control block stands in no IED with a name");
	if (!scl_attribute(e, "name") || !scl_attribute(e->parent->parent, "inst"))
		return scl_fail(s, e->line,
				"the control block has no name, or its LDevice no inst");
	c->path = node ? scl_tree_print(&s->tree, "%s/%s.%s",
					scl_attribute(e->parent->parent, "inst"), node,
					scl_attribute(e, "name")) : NULL;
	return c->path ? 0 : scl_fail_memory(s);
}

static int list_controls(struct scl *s)
{
	struct scl_element *e;
	unsigned count = 0;
	int ret = 0;

	for (e = s->tree.root; e; e = next_of(e))
		count += is_control(e);
	s->controls = scl_tree_alloc(&s->tree, (count + 1) * sizeof(*s->controls));
	if (!s->controls)
		return scl_fail_memory(s);
	for (e = s->tree.root; e && !ret; e = next_of(e))
		if (is_control(e))
			ret = add_control(s, e, &s->controls[s->count++]);
	return ret;
}

struct scl_control *scl_controls(struct scl *s, unsigned *count)
{
	*count = s->count;
	return s->controls;
}

static const char *kind_name(enum scl_kind kind)
{
	return kind == SCL_GOOSE ? "GOOSE" : "sampled values";
}

/* Names the control blocks that are there; a few of them. */
static int fail_to_find(struct scl *s, enum scl_kind kind, const char *ied, const char *path)
{
	char *at = s->why, *end = s->why + SCL_WHY_MAX;
	unsigned said = 0;

	at += snprintf(at, SCL_WHY_MAX, "%.200s has no control block '%.100s' of %s%s%.80s; ",
		       s->name,
		       path, kind_name(kind), ied ? " in IED " : "", ied ? ied : "");
	for (unsigned i = 0; i < s->count && said < 4; i++) {
		const struct scl_control *c = &s->controls[i];

		if (c->kind == kind && end - at > 60)
			at += snprintf(at, (size_t)(end - at), "%s%.20s %.30s", said++ ? ", " :
				       "it has ",
				       c->ied, c->path);
	}
	if (!said)
		snprintf(at, (size_t)(end - at), "it has none of this kind");
	return -ENOENT;
}

int scl_find(struct scl *s, enum scl_kind kind, const char *ied, const char *path,
	     struct scl_control **out, char why[SCL_WHY_MAX])
{
	struct scl_control *found = NULL;

	s->why = why;
	for (unsigned i = 0; i < s->count; i++) {
		struct scl_control *c = &s->controls[i];

		if (c->kind != kind || strcmp(c->path, path) || (ied && strcmp(c->ied, ied)))
			continue;
		if (found && strcmp(found->ied, c->ied)) {
			snprintf(why, SCL_WHY_MAX,
				 "%.200s has '%.100s' in the IEDs %.80s and %.80s: `ied` has to say which is meant",
				 s->name, path, found->ied, c->ied);
			return -ENOENT;
		}
		if (found) {
			scl_fail(s, c->line,
				 "a second control block '%.100s' of IED %.80s, which is in line %u, too",
				 path, c->ied, found->line);
			return -ENOENT;
		}
		found = c;
	}
	*out = found;
	return found ? 0 : fail_to_find(s, kind, ied, path);
}

/* ---- files ---- */

int scl_read(const struct scl_xml_ops *xml, const char *name, const char *text, size_t len,
	     struct scl **out, char why[SCL_WHY_MAX])
{
	struct scl *s = calloc(1, sizeof(*s));
	const char *reason = "out of memory";
	unsigned line = 0;
	int ret;

	if (!s)
		return -ENOMEM;
	s->why = why;
	ret = xml->read(&s->tree, text, len, &reason, &line);
	s->name = scl_tree_text(&s->tree, name, strlen(name));
	if (ret || !s->name) {
		snprintf(why, SCL_WHY_MAX, "%.200s:%u: %s", name, line, reason ? reason :
			 "out of memory");
		ret = ret ? ret : -ENOMEM;
	} else {
		ret = list_controls(s);
	}
	if (ret) {
		scl_free(s);
		return ret;
	}
	*out = s;
	return 0;
}

void scl_free(struct scl *s)
{
	if (!s)
		return;
	scl_tree_free(&s->tree);
	free(s);
}

const char *scl_name(const struct scl *s)
{
	return s->name;
}

#ifdef GATEWAY_HAVE_SCL
/* A whole regular file; anything else could let the caller wait. The caller frees it. */
static int read_file(const char *path, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret = 0;
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return -errno;
	*text = NULL;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -ESPIPE;
	else if (st.st_size > SCL_FILE_BYTES_MAX)
		ret = -EFBIG;
	if (!ret) {
		*text = malloc((size_t)st.st_size + 1);
		ret = *text ? 0 : -ENOMEM;
	}
	for (*len = 0; !ret && *len < (size_t)st.st_size; *len += (size_t)got) {
		got = read(fd, *text + *len, (size_t)st.st_size - *len);
		if (got < 0)
			ret = -errno;
		if (got <= 0)
			break;
	}
	close(fd);
	if (ret)
		free(*text);
	return ret;
}

int scl_load(const char *path, struct scl **out, char why[SCL_WHY_MAX])
{
	const struct scl_xml_ops *xml = plugin_symbol("scl_xml", "scl_xml");
	char *text = NULL;
	size_t len = 0;
	int ret;

	if (!xml) {
		snprintf(why, SCL_WHY_MAX,
			 "SCL files need the module scl_xml, and expat (libexpat1)");
		return -ENOENT;
	}
	ret = read_file(path, &text, &len);
	if (ret) {
		snprintf(why, SCL_WHY_MAX, "%.300s: %s", path,
			 ret == -ESPIPE ? "this is no regular file" :
			 ret == -EFBIG	? "the file is larger than 64 MiB" : strerror(-ret));
		return ret;
	}
	ret = scl_read(xml, path, text, len, out, why);
	free(text);
	return ret;
}
#else
int scl_load(const char *path, struct scl **out, char why[SCL_WHY_MAX])
{
	snprintf(why, SCL_WHY_MAX,
		 "this build reads no SCL files, because expat was not found (libexpat1-dev)");
	return -ENOTSUP;
}
#endif
