/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data frames of several streams that have the same time become one step. A step is complete when
 * each stream has brought its frame, and over when a stream cannot bring it any more or its waiting
 * time has passed. No socket, no clock and no thread: frames and the time come in, steps go out.
 *
 * Steps go out in the order of their times, unless the waiting time forbids it. A stream whose
 * clock is wrong has steps of its own, and does not make the frames of the others late.
 */
#ifndef GATEWAY_NODE_C37_ALIGN_H
#define GATEWAY_NODE_C37_ALIGN_H

#include <stdbool.h>
#include <stdint.h>

#define C37_STREAMS_MAX 32

/* Steps that wait, at most; then one goes out early. */
#define C37_STEPS_MAX 256
/* Steps that went out and whose times are remembered. */
#define C37_PAST 256

struct c37_step {
	int64_t time_ns;
	uint64_t until_ns;     /* of waiting */
	uint32_t present;      /* streams, one bit each */
	unsigned place;        /* for values: below C37_STEPS_MAX, of one step at a time */
};

struct c37_past {
	int64_t time_ns;
	uint32_t present;
};

/* How far the clock of a stream is ahead of ours. */
struct c37_offset {
	int64_t last_ns, before_ns; /* the largest one now, and in the time before */
	uint64_t until_ns;          /* of now; 0: nothing has come */
};

struct c37_align {
	/* Settings */
	unsigned streams;
	uint64_t wait_ns;
	int64_t tolerance_ns;  /* times that differ by so much are the same */

	uint32_t away;         /* streams that bring nothing now, so that no step waits for them */
	uint32_t ordered;      /* streams none of whose frames overtakes another one */
	int64_t last_ns[C37_STREAMS_MAX]; /* of the last frame of each stream; INT64_MIN: none */
	struct c37_offset offsets[C37_STREAMS_MAX];
	struct c37_step steps[C37_STEPS_MAX];
	unsigned count;
	uint32_t used[C37_STEPS_MAX / 32]; /* places */
	struct c37_past past[C37_PAST];
	unsigned past_next, past_count;
};

enum c37_align_result {
	C37_ALIGN_TAKEN,
	C37_ALIGN_LATE,        /* the step of that time has gone out */
	C37_ALIGN_TWICE,       /* the stream has brought that time already */
};

void c37_align_init(struct c37_align *a, unsigned streams, uint64_t wait_ns, int64_t tolerance_ns);
void c37_align_set(struct c37_align *a, unsigned stream, bool away, bool ordered);
/* Takes out a step if a new one would find no room. To be called before c37_align_put(). False: there
 * is room. */
bool c37_align_make_room(struct c37_align *a, struct c37_step *step);
/* A frame has come. *place: where its values belong. */
enum c37_align_result c37_align_put(struct c37_align *a, unsigned stream, int64_t time_ns,
				    uint64_t now_ns, unsigned *place);
/* Takes out a step that is complete or over. False: there is none. */
bool c37_align_next(struct c37_align *a, uint64_t now_ns, struct c37_step *step);
/* When c37_align_next() is to be called again; UINT64_MAX: after the next frame. */
uint64_t c37_align_due_ns(const struct c37_align *a);

#endif
