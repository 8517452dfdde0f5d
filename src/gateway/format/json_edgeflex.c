/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.edgeflex: an object of signals and their values, and the origin in
 * milliseconds:
 *
 *   {"voltage": 230.1, "current": 5.0, "created": 1637846259201}
 *
 * A signal that is called "created" cannot be told from the time.
 */
#include "gateway/format/part/json_common.h"

#include <errno.h>
#include <string.h>

static const struct config_key edgeflex_keys[] = { JSON_STYLE_KEYS };

static void print_sample(struct json_out *o, const struct sample *s)
{
	const struct json_extra created = {
		"created", (uint64_t)json_ms_of(s->origin), true
	};
	bool has_origin = o->f->ts_origin && s->flags & SAMPLE_HAS_ORIGIN;

	json_out_open(o, '{');
	json_out_pairs(o, s, &created, has_origin, false);
	json_out_close(o, '}');
}

static int print(struct format *f, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt)
{
	return json_print_samples(f, print_sample, buf, size, used, smps, cnt);
}

static int take_sample(struct format *f, json_t *object, struct sample *s)
{
	const char *key;
	unsigned n = 0;
	json_t *v;
	int ret = 0;

	json_object_foreach(object, key, v) {
		if (!strcmp(key, "created")) {
			ret = json_take_ms(f, v, "created", &s->origin);
			s->flags |= SAMPLE_HAS_ORIGIN;
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

const struct format_type format_json_edgeflex = {
	.name = "json.edgeflex",
	.description = "JSON objects of signals and their values (edgeFLEX)",
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA,
		.real_bits = 64, .integer_bits = 64, .seconds_bits = 53,
		.time_step_ns = 1000000,
	},
	.size = sizeof(struct json_style),
	.keys = edgeflex_keys,
	.key_count = ARRAY_SIZE(edgeflex_keys),
	.print = print,
	.scan = scan,
	.may_end = json_may_end,
	.destroy = json_destroy,
};
