/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of signals and of information objects; see points.h. */
#include <math.h>

#include "gateway/node/iec60870-5-104/points.h"
#include "util/container_of.h"

#define NORMAL 32768.0 /* a normalized value of 1 */

static double as_real(enum signal_type type, union signal_data v)
{
	return type == SIGNAL_FLOAT ? v.f : type == SIGNAL_COMPLEX ? (double)v.z.re : (double)v.i;
}

static int64_t as_integer(enum signal_type type, union signal_data v)
{
	return type == SIGNAL_FLOAT || type == SIGNAL_COMPLEX ?
		       signal_type_to_integer(as_real(type, v)) : v.i;
}

/* The nearest value between two; bit IEC104_OVERFLOW of *quality if it is another one. */
static int32_t limit(double v, double low, double high, uint8_t *quality)
{
	if (v < low || v > high)
		*quality |= IEC104_OVERFLOW;
	return (int32_t)lrint(v < low ? low : v > high ? high : v);
}

/* A state of two bits, off 1 and on 2; a boolean has no others. */
static int32_t two_bits(enum signal_type type, union signal_data v, uint8_t *quality)
{
	int64_t i = as_integer(type, v);

	if (type == SIGNAL_BOOLEAN)
		return i ? 2 : 1;
	if (i < 0 || i > 3) {
		*quality |= IEC104_INVALID;
		return 0;
	}
	return (int32_t)i;
}

/* 32 bits of an integer. `more`: the bit of *quality if they are not all of it. */
static int32_t low_bits(int64_t i, uint8_t more, uint8_t *quality)
{
	if (i < INT32_MIN || i > (int64_t)UINT32_MAX)
		*quality |= more;
	return (int32_t)(uint32_t)i;
}

static float to_short(double v, uint8_t *quality)
{
	float f = (float)v;

	if (isinf(f) && !isinf(v))
		*quality |= IEC104_OVERFLOW;
	return f;
}

bool point_to_object(const struct point *p, enum signal_type type, union signal_data value,
		     struct iec104_object *o)
{
	double v = as_real(type, value);
	uint8_t *q = &o->quality;

	*o = (struct iec104_object){ .address = p->address };
	if (isnan(v)) {
		*q = IEC104_INVALID;
		value.f = v = 0;
		type = SIGNAL_FLOAT;
	}
	switch (p->info->kind) {
	case IEC104_SINGLE:
	case IEC104_SINGLE_COMMAND:
		o->value = v != 0;
		break;
	case IEC104_DOUBLE:
		o->value = two_bits(type, value, q);
		break;
	case IEC104_DOUBLE_COMMAND:
	case IEC104_STEP_COMMAND:
		o->value = two_bits(type, value, q);
		if (o->value != 1 && o->value != 2)
			*q |= IEC104_INVALID;
		break;
	case IEC104_STEP:
		o->value = limit(v, -64, 63, q);
		break;
	case IEC104_BITS:
	case IEC104_BITS_COMMAND:
		o->value = low_bits(as_integer(type, value), IEC104_OVERFLOW, q);
		break;
	case IEC104_COUNTER:
		o->value = low_bits(as_integer(type, value), IEC104_COUNTER_CARRY, q);
		break;
	case IEC104_NORMALIZED:
	case IEC104_NORMALIZED_PLAIN:
	case IEC104_NORMALIZED_SETPOINT:
		/* 1 is not in the range; what is sent for it is 2^-15 less. */
		o->value = limit(v == 1 ? INT16_MAX : v * NORMAL, INT16_MIN, INT16_MAX, q);
		break;
	case IEC104_SCALED:
	case IEC104_SCALED_SETPOINT:
		o->value = limit(v, INT16_MIN, INT16_MAX, q);
		break;
	case IEC104_SHORT:
	case IEC104_SHORT_SETPOINT:
		o->real = to_short(v, q);
		break;
	default:
		break;
	}
	return !*q;
}

uint8_t point_quality(enum signal_type type, union signal_data value)
{
	return (uint8_t)as_integer(type, value);
}

union signal_data point_number(enum signal_type type, double value)
{
	union signal_data out = { .bits = 0 };

	if (type == SIGNAL_FLOAT)
		out.f = value;
	else if (type == SIGNAL_COMPLEX)
		out.z.re = (float)value;
	else if (type == SIGNAL_BOOLEAN)
		out.i = value != 0;
	else
		out.i = signal_type_to_integer(value);
	return out;
}

union signal_data point_from_object(enum iec104_kind kind, const struct iec104_object *o,
				    enum signal_type type)
{
	switch (kind) {
	case IEC104_SHORT:
	case IEC104_SHORT_SETPOINT:
		return point_number(type, (double)o->real);
	case IEC104_NORMALIZED:
	case IEC104_NORMALIZED_PLAIN:
	case IEC104_NORMALIZED_SETPOINT:
		return point_number(type, o->value / NORMAL);
	case IEC104_BITS:
	case IEC104_BITS_COMMAND:
		return point_number(type, (uint32_t)o->value);
	case IEC104_DOUBLE:
	case IEC104_DOUBLE_COMMAND:
	case IEC104_STEP_COMMAND:
		/* Off is 1. */
		return point_number(type, type == SIGNAL_BOOLEAN ? o->value == 2 : o->value);
	default:
		return point_number(type, o->value);
	}
}

size_t point_group_encode(const struct points *p, bool counters, unsigned group, unsigned *next,
			  const struct iec104_object *objects, struct iec104_asdu head,
			  uint8_t to[IEC104_ASDU_MAX])
{
	struct iec104_object sent[IEC104_OBJECTS_MAX];
	const struct iec104_type_info *info = NULL;

	head.count = 0;
	for (; *next < p->count; ++*next) {
		const struct point *point = &p->list[p->order[*next]];

		if (!point_is_in(point, counters, group))
			continue;
		if (info && (info != point->info || head.count == iec104_asdu_room(info, false)))
			break;
		info = point->info;
		sent[head.count++] = objects[p->order[*next]];
	}
	if (!info)
		return 0;
	head.type = iec104_type_of((enum iec104_kind)info->kind, false)->type;
	return iec104_asdu_encode(&head, sent, to);
}

size_t point_chunk_encode(const struct points *p, const struct point_chunk *chunk,
			  const struct iec104_object *objects, bool timed,
			  struct iec104_asdu head, uint8_t to[IEC104_ASDU_MAX])
{
	struct iec104_object sent[IEC104_OBJECTS_MAX];
	const struct iec104_type_info *info = timed ? chunk->info :
		iec104_type_of((enum iec104_kind)chunk->info->kind, false);

	for (unsigned i = 0; i < chunk->count; i++)
		sent[i] = objects[p->order[chunk->first + i]];
	head.type = info->type;
	head.count = chunk->count;
	head.sequence = chunk->sequence;
	return iec104_asdu_encode(&head, sent, to);
}
