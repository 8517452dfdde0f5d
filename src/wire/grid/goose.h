/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GOOSE: IEC 61850-8-1 edition 2. A message is the header of apdu.h and a body (goosePdu) with the
 * state of a control block and the values of its data set. Pure functions.
 */
#ifndef WIRE_GRID_GOOSE_H
#define WIRE_GRID_GOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/grid/apdu.h"
#include "wire/grid/ber.h"

enum {
	GOOSE_REFERENCE_MAX = 129,
	GOOSE_DEPTH_MAX = 8, /* of structures in structures */
};

struct goose {
	struct ber reference;     /* gocbRef: the control block */
	struct ber dataset, id;   /* datSet; goID, len 0: not in the message */
	uint32_t allowed_live_ms; /* timeAllowedtoLive: until the next message at most */
	struct utc_time time;     /* t: of the last change of state */
	uint32_t state, sequence; /* stNum, sqNum */
	uint32_t revision;        /* confRev */
	bool simulation, needs_commissioning; /* ndsCom: the control block is not complete */
	bool secured;             /* it has the item `security`, which is not looked at */
	uint32_t count;           /* numDatSetEntries */
	struct ber values;        /* allData, for goose_next() */
};

/* The tags of values (MMS Data). */
enum goose_type {
	GOOSE_ARRAY = 0xa1,
	GOOSE_STRUCTURE = 0xa2,
	GOOSE_BOOLEAN = 0x83,
	GOOSE_BIT_STRING = 0x84,
	GOOSE_INTEGER = 0x85,
	GOOSE_UNSIGNED = 0x86,
	GOOSE_FLOAT = 0x87,
	GOOSE_OCTET_STRING = 0x89,
	GOOSE_VISIBLE_STRING = 0x8a,
	GOOSE_BINARY_TIME = 0x8c,
	GOOSE_MMS_STRING = 0x90,
	GOOSE_UTC_TIME = 0x91,
};

struct goose_value {
	enum goose_type type;
	union {
		bool boolean;
		int64_t integer;
		uint64_t number;      /* GOOSE_UNSIGNED; GOOSE_BIT_STRING: the first bit is the
				       * highest one of `bits` */
		double real;
		struct utc_time time;
		struct ber bytes;     /* strings, and binary times as they are */
		struct ber members;   /* of an array or a structure, decoded by goose_next() */
		const struct goose_value *parts; /* the same, for encoding */
	};
	unsigned bits;            /* GOOSE_BIT_STRING: 64 at most; GOOSE_FLOAT: 32 or 64 */
	unsigned part_count;      /* of `parts` */
};

/* A body. NULL, or what is wrong with it. The number of values is that of numDatSetEntries. */
const char *goose_decode(const struct ber *body, struct goose *g);
/* The next value of `values`, or of the members of one. 1; 0: that was the last one; -EPROTO:
 * damaged, or longer than its type can be. */
int goose_next(struct ber *values, struct goose_value *v);

/* Writes a body into `buffer`, at its end; g->values is left alone. The first byte, or NULL if it has
 * no room; *len. */
uint8_t *goose_encode_body(const struct goose *g, const struct goose_value values[], unsigned count,
			   uint8_t *buffer, size_t size, size_t *len);
/* Writes a message with its header into `buffer`, at its end; g->values is left alone. The first
 * byte, or NULL if it has no room; *len. */
uint8_t *goose_encode(const struct apdu *head, const struct goose *g,
		      const struct goose_value values[], unsigned count, uint8_t *buffer,
		      size_t size, size_t *len);

#endif
