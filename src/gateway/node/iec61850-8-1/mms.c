/* SPDX-License-Identifier: BSD-2-Clause */
/* See mms.h. */
#include "gateway/node/iec61850-8-1/mms.h"

#include <math.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/container_of.h"

/* Names and types of signals as those of VILLASnode. */
static const struct mms_type types[] = {
	{ "boolean", GOOSE_BOOLEAN, SIGNAL_BOOLEAN, 1 },
	{ "int8", GOOSE_INTEGER, SIGNAL_INTEGER, 8 },
	{ "int16", GOOSE_INTEGER, SIGNAL_INTEGER, 16 },
	{ "int32", GOOSE_INTEGER, SIGNAL_INTEGER, 32 },
	{ "int64", GOOSE_INTEGER, SIGNAL_INTEGER, 64 },
	{ "int8u", GOOSE_UNSIGNED, SIGNAL_INTEGER, 8 },
	{ "int16u", GOOSE_UNSIGNED, SIGNAL_INTEGER, 16 },
	{ "int32u", GOOSE_UNSIGNED, SIGNAL_INTEGER, 32 },
	{ "bitstring", GOOSE_BIT_STRING, SIGNAL_INTEGER, 32 },
	{ "float32", GOOSE_FLOAT, SIGNAL_FLOAT, 32 },
	{ "float64", GOOSE_FLOAT, SIGNAL_FLOAT, 64 },
	/* Nanoseconds since 1970. */
	{ "timestamp", GOOSE_UTC_TIME, SIGNAL_INTEGER, 64 },
	{ "visible_string", GOOSE_VISIBLE_STRING, SIGNAL_INTEGER, 0 },
	{ "mms_string", GOOSE_MMS_STRING, SIGNAL_INTEGER, 0 },
	{ "octet_string", GOOSE_OCTET_STRING, SIGNAL_INTEGER, 0 },
	{ "binary_time", GOOSE_BINARY_TIME, SIGNAL_INTEGER, 0 },
};

const struct mms_type *mms_type_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

bool mms_is_text(const struct mms_type *t)
{
	return t->tag == GOOSE_VISIBLE_STRING || t->tag == GOOSE_MMS_STRING ||
	       t->tag == GOOSE_OCTET_STRING || t->tag == GOOSE_BINARY_TIME;
}

static bool fits_signed(int64_t i, unsigned bits)
{
	return bits == 64 || (i >= -(INT64_C(1) << (bits - 1)) && i < INT64_C(1) << (bits - 1));
}

static bool fits_unsigned(uint64_t n, unsigned bits)
{
	return bits == 64 || n < UINT64_C(1) << bits;
}

/* The first one becomes the last one. */
static uint64_t turn_bits(uint64_t number, unsigned bits)
{
	uint64_t turned = 0;

	for (; bits; bits--, number >>= 1)
		turned = turned << 1 | (number & 1);
	return turned;
}

static double to_real(union signal_data d, enum signal_type from)
{
	return from == SIGNAL_FLOAT ? d.f : (double)d.i;
}

/* False: no integer is meant by it. */
static bool to_integer(union signal_data d, enum signal_type from, int64_t *out)
{
	*out = from == SIGNAL_FLOAT ? signal_type_to_integer(d.f) : d.i;
	return from != SIGNAL_FLOAT || (d.f >= -0x1p63 && d.f < 0x1p63);
}

/* Accuracy of times: not said. */
#define ACCURACY_UNKNOWN 31

static bool to_time(union signal_data d, enum signal_type from, struct utc_time *out)
{
	int64_t ns = d.i;
	bool good = true;

	if (from == SIGNAL_FLOAT) {
		d.f *= (double)SAMPLE_TIME_SECOND;
		good = to_integer(d, from, &ns);
	}
	*out = (struct utc_time){ .accuracy = ACCURACY_UNKNOWN };
	if (!good || ns < 0 || ns / SAMPLE_TIME_SECOND > UINT32_MAX)
		return false;
	out->seconds = (uint32_t)(ns / SAMPLE_TIME_SECOND);
	out->nanoseconds = (uint32_t)(ns % SAMPLE_TIME_SECOND);
	return true;
}

bool mms_from_signal(const struct mms_type *t, unsigned bits, union signal_data d,
		     enum signal_type from, struct goose_value *out)
{
	int64_t i;

	*out = (struct goose_value){ .type = t->tag };
	if (t->tag == GOOSE_FLOAT) {
		out->bits = t->bits;
		out->real = to_real(d, from);
		if (t->bits == 32)
			out->real = (float)out->real;
		return true;
	}
	if (t->tag == GOOSE_BOOLEAN) {
		out->boolean = from == SIGNAL_FLOAT ? d.f != 0 : d.i != 0;
		return true;
	}
	if (t->tag == GOOSE_UTC_TIME)
		return to_time(d, from, &out->time);
	if (!to_integer(d, from, &i))
		return false;
	if (t->tag == GOOSE_INTEGER) {
		out->integer = i;
		return fits_signed(i, t->bits);
	}
	out->number = (uint64_t)i;
	if (t->tag == GOOSE_UNSIGNED)
		return i >= 0 && fits_unsigned(out->number, t->bits);
	out->bits = bits;
	if (!fits_unsigned(out->number, bits))
		return false;
	out->number = turn_bits(out->number, bits);
	return true;
}

bool mms_to_signal(const struct mms_type *t, const struct goose_value *v, union signal_data *out)
{
	if (v->type != t->tag)
		return false;
	*out = (union signal_data){ .bits = 0 };
	switch (t->tag) {
	case GOOSE_BOOLEAN:
		out->i = v->boolean;
		return true;
	case GOOSE_INTEGER:
		out->i = v->integer;
		return fits_signed(v->integer, t->bits);
	case GOOSE_UNSIGNED:
		out->i = (int64_t)v->number;
		return fits_unsigned(v->number, t->bits);
	case GOOSE_BIT_STRING:
		out->i = (int64_t)turn_bits(v->number, v->bits);
		return true;
	case GOOSE_UTC_TIME:
		out->i = (int64_t)v->time.seconds * SAMPLE_TIME_SECOND + v->time.nanoseconds;
		return true;
	default:
		out->f = v->real;
		return true;
	}
}

bool mms_equal(const struct goose_value *a, const struct goose_value *b)
{
	switch (a->type) {
	case GOOSE_BOOLEAN:
		return a->boolean == b->boolean;
	case GOOSE_FLOAT:
		/* As bytes: NaN is NaN, and 0 is not -0. */
		return !memcmp(&a->real, &b->real, sizeof(a->real));
	case GOOSE_UTC_TIME:
		return a->time.seconds == b->time.seconds &&
		a->time.nanoseconds == b->time.nanoseconds;
	default:
		return a->number == b->number;
	}
}

struct goose_value mms_longest(const struct mms_type *t, unsigned bits)
{
	struct goose_value v = { .type = t->tag, .bits = bits };

	if (t->tag == GOOSE_INTEGER)
		v.integer = t->bits == 64 ? INT64_MIN : -(INT64_C(1) << (t->bits - 1));
	else if (t->tag == GOOSE_UNSIGNED)
		v.number = UINT64_MAX >> (64 - t->bits);
	else if (t->tag == GOOSE_FLOAT)
		v.bits = t->bits;
	return v;
}
