/* SPDX-License-Identifier: BSD-2-Clause */
/* See openapi.h. The schemas say what every answer has; answers may have more. */
#include "gateway/control/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/api.h"
#include "gateway/control/graph.h"
#include "gateway/super_node/http_settings.h"
#include "gateway/super_node/super_node_control.h"

/* What may stand for "{command}" and "{format}"; "{id}" is any text. */
static json_t *parameter_schema(const char *name)
{
	bool command = !strcmp(name, "command");
	json_t *schema = json_pack("{ss}", "type", "string"), *words;
	const char *word;

	if (!command && strcmp(name, "format"))
		return schema;
	words = json_array();
	for (unsigned i = 0; (word = command ? control_verb_name(i) : graph_format_name(i)); i++)
		json_array_append_new(words, json_string(word));
	json_object_set_new(schema, "enum", words);
	return schema;
}

/* The form with "{id}" and "{command}" in place of the asterisks, and its parameters. */
static void write_path(const char *path, char *to, size_t size, json_t *parameters)
{
	static const char *const names[] = { "id", "command" };
	unsigned stars = 0;
	size_t len = 0;
	char before = 0;

	for (; *path && len + 12 < size; before = *path++) {
		const char *name = before == '.' ? "format" : names[stars & 1];

		if (*path != '*' || stars == 2) {
			to[len++] = *path;
			continue;
		}
		len += (size_t)snprintf(to + len, size - len, "{%s}", name);
		json_array_append_new(
			parameters,
			json_pack("{ss ss sb so}", "name", name, "in", "path",
				  "required", 1, "schema", parameter_schema(name)));
		stars++;
	}
	to[len] = '\0';
}

static json_t *reference(const char *kind, const char *name)
{
	return json_pack("{so}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

static json_t *json_content(const char *schema)
{
	return json_pack("{s{so}}", CONTROL_JSON, "schema",
			 reference("schemas", schema));
}

static json_t *content_of(const struct control_entry *e)
{
	json_t *o = e->schema ? json_content(e->schema) : json_object();

	for (const struct control_type *t = e->types; t && t->type; t++)
		json_object_set_new(o, t->type,
				    t->is_text ? json_pack("{s{ss}}", "schema", "type", "string") :
						 json_object());
	return o;
}

static json_t *responses_of(const struct control_entry *e)
{
	json_t *o = json_pack("{s{ss so} so}", "200", "description", "Done", "content",
			      content_of(e), "default",
			      reference("responses", "error"));

	if (e->role > HTTP_WATCH)
		json_object_set_new(o, "202", reference("responses", "job"));
	return o;
}

/* "post_node_id_stats_reset" */
static json_t *operation_id(const struct control_entry *e, const char *path)
{
	char name[128];
	int len = snprintf(name, sizeof(name), "%s%s", e->method, path);

	for (int i = 0; i < len && i < (int)sizeof(name) - 1; i++)
		name[i] = isalnum((unsigned char)name[i]) ?
				  (char)tolower((unsigned char)name[i]) :
				  '_';
	return json_string(name);
}

static json_t *operation(const struct control_entry *e, const char *path,
			 json_t *parameters)
{
	json_t *o = json_pack("{ss so so ss}", "summary", e->summary, "operationId",
			      operation_id(e, path), "responses", responses_of(e),
			      "x-role", http_role_names[e->role - HTTP_WATCH]);

	if (json_array_size(parameters))
		json_object_set(o, "parameters", parameters);
	if (e->body)
		json_object_set_new(o, "requestBody",
				    json_pack("{so}", "content", json_content(e->body)));
	return o;
}

static void add_query(const struct control_entry *e, json_t *parameters)
{
	if (e->query)
		json_array_append_new(
			parameters,
			json_pack("{ss ss s{ss}}", "name", e->query, "in", "query", "schema",
				  "type", e->query_is_number ? "integer" : "string"));
}

static json_t *paths(void)
{
	const struct control_entry *e;
	json_t *all = json_object();

	for (size_t i = 0; (e = control_entry(i)); i++) {
		json_t *parameters = json_array(), *item;
		char path[128], method[8];

		write_path(e->path, path, sizeof(path), parameters);
		add_query(e, parameters);
		item = json_object_get(all, path);
		if (!item) {
			item = json_object();
			json_object_set_new(all, path, item);
		}
		snprintf(method, sizeof(method), "%s",
			 strcmp(e->method, "GET") ? "post" : "get");
		json_object_set_new(item, method, operation(e, path, parameters));
		json_decref(parameters);
	}
	json_object_set_new(
		all, "/job/{id}",
		json_pack("{s{ss ss so s[{ss ss sb s{ss}}]}}", "get", "summary",
			  "A command that takes long", "operationId", "get_job_id",
			  "responses",
			  json_pack("{s{ss so} so}", "200", "description", "Its state",
				    "content", json_content("job"), "default",
				    reference("responses", "error")),
			  "parameters", "name", "id", "in", "path", "required", 1,
			  "schema", "type", "string"));
	return all;
}

static json_t *load_schemas(void)
{
	char *text = strdup(control_openapi_schemas);
	json_t *o;

	for (char *p = text; p && *p; p++)
		if (*p == '\'')
			*p = '"';
	o = text ? json_loads(text, 0, NULL) : NULL;
	free(text);
	return o;
}

json_t *control_openapi(void)
{
	json_t *components = json_pack(
		"{so s{s{ss so} s{ss so}} s{s{ss ss}}}", "schemas",
		load_schemas(), "responses", "error", "description",
		"Not done", "content", json_content("error"), "job", "description",
		"Not done yet", "content", json_content("job"), "securitySchemes",
		"token", "type", "http", "scheme", "bearer");

	return json_pack("{ss s{ss ss ss s{ss}} s[{ss}] s[{} {s[]}] so so}", "openapi",
			 "3.1.0", "info", "title", "busbar gateway", "version",
			 GATEWAY_VERSION, "description",
			 "Looks at a running gateway and commands it", "license",
			 "name", "BSD-2-Clause", "servers", "url", CONTROL_PREFIX,
			 "security", "token", "paths", paths(), "components",
			 components);
}
