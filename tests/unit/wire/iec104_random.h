/* SPDX-License-Identifier: BSD-2-Clause */
/* Random ASDUs of all types, for tests. */
#ifndef TESTS_UNIT_WIRE_IEC104_RANDOM_H
#define TESTS_UNIT_WIRE_IEC104_RANDOM_H

#include <string.h>

#include "util/prng.h"
#include "wire/grid/iec104.h"

static inline const struct iec104_type_info *iec104_random_type(struct prng *random)
{
	const struct iec104_type_info *info;

	do
		info = iec104_type_find((unsigned)prng_below(random, 128));
	while (!info);
	return info;
}

static inline void iec104_random_time(struct prng *random, struct iec104_time *t)
{
	*t = iec104_time_from_ns(INT64_C(946684800000000000) +
				 (int64_t)prng_below(random, 3155760000) * 1000000000);
	t->millisecond = (uint16_t)prng_below(random, 60000);
	t->invalid = prng_below(random, 2);
	t->summer = prng_below(random, 2);
	t->substituted = prng_below(random, 2);
}

static inline void iec104_random_element(struct prng *random, const struct iec104_type_info *info,
					 struct iec104_object *o)
{
	const uint8_t point = IEC104_BLOCKED | IEC104_SUBSTITUTED | IEC104_NOT_TOPICAL | IEC104_INVALID;
	enum iec104_kind kind = info->kind;
	uint32_t bits = (uint32_t)prng_next(random);

	if (kind == IEC104_SINGLE || kind == IEC104_SINGLE_COMMAND)
		o->value = bits & 1;
	else if (kind == IEC104_DOUBLE || kind == IEC104_DOUBLE_COMMAND ||
		 kind == IEC104_STEP_COMMAND)
		o->value = bits & 3;
	else if (kind == IEC104_STEP)
		o->value = (int32_t)(bits % 128) - 64;
	else if (kind == IEC104_BITS || kind == IEC104_COUNTER || kind == IEC104_BITS_COMMAND)
		o->value = (int32_t)bits;
	else if (kind == IEC104_SHORT || kind == IEC104_SHORT_SETPOINT)
		o->real = (float)((int32_t)bits % 1000000) / 64;
	else if (kind == IEC104_ONE_BYTE)
		o->value = bits & 0xff;
	else if (kind == IEC104_TWO_BYTES)
		o->value = bits & 0xffff;
	else if (kind != IEC104_NOTHING)
		o->value = (int16_t)bits;
	bits = (uint32_t)prng_next(random);
	o->transient = kind == IEC104_STEP && bits & 1;
	if (kind == IEC104_SINGLE || kind == IEC104_DOUBLE)
		o->quality = bits & point;
	else if (kind == IEC104_COUNTER)
		o->quality = (uint8_t)bits;
	else if (kind < IEC104_COUNTER && kind != IEC104_NORMALIZED_PLAIN)
		o->quality = bits & (point | IEC104_OVERFLOW);
	bits = (uint32_t)prng_next(random);
	if (kind >= IEC104_SINGLE_COMMAND && kind < IEC104_BITS_COMMAND) {
		o->select = bits & 1;
		o->qualifier = bits >> 1 & (kind < IEC104_NORMALIZED_SETPOINT ? 0x1f : 0x7f);
	}
	if (info->timed)
		iec104_random_time(random, &o->time);
}

static inline void iec104_random_asdu(struct prng *random, struct iec104_asdu *a,
				      struct iec104_object objects[IEC104_OBJECTS_MAX])
{
	const struct iec104_type_info *info = iec104_random_type(random);
	uint32_t address = (uint32_t)prng_below(random, IEC104_ADDRESS_MAX - IEC104_OBJECTS_MAX);

	*a = (struct iec104_asdu){
		.type = info->type,
		.cause = (uint8_t)(1 + prng_below(random, 47)),
		.originator = (uint8_t)prng_next(random),
		.station = (uint16_t)(1 + prng_below(random, 65535)),
		.sequence = !info->command && prng_below(random, 2),
		.negative = prng_below(random, 2),
		.test = prng_below(random, 2),
	};
	a->count = 1 + (unsigned)prng_below(random, iec104_asdu_room(info, a->sequence));
	for (unsigned i = 0; i < a->count; i++) {
		objects[i] = (struct iec104_object){
			.address = a->sequence ? address + i :
						 (uint32_t)prng_below(random, IEC104_ADDRESS_MAX + 1) };
		iec104_random_element(random, info, &objects[i]);
	}
}

static inline bool iec104_same_time(const struct iec104_time *a, const struct iec104_time *b)
{
	return a->millisecond == b->millisecond && a->minute == b->minute && a->hour == b->hour &&
	       a->day == b->day && a->month == b->month && a->year == b->year &&
	       a->weekday == b->weekday && a->invalid == b->invalid && a->summer == b->summer &&
	       a->substituted == b->substituted;
}

static inline bool iec104_same(const struct iec104_object *a, const struct iec104_object *b)
{
	return a->address == b->address && a->value == b->value &&
	       !memcmp(&a->real, &b->real, sizeof(a->real)) && a->quality == b->quality &&
	       a->qualifier == b->qualifier && a->transient == b->transient &&
	       a->select == b->select && iec104_same_time(&a->time, &b->time);
}

#endif
