/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a sequence number says about the one before: the next, some lost, overtaken
 * on its way, or that the source began anew. All who count losses or look for
 * restarts ask here: the counters of a node, the hooks `restart` and `stats`.
 *
 * The rule. A number that is greater than the greatest so far is the next one, or
 * some between are lost; so is a small one behind one just below 2^32, of a source
 * that counts in 32 bits. One that is not greater is of a source that began anew if
 *
 *   - the sample says so itself (SAMPLE_NEW_SIMULATION), whatever the number;
 *   - it is 0, and the one before was not;
 *   - both samples have an origin time, and its is later;
 *   - one of them has none, and it lies more than SEQUENCE_REORDER below;
 *   - it is the SEQUENCE_RUN-th in a row that is one more than the one before,
 *     with none of the old count between them (also with times: clocks of
 *     simulators begin anew, too).
 *
 * Else it is late: a double, or overtaken on its way. An origin time of 0 is none:
 * formats that always carry a time send 0 for one that is missing.
 */
#ifndef GATEWAY_SAMPLE_SEQUENCE_H
#define GATEWAY_SAMPLE_SEQUENCE_H

#include "gateway/sample/sample.h"

/* A network delivers a sample behind this many later ones, not behind more. */
#define SEQUENCE_REORDER 128
#define SEQUENCE_RUN 16

enum sequence_verdict {
	SEQUENCE_NONE,    /* it has no number, or 0 behind 0: its source sends none */
	SEQUENCE_FIRST,
	SEQUENCE_NEXT,
	SEQUENCE_LOST,    /* sequence.distance samples before it did not come */
	SEQUENCE_LATE,    /* sequence.distance behind the greatest; 0: a double */
	SEQUENCE_RESTART,
};

/* All zero before the first sample. Of one thread. */
struct sequence {
	bool seen;
	uint64_t last;             /* the greatest since the source began */
	struct timespec origin;    /* its time; 0: none */
	uint64_t late;             /* the last late one */
	unsigned run;              /* late ones in a row */
	uint64_t distance;         /* of the last verdict */
};

/* All but the commonest case, for sequence_judge(). */
enum sequence_verdict sequence_judge_rest(struct sequence *q,
					  const struct sample *s);

/* Judges the next sample and remembers it. */
static inline enum sequence_verdict sequence_judge(struct sequence *q,
						   const struct sample *s)
{
	const uint32_t flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN;

	if (unlikely((s->flags & (flags | SAMPLE_NEW_SIMULATION)) != flags ||
		     !q->seen || s->sequence != q->last + 1))
		return sequence_judge_rest(q, s);
	q->last = s->sequence;
	q->origin = s->origin;
	q->run = 0;
	return SEQUENCE_NEXT;
}

/* Of a source that counts in 32 bits: the number after the greatest, or one of the
 * next when some were lost, is no step back. */
static inline bool sequence_wrapped(uint64_t before, uint64_t now)
{
	return now < SEQUENCE_REORDER && before <= UINT32_MAX &&
	       before > UINT32_MAX - SEQUENCE_REORDER;
}

/* What was added to the number `before`, also where that wrapped. */
static inline uint64_t sequence_step(uint64_t before, uint64_t now)
{
	return unlikely(sequence_wrapped(before, now)) ?
		       (uint32_t)(now - before) : now - before;
}

#endif
