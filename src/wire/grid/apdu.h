/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands in front of a GOOSE or sampled-values message behind the Ethertype (IEC 61850-8-1,
 * annex C, and 61850-9-2, 5.3): APPID, length, two reserved words. Pure functions.
 */
#ifndef WIRE_GRID_APDU_H
#define WIRE_GRID_APDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/grid/ber.h"

enum { APDU_HEADER = 8 };
#define ETHERTYPE_GOOSE 0x88b8
#define ETHERTYPE_SV 0x88ba

struct apdu {
	uint16_t appid;
	bool simulation; /* of a test set; first bit of the first reserved word */
	uint16_t reserved1, reserved2; /* as received, without that bit; see apdu_extension() */
	struct ber body;
};

/* Why a message with an extension cannot be read. */
extern const char apdu_secured[];

/* The bytes of a signature or what an encryption needs (IEC 62351-6), which stand behind the message;
 * 0: there are none. */
static inline unsigned apdu_extension(const struct apdu *a)
{
	return a->reserved1 & 0x0fff;
}

/* Takes the header of a frame's payload, which may have zeros at its end. NULL, or what is wrong
 * with it. */
const char *apdu_decode(const uint8_t *payload, size_t len, struct apdu *a);
/* Writes the header of a body of `len` bytes. */
void apdu_encode(const struct apdu *a, size_t len, uint8_t to[APDU_HEADER]);

/* Times in messages: seconds since 1970 (UTC), fraction of 2^-24 s, quality. */
struct utc_time {
	uint32_t seconds;
	uint32_t nanoseconds;
	bool leap_seconds_known, clock_failure, not_synchronized;
	uint8_t accuracy; /* bits of the fraction that are right; 31: not said */
};

enum { UTC_TIME_BYTES = 8 };
/* False: not 8 bytes. */
bool utc_time_decode(const struct ber *value, struct utc_time *t);
void utc_time_encode(const struct utc_time *t, uint8_t to[UTC_TIME_BYTES]);

#endif
