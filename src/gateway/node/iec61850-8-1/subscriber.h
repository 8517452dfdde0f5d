/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a subscriber of GOOSE makes of the numbers in the messages of one control block
 * (IEC 61850-8-1, 18.1.2, and 61850-7-2, 18.2): which message brings a new state, which one
 * repeats it, which ones are missing, and which must not be used. Pure: the time is an argument.
 */
#ifndef GATEWAY_NODE_IEC61850_8_1_SUBSCRIBER_H
#define GATEWAY_NODE_IEC61850_8_1_SUBSCRIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/grid/goose.h"

/* Of a number that goes on at 1 behind the largest one: so many may be lost at this place. A
 * number that falls by less than nearly its whole range has not gone on. */
#define GOOSE_WRAP_MAX 10000u
/* So late may a message be that was overtaken. A number that has fallen later than that was not
 * overtaken, however long the last message claims to be valid. */
#define GOOSE_LATE_MAX_NS UINT64_C(10000000000)

enum goose_verdict {
	GOOSE_CHANGE,      /* a state that was not seen before */
	GOOSE_REPETITION,  /* of the state that is known */
	/* Messages that must not be used: */
	GOOSE_DUPLICATE,   /* the last message once more */
	GOOSE_OLD,         /* a number has fallen, soon and though the last message is still valid */
	GOOSE_INCOMPLETE,  /* ndsCom: the publisher's configuration is not complete */
	GOOSE_SIMULATED,   /* and simulated messages are not wanted */
	GOOSE_REPLACED,    /* not simulated, while simulated messages are wanted and come */
	GOOSE_LIFELESS,    /* it is valid for no time at all */
	GOOSE_VERDICTS,
};

/* Zeroed at the start, but for `simulation`. */
struct goose_subscriber {
	bool simulation;     /* simulated messages are wanted, and replace the others */
	bool known;          /* a message was used before */
	bool alive;          /* and its time allowed to live has not ended */
	bool simulated;      /* it was a simulated one */
	uint32_t state, sequence, revision;
	uint64_t used_ns;    /* when it came */
	uint64_t until_ns;   /* while `alive`: the end of its time */
};

/* Of a message that is used. */
struct goose_arrival {
	enum goose_verdict verdict;
	uint32_t lost_changes;  /* states between this one and the one before */
	uint32_t lost_messages; /* at least so many messages are missing before this one */
	bool restarted;         /* the publisher has begun its numbers again */
	bool revised;           /* confRev is not that of the message before */
	bool resumed;           /* the time of the message before had ended */
};

/* `head`: the header's flag of simulation, which counts as well as that of the message. */
struct goose_arrival goose_subscriber_take(struct goose_subscriber *s, const struct goose *g,
					   bool head, uint64_t now_ns);

/* True, once: the time of the last message that was used has ended without another one. To be
 * called before goose_subscriber_take(), and when goose_subscriber_end_ns() has come. */
bool goose_subscriber_expire(struct goose_subscriber *s, uint64_t now_ns);

static inline uint64_t goose_subscriber_end_ns(const struct goose_subscriber *s)
{
	return s->alive ? s->until_ns : UINT64_MAX;
}

#endif
