/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads topology files: files that include others, and the records of nodes. The format is described
 * in topology.h, lines of links are read in cable.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/reader.h"
#include "fabric/topology/say.h"
#include "util/container_of.h"
#include "util/nearest.h"
#include "util/text_file.h"

#define FILE_BYTES_MAX (32U << 20)
#define LINE_BYTES_MAX 1000
#define INCLUDE_DEPTH_MAX 8
#define INCLUDES_MAX 64
/* Where ibsim begins to count. */
#define FIRST_HCA_GUID 0x100000
#define FIRST_SWITCH_GUID 0x200000

struct reader {
	struct topology *t;
	struct topology_halves halves;
	struct topology_scan scan;
	/* The record that is being read; has_node: its line has come. */
	struct topology_node node;
	struct topology_port ports[TOPOLOGY_PORTS_MAX + 1];
	bool has_node, takes_links;
	const char *node_file;
	unsigned node_line;
	/* What lines before a node have said about it, and about all that follow. */
	uint32_t vendor_id;
	uint16_t device_id;
	uint64_t system_guid, port_0_guid, next_hca_guid, next_switch_guid;
	uint8_t widths, speeds;
	/* Paths of included files, which messages name. */
	char *paths[INCLUDES_MAX];
	unsigned path_count, depth;
	bool may_include;
};

static int read_lines(struct reader *r, const char *text, size_t bytes, const char *file);

/* ---- records ---- */

static int end_record(struct reader *r)
{
	struct topology_scan at = r->scan;
	char text[256];
	uint32_t node;
	int err;

	r->takes_links = false;
	if (!r->has_node)
		return 0;
	r->has_node = false;
	err = topology_add_node(r->t, &r->node, &node, text, sizeof(text));
	if (!err)
		return 0;
	at.file = r->node_file;
	at.line = r->node_line;
	topology_scan_refuse(&at, "%s", text);
	return err;
}

/* Only a comment may follow. */
static int expect_end(struct topology_scan *s)
{
	struct topology_word word;
	char text[40];

	topology_scan_blanks(s);
	if (s->at < s->end && *s->at == '#')
		return 0;
	if (!topology_scan_word(s, &word))
		return 0;
	return topology_scan_refuse(s, "'%s' is not expected here", topology_word_text(&word, text, sizeof(text)));
}

/* The comment of a node: its description, in quotes or before the words that follow it, and port 0. */
static int read_description(struct topology_scan *s, struct topology_node *n)
{
	static const char *const ends[] = { " enhanced port 0", " base port 0" };
	const char *rest = s->at;
	size_t bytes = (size_t)(s->end - rest);

	n->enhanced_port_0 = n->kind == TOPOLOGY_SWITCH && memmem(rest, bytes, "enhanced port 0", 15);
	topology_scan_blanks(s);
	if (s->at < s->end && *s->at == '"') {
		if (s->end - s->at > 1 && s->at[1] == '"')
			return 0;
		return topology_scan_quoted(s, "the description of the node", n->name, sizeof(n->name));
	}
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		const char *end = memmem(s->at, (size_t)(s->end - s->at), ends[i], strlen(ends[i]));
		size_t length = end ? (size_t)(end - s->at) : 0;

		if (!length)
			continue;
		if (length >= sizeof(n->name) || memchr(s->at, 0, length))
			return topology_scan_refuse(s, "the description of '%s' is longer than %zu bytes", n->id,
						    sizeof(n->name) - 1);
		memcpy(n->name, s->at, length);
		n->name[length] = '\0';
		break;
	}
	return 0;
}

static int read_node(struct reader *r, enum topology_kind kind)
{
	struct topology_scan *s = &r->scan;
	struct topology_node *n = &r->node;
	uint64_t ports;
	int err = topology_scan_number(s, "the number of ports", TOPOLOGY_PORTS_MAX, &ports);

	if (err)
		return err;
	memset(r->ports, 0, sizeof(r->ports));
	*n = (struct topology_node){ .kind = kind, .port_count = (uint8_t)ports, .vendor_id = r->vendor_id,
				     .device_id = r->device_id, .system_guid = r->system_guid, .ports = r->ports };
	r->vendor_id = r->device_id = 0;
	r->system_guid = 0;
	err = topology_scan_quoted(s, "the name of the node", n->id, sizeof(n->id));
	if (err)
		return err;
	err = expect_end(s);
	if (err)
		return err;
	if (topology_scan_char(s, '#')) {
		err = read_description(s, n);
		if (err)
			return err;
	}
	if (kind == TOPOLOGY_SWITCH) {
		n->guid = r->next_switch_guid++;
		r->ports[0].guid = r->port_0_guid;
		r->port_0_guid = 0;
	} else {
		n->guid = r->next_hca_guid;
		r->next_hca_guid += ports + 1;
	}
	r->has_node = r->takes_links = true;
	r->node_file = s->file;
	r->node_line = s->line;
	return 0;
}

static int read_switch(struct reader *r)
{
	return read_node(r, TOPOLOGY_SWITCH);
}

static int read_hca(struct reader *r)
{
	return read_node(r, TOPOLOGY_HCA);
}

/* ---- lines before a node ---- */

static int expect_equals(struct reader *r, const char *key)
{
	topology_scan_blanks(&r->scan);
	if (topology_scan_char(&r->scan, '='))
		return 0;
	return topology_scan_refuse(&r->scan, "'%s' is followed by = and a number", key);
}

static int read_number(struct reader *r, const char *key, uint64_t max, uint64_t *value)
{
	int err = expect_equals(r, key);

	if (!err)
		err = topology_scan_number(&r->scan, key, max, value);
	return err ? err : expect_end(&r->scan);
}

/* GUID, and behind that of a switch perhaps the one of its port 0, in parentheses. */
static int read_guid(struct reader *r, const char *key, uint64_t *guid, uint64_t *port_guid)
{
	int err = expect_equals(r, key);

	if (!err)
		err = topology_scan_guid(&r->scan, key, guid);
	if (err)
		return err;
	if (!*guid)
		return topology_scan_refuse(&r->scan, "%s is 0", key);
	topology_scan_blanks(&r->scan);
	if (!port_guid || !topology_scan_char(&r->scan, '('))
		return expect_end(&r->scan);
	err = topology_scan_guid(&r->scan, "the GUID of port 0", port_guid);
	if (err)
		return err;
	if (!topology_scan_char(&r->scan, ')'))
		return topology_scan_refuse(&r->scan, "the GUID of port 0 has no closing parenthesis");
	return expect_end(&r->scan);
}

static int read_vendor(struct reader *r)
{
	uint64_t value;
	int err = read_number(r, "vendid", 0xffffff, &value);

	if (!err)
		r->vendor_id = (uint32_t)value;
	return err;
}

static int read_device(struct reader *r)
{
	uint64_t value;
	int err = read_number(r, "devid", 0xffff, &value);

	if (!err)
		r->device_id = (uint16_t)value;
	return err;
}

static int read_system_guid(struct reader *r)
{
	return read_guid(r, "sysimgguid", &r->system_guid, NULL);
}

static int read_switch_guid(struct reader *r)
{
	return read_guid(r, "switchguid", &r->next_switch_guid, &r->port_0_guid);
}

static int read_hca_guid(struct reader *r)
{
	return read_guid(r, "caguid", &r->next_hca_guid, NULL);
}

static int read_width(struct reader *r)
{
	uint64_t value;
	int err = read_number(r, "width", 31, &value);

	if (!err && !value)
		return topology_scan_refuse(&r->scan, "width has the bits of enabled widths, 1 to 31 (2: 4x)");
	if (!err)
		r->widths = (uint8_t)value;
	return err;
}

static int read_speed(struct reader *r)
{
	struct topology_scan at = r->scan;
	struct topology_word word;
	enum topology_speed speed;
	uint64_t value;
	int err;

	/* ibsim knows no names and no speed above QDR. */
	if (topology_scan_char(&at, '=') && topology_scan_word(&at, &word) &&
	    !topology_parse_speed(word.at, word.bytes, &speed)) {
		r->speeds = (uint8_t)(1U << speed);
		return expect_end(&at);
	}
	err = read_number(r, "speed", 7, &value);
	if (!err && !value)
		return topology_scan_refuse(&r->scan,
					    "speed has the bits of enabled speeds, 1 to 7 (4: QDR), or a name");
	if (!err)
		r->speeds = (uint8_t)value;
	return err;
}

static int refuse_router(struct reader *r)
{
	return topology_scan_refuse(&r->scan, "a router: a description is one subnet, and routers join several");
}

static int refuse_command(struct reader *r)
{
	return topology_scan_refuse(&r->scan, "a command of ibsim (module, do, pdebug) is no description of a "
					      "subnet: give each node its full name, without commands");
}

/* Headings of ibnetdiscover --grouping. */
static int skip(struct reader *r)
{
	return 0;
}

/* ---- include ---- */

/* The path of an included file, relative to the one that includes it; kept for messages. */
static const char *keep_path(struct reader *r, const char *name)
{
	const char *slash = strrchr(r->scan.file, '/');
	int folder = *name == '/' || !slash ? 0 : (int)(slash + 1 - r->scan.file);
	char *path;

	if (asprintf(&path, "%.*s%s", folder, r->scan.file, name) < 0)
		return NULL;
	r->paths[r->path_count++] = path;
	return path;
}

static int read_include(struct reader *r)
{
	char name[512], why[128], *text;
	const char *path;
	size_t bytes;
	int err;

	if (!r->may_include)
		return topology_scan_refuse(&r->scan, "include stands only in files");
	if (r->depth >= INCLUDE_DEPTH_MAX || r->path_count >= INCLUDES_MAX)
		return topology_scan_refuse(&r->scan, "files are included more than %d deep or more than %d times",
					    INCLUDE_DEPTH_MAX, INCLUDES_MAX);
	err = topology_scan_quoted(&r->scan, "the name of the file", name, sizeof(name));
	if (!err)
		err = expect_end(&r->scan);
	if (err)
		return err;
	path = keep_path(r, name);
	if (!path)
		return -ENOMEM;
	text = text_file_read(path, FILE_BYTES_MAX, &bytes, why, sizeof(why));
	if (!text)
		return topology_scan_refuse(&r->scan, "cannot read '%s': %s", path, why);
	r->depth++;
	err = read_lines(r, text, bytes, path);
	r->depth--;
	free(text);
	return err;
}

/* ---- lines ---- */

static const struct {
	const char *key;
	int (*read)(struct reader *r);
} keys[] = {
	{ "Switch", read_switch },     { "Ca", read_hca },          { "Hca", read_hca },
	{ "vendid", read_vendor },     { "devid", read_device },    { "sysimgguid", read_system_guid },
	{ "caguid", read_hca_guid },   { "hcaguid", read_hca_guid }, { "hcaguids", read_hca_guid },
	{ "width", read_width },       { "speed", read_speed },     { "switchguid", read_switch_guid },
	{ "include", read_include },   { "Rt", refuse_router },     { "Router", refuse_router },
	{ "rtguid", refuse_router },   { "module", refuse_command }, { "do", refuse_command },
	{ "pdebug", refuse_command },  { "Chassis", skip },         { "Non-Chassis", skip },
};

static int read_key(struct reader *r)
{
	struct topology_scan *s = &r->scan;
	struct topology_word word = { s->at, 0 };
	struct nearest near;
	char text[40], hint[64];

	while (s->at < s->end && !strchr(" \t\r=+\"#", *s->at))
		s->at++;
	word.bytes = (size_t)(s->at - word.at);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (topology_word_is(&word, keys[i].key))
			return keys[i].read(r);
	near = NEAREST(topology_word_text(&word, text, sizeof(text)));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].read != refuse_router && keys[i].read != refuse_command)
			nearest_try(&near, keys[i].key);
	return topology_scan_refuse(s, "'%s' is not known at the start of a line%s", text,
				    nearest_hint(&near, hint, sizeof(hint)));
}

static int read_line(struct reader *r)
{
	struct topology_scan *s = &r->scan;
	int err;

	topology_scan_blanks(s);
	if (s->at == s->end || *s->at == '#')
		return 0;
	if (*s->at == '@')
		return topology_scan_refuse(s, "an alias (@): right is the number of the port, [1] \"NODE\"[2]");
	if (*s->at == '[') {
		if (!r->takes_links)
			return topology_scan_refuse(s, "a port, but no node is before it: right is a line "
						       "Switch or Ca first");
		return topology_half_read(&r->halves, s, &r->node, r->t->node_count, r->widths, r->speeds);
	}
	err = end_record(r);
	return err ? err : read_key(r);
}

static int read_lines(struct reader *r, const char *text, size_t bytes, const char *file)
{
	struct topology_scan outer = r->scan;
	const char *end = text + bytes;
	int err = 0;

	r->scan.file = file;
	r->scan.line = 0;
	while (text < end && !err) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		r->scan.at = text;
		r->scan.end = newline ? newline : end;
		r->scan.line++;
		text = newline ? newline + 1 : end;
		if (r->scan.end - r->scan.at > LINE_BYTES_MAX)
			err = topology_scan_refuse(&r->scan, "the line has more than %d bytes", LINE_BYTES_MAX);
		else
			err = read_line(r);
	}
	if (!err)
		err = end_record(r);
	r->scan = outer;
	return err;
}

static void free_reader(struct reader *r)
{
	topology_halves_free(&r->halves);
	for (unsigned i = 0; i < r->path_count; i++)
		free(r->paths[i]);
	free(r);
}

static int read_all(struct reader *r, const char *text, size_t bytes, const char *name)
{
	int err = read_lines(r, text, bytes, name);

	if (err)
		return err;
	r->scan.file = name;
	if (!r->t->node_count)
		return topology_say(r->scan.why, r->scan.why_bytes, -EINVAL, "%s: no node stands in it", name);
	return topology_halves_join(&r->halves, r->t, &r->scan);
}

static int read_text(const char *text, size_t bytes, const char *name, bool may_include, struct topology **t,
		     char *why, size_t why_bytes)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct topology *made = topology_new();
	int err = -ENOMEM;

	if (!r || !made) {
		topology_say(why, why_bytes, err, "%s: no memory", name);
		goto out;
	}
	r->t = made;
	r->scan = (struct topology_scan){ .file = name, .why = why, .why_bytes = why_bytes };
	r->next_hca_guid = FIRST_HCA_GUID;
	r->next_switch_guid = FIRST_SWITCH_GUID;
	r->widths = TOPOLOGY_4X;
	r->speeds = 1U << TOPOLOGY_SDR;
	r->may_include = may_include;
	err = read_all(r, text, bytes, name);
	if (!err) {
		*t = made;
		made = NULL;
	}
out:
	if (r)
		free_reader(r);
	topology_free(made);
	return err;
}

int topology_read(const char *text, size_t bytes, const char *name, struct topology **t, char *why,
		  size_t why_bytes)
{
	return read_text(text, bytes, name, false, t, why, why_bytes);
}

int topology_read_file(const char *path, struct topology **t, char *why, size_t why_bytes)
{
	char reason[128], *text;
	size_t bytes;
	int err;

	text = text_file_read(path, FILE_BYTES_MAX, &bytes, reason, sizeof(reason));
	if (!text)
		return topology_say(why, why_bytes, -EIO, "cannot read '%s': %s", path, reason);
	err = read_text(text, bytes, path, true, t, why, why_bytes);
	free(text);
	return err;
}
