/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JSON text as a tree, by jansson, and the line of every value, by a scanner
 * that runs over the text in step with the parsed tree. The text is known to be
 * valid by then, so the scanner only has to count lines and skip.
 */
#include "gateway/config/tree.h"

#include <errno.h>
#include <string.h>

struct scanner {
	struct config *c;
	const char *p;
	unsigned line;
};

static void skip_blanks(struct scanner *s)
{
	for (;; s->p++) {
		if (*s->p == '\n')
			s->line++;
		else if (*s->p != ' ' && *s->p != '\t' && *s->p != '\r')
			return;
	}
}

static void skip_string(struct scanner *s)
{
	for (s->p++; *s->p && *s->p != '"'; s->p++)
		if (*s->p == '\\' && s->p[1])
			s->p++;
	if (*s->p)
		s->p++;
}

static void scan(struct scanner *s, const json_t *value, size_t parent,
		 const char *key, size_t index);

static void scan_object(struct scanner *s, const json_t *value, size_t self)
{
	const char *name;
	json_t *member;

	s->p++; /* { */
	/* jansson keeps the order of the text, and refuses doubles. */
	json_object_foreach((json_t *)value, name, member) {
		skip_blanks(s);
		skip_string(s);
		skip_blanks(s);
		s->p++; /* : */
		scan(s, member, self, name, 0);
		skip_blanks(s);
		if (*s->p == ',')
			s->p++;
	}
	skip_blanks(s);
	if (*s->p == '}')
		s->p++;
}

static void scan_array(struct scanner *s, const json_t *value, size_t self)
{
	size_t i, count = json_array_size(value);

	s->p++; /* [ */
	for (i = 0; i < count; i++) {
		scan(s, json_array_get(value, i), self, NULL, i);
		skip_blanks(s);
		if (*s->p == ',')
			s->p++;
	}
	skip_blanks(s);
	if (*s->p == ']')
		s->p++;
}

static void scan(struct scanner *s, const json_t *value, size_t parent,
		 const char *key, size_t index)
{
	size_t self;

	skip_blanks(s);
	self = config_place_add(s->c, parent, key, index, value, s->line);
	if (json_is_object(value))
		scan_object(s, value, self);
	else if (json_is_array(value))
		scan_array(s, value, self);
	else if (json_is_string(value))
		skip_string(s);
	else
		s->p += strcspn(s->p, ",]} \t\r\n");
}

/* jansson allows 2048 levels; the readers of the tree are recursive too. */
static bool too_deep(const char *text)
{
	unsigned depth = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '"') {
			for (p++; *p && *p != '"'; p++)
				if (*p == '\\' && p[1])
					p++;
			if (!*p)
				return false;
		} else if (*p == '{' || *p == '[') {
			if (++depth > CONFIG_DEPTH_MAX)
				return true;
		} else if ((*p == '}' || *p == ']') && depth) {
			depth--;
		}
	}
	return false;
}

int config_parse_json(struct config *c)
{
	struct scanner s = { .c = c, .p = c->text, .line = 1 };
	json_error_t error;

	if (too_deep(c->text)) {
		config_error_at(c, 1, "nested more than %d deep",
				CONFIG_DEPTH_MAX);
		return -EINVAL;
	}
	c->root = json_loadb(c->text, c->text_len, JSON_REJECT_DUPLICATES,
			     &error);
	if (!c->root) {
		config_error_at(c, error.line > 0 ? (unsigned)error.line : 1,
				"JSON: %s (column %d)", error.text,
				error.column);
		return -EINVAL;
	}
	scan(&s, c->root, 0, NULL, 0);
	return 0;
}
