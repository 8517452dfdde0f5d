/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The schemas of keys of free form (CONFIG_JSON), whose values the tables of keys do not describe:
 * JSON Schema, with single quotes for double ones. tests/process/control/keys.py compares each
 * with the values that the plug-in takes.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/super_node/schema.h"
#include "util/container_of.h"

/* Numbers may also be texts that hold one. */
#define NUMBER "{'type': ['number', 'string'], 'pattern': '^[ ]*[-+]?[0-9.]'}"
#define POSITIVE "{'type': ['number', 'string'], 'exclusiveMinimum': 0, 'pattern': '^[ ]*[+]?[0-9.]'}"
#define PERCENT "{'type': ['number', 'string', 'null'], 'minimum': 0, 'maximum': 100}"
#define BOOLEAN "'type': ['boolean', 'string', 'integer', 'null'], 'minimum': 0, 'maximum': 1," \
	"'pattern': '^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$'"
#define ONE_OR_LIST(one) "'anyOf': [" one ", {'type': 'null'}, {'type': 'array', 'minItems': 1, 'items': " one "}]"
#define TEXT "{'type': 'string'}"
#define URL "{'type': 'string', 'pattern': '^([Ww][Ss][Ss]?|[Hh][Tt][Tt][Pp][Ss]?)://'}"
#define LIMITS "'anyOf': [" NUMBER ", {'type': 'null'}, {'type': 'array', 'items': " NUMBER "}]"
#define NUMBERS ONE_OR_LIST(NUMBER)
#define SIGNAL "{'type': ['string', 'integer'], 'minimum': 0}"
#define PAIRS "'type': 'array', 'minItems': 1, 'maxItems': 4096, 'items': {'anyOf': [" \
	"{'type': 'array', 'minItems': 2, 'maxItems': 2, 'items': " SIGNAL "}, " \
	"{'type': 'object', 'required': ['voltage', 'current'], 'additionalProperties': false, " \
	"'properties': {'voltage': " SIGNAL ", 'current': " SIGNAL "}}]}"
#define NODES "'anyOf': [" TEXT ", {'type': 'null'}, {'type': 'array', 'items': " TEXT "}]"
#define SHAPE "{'enum': ['mixed', 'random', 'sine', 'square', 'triangle', 'ramp', 'counter', " \
	"'constant', 'pulse']}"
#define INTEGER "{'type': ['integer', 'string', 'null']}"
#define RATES ONE_OR_LIST(POSITIVE)
#define VALUES ONE_OR_LIST("{'type': ['integer', 'string'], 'minimum': 1, 'maximum': 65536, " \
	"'pattern': '^[ ]*[+]?[0-9.]'}")
#define MULTICAST "'type': ['object', 'null'], 'additionalProperties': false, 'properties': {" \
	"'enabled': {" BOOLEAN "}, 'group': {'type': ['string', 'null']}, 'interface': " \
	"{'type': ['string', 'null']}, 'ttl': {'type': ['integer', 'string', 'null'], 'minimum': 0, " \
	"'maximum': 255}, 'loop': {" BOOLEAN "}}"

/* `where`: a definition of the schema, or several ("hook-"); NULL: any place. The first row
 * that fits counts. */
static const struct {
	const char *where, *key, *schema;
} forms[] = {
	{ "node-exec", "exec", ONE_OR_LIST(TEXT) },
	{ "node-exec", "environment", "'type': ['object', 'null'], 'additionalProperties': "
	  "{'type': ['string', 'number', 'boolean']}" },
	{ "node-infiniband", "peers", "'type': 'array', 'minItems': 1, 'maxItems': 64, 'items': "
	  "{'type': 'string', 'pattern': '^[0-9A-Fa-f:.]*[0-9A-Fa-f:][.:][0-9A-Fa-f:.]*(/[0-9]+)?$'}" },
	{ "node-shmem", "exec", "'type': ['array', 'null'], 'minItems': 1, 'maxItems': 64, "
	  "'items': " TEXT },
	{ "node-signal", "signal", ONE_OR_LIST(SHAPE) },
	{ "node-signal", "frequency", ONE_OR_LIST(POSITIVE) },
	{ "node-signal", "amplitude", NUMBERS },
	{ "node-signal", "stddev", NUMBERS },
	{ "node-signal", "offset", NUMBERS },
	{ "node-signal", "phase", NUMBERS },
	{ "node-signal", "pulse_width", NUMBERS },
	{ "node-signal", "pulse_low", NUMBERS },
	{ "node-signal", "pulse_high", NUMBERS },
	{ "node-socket", "multicast", MULTICAST },
	{ "node-rtp", "multicast", MULTICAST },
	{ "node-rtp", "netem", "'anyOf': [{'type': 'null'}, {'type': 'object', 'required': ['enabled'], "
	  "'properties': {'enabled': {'enum': [false]}}}]" },
	{ "node-rtp", "fwmark", "'enum': [0, null]" },
	{ "node-socket", "netem", "'type': ['object', 'null'], 'additionalProperties': false, "
	  "'properties': {'enabled': {" BOOLEAN "}, 'delay': {'type': ['number', 'string', 'null'], "
	  "'minimum': 0, 'maximum': 60e6}, 'jitter': {'type': ['number', 'string', 'null'], "
	  "'minimum': 0, 'maximum': 60e6}, 'distribution': {'enum': ['uniform', 'normal', 'pareto', "
	  "'paretonormal', null]}, 'loss': " PERCENT ", 'duplicate': " PERCENT ", 'corrupt': "
	  PERCENT ", 'corruption': {'type': ['number', 'null'], 'minimum': 0, 'maximum': 100}, "
	  "'seed': {'type': ['integer', 'string', 'null'], 'minimum': 0, 'maximum': 9e15}, 'limit': "
	  "{'type': ['integer', 'string', 'null'], 'minimum': 1, 'maximum': 1048576}}" },
	{ "node-test_rtt", "rates", RATES },
	{ "node-test_rtt", "values", VALUES },
	{ "node-test_rtt", "cases", ONE_OR_LIST("{'type': 'object', 'additionalProperties': false, "
	  "'properties': {'rates': {" RATES "}, 'values': {" VALUES "}, 'count': " INTEGER
	  ", 'limit': " INTEGER ", 'duration': {'type': ['number', 'string', 'null'], 'minimum': 0}, "
	  "'warmup': {'type': ['number', 'string', 'null'], 'minimum': 0}, 'cooldown': {'type': "
	  "['number', 'string', 'null'], 'minimum': 0}, 'mode': {'enum': ['min', 'max', "
	  "'stop_after_count', 'stop_after_duration', 'at_least_count', 'at_least_duration', null]}}}") },
	{ "node-websocket", "destinations", "'anyOf': [" URL ", {'type': 'null'}, {'type': 'array', "
	  "'maxItems': 64, 'items': " URL "}]" },
	{ "hook-lua", "signals", "'type': ['array', 'null'], 'minItems': 1, 'items': {'type': "
	  "'object', 'required': ['expression'], 'additionalProperties': false, 'properties': "
	  "{'name': {'type': ['string', 'null']}, 'unit': {'type': ['string', 'null']}, 'type': "
	  "{'enum': ['float', 'integer', 'boolean', 'complex', null]}, 'init': {'type': ['number', 'boolean', 'object', 'null']}, "
	  "'enabled': {" BOOLEAN "}, 'count': " INTEGER ", 'expression': {'type': 'string'}}}" },
	{ "hook-", "signal", "'type': ['string', 'integer', 'null'], 'minimum': 0" },
	{ "hook-", "signals", ONE_OR_LIST(SIGNAL) },
	{ "hook-dp", "harmonics", "'type': 'array', 'minItems': 1, 'maxItems': 4000, 'items': "
	  "{'type': 'integer', 'minimum': 0, 'maximum': 4000}" },
	{ "hook-ebm", "phases", PAIRS },
	{ "hook-power", "pairings", PAIRS },
	{ "hook-frame", "interval", "'type': ['number', 'string', 'null'], 'exclusiveMinimum': 0, "
	  "'pattern': '^[ ]*[+]?[0-9.]'" },
	{ "format-comtrade", "primary", "'enum': [true, false, 'true', 'false', null]" },
	{ "format-comtrade", "min", LIMITS },
	{ "format-comtrade", "max", LIMITS },
	{ "format-json.kafka", "schema", "'type': ['object', 'null']" },
	{ "http", "origins", "'type': ['array', 'null'], 'items': {'type': 'string', 'pattern': "
	  "'^https?://[^/?# ]+$'}" },
	{ "path", "in", "'anyOf': [" TEXT ", {'type': 'array', 'minItems': 1, 'items': " TEXT "}]" },
	{ "path", "out", NODES },
	{ "path", "mask", NODES },
	{ "path", "poll", BOOLEAN },
	{ "path", "original_sequence_no", BOOLEAN },
	{ "signal", "init", "'type': ['number', 'boolean', 'object', 'null']" },
	{ NULL, "hooks", "'$ref': '#/$defs/hooks'" },
	{ NULL, "signals", "'$ref': '#/$defs/signals'" },
	{ NULL, "format", "'$ref': '#/$defs/format'" },
};

static bool fits(const char *pattern, const char *where)
{
	size_t len = pattern ? strlen(pattern) : 0;

	if (!pattern)
		return true;
	return where && (pattern[len - 1] == '-' ? !strncmp(where, pattern, len) :
						    !strcmp(where, pattern));
}

json_t *schema_text(const char *schema)
{
	json_t *o;
	char *text;

	if (asprintf(&text, "{%s}", schema) < 0)
		return NULL;
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	o = json_loads(text, 0, NULL);
	free(text);
	return o;
}

json_t *schema_form(const char *where, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (!strcmp(forms[i].key, key) && fits(forms[i].where, where))
			return schema_text(forms[i].schema);
	return json_object();
}
