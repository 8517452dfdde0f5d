/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of attributes, which stand beside those of signals. */
#define LOG_ROOM "gateway/ngsi"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/ngsi/ngsi.h"
#include "gateway/sample/signals.h"

struct entry {
	const char *name, *type;
	json_t *metadatas;
};

#define METADATAS "'type': ['array', 'null'], 'items': {'type': 'object', 'required': ['name', 'value'], " \
	"'additionalProperties': false, 'properties': {'name': {'type': 'string'}, 'type': " \
	"{'type': 'string'}, 'value': {'type': ['string', 'number', 'boolean']}}}"

const struct config_key ngsi_signal_keys[NGSI_SIGNAL_KEYS] = {
	{ "ngsi_attribute_name", CONFIG_STRING, offsetof(struct entry, name),
	  .help = "Name of the attribute, default is that of the signal" },
	{ "ngsi_attribute_type", CONFIG_STRING, offsetof(struct entry, type),
	  .help = "Type of the attribute that is written: Number, Integer, Boolean or StructuredValue by the signal's type; Text writes a text" },
	{ "ngsi_metadatas", CONFIG_JSON, offsetof(struct entry, metadatas), .form = METADATAS,
	  .help = "What is written with each value: a list of { name, type, value }" },
};

struct metadata {
	const char *name, *type;
	json_t *value;
};

static const struct config_key metadata_keys[] = {
	{ "name", CONFIG_STRING, offsetof(struct metadata, name), .required = true, .help = "Its name" },
	{ "type", CONFIG_STRING, offsetof(struct metadata, type), "Text", .help = "Its type" },
	{ "value", CONFIG_JSON, offsetof(struct metadata, value), .required = true,
	  .form = "'type': ['string', 'number', 'boolean']",
	  .help = "Its value" },
};

bool ngsi_name_is_good(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > 256)
		return false;
	for (; *name; name++)
		if (*name <= ' ' || *name > '~' || strchr("&?/#<>\"'=;()", *name))
			return false;
	return true;
}

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* Appends `"name":{"type":..,"value":..}` behind a comma. */
static int add_metadata(struct ngsi_attribute *a, struct config *c, const json_t *e, bool ld)
{
	struct metadata m = { 0 };
	json_t *o = json_object();
	char *text, *all;
	size_t len = a->metadatas ? strlen(a->metadatas) : 0;

	if (config_unpack(c, e, metadata_keys, ARRAY_SIZE(metadata_keys), &m, NULL, 0)) {
		json_decref(o);
		return -EINVAL;
	}
	if (!ngsi_name_is_good(m.name) || !strcmp(m.name, "timestamp") ||
	    !strcmp(m.name, "sequence") ||
	    (ld && (!strcmp(m.name, "observedAt") || !strcmp(m.name, "type") ||
		    !strcmp(m.name, "value")))) {
		json_decref(o);
		return fail(c, e, "name", "the name is not allowed, or used by the node");
	}
	json_object_set_new(o, m.name, json_pack("{s:s, s:O}", "type", ld ? "Property" : m.type,
						 "value", m.value));
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	all = text ? realloc(a->metadatas, len + strlen(text) + 1) : NULL;
	if (all) {
		a->metadatas = all;
		/* A comma in place of the brace; without the last one. */
		sprintf(all + len, ",%.*s", (int)strlen(text) - 2, text + 1);
	}
	free(text);
	return all ? 0 : -ENOMEM;
}

static int parse_entry(struct ngsi_attribute *a, struct config *c, const json_t *at, bool ld)
{
	struct entry e = { 0 };
	int ret = 0;

	if (config_unpack_part(c, at, ngsi_signal_keys, NGSI_SIGNAL_KEYS, &e))
		return -EINVAL;
	if (e.name && !(ld ? *e.name != '\0' : ngsi_name_is_good(e.name)))
		ret = fail(c, at, "ngsi_attribute_name", "NGSI-v2 has no such names");
	if (e.type && ld && strcmp(e.type, "Property"))
		ret = fail(c, at, "ngsi_attribute_type", "attributes of NGSI-LD are of type Property");
	if (e.type && !ld && !ngsi_name_is_good(e.type))
		ret = fail(c, at, "ngsi_attribute_type", "NGSI-v2 has no such types");
	a->name = e.name;
	a->type = e.type;
	if (!e.metadatas || json_is_null(e.metadatas))
		return ret;
	if (!json_is_array(e.metadatas))
		return fail(c, at, "ngsi_metadatas", "expected a list of { name, type, value }");
	for (size_t i = 0; i < json_array_size(e.metadatas); i++)
		ret = add_metadata(a, c, json_array_get(e.metadatas, i), ld) ?: ret;
	return ret;
}

int ngsi_attributes_parse(struct ngsi_attributes *a, struct config *c, const json_t *at, bool ld)
{
	const json_t *list = json_object_get(at, "signals");
	size_t count = json_is_array(list) ? json_array_size(list) : 0;
	int ret = 0;

	*a = (struct ngsi_attributes){ 0 };
	for (size_t i = 0; i < count; i++)
		if (json_object_get(json_array_get(list, i), "count"))
			return fail(c, json_array_get(list, i), "count",
				    "each attribute needs an entry of its own");
	a->list = count ? calloc(count, sizeof(*a->list)) : NULL;
	if (count && !a->list)
		return -ENOMEM;
	a->count = (unsigned)count;
	for (size_t i = 0; i < count; i++)
		ret = parse_entry(&a->list[i], c, json_array_get(list, i), ld) ?: ret;
	return ret;
}

void ngsi_attributes_free(struct ngsi_attributes *a)
{
	for (unsigned i = 0; i < a->count; i++)
		free(a->list[i].metadatas);
	free(a->list);
	*a = (struct ngsi_attributes){ 0 };
}
