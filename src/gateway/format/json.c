/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json: an object per sample,
 *
 *   {"ts": {"origin": [s, ns], "received": [s, ns]}, "flags": ["new_frame"],
 *    "sequence": n, "data": [1.5, 7, true, {"real": 1.0, "imag": 2.0}]}
 *
 * one per line in files, in an array in messages; both are read wherever they
 * come. Values read back to the same bits; "nan", "inf" and "-inf" are strings.
 */
#include "gateway/format/part/json_common.h"

#include <errno.h>
#include <string.h>

#include "gateway/sample/time.h"

static const struct config_key json_keys[] = { JSON_STYLE_KEYS };

static void put_time(struct json_out *o, struct timespec t)
{
	json_out_open(o, '[');
	json_out_item(o);
	json_out_i64(o, t.tv_sec);
	json_out_item(o);
	json_out_i64(o, sample_time_nsec(t));
	json_out_close(o, ']');
}

static void put_times(struct json_out *o, const struct sample *s)
{
	JSON_OUT_KEY(o, "ts");
	json_out_open(o, '{');
	if (o->f->ts_origin && s->flags & SAMPLE_HAS_ORIGIN) {
		JSON_OUT_KEY(o, "origin");
		put_time(o, s->origin);
	}
	if (o->f->ts_received && s->flags & SAMPLE_HAS_RECEIVED) {
		JSON_OUT_KEY(o, "received");
		put_time(o, s->received);
	}
	json_out_close(o, '}');
}

static void put_flags(struct json_out *o, const struct sample *s)
{
	if (!(s->flags & (SAMPLE_NEW_FRAME | SAMPLE_NEW_SIMULATION)))
		return;
	JSON_OUT_KEY(o, "flags");
	json_out_open(o, '[');
	if (s->flags & SAMPLE_NEW_FRAME) {
		json_out_item(o);
		JSON_OUT_RAW(o, "\"new_frame\"");
	}
	if (s->flags & SAMPLE_NEW_SIMULATION) {
		json_out_item(o);
		JSON_OUT_RAW(o, "\"new_simulation\"");
	}
	json_out_close(o, ']');
}

static void put_sequence(struct json_out *o, const struct sample *s)
{
	if (!o->f->sequence || !(s->flags & SAMPLE_HAS_SEQUENCE))
		return;
	JSON_OUT_KEY(o, "sequence");
	json_out_u64(o, s->sequence);
}

static void put_data(struct json_out *o, const struct sample *s)
{
	const struct signal_list *signals = s->signals ? s->signals : o->f->signals;

	if (!o->f->data)
		return;
	JSON_OUT_KEY(o, "data");
	json_out_open(o, '[');
	for (unsigned i = 0; i < s->length && !o->full; i++) {
		json_out_item(o);
		json_out_value(o, text_type(signals, i), &s->data[i]);
	}
	json_out_close(o, ']');
}

static void print_sample(struct json_out *o, const struct sample *s)
{
	json_out_open(o, '{');
	if (o->style->sort_keys) {
		put_data(o, s);
		put_flags(o, s);
		put_sequence(o, s);
		put_times(o, s);
	} else {
		put_times(o, s);
		put_flags(o, s);
		put_sequence(o, s);
		put_data(o, s);
	}
	json_out_close(o, '}');
}

static int print(struct format *f, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt)
{
	return json_print_samples(f, print_sample, buf, size, used, smps, cnt);
}

/* [seconds, nanoseconds] */
static int take_time(struct format *f, const json_t *v, const char *what,
		     struct timespec *t)
{
	const json_t *sec = json_array_get(v, 0), *nsec = json_array_get(v, 1);

	if (json_array_size(v) != 2 || !json_is_integer(sec) ||
	    !json_is_integer(nsec) || json_integer_value(nsec) < 0 ||
	    json_integer_value(nsec) >= 1000000000)
		return text_fail(f, "ts.%s is not [seconds, nanoseconds]", what);
	t->tv_sec = (time_t)json_integer_value(sec);
	t->tv_nsec = (long)json_integer_value(nsec);
	return 0;
}

static int take_times(struct format *f, const json_t *ts, struct sample *s)
{
	const json_t *origin = json_object_get(ts, "origin");
	const json_t *received = json_object_get(ts, "received");
	int ret = 0;

	if (ts && !json_is_object(ts))
		return text_fail(f, "ts is not an object");
	if (origin) {
		ret = take_time(f, origin, "origin", &s->origin);
		s->flags |= SAMPLE_HAS_ORIGIN;
	}
	if (received && !ret) {
		ret = take_time(f, received, "received", &s->received);
		s->flags |= SAMPLE_HAS_RECEIVED;
	}
	return ret;
}

static int take_flags(struct format *f, json_t *flags, struct sample *s)
{
	size_t i;
	json_t *v;

	if (flags && !json_is_array(flags))
		return text_fail(f, "flags is not an array");
	json_array_foreach(flags, i, v) {
		const char *name = json_string_value(v);

		if (name && !strcmp(name, "new_frame"))
			s->flags |= SAMPLE_NEW_FRAME;
		else if (name && !strcmp(name, "new_simulation"))
			s->flags |= SAMPLE_NEW_SIMULATION;
	}
	return 0;
}

static int take_sample(struct format *f, json_t *object, struct sample *s)
{
	const json_t *sequence = json_object_get(object, "sequence");
	json_t *data = json_object_get(object, "data");
	size_t i;
	json_t *v;
	int ret;

	ret = take_times(f, json_object_get(object, "ts"), s);
	if (!ret)
		ret = take_flags(f, json_object_get(object, "flags"), s);
	if (!ret && sequence) {
		ret = json_take_u64(f, sequence, "sequence", &s->sequence);
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
	if (ret)
		return ret;
	if (data && !json_is_array(data))
		return text_fail(f, "data is not an array");
	json_array_foreach(data, i, v) {
		ret = json_take_value(f, v, (unsigned)i, s);
		if (ret)
			return ret;
	}
	if (!data && !s->flags)
		return text_fail(f, "the object has none of ts, sequence and data");
	return 0;
}

static int scan(struct format *f, const char *buf, size_t len, size_t *used,
		struct sample *smps[], unsigned cnt)
{
	return json_scan_samples(f, json_take_quick, take_sample, buf, len, used,
				 smps, cnt);
}

const struct format_type format_json = {
	.name = "json",
	.description = "JSON objects with times, sequence and data",
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA |
			 SAMPLE_NEW_FRAME | SAMPLE_NEW_SIMULATION,
		.real_bits = 64, .integer_bits = 64, .sequence_bits = 64,
		.seconds_bits = 63, .time_step_ns = 1,
	},
	.size = sizeof(struct json_style),
	.keys = json_keys,
	.key_count = ARRAY_SIZE(json_keys),
	.print = print,
	.scan = scan,
	.may_end = json_may_end,
	.destroy = json_destroy,
};
