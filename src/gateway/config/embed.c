/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libconfig text in the place of a value of a JSON text: a JSON configuration may
 * include files of both kinds. It is read for itself, then written into the expanded
 * text as JSON, each value on a line that is mapped to the line it came from.
 */
#include "gateway/config/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

struct embed {
	struct config *to;
	struct config from;
	unsigned first_file; /* of `from` in `to` */
	size_t place;        /* the values are written in the order of their places */
};

/* What is written next stood at `line` of the expanded text of `from`. */
static void begin_line(struct embed *e, unsigned line)
{
	struct config_line at = { 0, 1 };

	if (e->from.line_count)
		at = e->from.lines[MIN(MAX(line, 1u), e->from.line_count) - 1];
	config_text_put(e->to, "\n", 1);
	config_text_begin_line(e->to, e->first_file + at.file, at.line);
}

static void put_scalar(struct embed *e, const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	if (text)
		config_text_put(e->to, text, strlen(text));
	else
		e->to->no_memory = true;
	free(text);
}

static void put_key(struct embed *e, const char *key)
{
	json_t *text = json_string(key);

	put_scalar(e, text);
	config_text_put(e->to, ": ", 2);
	json_decref(text);
}

static void put_value(struct embed *e, const json_t *value)
{
	bool object = json_is_object(value);
	const char *comma = "";
	const char *key;
	json_t *member;
	size_t i;

	begin_line(e, e->from.places[e->place].line);
	if (e->from.places[e->place].key)
		put_key(e, e->from.places[e->place].key);
	e->place++;
	if (!object && !json_is_array(value)) {
		put_scalar(e, value);
		return;
	}
	config_text_put(e->to, object ? "{" : "[", 1);
	if (object) {
		json_object_foreach((json_t *)value, key, member) {
			config_text_put(e->to, comma, strlen(comma));
			put_value(e, member);
			comma = ",";
		}
	} else {
		json_array_foreach(value, i, member) {
			config_text_put(e->to, comma, strlen(comma));
			put_value(e, member);
			comma = ",";
		}
	}
	config_text_put(e->to, object ? "}" : "]", 1);
}

int config_text_embed(struct config *c, const char *path, const char *text,
		      size_t len)
{
	struct embed e = { .to = c, .first_file = c->file_count };
	int ret = config_text_expand(&e.from, config_file_add(&e.from, path), text,
				     len, false);

	if (!ret)
		ret = config_parse_libconfig(&e.from);
	for (unsigned i = 0; i < e.from.file_count; i++)
		config_file_add(c, e.from.files[i]);
	if (!ret && e.from.no_memory)
		ret = -ENOMEM;
	if (!ret)
		put_value(&e, e.from.root);
	config_release(&e.from);
	return ret;
}
