/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides by its sequence number whether a sample is the next one, comes after a loss,
 * is late, or is the first one after a restart of the source. The counters of a node
 * and the hooks `restart` and `stats` use this rule, and there is no other.
 *
 * The rule: if the number is greater than the greatest so far, the sample is the next
 * one, or samples between the two are lost. The same holds for a small number after one
 * just below 2^32, because a source may count in 32 bits. If the number is not greater,
 * the source was restarted if
 *
 *   - the sample itself says so (SAMPLE_NEW_SIMULATION), whatever the number;
 *   - the number is 0, and the one before was not;
 *   - both samples have an origin time, and that of the new sample is later;
 *   - one of the samples has no origin time, and the number is more than
 *     SEQUENCE_REORDER below the greatest;
 *   - it is the SEQUENCE_RUN-th number in a row that is one more than the one before,
 *     without a number of the old count between them (also if there are origin times,
 *     because the clock of a simulator may restart too).
 *
 * Otherwise the sample is late: a duplicate, or overtaken by later ones. An origin time
 * of 0 counts as none, because formats that always carry a time send 0 for a missing
 * one.
 *
 * A number that no source reaches by counting (more than 2^31 ahead, or more than a
 * million and ten for each microsecond between the origin times) is no loss but a
 * restart; if the next one is such a number too, the source counts something else than samples.
 * A number that is wrong once, greater or smaller, does not disturb the count: if the next one
 * goes on behind the number before it, it is compared with that.
 *
 * Numbers that a generator of this process left out (sequence_note_left_out()) are not
 * lost: there were no samples of these numbers.
 */
#ifndef GATEWAY_SAMPLE_SEQUENCE_H
#define GATEWAY_SAMPLE_SEQUENCE_H

#include "gateway/sample/sample.h"

/* A network is taken to deliver a sample after this many later ones at most. */
#define SEQUENCE_REORDER 128
#define SEQUENCE_RUN 16
/* In `run`, behind a restart: `late` is the greatest number before it. */
#define SEQUENCE_DOUBT 1000

enum sequence_verdict {
	SEQUENCE_NONE,    /* it has no number, or 0 after 0: the source sends none */
	SEQUENCE_FIRST,
	SEQUENCE_NEXT,
	SEQUENCE_LOST,    /* sequence.distance samples before it did not come, and
			   * sequence.left_out were not made */
	SEQUENCE_LEFT_OUT, /* sequence.left_out samples before it were not made */
	SEQUENCE_LATE,    /* sequence.distance behind the greatest; 0: a duplicate */
	SEQUENCE_RESTART,
};

/* State of the rule for one source; all zero before the first sample. One thread at a
 * time. */
struct sequence {
	bool seen;
	uint64_t last;             /* the greatest since the source began */
	struct timespec origin;    /* its time; 0: none */
	uint64_t late;             /* the last late one */
	unsigned run;              /* late ones in a row; SEQUENCE_DOUBT */
	uint64_t distance;         /* of the last verdict */
	uint64_t left_out;         /* likewise, where it says so */
	bool strides;              /* its numbers do not count samples */
};

/* sequence_judge() for all but the most frequent case. */
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

/*
 * A generator notes that it made no samples of the numbers `first` to `first + count - 1`,
 * and the origin time of the sample behind them. The last 1024 notes are kept. Any thread.
 */
void sequence_note_left_out(uint64_t first, uint64_t count, struct timespec behind);
/* How many of these numbers were left out by generators between two origin times, of the
 * samples before and behind the gap (0: not known). Any thread. */
uint64_t sequence_count_left_out(uint64_t first, uint64_t count, struct timespec before,
				 struct timespec behind);

/* Whether the counter of a source that counts in 32 bits wrapped: then `now` is the number
 * after `before`, or a later one after a loss, and not a step back. */
static inline bool sequence_wrapped(uint64_t before, uint64_t now)
{
	return now < SEQUENCE_REORDER && before <= UINT32_MAX &&
	       before > UINT32_MAX - SEQUENCE_REORDER;
}

/* The difference of two numbers, also if the counter wrapped between them. */
static inline uint64_t sequence_step(uint64_t before, uint64_t now)
{
	return unlikely(sequence_wrapped(before, now)) ?
		       (uint32_t)(now - before) : now - before;
}

#endif
