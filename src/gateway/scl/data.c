/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data sets of SCL files: each FCDA names a logical node of the device, and a data object or data
 * attribute in it; which values these have is in the templates of data types (LNodeType, DOType,
 * DAType).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/scl/scl_file.h"
#include "util/container_of.h"

/* IEC 61850-7-2 and 61850-6; the encodings are those of 61850-8-1 and 61850-9-2. */
static const struct scl_basic basics[] = {
	{ "BOOLEAN", "boolean", 0, "boolean" },
	{ "INT8", "int8", 0, "int8" },
	{ "INT16", "int16", 0, "int16" },
	{ "INT32", "int32", 0, "int32" },
	{ "INT64", "int64", 0, "int64" },
	{ "INT8U", "int8u", 0, "int8u" },
	{ "INT16U", "int16u", 0, "int16u" },
	{ "INT24U", "int32u", 0, NULL },
	{ "INT32U", "int32u", 0, "int32u" },
	{ "FLOAT32", "float32", 0, "float32" },
	{ "FLOAT64", "float64", 0, "float64" },
	{ "Enum", "int32", 0, "enumerated" },
	{ "Dbpos", "bitstring", 2, "coded_enum" },
	{ "Tcmd", "bitstring", 2, "coded_enum" },
	{ "Quality", "bitstring", 13, "quality" },
	{ "Timestamp", "timestamp", 0, "timestamp" },
	{ "Check", "bitstring", 2, NULL },
	{ "TrgOps", "bitstring", 6, NULL },
	{ "OptFlds", "bitstring", 10, NULL },
	{ "SvOptFlds", "bitstring", 5, NULL },
	{ "VisString32", "visible_string", 0, NULL },
	{ "VisString64", "visible_string", 0, NULL },
	{ "VisString65", "visible_string", 0, NULL },
	{ "VisString129", "visible_string", 0, NULL },
	{ "VisString255", "visible_string", 0, NULL },
	{ "ObjRef", "visible_string", 0, NULL },
	{ "Currency", "visible_string", 0, NULL },
	{ "Unicode255", "mms_string", 0, NULL },
	{ "Octet6", "octet_string", 6, NULL },
	{ "Octet16", "octet_string", 16, NULL },
	{ "Octet64", "octet_string", 64, NULL },
	{ "EntryID", "octet_string", 8, NULL },
	{ "EntryTime", "binary_time", 6, NULL },
};

/* While the data of one FCDA are made. */
struct making {
	struct scl *s;
	const char *constraint;  /* fc */
	unsigned line;           /* of the FCDA */
	unsigned left;           /* so many more data the data set may have */
	/* The types that the present one stands in. */
	const struct scl_element *types[SCL_DEPTH_MAX + 1];
	unsigned depth;
};

static int make_member(struct making *m, const struct scl_element *e, const char *name,
		       struct scl_data *out);

static struct scl_data *take_data(struct making *m, unsigned count)
{
	struct scl_data *d;

	if (count > m->left) {
		scl_fail(m->s, m->line, "the data set has more than %d values", SCL_DATA_MAX);
		return NULL;
	}
	m->left -= count;
	d = scl_tree_alloc(&m->s->tree, (count + 1) * sizeof(*d));
	if (!d)
		scl_fail_memory(m->s);
	return d;
}

/* ---- templates ---- */

static int compare_types(const void *a, const void *b)
{
	const struct scl_element *x = *(struct scl_element *const *)a,
		*y = *(struct scl_element *const *)b;
	int order = strcmp(x->name, y->name) ?: strcmp(scl_text_of(x, "id"), scl_text_of(y, "id"));

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Files have thousands of types, and each value of a data set needs some. */
static int sort_types(struct scl *s, const struct scl_element *templates)
{
	unsigned count = 0;

	for (const struct scl_element *e = templates->first; e; e = e->next)
		count++;
	s->types = scl_tree_alloc(&s->tree, (count + 1) * sizeof(*s->types));
	if (!s->types)
		return scl_fail_memory(s);
	for (struct scl_element *e = templates->first; e; e = e->next)
		s->types[s->type_count++] = e;
	qsort(s->types, count, sizeof(*s->types), compare_types);
	return 0;
}

/* *out, NULL: there is none. 0, or -EINVAL if there are several. */
static int find_template(struct scl *s, const char *kind, const char *id,
			 struct scl_element **out)
{
	unsigned low = 0, high = s->type_count;

	*out = NULL;
	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		const struct scl_element *e = s->types[middle];

		if ((strcmp(e->name, kind) ?: strcmp(scl_text_of(e, "id"), id)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->type_count && scl_is(s->types[low], kind) &&
	       !strcmp(scl_text_of(s->types[low], "id"), id); low++) {
		if (*out)
			return scl_fail(s, s->types[low]->line,
					"a second %s with id \"%.80s\", which is in line %u, too",
					kind, id, (*out)->line);
		*out = s->types[low];
	}
	return 0;
}

/* The template `id`, named by the attribute `by` of `e`. */
static int find_type(struct making *m, const struct scl_element *e, const char *by,
		     const char *kind, struct scl_element **out)
{
	const char *id = scl_attribute(e, by);
	int ret;

	if (!id)
		return scl_fail(m->s, e->line, "%s has no %s", e->name, by);
	ret = find_template(m->s, kind, id, out);
	if (ret || *out)
		return ret;
	return scl_fail(m->s, e->line, "there is no %s '%.80s', which %s '%.60s' names", kind, id,
			e->name, scl_text_of(e, "name"));
}

static int enter(struct making *m, const struct scl_element *type)
{
	for (unsigned i = 0; i < m->depth; i++)
		if (m->types[i] == type)
			return scl_fail(m->s, type->line, "%s '%.80s' contains itself", type->name,
					scl_text_of(type, "id"));
	if (m->depth == SCL_DEPTH_MAX)
		return scl_fail(m->s, type->line, "types stand in types more than %d deep",
				SCL_DEPTH_MAX);
	m->types[m->depth++] = type;
	return 0;
}

/* How many members an array has; 0: it is none. */
static int count_of(struct making *m, const struct scl_element *e, unsigned *out)
{
	const char *text = scl_attribute(e, "count");
	unsigned long n;

	*out = 0;
	if (!text)
		return 0;
	if (!scl_read_number(text, 10, ULONG_MAX, &n))
		return scl_fail(m->s, e->line,
				"count \"%.40s\" of %s '%.60s' is no number; a number of members that another attribute says is not supported",
				text, e->name, scl_text_of(e, "name"));
	if (n > SCL_DATA_MAX)
		return scl_fail(m->s, e->line, "an array has %lu members, more than %d", n,
				SCL_DATA_MAX);
	*out = (unsigned)n;
	return 0;
}

/* Does this member of a DOType belong to the data? Those of a DAType all do. */
static bool is_wanted(const struct making *m, const struct scl_element *e)
{
	return scl_is(e, "SDO") || scl_is(e, "BDA") ||
	       (scl_is(e, "DA") && !strcmp(scl_text_of(e, "fc"), m->constraint));
}

/* The members of a DOType or DAType. `out` has no parts if none of them belongs to the data. */
static int make_structure(struct making *m, const struct scl_element *type, const char *name,
			  struct scl_data *out)
{
	unsigned count = 0;
	int ret = enter(m, type);

	if (ret)
		return ret;
	for (const struct scl_element *e = type->first; e; e = e->next)
		count += is_wanted(m, e);
	*out = (struct scl_data){ .name = name, .line = m->line, .parts = take_data(m, count) };
	if (!out->parts)
		return -EINVAL;
	for (const struct scl_element *e = type->first; e && !ret; e = e->next) {
		struct scl_data *part = &out->parts[out->count];
		const char *part_name;

		if (!is_wanted(m, e))
			continue;
		part_name = scl_tree_print(&m->s->tree, "%s.%s", name, scl_text_of(e, "name"));
		if (!part_name)
			return scl_fail_memory(m->s);
		ret = make_member(m, e, part_name, part);
		/* A part without values has none of this functional constraint. */
		out->count += part->basic || part->count;
	}
	m->depth--;
	return ret;
}

static int make_basic(struct making *m, const struct scl_element *e, const char *name,
		      struct scl_data *out)
{
	const char *type = scl_text_of(e, "bType");

	for (size_t i = 0; i < ARRAY_SIZE(basics); i++)
		if (!strcmp(basics[i].name, type)) {
			*out = (struct scl_data){ .name = name, .line = m->line, .basic = &basics[i] };
			return 0;
		}
	return scl_fail(m->s, e->line, "bType \"%.40s\" of %s '%.60s' is not supported", type,
			e->name,
			scl_text_of(e, "name"));
}

/* What one DO, SDO, DA or BDA holds, or one member if it is an array. */
static int make_one(struct making *m, const struct scl_element *e, const char *name,
		    struct scl_data *out)
{
	bool is_object = scl_is(e, "DO") || scl_is(e, "SDO");
	struct scl_element *type;
	int ret;

	if (!is_object && strcmp(scl_text_of(e, "bType"), "Struct"))
		return make_basic(m, e, name, out);
	ret = find_type(m, e, "type", is_object ? "DOType" : "DAType", &type);
	return ret ? ret : make_structure(m, type, name, out);
}

static int make_member(struct making *m, const struct scl_element *e, const char *name,
		       struct scl_data *out)
{
	unsigned count;
	int ret = count_of(m, e, &count);

	*out = (struct scl_data){ .name = name, .line = m->line };
	if (ret || !count)
		return ret ? ret : make_one(m, e, name, out);
	out->array = true;
	out->parts = take_data(m, count);
	if (!out->parts)
		return -EINVAL;
	if (m->depth == SCL_DEPTH_MAX)
		return scl_fail(m->s, e->line,
				"types and arrays stand in each other more than %d deep",
				SCL_DEPTH_MAX);
	m->types[m->depth++] = NULL;
	for (unsigned i = 0; i < count && !ret; i++) {
		const char *part = scl_tree_print(&m->s->tree, "%s(%u)", name, i);

		ret = part ? make_one(m, e, part, &out->parts[i]) : scl_fail_memory(m->s);
	}
	m->depth--;
	/* Of an array of objects none of which has such values. */
	if (!ret && (out->parts[0].basic || out->parts[0].count))
		out->count = count;
	return ret;
}

/* ---- the path of an FCDA ---- */

/* The next word of "A.phsA.cVal"; false: none is left. */
static bool next_word(const char **path, char word[SCL_VALUE_MAX + 1])
{
	size_t len = strcspn(*path, ".");

	if (!**path)
		return false;
	memcpy(word, *path, len);
	word[len] = '\0';
	*path += len + ((*path)[len] == '.');
	return true;
}

struct walk {
	struct making *m;
	const struct scl_element *fcda;
	const struct scl_element *at;  /* the DO, SDO, DA or BDA that the path has led to, */
	const struct scl_element *type; /* and its type; NULL: it is a basic one */
	const char *name;
	bool in_attribute;
	bool indexed;   /* ix was used, */
	bool is_member; /* for `at` */
};

/* A member of an array, if FCDA says which one. */
static int take_index(struct walk *w, bool last)
{
	const char *ix = scl_attribute(w->fcda, "ix");
	struct making *m = w->m;
	unsigned count;
	unsigned long n;
	int ret = count_of(m, w->at, &count);

	w->is_member = false;
	if (ret || !count)
		return ret;
	if (!ix || w->indexed)
		return last ? 0 : scl_fail(m->s, m->line,
					   "'%.60s' is an array, and FCDA has no ix for it",
					   scl_text_of(w->at, "name"));
	if (!scl_read_number(ix, 10, count - 1, &n))
		return scl_fail(m->s, m->line,
				"ix \"%.20s\": the array '%.60s' has members from 0 to %u", ix,
				scl_text_of(w->at, "name"), count - 1);
	w->indexed = w->is_member = true;
	w->name = scl_tree_print(&m->s->tree, "%s(%lu)", w->name, n);
	return w->name ? 0 : scl_fail_memory(m->s);
}

static int find_word(struct walk *w, const char *kind, const char *word)
{
	struct scl_element *e;
	struct making *m = w->m;
	int ret;

	if (!w->type)
		return scl_fail(m->s, m->line,
				"'%.100s' has no members, and FCDA names '%.60s' in it",
				w->name, word);
	ret = scl_find_one(m->s, w->type, kind, "name", word, &e);
	if (ret)
		return ret;
	if (!e)
		return scl_fail(m->s, m->line, "%s '%.80s' has no %s '%.60s'", w->type->name,
				scl_text_of(w->type, "id"), kind, word);
	if (!strcmp(kind, "DA") && strcmp(scl_text_of(e, "fc"), m->constraint))
		return scl_fail(m->s, m->line,
				"FCDA has fc %.20s, but '%.60s' has fc %.20s (line %u)",
				m->constraint, word, scl_text_of(e, "fc"), e->line);
	w->at = e;
	w->name = scl_tree_print(&m->s->tree, "%s.%s", w->name, word);
	return w->name ? 0 : scl_fail_memory(m->s);
}

/* One step down; `last`: the path ends there. */
static int step(struct walk *w, const char *word, bool last)
{
	bool object = !w->in_attribute;
	const char *kind = object ? scl_is(w->type, "LNodeType") ? "DO" : "SDO" :
			   w->type && scl_is(w->type, "DOType") ? "DA" : "BDA";
	struct scl_element *type = NULL;
	int ret = find_word(w, kind, word);

	ret = ret ? ret : take_index(w, last);
	if (ret)
		return ret;
	if (object || !strcmp(scl_text_of(w->at, "bType"), "Struct"))
		ret = find_type(w->m, w->at, "type", object ? "DOType" : "DAType", &type);
	w->type = type;
	return ret;
}

static int walk_path(struct walk *w)
{
	const char *object = scl_text_of(w->fcda, "doName"),
		*attribute = scl_text_of(w->fcda, "daName");
	char word[SCL_VALUE_MAX + 1];
	int ret = 0;

	while (!ret && next_word(&object, word))
		ret = step(w, word, !*object && !*attribute);
	w->in_attribute = true;
	while (!ret && next_word(&attribute, word))
		ret = step(w, word, !*attribute);
	if (!ret && scl_attribute(w->fcda, "ix") && !w->indexed)
		return scl_fail(w->m->s, w->fcda->line, "FCDA has ix, but names no array");
	return ret;
}

/* A prefix, class and instance. */
#define NODE_NAME_MAX (3 * SCL_VALUE_MAX + 1)

/* Is it a logical node of this name? As scl_node_name(), without its memory. */
static bool is_node_called(const struct scl_element *e, const char *name)
{
	const char *class = scl_text_of(e, "lnClass");
	const char *parts[] = { scl_text_of(e, "prefix"), *class ? class : "LLN0",
				scl_text_of(e, "inst") };

	if (!scl_is(e, "LN") && !scl_is(e, "LN0"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t len = strlen(parts[i]);

		if (strncmp(name, parts[i], len))
			return false;
		name += len;
	}
	return !*name;
}

/* The logical node of the device that an FCDA names. */
static int find_node(struct scl *s, const struct scl_control *c, const struct scl_element *fcda,
		     const struct scl_element **out)
{
	const char *inst = scl_text_of(fcda, "ldInst"), *class = scl_text_of(fcda, "lnClass");
	char wanted[NODE_NAME_MAX];
	const struct scl_element *server = scl_around(c->node, "Server");
	struct scl_element *device;
	unsigned long looks = 0;
	int ret;

	snprintf(wanted, sizeof(wanted), "%s%s%s", scl_text_of(fcda, "prefix"), class,
		 scl_text_of(fcda, "lnInst"));
	if (!server)
		return scl_fail(s, c->line, "the control block stands in no Server");
	ret = scl_find_one(s, server, "LDevice", "inst", inst, &device);
	if (ret)
		return ret;
	if (!device)
		return scl_fail(s, fcda->line, "IED %.80s has no LDevice '%.60s', which FCDA names",
				c->ied, inst);
	for (struct scl_element *e = device->first; e; e = e->next) {
		looks++;
		if (!is_node_called(e, wanted))
			continue;
		*out = e;
		return scl_note_looks(s, device->line, looks);
	}
	return scl_note_looks(s, device->line, looks) ?: scl_fail(s, fcda->line,
			"LDevice '%.60s' of IED %.80s has no logical node '%.80s', which FCDA names",
			inst, c->ied, wanted);
}

/* Whole: of an array all its members. */
static int make_end(struct walk *w, struct scl_data *out)
{
	struct making *m = w->m;
	int ret = w->is_member ? make_one(m, w->at, w->name, out) :
		make_member(m, w->at, w->name, out);

	if (!ret && !out->basic && !out->count)
		return scl_fail(m->s, m->line, "'%.100s' has no values with fc %.20s", w->name,
				m->constraint);
	return ret;
}

static int make_data(struct making *m, const struct scl_control *c, const struct scl_element *fcda,
		     struct scl_data *out)
{
	const struct scl_element *node = NULL;
	struct walk w = { .m = m, .fcda = fcda };
	struct scl_element *type;
	int ret = find_node(m->s, c, fcda, &node);

	ret = ret ? ret : find_type(m, node, "lnType", "LNodeType", &type);
	if (ret)
		return ret;
	m->line = fcda->line;
	m->constraint = scl_text_of(fcda, "fc");
	m->depth = 0;
	if (!*m->constraint || !scl_attribute(fcda, "doName"))
		return scl_fail(m->s, fcda->line,
				"FCDA has no %s; whole logical nodes are not supported",
				*m->constraint ? "doName" : "fc");
	w.type = type;
	w.name = scl_tree_print(&m->s->tree, "%s/%s", scl_text_of(fcda, "ldInst"),
				scl_node_name(m->s, node));
	if (!w.name)
		return scl_fail_memory(m->s);
	ret = walk_path(&w);
	if (!ret && !w.at)
		return scl_fail(m->s, fcda->line, "FCDA has an empty doName");
	return ret ? ret : make_end(&w, out);
}

int scl_read_data(struct scl *s, struct scl_control *c, const struct scl_element *set)
{
	struct making m = { .s = s, .left = SCL_DATA_MAX };
	const struct scl_element *templates = scl_child(s->tree.root, "DataTypeTemplates", NULL);
	struct scl_element *fcda = NULL;
	unsigned count = 0;
	int ret = 0;

	if (!templates)
		return scl_fail(s, s->tree.root->line,
				"the file has no DataTypeTemplates, so the types of data are not known");
	if (!s->types && sort_types(s, templates))
		return -ENOMEM;
	while ((fcda = scl_child(set, "FCDA", fcda)))
		count++;
	m.line = set->line;
	if (!count)
		return scl_fail(s, set->line, "data set '%.80s' is empty",
				scl_text_of(set, "name"));
	c->data = take_data(&m, count);
	if (!c->data)
		return -EINVAL;
	while (!ret && (fcda = scl_child(set, "FCDA", fcda)))
		ret = make_data(&m, c, fcda, &c->data[c->count++]);
	return ret;
}
