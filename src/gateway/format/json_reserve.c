/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.reserve: an object with an array of measurements, each with its name,
 * value, unit, time in milliseconds and sequence number:
 *
 *   {"measurements": [{"name": "U", "value": 230.1, "unit": "V",
 *                      "created": 1637846259201, "sequence": 7}]}
 *
 * Setpoints, which the other side sends, are read the same way.
 */
#include "gateway/format/part/json_common.h"

#include <errno.h>
#include <string.h>

static const struct config_key reserve_keys[] = { JSON_STYLE_KEYS };

static void put_name(struct json_out *o, unsigned i)
{
	JSON_OUT_KEY(o, "name");
	json_out_signal_name(o, i);
}

static void put_stamps(struct json_out *o, const struct sample *s, bool created,
		       bool sequence)
{
	if (created && o->f->ts_origin && s->flags & SAMPLE_HAS_ORIGIN) {
		JSON_OUT_KEY(o, "created");
		json_out_i64(o, json_ms_of(s->origin));
	}
	if (sequence && o->f->sequence && s->flags & SAMPLE_HAS_SEQUENCE) {
		JSON_OUT_KEY(o, "sequence");
		json_out_u64(o, s->sequence);
	}
}

static void put_unit(struct json_out *o, const struct signal_list *signals,
		     unsigned i)
{
	if (!signals || i >= signals->count || !signals->signals[i].unit)
		return;
	JSON_OUT_KEY(o, "unit");
	json_out_string(o, signals->signals[i].unit);
}

static void put_value(struct json_out *o, const struct signal_list *signals,
		      const struct sample *s, unsigned i)
{
	JSON_OUT_KEY(o, "value");
	json_out_value(o, text_type(signals, i), &s->data[i]);
}

static void put_measurement(struct json_out *o, const struct sample *s, unsigned i)
{
	const struct signal_list *signals = s->signals ? s->signals : o->f->signals;

	json_out_item(o);
	json_out_open(o, '{');
	if (o->style->sort_keys) {
		put_stamps(o, s, true, false);
		put_name(o, i);
		put_stamps(o, s, false, true);
		put_unit(o, signals, i);
		put_value(o, signals, s, i);
	} else {
		put_name(o, i);
		put_value(o, signals, s, i);
		put_unit(o, signals, i);
		put_stamps(o, s, true, true);
	}
	json_out_close(o, '}');
}

static void print_sample(struct json_out *o, const struct sample *s)
{
	json_out_open(o, '{');
	JSON_OUT_KEY(o, "measurements");
	json_out_open(o, '[');
	for (unsigned i = 0; o->f->data && i < s->length && !o->full; i++)
		put_measurement(o, s, i);
	json_out_close(o, ']');
	json_out_close(o, '}');
}

static int print(struct format *f, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt)
{
	return json_print_samples(f, print_sample, buf, size, used, smps, cnt);
}

static int take_measurement(struct format *f, const json_t *m, unsigned n,
			    struct sample *s)
{
	const char *name = json_string_value(json_object_get(m, "name"));
	const json_t *value = json_object_get(m, "value");
	const json_t *created = json_object_get(m, "created");
	const json_t *sequence = json_object_get(m, "sequence");
	int ret = 0;

	if (!name || !value)
		return text_fail(f, "measurement %u has no name or no value", n);
	if (created) {
		ret = json_take_ms(f, created, "created", &s->origin);
		s->flags |= SAMPLE_HAS_ORIGIN;
	}
	if (sequence && !ret) {
		ret = json_take_u64(f, sequence, "sequence", &s->sequence);
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
	return ret ? ret : json_take_pair(f, name, value, n, s);
}

static int take_sample(struct format *f, json_t *object, struct sample *s)
{
	json_t *all = json_object_get(object, "measurements"), *m;
	size_t i;

	if (!all)
		all = json_object_get(object, "setpoints");
	if (!json_is_array(all))
		return text_fail(f, "the object has no array of measurements or setpoints");
	json_array_foreach(all, i, m) {
		int ret = take_measurement(f, m, (unsigned)i, s);

		if (ret)
			return ret;
	}
	return 0;
}

static int scan(struct format *f, const char *buf, size_t len, size_t *used,
		struct sample *smps[], unsigned cnt)
{
	return json_scan_samples(f, NULL, take_sample, buf, len, used, smps,
				 cnt);
}

const struct format_type format_json_reserve = {
	.name = "json.reserve",
	.description = "JSON objects of measurements (RESERVE)",
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_DATA,
		.real_bits = 64, .integer_bits = 64, .sequence_bits = 64,
		.seconds_bits = 53, .time_step_ns = 1000000,
	},
	.size = sizeof(struct json_style),
	.keys = reserve_keys,
	.key_count = ARRAY_SIZE(reserve_keys),
	.print = print,
	.scan = scan,
	.may_end = json_may_end,
	.destroy = json_destroy,
};
