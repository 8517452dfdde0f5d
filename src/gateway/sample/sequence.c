/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule that sequence.h states. */
#include "gateway/sample/sequence.h"

#include "gateway/sample/time.h"

static bool is_time(struct timespec t)
{
	return t.tv_sec || t.tv_nsec;
}

/* The source began anew with a number that is not greater than the last. */
static bool began_anew(struct sequence *q, uint64_t number, struct timespec origin)
{
	if (number == 0 && q->last != 0)
		return true;
	if (is_time(origin) && is_time(q->origin)) {
		if (number != q->last && sample_time_is_later(origin, q->origin))
			return true;
	} else if (q->last - number > SEQUENCE_REORDER) {
		return true;
	}
	q->run = q->run && number == q->late + 1 ? q->run + 1 : 1;
	q->late = number;
	return q->run == SEQUENCE_RUN;
}

enum sequence_verdict sequence_judge_rest(struct sequence *q,
					  const struct sample *s)
{
	const struct timespec none = { 0, 0 };
	struct timespec origin = s->flags & SAMPLE_HAS_ORIGIN ? s->origin : none;
	enum sequence_verdict verdict = SEQUENCE_NEXT;
	uint64_t step;

	if (!(s->flags & SAMPLE_HAS_SEQUENCE))
		return SEQUENCE_NONE;
	step = sequence_step(q->last, s->sequence);
	if (!q->seen) {
		verdict = SEQUENCE_FIRST;
	} else if (s->flags & SAMPLE_NEW_SIMULATION) {
		verdict = SEQUENCE_RESTART;
	} else if (s->sequence > q->last ||
		   sequence_wrapped(q->last, s->sequence)) {
		q->distance = step - 1;
		verdict = step == 1 ? SEQUENCE_NEXT : SEQUENCE_LOST;
	} else if (!s->sequence && !q->last) {
		return SEQUENCE_NONE;
	} else if (began_anew(q, s->sequence, origin)) {
		verdict = SEQUENCE_RESTART;
	} else {
		q->distance = q->last - s->sequence;
		return SEQUENCE_LATE;
	}
	q->seen = true;
	q->last = s->sequence;
	q->origin = origin;
	q->run = 0;
	return verdict;
}
