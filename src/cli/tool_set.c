/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts "key.key=value" of the command line into a JSON tree; see tool.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

/* JSON if the text is JSON, else the text as a string; NULL: invalid UTF-8. */
static json_t *value_of(const char *text, size_t len)
{
	json_t *v = json_loadb(text, len, JSON_DECODE_ANY, NULL);

	return v ? v : json_stringn(text, len);
}

/* "a,b" as a list. */
static json_t *list_of(const char *text)
{
	json_t *list = json_array();

	for (;; text++) {
		size_t n = strcspn(text, ",");

		if (json_array_append_new(list, value_of(text, n))) {
			json_decref(list);
			return NULL;
		}
		text += n;
		if (!*text)
			return list;
	}
}

static json_t *parse_value(const char *text, bool lists)
{
	json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

	if (v)
		return v;
	return lists && strchr(text, ',') ? list_of(text) : json_string(text);
}

/* A list of the old values and the new one. */
static json_t *joined(json_t *old, json_t *value)
{
	json_t *list = json_is_array(old) ? json_copy(old) : json_array();

	if (!json_is_array(old))
		json_array_append(list, old);
	if (json_is_array(value))
		json_array_extend(list, value);
	else
		json_array_append(list, value);
	json_decref(value);
	return list;
}

static int put(json_t *object, const char *key, json_t *value, bool lists,
	       json_t *keep)
{
	json_t *old = json_object_get(object, key);

	if (old && keep)
		json_array_append(keep, old);
	if (old && lists)
		value = joined(old, value);
	return json_object_set_new(object, key, value);
}

int tool_set(const char *program, json_t *object, const char *assignment, bool lists, json_t *keep)
{
	char *key = strdup(assignment), *equals = key ? strchr(key, '=') : NULL;
	char *part = key, *dot;
	json_t *value;
	int ret = -EINVAL;

	if (!equals || equals == key) {
		fprintf(stderr, "%s: -o %s: expected KEY=VALUE\n", program,
			assignment);
		goto out;
	}
	*equals = '\0';
	for (; (dot = strchr(part, '.')); part = dot + 1) {
		json_t *inner;

		*dot = '\0';
		inner = json_object_get(object, part);
		if (!inner) {
			inner = json_object();
			json_object_set_new(object, part, inner);
		}
		if (!json_is_object(inner)) {
			fprintf(stderr, "%s: -o %s: '%s' is no group of keys\n",
				program, assignment, part);
			goto out;
		}
		object = inner;
	}
	value = parse_value(equals + 1, lists);
	if (!value || put(object, part, value, lists, keep)) {
		fprintf(stderr, "%s: -o %s: the value is not valid UTF-8\n",
			program, assignment);
		goto out;
	}
	ret = 0;
out:
	free(key);
	return ret;
}

int tool_take_setting(const struct option_given *g)
{
	return tool_set(g->program, *(json_t **)option_member(g), g->value, false, NULL) ? OPTIONS_WRONG :
											   OPTIONS_GO_ON;
}

int tool_take_list_setting(const struct option_given *g)
{
	return tool_set(g->program, *(json_t **)option_member(g), g->value, true, NULL) ? OPTIONS_WRONG :
											  OPTIONS_GO_ON;
}
