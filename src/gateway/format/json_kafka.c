/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.kafka: messages with a schema, as Kafka Connect takes them:
 *
 *   {"schema": {"type": "struct", "name": "villas-node.Value", "fields": [
 *       {"type": "int64", "optional": false, "field": "timestamp"}, ...]},
 *    "payload": {"timestamp": 1637846259201, "sequence": 7, "voltage": 230.1}}
 *
 * The timestamp is the origin in milliseconds. Signals that are called
 * "timestamp" or "sequence" cannot be told from these.
 */
#include "gateway/format/part/json_common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kafka {
	struct json_style style; /* first */
	json_t *schema_cfg;
	char *schema;            /* pairs of the schema but its fields */
};

static const struct config_key kafka_keys[] = {
	JSON_STYLE_KEYS,
	{ "schema", CONFIG_JSON, offsetof(struct kafka, schema_cfg),
	  .help = "What the schema says beside its fields; type = \"struct\", "
		  "name = \"villas-node.Value\"" },
};

static void put_field(struct json_out *o, const char *type, const char *name,
		      unsigned i)
{
	bool sort = o->style->sort_keys;

	json_out_item(o);
	json_out_open(o, '{');
	for (int k = 0; k < 3; k++) {
		switch (sort ? 2 - k : k) {
		case 0:
			JSON_OUT_KEY(o, "type");
			json_out_string(o, type);
			break;
		case 1:
			JSON_OUT_KEY(o, "optional");
			JSON_OUT_RAW(o, "false");
			break;
		case 2:
			JSON_OUT_KEY(o, "field");
			if (name)
				json_out_string(o, name);
			else
				json_out_signal_name(o, i);
			break;
		}
	}
	json_out_close(o, '}');
}

static void put_schema(struct json_out *o, const struct sample *s, bool origin,
		       bool sequence)
{
	static const char *const types[] = {
		[SIGNAL_FLOAT] = "double",
		[SIGNAL_INTEGER] = "int64",
		[SIGNAL_BOOLEAN] = "boolean",
		[SIGNAL_COMPLEX] = "unknown",
	};
	const struct kafka *k = o->f->private_data;
	const struct signal_list *signals = o->style->names.signals;

	JSON_OUT_KEY(o, "schema");
	json_out_open(o, '{');
	if (k->schema[0]) {
		json_out_item(o);
		json_out_raw(o, k->schema, strlen(k->schema));
	}
	JSON_OUT_KEY(o, "fields");
	json_out_open(o, '[');
	if (origin)
		put_field(o, "int64", "timestamp", 0);
	if (sequence)
		put_field(o, "int64", "sequence", 0);
	for (unsigned i = 0; o->f->data && i < s->length && !o->full; i++)
		put_field(o, types[text_type(signals, i)], NULL, i);
	json_out_close(o, ']');
	json_out_close(o, '}');
}

static void put_payload(struct json_out *o, const struct sample *s, bool origin,
			bool sequence)
{
	struct json_extra extras[2];
	unsigned count = 0;
	bool sort = o->style->sort_keys;

	if (sequence && sort)
		extras[count++] = (struct json_extra){ "sequence", s->sequence, false };
	if (origin)
		extras[count++] = (struct json_extra){
			"timestamp", (uint64_t)json_ms_of(s->origin), true
		};
	if (sequence && !sort)
		extras[count++] = (struct json_extra){ "sequence", s->sequence, false };
	JSON_OUT_KEY(o, "payload");
	json_out_open(o, '{');
	json_out_pairs(o, s, extras, count, true);
	json_out_close(o, '}');
}

static void print_sample(struct json_out *o, const struct sample *s)
{
	bool origin = o->f->ts_origin && s->flags & SAMPLE_HAS_ORIGIN;
	bool sequence = o->f->sequence && s->flags & SAMPLE_HAS_SEQUENCE;

	json_out_open(o, '{');
	if (o->style->sort_keys)
		put_payload(o, s, origin, sequence);
	put_schema(o, s, origin, sequence);
	if (!o->style->sort_keys)
		put_payload(o, s, origin, sequence);
	json_out_close(o, '}');
}

static int print(struct format *f, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt)
{
	return json_print_samples(f, print_sample, buf, size, used, smps, cnt);
}

static int take_sample(struct format *f, json_t *object, struct sample *s)
{
	json_t *payload = json_object_get(object, "payload"), *v;
	const char *key;
	unsigned n = 0;
	int ret = 0;

	if (!json_is_object(payload))
		return text_fail(f, "the object has no payload");
	json_object_foreach(payload, key, v) {
		if (!strcmp(key, "timestamp")) {
			ret = json_take_ms(f, v, "timestamp", &s->origin);
			s->flags |= SAMPLE_HAS_ORIGIN;
		} else if (!strcmp(key, "sequence")) {
			ret = json_take_u64(f, v, "sequence", &s->sequence);
			s->flags |= SAMPLE_HAS_SEQUENCE;
		} else {
			ret = json_take_pair(f, key, v, n++, s);
		}
		if (ret)
			break;
	}
	return ret;
}

static int scan(struct format *f, const char *buf, size_t len, size_t *used,
		struct sample *smps[], unsigned cnt)
{
	return json_scan_samples(f, NULL, take_sample, buf, len, used, smps,
				 cnt);
}

/* The text of an object without its braces; NULL when there is no memory. */
static char *members_of(json_t *object, size_t flags)
{
	char *text = json_dumps(object, flags);
	size_t len = text ? strlen(text) : 0;

	if (len >= 2) {
		memmove(text, text + 1, len - 2);
		text[len - 2] = '\0';
	}
	return text;
}

static int kafka_init(struct format *f)
{
	struct kafka *k = f->private_data;
	size_t flags = (k->style.compact ? JSON_COMPACT : 0) |
		       (k->style.ensure_ascii ? JSON_ENSURE_ASCII : 0) |
		       (k->style.escape_slash ? JSON_ESCAPE_SLASH : 0) |
		       (k->style.sort_keys ? JSON_SORT_KEYS : 0);
	json_t *schema;

	if (k->schema_cfg && !json_is_object(k->schema_cfg)) {
		/* format_new() says it with file and line. */
		snprintf(f->error, sizeof(f->error),
			 "the schema is not a group such as { type = \"struct\"; name = \"Value\"; }");
		return -EINVAL;
	}
	schema = k->schema_cfg ? json_copy(k->schema_cfg) :
		 json_pack("{s: s, s: s}", "type", "struct", "name",
			   "villas-node.Value");
	if (!schema)
		return -ENOMEM;
	json_object_del(schema, "fields");
	k->schema = members_of(schema, flags);
	json_decref(schema);
	return k->schema ? 0 : -ENOMEM;
}

static void kafka_destroy(struct format *f)
{
	struct kafka *k = f->private_data;

	free(k->schema);
	json_destroy(f);
}

const struct format_type format_json_kafka = {
	.name = "json.kafka",
	.description = "JSON messages with schema and payload for Kafka",
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_DATA,
		.real_bits = 64, .integer_bits = 64, .sequence_bits = 64,
		.seconds_bits = 53, .time_step_ns = 1000000,
	},
	.size = sizeof(struct kafka),
	.keys = kafka_keys,
	.key_count = ARRAY_SIZE(kafka_keys),
	.init = kafka_init,
	.print = print,
	.scan = scan,
	.may_end = json_may_end,
	.destroy = kafka_destroy,
};
