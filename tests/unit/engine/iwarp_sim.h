/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends of an iWARP connection over a simulated TCP stream: what the files of sim_iwarp share.
 * Each end is a set-up, a connection and a receiver of engine/iwarp and wire/iwarp with the
 * simplest glue that keeps their contracts. All from one seed.
 */
#ifndef TESTS_UNIT_ENGINE_IWARP_SIM_H
#define TESTS_UNIT_ENGINE_IWARP_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/iwarp/connection.h"
#include "util/prng.h"

enum {
	ENTRIES = 8,        /* of a send queue */
	MESSAGES_MAX = 24,  /* of an end */
	LONGEST = 3000,
	PATTERN_BYTES = 1 << 15,
	PIPE_BYTES = 4096,
	OUTBOX_BYTES = 16384,
	ADDRESS = 0x10000,  /* of the memory that the peer may write: a slot for each message */
	MEMORY_BYTES = MESSAGES_MAX * LONGEST,
	GOOD_KEY = 77,
	COUNTER = 0x7000,   /* the address of the word for atomics */
};

/* Messages that shall fail. */
enum poison {
	POISON_NONE,
	POISON_STAG, POISON_BOUNDS, POISON_STREAM, POISON_ACCESS, /* the peer's key */
	POISON_RECEIVE, POISON_ROOM, POISON_LOCAL,                /* the peer's receive */
	POISON_INVALIDATE,
	POISON_ALIGN,
	POISON_RESPOND, /* the key of a READ, when its response is sent */
	POISON_GATHER,  /* the own memory, when it is sent */
	POISON_PLACE,   /* the own memory, when the response comes */
	POISONS,
};

struct message {
	uint8_t op, flags, poison;
	uint32_t length, imm, stag;
	uint64_t to, compare_add, swap;
	const uint8_t *bytes;     /* of SEND and WRITE; what a READ has to bring */
	uint64_t old;             /* an atomic found this */
	bool framed, executed, completed;
	enum ibv_wc_status status; /* when it is completed */
};

/* One direction of the stream. */
struct pipe {
	uint8_t bytes[PIPE_BYTES];
	size_t count;
	uint64_t total;
	bool fin;                 /* the writer has ended it, or `cut_at` */
	/* Of the byte with this number on: the stream ends, a bit is wrong (one), nothing arrives
	 * any more. UINT64_MAX: never. */
	uint64_t cut_at, flip_at, stop_at;
};

struct work {
	struct iwarp_wqe wqe;
	uint32_t number;          /* of the message */
};

struct end {
	struct end *peer;
	struct pipe *out, *in;
	unsigned index;
	bool initiator, closed, ended, polite, open;
	struct iwarp_setup setup;
	struct iwarp_connection c;
	struct iwarp_receiver receiver;
	bool pieces;              /* without a buffer */
	bool broken;
	uint8_t buffer[IWARP_ULPDU_MAX];
	uint32_t limit;           /* of iwarp_next() */
	uint32_t mulpdu, ahead;   /* how many bytes it frames ahead of TCP */
	uint64_t stalled_until;
	/* Framed, and not taken by TCP. */
	uint8_t outbox[OUTBOX_BYTES];
	size_t outbox_bytes;
	/* Of what is sent: who is in the middle of a message, and whose was the last one. */
	enum { BORDER, IN_REQUEST, IN_RESPONSE } middle;
	bool last_was_request;
	/* Sending. */
	struct work ring[ENTRIES];
	uint8_t landing[ENTRIES][LONGEST];
	uint64_t old[ENTRIES];
	struct message messages[MESSAGES_MAX];
	uint32_t count, posted, completed;
	uint32_t reads;           /* framed and not completed */
	unsigned failed, disconnected; /* how often that was said */
	int bad;                  /* the message that failed by itself, not by flushing; -1 */
	/* Receiving: the peer's messages. */
	bool rtr_due, immediate_due;
	uint32_t executed, at;    /* messages, and bytes of the next one */
	unsigned responded;       /* READs of the peer whose responses are framed */
	uint8_t receive[LONGEST];
	uint8_t memory[MEMORY_BYTES];
	uint64_t counter;
	/* A segment between its headers and its end. */
	struct iwarp_arrival arrival;
	bool taken;
	enum iwarp_answer answer;
	enum ibv_wc_status copied;
	uint64_t original;
};

struct world {
	uint64_t seed, now, moved;
	struct prng dice;
	struct end ends[2];
	struct pipe pipes[2];
	bool extended, harmed;    /* `harmed`: by more than poison */
	unsigned poisons;
	/* One segment is forged, after so many others; 0: none. What that breaks, and by whom. */
	unsigned forge_after;
	enum iwarp_error forged;
	const struct end *forger;
	/* Figures of all runs. */
	uint64_t connections, refused, messages, segments, poisoned, timeouts;
	uint64_t cut, stopped, reset, flipped, forgeries;
	uint64_t ended[32];       /* by status */
};

extern struct world world;
extern const uint8_t *pattern;

void sim_fail(const struct end *e, const char *what);

static inline void sim_check(const struct end *e, bool good, const char *what)
{
	if (!good)
		sim_fail(e, what);
}

static inline uint64_t dice(uint64_t n)
{
	return prng_below(&world.dice, n);
}

/* iwarp_plan.c: what is sent, and how it has to end. */
void plan_init(void);
void plan_make(struct end *e);
/* A segment of the peer came; what the program's memory and receives say to it. */
enum iwarp_answer plan_execute(struct end *e, const struct iwarp_segment *s,
			       const struct iwarp_look *look);
/* Carries it out; the value before. */
uint64_t plan_atomic(struct end *e, const struct iwarp_look *look);
/* Payload of that segment, `offset` bytes behind its first one. */
void plan_place(struct end *e, const struct iwarp_segment *s, const struct iwarp_look *look,
		const uint8_t *data, size_t bytes, size_t offset);
/* It was good. */
void plan_executed(struct end *e, const struct iwarp_segment *s, const struct iwarp_look *look,
		   const struct iwarp_taken *taken);
/* An own message has completed. */
void plan_completed(struct end *e, uint32_t index, enum ibv_wc_status status);
/* The READ of the peer whose response is next. */
const struct message *plan_next_response(const struct end *e);
void plan_check_end(struct end *e);

/* iwarp_forge.c: perhaps this one. */
void forge_segment(struct end *e, struct iwarp_segment *s);
void forge_check(void);

/* iwarp_end.c: the glue. */
void end_open(struct end *e, const struct iwarp_setup_params *p);
void end_post(struct end *e);
void end_frame(struct end *e);
void end_write(struct end *e);
void end_read(struct end *e);
void end_attend(struct end *e);
void end_timer(struct end *e);
void end_reset(struct end *e);

#endif
