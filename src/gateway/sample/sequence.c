/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule that sequence.h states. */
#include "gateway/sample/sequence.h"

#include "gateway/sample/time.h"

static bool is_time(struct timespec t)
{
	return t.tv_sec || t.tv_nsec;
}

/* Is the step too large for lost samples? It is if it is more than 2^31, or more than a million
 * and more than ten for each microsecond between the origin times. */
static bool jumps(const struct sequence *q, uint64_t step, struct timespec origin)
{
	if (step <= 1000000)
		return false;
	if (step > UINT64_C(1) << 31)
		return true;
	return is_time(origin) && is_time(q->origin) &&
	       sample_time_since_ns(origin, q->origin) / 100 < (int64_t)step;
}

/* Was the restart before a single wrong number? Then this number follows the one before that. */
static bool goes_on(const struct sequence *q, uint64_t number)
{
	return q->run == SEQUENCE_DOUBT && number > q->late &&
	       number - q->late <= SEQUENCE_REORDER;
}

/* One jump is a restart. Where a second one follows at once, the source does not count samples,
 * but, for example, nanoseconds. */
static enum sequence_verdict judge_jump(struct sequence *q)
{
	q->strides |= q->run == SEQUENCE_DOUBT;
	return q->strides ? SEQUENCE_NEXT : SEQUENCE_RESTART;
}

/* The number is `step` > 0 behind the greatest. */
static enum sequence_verdict judge_step(struct sequence *q, uint64_t step,
					struct timespec origin)
{
	q->left_out = step == 1 ? 0 :
		sequence_count_left_out(q->last + 1, step - 1, q->origin, origin);
	q->distance = step - 1 - q->left_out;
	return q->distance ? SEQUENCE_LOST :
	       q->left_out ? SEQUENCE_LEFT_OUT : SEQUENCE_NEXT;
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
	if (goes_on(q, s->sequence))
		q->last = q->late;
	step = sequence_step(q->last, s->sequence);
	if (!q->seen) {
		verdict = SEQUENCE_FIRST;
	} else if (s->flags & SAMPLE_NEW_SIMULATION) {
		verdict = SEQUENCE_RESTART;
	} else if (s->sequence > q->last ||
		   sequence_wrapped(q->last, s->sequence)) {
		verdict = jumps(q, step, origin) ? judge_jump(q) :
						   judge_step(q, step, origin);
	} else if (!s->sequence && !q->last) {
		return SEQUENCE_NONE;
	} else if (began_anew(q, s->sequence, origin)) {
		verdict = SEQUENCE_RESTART;
	} else {
		q->distance = q->last - s->sequence;
		return SEQUENCE_LATE;
	}
	q->run = 0;
	if (verdict == SEQUENCE_RESTART && !(s->flags & SAMPLE_NEW_SIMULATION)) {
		q->run = SEQUENCE_DOUBT;
		q->late = q->last;
	}
	q->seen = true;
	q->last = s->sequence;
	q->origin = origin;
	return verdict;
}
