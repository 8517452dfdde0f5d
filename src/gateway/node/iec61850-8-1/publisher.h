/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a publisher of GOOSE sends, and with which numbers (IEC 61850-8-1, 18.1.2): at once after
 * a change, then again and again at intervals that grow up to a stable one. Pure: the time is an
 * argument, the values belong to the caller.
 */
#ifndef GATEWAY_NODE_IEC61850_8_1_PUBLISHER_H
#define GATEWAY_NODE_IEC61850_8_1_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>

/* Intervals of repetition. */
struct goose_repetition {
	uint64_t min_ns; /* T1: between the message of a change and the next one */
	uint64_t max_ns; /* T0: while nothing changes; at least min_ns */
	double factor;   /* of an interval to the next one; at least 1 */
	unsigned burst;  /* messages at once after a change; at least 1 */
};

struct goose_publication {
	uint32_t state, sequence; /* stNum, sqNum */
};

struct goose_publisher {
	struct goose_repetition repetition;
	uint32_t state;       /* of the last change; 0: there was none */
	uint32_t sequence;    /* of the next message */
	unsigned at_once;     /* messages of the burst that are left */
	uint64_t interval_ns; /* behind the next message */
	uint64_t next_ns;     /* when the next message is due; UINT64_MAX: never */
};

/* There are no values yet, and nothing is due. `state`: stNum of the last change before a stop, so
 * that subscribers see the next one as a change; 0: there was none. */
void goose_publisher_begin(struct goose_publisher *p, const struct goose_repetition *r,
			   uint32_t state);
static inline bool goose_publisher_is_silent(const struct goose_publisher *p)
{
	return p->next_ns == UINT64_MAX;
}

/* The values have changed, or are the first ones: stNum goes on, and the next message, which is
 * due now, has sqNum 0. */
void goose_publisher_change(struct goose_publisher *p, uint64_t now_ns);

/* If a message is due at `now_ns`, takes its numbers and plans the next one. The plan begins with
 * the message that is sent, so a late caller makes up nothing. */
bool goose_publisher_take(struct goose_publisher *p, uint64_t now_ns, struct goose_publication *out);

#endif
