/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sampled values: IEC 61850-9-2 edition 2, with the profiles 9-2LE and IEC 61869-9. A message is
 * the header of apdu.h and a body (savPdu) with one or more ASDUs, each of which has the values of
 * one time. Pure functions.
 */
#ifndef WIRE_GRID_SV_H
#define WIRE_GRID_SV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/grid/apdu.h"
#include "wire/grid/ber.h"

enum { SV_ASDUS_MAX = 255, SV_ID_MAX = 129 };

enum sv_synch {
	SV_SYNCH_NONE = 0,
	SV_SYNCH_LOCAL = 1,  /* by a clock of the site; 5 to 254: that local area clock */
	SV_SYNCH_GLOBAL = 2, /* traceable to UTC */
};

enum sv_mode { SV_PER_PERIOD = 0, SV_PER_SECOND = 1, SV_SECONDS_PER_SAMPLE = 2 };

struct sv_asdu {
	struct ber id;        /* svID */
	struct ber dataset;   /* reference of the data set; len 0: not in the message */
	uint16_t count;       /* smpCnt: 0 at the full second */
	uint32_t revision;    /* confRev */
	uint8_t synch;        /* enum sv_synch */
	bool has_time, has_rate, has_mode, has_grandmaster;
	struct utc_time time; /* refrTm */
	uint16_t rate, mode;  /* smpRate, smpMod (enum sv_mode) */
	uint8_t grandmaster[8];
	struct ber values;    /* the data set, without tags: each with the length of its type */
};

struct sv_message {
	unsigned count;       /* ASDUs */
	bool secured;         /* it has the item `security`, which is not looked at */
	struct ber rest;      /* that sv_next() has not taken */
};

/* The head of a body. NULL, or what is wrong with it. */
const char *sv_decode(const struct ber *body, struct sv_message *m);
/* The next ASDU. 1; 0: that was the last one; -EPROTO with *why. */
int sv_next(struct sv_message *m, struct sv_asdu *a, const char **why);

/* Writes a body of `count` ASDUs: into `buffer`, at its end. The first byte, or NULL if it has no
 * room; *len. */
uint8_t *sv_encode_body(const struct sv_asdu asdus[], unsigned count, uint8_t *buffer, size_t size,
			size_t *len);
/* Writes a message of `count` ASDUs with its header: into `buffer`, at its end. The first byte,
 * or NULL if it has no room; *len. */
uint8_t *sv_encode(const struct apdu *head, const struct sv_asdu asdus[], unsigned count,
		   uint8_t *buffer, size_t size, size_t *len);

#endif
