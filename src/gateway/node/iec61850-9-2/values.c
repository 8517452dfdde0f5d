/* SPDX-License-Identifier: BSD-2-Clause */
/* See values.h. */
#include "gateway/node/iec61850-9-2/values.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/grid/apdu.h"

enum kind { KIND_BOOLEAN, KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT, KIND_TIME };

struct iec_type {
	const char *name;
	enum kind kind;
	uint8_t size;
};

/* The names of VILLASnode, and others in use for the same types. */
static const struct iec_type types[] = {
	{ "boolean", KIND_BOOLEAN, 1 },
	{ "bool", KIND_BOOLEAN, 1 },
	{ "int8", KIND_SIGNED, 1 },
	{ "int16", KIND_SIGNED, 2 },
	{ "int32", KIND_SIGNED, 4 },
	{ "int64", KIND_SIGNED, 8 },
	{ "int8u", KIND_UNSIGNED, 1 },
	{ "uint8", KIND_UNSIGNED, 1 },
	{ "int16u", KIND_UNSIGNED, 2 },
	{ "uint16", KIND_UNSIGNED, 2 },
	{ "int32u", KIND_UNSIGNED, 4 },
	{ "uint32", KIND_UNSIGNED, 4 },
	{ "int64u", KIND_UNSIGNED, 8 },
	{ "uint64", KIND_UNSIGNED, 8 },
	{ "float32", KIND_FLOAT, 4 },
	{ "float64", KIND_FLOAT, 8 },
	{ "enumerated", KIND_SIGNED, 4 },
	{ "coded_enum", KIND_UNSIGNED, 4 },
	{ "bitstring", KIND_UNSIGNED, 4 },
	{ "quality", KIND_UNSIGNED, 4 },
	{ "timestamp", KIND_TIME, 8 },
};

/* Bits of a quality word (IEC 61850-7-3). */
enum {
	QUALITY_BYTES = 4,
	QUALITY_VALIDITY = 3,
	QUALITY_INVALID = 1,
	QUALITY_QUESTIONABLE = 3,
	QUALITY_OVERFLOW = 1 << 2,
};

struct entry {
	const char *iec_type;
	bool quality;
};

/* Of every signal; the core has checked it. */
static unsigned count_of(struct config *c, const json_t *at)
{
	static const struct config_key key[] = {
		{ "count", CONFIG_INT, 0, "1", .help = "Signals" },
	};
	int64_t count = 1;

	config_unpack_part(c, at, key, 1, &count);
	return (unsigned)count;
}

const struct config_key values_keys[VALUES_KEYS] = {
	{ "iec_type", CONFIG_STRING, offsetof(struct entry, iec_type),
	  .help = "boolean, int8 to int64, int8u to int64u, float32, float64, enumerated, "
		  "coded_enum, bitstring, quality or timestamp; by default boolean, int64 or float64" },
	{ "quality", CONFIG_BOOL, offsetof(struct entry, quality), "false",
	  .help = "A quality word stands behind the value in the message" },
};

static const struct iec_type *find_type(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

static const struct iec_type *type_of_signal(enum signal_type t)
{
	return find_type(t == SIGNAL_BOOLEAN ? "boolean" : t == SIGNAL_INTEGER ? "int64" : "float64");
}

static enum signal_type natural(const struct iec_type *t)
{
	return t->kind == KIND_BOOLEAN ? SIGNAL_BOOLEAN :
	       t->kind == KIND_FLOAT   ? SIGNAL_FLOAT : SIGNAL_INTEGER;
}

/* One entry of the configuration, for `count` signals of `l` from `first` on. */
static int set_entry(struct data_set *d, struct config *c, const json_t *at, unsigned first,
		     unsigned count, struct signal_list *l, bool read)
{
	bool typed = !json_is_object(at) || json_object_get(at, "type");
	struct entry e = { 0 };
	const struct iec_type *t;

	if (json_is_object(at) && config_unpack_part(c, at, values_keys, VALUES_KEYS, &e))
		return -EINVAL;
	t = e.iec_type ? find_type(e.iec_type) : type_of_signal(l->signals[first].type);
	if (!t) {
		config_fail(c, at, "iec_type",
			    "'%.40s' is no type of sampled values that is supported; there are %s",
			    e.iec_type, values_keys[0].help);
		return -EINVAL;
	}
	for (unsigned i = first; i < first + count; i++) {
		struct signal *s = &l->signals[i];

		if (read && !typed)
			s->type = natural(t);
		if (s->type == SIGNAL_COMPLEX ||
		    (read && s->type != natural(t) && s->type != SIGNAL_FLOAT &&
		     !(s->type == SIGNAL_INTEGER && t->kind == KIND_BOOLEAN))) {
			config_fail(c, at, json_is_object(at) ? "type" : NULL,
				    "a signal of type %s cannot hold values of type %s",
				    signal_type_name(s->type), t->name);
			return -EINVAL;
		}
		d->values[i] = (struct data_value){ t, s->type, e.quality };
		d->size += t->size + (e.quality ? QUALITY_BYTES : 0u);
	}
	return 0;
}

int data_set_new(struct data_set **out, struct config *c, const json_t *at,
		 struct signal_list *l, bool read)
{
	const json_t *list = json_object_get(at, "signals");
	struct data_set *d = calloc(1, sizeof(*d) + l->count * sizeof(d->values[0]));
	unsigned index = 0;
	int ret = 0;

	if (!d)
		return -ENOMEM;
	d->count = l->count;
	if (json_is_object(list)) {
		ret = set_entry(d, c, list, 0, l->count, l, read);
	} else if (json_is_array(list) && json_array_size(list)) {
		for (size_t i = 0; i < json_array_size(list) && !ret; i++) {
			const json_t *e = json_array_get(list, i);
			unsigned count = count_of(c, e);

			ret = set_entry(d, c, e, index, MIN(count, l->count - index), l, read);
			index += count;
		}
	} else {
		for (; index < l->count && !ret; index++)
			ret = set_entry(d, c, list ? list : at, index, 1, l, read);
	}
	if (ret) {
		free(d);
		return ret;
	}
	*out = d;
	return 0;
}

int data_set_from_scl(struct data_set **out, const struct scl_sampled values[],
		      struct signal_list *l)
{
	struct data_set *d = calloc(1, sizeof(*d) + l->count * sizeof(d->values[0]));

	if (!d)
		return -ENOMEM;
	d->count = l->count;
	for (unsigned i = 0; i < l->count; i++) {
		const struct iec_type *t = find_type(values[i].data->basic->iec_type);

		l->signals[i].type = natural(t);
		d->values[i] = (struct data_value){ t, natural(t), values[i].quality };
		d->size += t->size + (values[i].quality ? QUALITY_BYTES : 0u);
	}
	*out = d;
	return 0;
}

static uint64_t load(const uint8_t *from, unsigned size)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < size; i++)
		v = v << 8 | from[i];
	return v;
}

static void store(uint8_t *to, uint64_t v, unsigned size)
{
	for (unsigned i = size; i; i--, v >>= 8)
		to[i - 1] = (uint8_t)v;
}

static double take_float(const uint8_t *from, unsigned size)
{
	uint64_t bits = load(from, size);
	uint32_t half = (uint32_t)bits;
	double d;
	float f;

	if (size == sizeof(f)) {
		memcpy(&f, &half, sizeof(f));
		return f;
	}
	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* Nanoseconds since 1970. */
static int64_t take_time(const uint8_t *from)
{
	const struct ber b = { from, UTC_TIME_BYTES };
	struct utc_time t;

	utc_time_decode(&b, &t);
	return (int64_t)t.seconds * SAMPLE_TIME_SECOND + t.nanoseconds;
}

static void take_value(const struct data_value *v, const uint8_t *from, union signal_data *to)
{
	unsigned size = v->iec->size, shift = 64 - 8 * size;
	uint64_t bits = load(from, size);
	bool real = v->type == SIGNAL_FLOAT;

	switch (v->iec->kind) {
	case KIND_BOOLEAN:
		to->i = bits != 0;
		break;
	case KIND_SIGNED:
		to->i = (int64_t)(bits << shift) >> shift;
		break;
	case KIND_UNSIGNED:
		if (real) {
			to->f = (double)bits;
			return;
		}
		to->i = bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
		break;
	case KIND_FLOAT:
		to->f = take_float(from, size);
		return;
	case KIND_TIME:
		to->i = take_time(from);
		if (real)
			to->f = (double)(to->i / SAMPLE_TIME_SECOND) +
				(double)(to->i % SAMPLE_TIME_SECOND) / SAMPLE_TIME_SECOND;
		return;
	}
	if (real)
		to->f = (double)to->i;
}

unsigned data_set_take(const struct data_set *d, const uint8_t *from, struct sample *s)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < d->count; i++) {
		const struct data_value *v = &d->values[i];

		take_value(v, from, &s->data[i]);
		from += v->iec->size;
		if (v->quality) {
			bad += (get_32(from) & QUALITY_VALIDITY) != 0;
			from += QUALITY_BYTES;
		}
	}
	s->length = d->count;
	return bad;
}

/* A value of a signal; all integers that a sample or a message can hold are in its range. */
struct number {
	bool real;
	double f;
	int64_t i;
};

static struct number number_of(const union signal_data *v, enum signal_type t)
{
	struct number n = { .real = t == SIGNAL_FLOAT };

	n.i = n.real ? 0 : v->i;
	n.f = n.real ? v->f : (double)v->i;
	return n;
}

/* Each of these writes the nearest value of the type; true: it is the value itself. */
static bool put_signed(const struct number *n, uint8_t *to, unsigned size)
{
	int64_t max = INT64_MAX >> (64 - 8 * size), min = -max - 1;
	int64_t v = n->real ? signal_type_to_integer(rint(n->f)) : n->i;
	bool fits = v >= min && v <= max && !(n->real && (n->f >= 0x1p63 || n->f < -0x1p63));

	store(to, (uint64_t)(v < min ? min : v > max ? max : v), size);
	return fits;
}

static bool put_unsigned(const struct number *n, uint8_t *to, unsigned size)
{
	uint64_t max = UINT64_MAX >> (64 - 8 * size), v;
	bool fits = n->real ? n->f > -0.5 : n->i >= 0;

	if (!fits || (n->real && isnan(n->f)))
		v = 0;
	else if (n->real)
		v = n->f >= 0x1p64 ? UINT64_MAX : (uint64_t)rint(n->f);
	else
		v = (uint64_t)n->i;
	fits = fits && v <= max && !(n->real && n->f >= 0x1p64);
	store(to, v < max ? v : max, size);
	return fits;
}

static bool put_float(const struct number *n, uint8_t *to, unsigned size)
{
	bool fits = true;
	uint32_t half;
	uint64_t bits;
	float f;

	if (size == sizeof(f)) {
		double v = n->f;

		fits = !isfinite(v) || fabs(v) <= FLT_MAX;
		f = fits ? (float)v : v < 0 ? -FLT_MAX : FLT_MAX;
		memcpy(&half, &f, sizeof(f));
		bits = half;
	} else {
		memcpy(&bits, &n->f, sizeof(n->f));
	}
	store(to, bits, size);
	return fits;
}

/* Nanoseconds of seconds; their fraction has more digits alone. */
static int64_t to_ns(double seconds)
{
	double whole = floor(seconds), rest = rint((seconds - whole) * SAMPLE_TIME_SECOND);

	if (!(fabs(seconds) < 1e10))
		return seconds > 0 ? INT64_MAX : -1;
	return (int64_t)whole * SAMPLE_TIME_SECOND + (int64_t)rest;
}

static bool put_time(const struct number *n, uint8_t *to)
{
	const int64_t max = INT64_C(4294967296) * SAMPLE_TIME_SECOND - 1;
	int64_t ns = n->real ? to_ns(n->f) : n->i;
	bool fits = ns >= 0 && ns <= max;
	struct utc_time t = { .accuracy = 31 };

	ns = ns < 0 ? 0 : ns > max ? max : ns;
	t.seconds = (uint32_t)(ns / SAMPLE_TIME_SECOND);
	t.nanoseconds = (uint32_t)(ns % SAMPLE_TIME_SECOND);
	utc_time_encode(&t, to);
	return fits;
}

static bool put_value(const struct data_value *v, const struct number *n, uint8_t *to)
{
	switch (v->iec->kind) {
	case KIND_BOOLEAN:
		*to = n->real ? n->f != 0 : n->i != 0;
		return true;
	case KIND_SIGNED:
		return put_signed(n, to, v->iec->size);
	case KIND_UNSIGNED:
		return put_unsigned(n, to, v->iec->size);
	case KIND_FLOAT:
		return put_float(n, to, v->iec->size);
	case KIND_TIME:
		return put_time(n, to);
	}
	return false;
}

unsigned data_set_put(const struct data_set *d, const struct sample *s,
		      const struct signal_list *list, uint8_t *to)
{
	unsigned clipped = 0;

	for (unsigned i = 0; i < d->count; i++) {
		const struct data_value *v = &d->values[i];
		const struct number n = number_of(&s->data[i], list && i < list->count ?
							       list->signals[i].type : SIGNAL_FLOAT);
		bool invalid = n.real && isnan(n.f);
		bool fits = put_value(v, &n, to) && !(invalid && v->iec->kind != KIND_FLOAT);

		clipped += !fits;
		to += v->iec->size;
		if (!v->quality)
			continue;
		put_32(to, invalid ? QUALITY_INVALID :
			   fits	   ? 0 : QUALITY_QUESTIONABLE | QUALITY_OVERFLOW);
		to += QUALITY_BYTES;
	}
	return clipped;
}
