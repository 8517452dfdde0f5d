/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON Schema from the tables of keys. */
#include "gateway/super_node/schema.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/format.h"
#include "gateway/plugin/hook.h"
#include "gateway/config/keys.h"
#include "gateway/plugin/node.h"

#define REF(name) json_pack("{ss}", "$ref", "#/$defs/" name)

/* A number may also be a text that holds one, null is as if it were absent. */
static json_t *number(const struct config_key *k, const char *type,
		      const char *pattern)
{
	json_t *o = json_pack("{s[sss] ss}", "type", type, "string", "null",
			      "pattern", pattern);

	bool any = k->min == 0 && k->max == 0;

	if (any && k->type != CONFIG_INT)
		return o;
	json_object_set_new(o, "minimum", json_real(any ? (double)INT64_MIN : k->min));
	if (!any && k->max < (double)INT64_MAX)
		json_object_set_new(o, "maximum", json_real(k->max));
	return o;
}

static json_t *fallback_of(const struct config_key *k)
{
	switch (k->type) {
	case CONFIG_BOOL:
		return json_boolean(k->fallback && !strcmp(k->fallback, "true"));
	case CONFIG_INT:
		return json_integer(k->fallback ? strtoll(k->fallback, NULL, 0) :
						  0);
	case CONFIG_REAL:
		return json_real(k->fallback ? strtod(k->fallback, NULL) : 0);
	case CONFIG_STRING:
	case CONFIG_ENUM:
		return k->fallback ? json_string(k->fallback) : NULL;
	case CONFIG_JSON:
		break;
	}
	return NULL;
}

static json_t *names_of(const struct config_key *k)
{
	json_t *list = json_array();

	for (size_t i = 0; k->names[i]; i++)
		json_array_append_new(list, json_string(k->names[i]));
	json_array_append_new(list, json_null());
	return json_pack("{so}", "enum", list);
}

/* Takes null out of the schema of a required key, because null counts as absent. */
static void forbid_null(json_t *o)
{
	static const char *const lists[] = { "type", "enum", "anyOf" };
	json_t *null = json_pack("{ss}", "type", "null");

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		json_t *list = json_object_get(o, lists[i]);

		for (size_t k = json_array_size(list); k-- > 0;) {
			const json_t *e = json_array_get(list, k);

			if (json_is_null(e) || json_equal(e, null) ||
			    !strcmp(json_string_value(e) ?: "", "null"))
				json_array_remove(list, k);
		}
	}
	json_decref(null);
}

static json_t *group_of(const struct key_table *t, const char *where);

/* What no table types: a group, or what the key itself or schema_forms.c says. */
static json_t *free_form(const struct config_key *k, const char *where)
{
	const struct key_table table = { k->group, k->group_count };
	json_t *form = k->form ? schema_text(k->form) : NULL;

	if (k->group && form)
		return json_pack("{s[oo]}", "anyOf", form, group_of(&table, where));
	if (k->group)
		return group_of(&table, where);
	return form ? form : schema_form(where, k->name);
}

static json_t *property(const struct config_key *k, const char *where)
{
	json_t *o = NULL, *fallback;

	switch (k->type) {
	case CONFIG_BOOL:
		/* 0 and 1 say the same. */
		o = json_pack("{s[ssss] si si ss}", "type", "boolean", "string",
			      "integer", "null", "minimum", 0, "maximum", 1,
			      "pattern", "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$");
		break;
	case CONFIG_INT:
		o = number(k, "integer",
			   "^[ ]*[-+]?(0[xX][0-9a-fA-F]+|[0-9]+)$");
		break;
	case CONFIG_REAL:
		o = number(k, "number", "^[ ]*[-+]?[0-9.]");
		break;
	case CONFIG_STRING:
		o = json_pack("{s[ss]}", "type", "string", "null");
		break;
	case CONFIG_ENUM:
		o = names_of(k);
		break;
	case CONFIG_JSON:
		o = free_form(k, where);
		break;
	}
	if (k->required)
		forbid_null(o);
	if (k->help)
		json_object_set_new(o, "description", json_string(k->help));
	fallback = k->required ? NULL : fallback_of(k);
	if (fallback)
		json_object_set_new(o, "default", fallback);
	return o;
}

/* Adds the keys that are not there yet: a plug-in's own come first. `where`: the definition
 * of a plug-in or group; NULL: of keys that all have. */
static void add_keys(json_t *group, const struct config_key *keys, size_t count,
		     const char *where)
{
	json_t *properties = json_object_get(group, "properties");
	json_t *required = json_object_get(group, "required");

	for (size_t i = 0; i < count; i++) {
		if (json_object_get(properties, keys[i].name))
			continue;
		json_object_set_new(properties, keys[i].name,
				    property(&keys[i], where));
		if (keys[i].required)
			json_array_append_new(required,
					      json_string(keys[i].name));
	}
}

static json_t *group_new(const char *description)
{
	json_t *o = json_pack("{s[ss] so so sb}", "type", "object", "null", "properties",
			      json_object(), "required", json_array(),
			      "additionalProperties", 0);

	if (description)
		json_object_set_new(o, "description", json_string(description));
	return o;
}

static json_t *group_of(const struct key_table *t, const char *where)
{
	json_t *o = group_new(NULL);

	add_keys(o, t->keys, t->count, where);
	return o;
}

static void set(json_t *group, const char *key, json_t *schema)
{
	json_t *properties = json_object_get(group, "properties");
	json_t *help = json_object_get(json_object_get(properties, key),
				       "description");

	if (help)
		json_object_set(schema, "description", help);
	json_object_set_new(properties, key, schema);
}

/* The spellings of signals; `more`: keys that the node-type has for each, which it looks
 * for in `in`. */
static json_t *signals_schema(const struct config_key *more, size_t more_count,
			      const char *where, bool required)
{
	json_t *one = group_of(&keys_signal, "signal");

	add_keys(one, more, more_count, where);
	if (!required)
		json_array_clear(json_object_get(one, "required"));
	json_object_set_new(one, "type", json_string("object"));
	return json_pack("{s[{ss} {ssss} O {ss so}]}", "anyOf", "type", "null", "type", "string",
			 "pattern", "^([0-9]*[fibc])+$", one, "type", "array", "items", one);
}

static json_t *direction(const struct node_type *t, const struct config_key *keys,
			 size_t count, const char *where, bool in)
{
	json_t *o = group_new(NULL);

	add_keys(o, keys, count, where);
	add_keys(o, keys_direction.keys, keys_direction.count, NULL);
	if (t->signal_key_count)
		set(o, "signals", signals_schema(t->signal_keys, t->signal_key_count, where, in));
	return o;
}

static json_t *node_schema(const void *type, const char *where)
{
	const struct node_type *t = type;
	json_t *o = group_new(t->description);

	add_keys(o, t->keys, t->key_count, where);
	add_keys(o, keys_node.keys, keys_node.count, NULL);
	if (t->signal_key_count)
		set(o, "signals", signals_schema(t->signal_keys, t->signal_key_count, where, false));
	set(o, "in", direction(t, t->in_keys, t->in_key_count, where, true));
	set(o, "out", direction(t, t->out_keys, t->out_key_count, where, false));
	return o;
}

static json_t *hook_schema(const void *type, const char *where)
{
	const struct hook_type *t = type;
	json_t *o = group_new(t->description);

	add_keys(o, t->keys, t->key_count, where);
	add_keys(o, keys_hook.keys, keys_hook.count, NULL);
	/* Others are the script's. */
	if (t->open_keys)
		json_object_del(o, "additionalProperties");
	return o;
}

static json_t *format_schema(const void *type, const char *where)
{
	const struct format_type *t = type;
	json_t *o = group_new(t->description);

	add_keys(o, t->keys, t->key_count, where);
	add_keys(o, keys_format.keys, keys_format.count, NULL);
	return o;
}

/* A group whose `type` decides what else may stand in it; *names gets them. */
static json_t *by_type(json_t *defs, const char *kind,
		       const struct plugin *table,
		       json_t *(*make)(const void *type, const char *where),
		       json_t **names)
{
	json_t *cases = json_array();

	*names = json_array();
	for (const struct plugin *p = table; p->name; p++) {
		const void *type = plugin_type(p);
		json_t *def;
		char *key;

		if (!type)
			continue;
		def = json_sprintf("%s-%s", kind, p->name);
		key = (char *)json_string_value(def);
		json_object_set_new(defs, key, make(type, key));
		json_array_append_new(*names, json_string(p->name));
		json_array_append_new(
			cases,
			json_pack("{s{s{s{ss}} s[s]} s{so}}", "if", "properties",
				  "type", "const", p->name, "required", "type",
				  "then", "$ref",
				  json_sprintf("#/$defs/%s", key)));
		json_decref(def);
	}
	return json_pack("{ss s[s] s{s{sO}} so}", "type", "object", "required",
			 "type", "properties", "type", "enum", *names, "allOf",
			 cases);
}

/* A name, a group, and for hooks a list of both. */
static json_t *name_or_group(const char *ref, json_t *names, bool list)
{
	json_t *one = json_pack("{s[{sO} {ss}]}", "anyOf", "enum", names, "$ref",
				ref);

	if (!list)
		return json_pack("{s[o {ss}]}", "anyOf", one, "type", "null");
	return json_pack("{s[O {ss so} {ss}]}", "anyOf", one, "type", "array",
			 "items", one, "type", "null");
}

static json_t *definitions(void)
{
	json_t *defs = json_object(), *nodes, *hooks, *formats, *path;

	json_object_set_new(defs, "node", by_type(defs, "node", node_plugins,
						  node_schema, &nodes));
	json_object_set_new(defs, "hook", by_type(defs, "hook", hook_plugins,
						  hook_schema, &hooks));
	json_object_set_new(defs, "format-group",
			    by_type(defs, "format", format_plugins,
				    format_schema, &formats));
	json_object_set_new(defs, "hooks",
			    name_or_group("#/$defs/hook", hooks, true));
	json_object_set_new(defs, "format",
			    name_or_group("#/$defs/format-group", formats,
					  false));
	json_object_set_new(defs, "signals", signals_schema(NULL, 0, NULL, false));
	path = group_of(&keys_path, "path");
	json_object_set_new(defs, "path", path);
	json_decref(nodes);
	json_decref(hooks);
	json_decref(formats);
	return defs;
}

json_t *config_schema(void)
{
	json_t *o = group_of(&keys_top, NULL), *logging = group_of(&keys_logging, NULL);
	json_t *http = group_of(&keys_http, "http");

	json_object_set_new(o, "$schema",
			    json_string("https://json-schema.org/draft/2020-12/schema"));
	json_object_set_new(o, "title", json_string("busbar configuration"));
	set(o, "nodes", json_pack("{ss s{so} sb}", "type", "object",
				  "patternProperties",
				  "^[A-Za-z0-9_-]{1,64}$", REF("node"),
				  "additionalProperties", 0));
	set(o, "paths", json_pack("{ss so}", "type", "array", "items",
				  REF("path")));
	set(logging, "expressions",
	    json_pack("{ss so}", "type", "array", "items",
		      group_of(&keys_expression, NULL)));
	set(o, "logging", logging);
	set(http, "tokens", json_pack("{s[ss] so}", "type", "array", "null", "items",
				      group_of(&keys_token, NULL)));
	set(o, "http", http);
	json_object_set_new(o, "$defs", definitions());
	return o;
}
