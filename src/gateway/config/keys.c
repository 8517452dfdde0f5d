/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One form for settings that mean the same: defaults put in, numbers of the
 * kind that the key wants, short forms written out. For comparing.
 */
#include "gateway/config/keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static json_t *from_text(enum config_type type, const char *text)
{
	switch (type) {
	case CONFIG_BOOL:
		return json_boolean(text && !strcasecmp(text, "true"));
	case CONFIG_INT:
		return json_integer(text ? strtoll(text, NULL, 0) : 0);
	case CONFIG_REAL:
		return json_real(text ? strtod(text, NULL) : 0);
	case CONFIG_STRING:
	case CONFIG_ENUM:
		return text ? json_string(text) : NULL;
	case CONFIG_JSON:
		break;
	}
	return NULL;
}

/* The value in the kind of its key; NULL when it is so already. */
static json_t *convert(enum config_type type, const json_t *v)
{
	const char *text = json_string_value(v);

	if (text && type != CONFIG_STRING && type != CONFIG_ENUM &&
	    type != CONFIG_JSON)
		return from_text(type, text);
	if (type == CONFIG_BOOL && json_is_integer(v))
		return json_boolean(json_integer_value(v));
	if (type == CONFIG_REAL && json_is_integer(v))
		return json_real((double)json_integer_value(v));
	if (type == CONFIG_INT && json_is_real(v))
		return json_integer((json_int_t)json_real_value(v));
	return NULL;
}

void keys_fill(json_t *o, const struct config_key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct config_key *k = &keys[i];
		json_t *v = json_object_get(o, k->name), *other;

		if (v && !json_is_null(v)) {
			other = convert(k->type, v);
		} else {
			json_object_del(o, k->name);
			other = from_text(k->type, k->fallback);
		}
		if (other)
			json_object_set_new(o, k->name, other);
	}
}

/* "fix" and { type = "fix" } are the same. */
static json_t *long_form(json_t *v)
{
	return json_is_string(v) ? json_pack("{sO}", "type", v) : json_incref(v);
}

void keys_unfold(json_t *o)
{
	json_t *format = json_object_get(o, "format");
	json_t *hooks = json_object_get(o, "hooks"), *list, *e;
	size_t i;

	if (format)
		json_object_set_new(o, "format", long_form(format));
	if (json_is_array(hooks) && !json_array_size(hooks))
		json_object_del(o, "hooks");
	hooks = json_object_get(o, "hooks");
	if (!hooks)
		return;
	list = json_array();
	if (json_is_array(hooks)) {
		json_array_foreach(hooks, i, e)
			json_array_append_new(list, long_form(e));
	} else {
		json_array_append_new(list, long_form(hooks));
	}
	json_object_set_new(o, "hooks", list);
}
