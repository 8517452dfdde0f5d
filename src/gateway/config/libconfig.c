/* SPDX-License-Identifier: BSD-2-Clause */
/* A libconfig text as a JSON tree. */
#include <errno.h>
#include <libconfig.h>
#include <string.h>

#include "gateway/config/tree.h"

static json_t *convert(struct config *c, const config_setting_t *s,
		       size_t parent, size_t index, unsigned depth);

/* Adds all children of `s` to `to`; the place of `to` is `self`. */
static int convert_children(struct config *c, const config_setting_t *s,
			    json_t *to, size_t self, unsigned depth)
{
	int count = config_setting_length(s);

	for (int i = 0; i < count; i++) {
		const config_setting_t *e =
			config_setting_get_elem(s, (unsigned)i);
		json_t *value = convert(c, e, self, (size_t)i, depth + 1);
		int ret;

		if (!value)
			return -EINVAL;
		ret = json_is_object(to) ?
			      json_object_set_new(to, config_setting_name(e),
						  value) :
			      json_array_append_new(to, value);
		if (ret) {
			config_error_at(c, config_setting_source_line(e),
					"not a usable name (UTF-8 expected)");
			return -EINVAL;
		}
	}
	return 0;
}

static json_t *convert_scalar(const config_setting_t *s)
{
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
		return json_integer(config_setting_get_int(s));
	case CONFIG_TYPE_INT64:
		return json_integer(config_setting_get_int64(s));
	case CONFIG_TYPE_FLOAT:
		return json_real(config_setting_get_float(s));
	case CONFIG_TYPE_STRING:
		return json_string(config_setting_get_string(s));
	case CONFIG_TYPE_BOOL:
		return json_boolean(config_setting_get_bool(s));
	default:
		return NULL;
	}
}

static json_t *convert(struct config *c, const config_setting_t *s,
		       size_t parent, size_t index, unsigned depth)
{
	bool group = config_setting_is_group(s);
	unsigned line = config_setting_source_line(s);
	json_t *value;
	size_t self;

	if (depth > CONFIG_DEPTH_MAX) {
		config_error_at(c, line, "nested more than %d deep",
				CONFIG_DEPTH_MAX);
		return NULL;
	}
	if (group)
		value = json_object();
	else if (config_setting_is_aggregate(s))
		value = json_array();
	else
		value = convert_scalar(s);
	if (!value) {
		config_error_at(c, line,
				"not a usable value (texts are UTF-8, numbers finite)");
		return NULL;
	}
	self = config_place_add(c, parent, config_setting_name(s), index, value,
				line);
	if (config_setting_is_aggregate(s) &&
	    convert_children(c, s, value, self, depth)) {
		json_decref(value);
		return NULL;
	}
	return value;
}

/* libconfig says "syntax error" and little more; the line itself helps. */
static void report(struct config *c, const config_t *cfg)
{
	unsigned line = (unsigned)config_error_line(cfg);
	const char *text = config_error_text(cfg), *start = c->text;
	size_t n;

	for (unsigned i = 1; i < line && start; i++) {
		start = strchr(start, '\n');
		if (start)
			start++;
	}
	if (!start)
		start = "";
	start += strspn(start, " \t");
	n = strcspn(start, "\r\n");
	config_error_at(c, line,
			"%s at or before '%.*s'; a setting is written name = value, groups in { }, lists in ( )",
			text ? text : "syntax error", (int)(n > 60 ? 60 : n),
			start);
}

int config_parse_libconfig(struct config *c)
{
	config_t cfg;
	int ret = 0;

	config_init(&cfg);
	if (!config_read_string(&cfg, c->text)) {
		report(c, &cfg);
		ret = -EINVAL;
		goto out;
	}
	c->root = convert(c, config_root_setting(&cfg), 0, 0, 0);
	if (!c->root)
		ret = -EINVAL;
out:
	config_destroy(&cfg);
	return ret;
}
