/* SPDX-License-Identifier: BSD-2-Clause */
/* See apdu.h. */
#include "wire/grid/apdu.h"

#include "wire/bytes.h"

#define SIMULATION 0x8000
#define LEAP_SECONDS_KNOWN 0x80
#define CLOCK_FAILURE 0x40
#define NOT_SYNCHRONIZED 0x20
#define ACCURACY 0x1f
#define FRACTION_BITS 24
#define SECOND_NS 1000000000u

const char apdu_secured[] = "it is signed or encrypted (IEC 62351-6, which is not supported), and cannot be read without that";

const char *apdu_decode(const uint8_t *payload, size_t len, struct apdu *a)
{
	size_t stated;

	if (len < APDU_HEADER)
		return "the frame is shorter than a header";
	stated = get_16(payload + 2);
	if (stated < APDU_HEADER)
		return "its length is less than that of a header";
	if (stated > len)
		return "its length is more than the frame has";
	*a = (struct apdu){
		.appid = get_16(payload),
		.simulation = get_16(payload + 4) & SIMULATION,
		.reserved1 = get_16(payload + 4) & (uint16_t)~SIMULATION,
		.reserved2 = get_16(payload + 6),
		.body = { payload + APDU_HEADER, stated - APDU_HEADER },
	};
	return NULL;
}

void apdu_encode(const struct apdu *a, size_t len, uint8_t to[APDU_HEADER])
{
	to = put_16(to, a->appid);
	to = put_16(to, (uint16_t)(len + APDU_HEADER));
	to = put_16(to, (uint16_t)(a->reserved1 | (a->simulation ? SIMULATION : 0)));
	put_16(to, a->reserved2);
}

bool utc_time_decode(const struct ber *value, struct utc_time *t)
{
	uint64_t fraction;
	uint8_t quality;

	if (value->len != UTC_TIME_BYTES)
		return false;
	fraction = get_32(value->at + 4) >> 8;
	quality = value->at[7];
	*t = (struct utc_time){
		.seconds = get_32(value->at),
		/* Rounded, so that what was encoded comes back. */
		.nanoseconds = (uint32_t)((fraction * SECOND_NS + (1u << (FRACTION_BITS - 1))) >>
					  FRACTION_BITS),
		.leap_seconds_known = quality & LEAP_SECONDS_KNOWN,
		.clock_failure = quality & CLOCK_FAILURE,
		.not_synchronized = quality & NOT_SYNCHRONIZED,
		.accuracy = quality & ACCURACY,
	};
	return true;
}

void utc_time_encode(const struct utc_time *t, uint8_t to[UTC_TIME_BYTES])
{
	uint64_t fraction = (((uint64_t)t->nanoseconds << FRACTION_BITS) + SECOND_NS / 2) / SECOND_NS;

	if (fraction >> FRACTION_BITS)
		fraction = (1u << FRACTION_BITS) - 1;
	put_32(to, t->seconds);
	put_32(to + 4, (uint32_t)fraction << 8);
	to[7] = (uint8_t)((t->leap_seconds_known ? LEAP_SECONDS_KNOWN : 0) |
			  (t->clock_failure ? CLOCK_FAILURE : 0) |
			  (t->not_synchronized ? NOT_SYNCHRONIZED : 0) | (t->accuracy & ACCURACY));
}
