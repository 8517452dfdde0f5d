/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_align.h. */
#include "gateway/node/c37.118/c37_align.h"

#include "util/container_of.h"

void c37_align_init(struct c37_align *a, unsigned streams, uint64_t wait_ns, int64_t tolerance_ns)
{
	*a = (struct c37_align){ .streams = streams, .wait_ns = wait_ns,
				 .tolerance_ns = tolerance_ns,
				 .away = UINT32_MAX >> (32 - streams) };
	for (unsigned i = 0; i < streams; i++)
		a->last_ns[i] = INT64_MIN;
}

void c37_align_set(struct c37_align *a, unsigned stream, bool away, bool ordered)
{
	uint32_t bit = UINT32_C(1) << stream;

	a->away = away ? a->away | bit : a->away & ~bit;
	a->ordered = ordered ? a->ordered | bit : a->ordered & ~bit;
}

bool c37_align_is_full(const struct c37_align *a)
{
	return a->count == C37_STEPS_MAX;
}

static bool is_same(const struct c37_align *a, int64_t x, int64_t y)
{
	return (x > y ? x - y : y - x) <= a->tolerance_ns;
}

static unsigned take_place(struct c37_align *a)
{
	for (unsigned i = 0; i < ARRAY_SIZE(a->used); i++) {
		if (a->used[i] == UINT32_MAX)
			continue;
		unsigned bit = (unsigned)__builtin_ctz(~a->used[i]);

		a->used[i] |= UINT32_C(1) << bit;
		return 32 * i + bit;
	}
	return 0;
}

/* NULL: no step has that time. */
static struct c37_step *find(struct c37_align *a, int64_t time_ns)
{
	for (unsigned i = a->count; i--;)
		if (is_same(a, a->steps[i].time_ns, time_ns))
			return &a->steps[i];
	return NULL;
}

static bool is_past(const struct c37_align *a, int64_t time_ns)
{
	for (unsigned i = 0; i < a->past_count; i++)
		if (is_same(a, a->past_ns[i], time_ns))
			return true;
	return false;
}

enum c37_align_result c37_align_put(struct c37_align *a, unsigned stream, int64_t time_ns,
				    uint64_t now_ns, unsigned *place)
{
	struct c37_step *s = find(a, time_ns);
	uint32_t bit = UINT32_C(1) << stream;

	/* What comes shows where the stream is, also if it is of no use. */
	a->last_ns[stream] = time_ns;
	if (!s && is_past(a, time_ns))
		return C37_ALIGN_LATE;
	if (s && s->present & bit)
		return C37_ALIGN_TWICE;
	if (!s) {
		s = &a->steps[a->count++];
		*s = (struct c37_step){ .time_ns = time_ns, .until_ns = now_ns + a->wait_ns,
					.place = take_place(a) };
	}
	s->present |= bit;
	*place = s->place;
	return C37_ALIGN_TAKEN;
}

/* Can no further frame come for it? */
static bool is_done(const struct c37_align *a, const struct c37_step *s)
{
	uint32_t missing = (UINT32_MAX >> (32 - a->streams)) & ~s->present & ~a->away;

	for (; missing; missing &= missing - 1) {
		unsigned i = (unsigned)__builtin_ctz(missing);

		if (!(a->ordered >> i & 1) || a->last_ns[i] <= s->time_ns + a->tolerance_ns)
			return false;
	}
	return true;
}

static void take_out(struct c37_align *a, unsigned i, struct c37_step *to)
{
	*to = a->steps[i];
	a->steps[i] = a->steps[--a->count];
	a->used[to->place / 32] &= ~(UINT32_C(1) << to->place % 32);
	a->past_ns[a->past] = to->time_ns;
	a->past = (a->past + 1) % C37_PAST;
	a->past_count = MIN(a->past_count + 1, (unsigned)C37_PAST);
}

bool c37_align_next(struct c37_align *a, uint64_t now_ns, bool all, struct c37_step *step)
{
	unsigned first = 0, over = a->count;

	for (unsigned i = 0; i < a->count; i++) {
		const struct c37_step *s = &a->steps[i];

		if (s->time_ns < a->steps[first].time_ns)
			first = i;
		if (s->until_ns <= now_ns &&
		    (over == a->count || s->time_ns < a->steps[over].time_ns))
			over = i;
	}
	if (!a->count)
		return false;
	if (all || is_done(a, &a->steps[first]))
		over = first;
	if (over == a->count)
		return false;
	take_out(a, over, step);
	return true;
}

uint64_t c37_align_due_ns(const struct c37_align *a)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < a->count; i++)
		due = MIN(due, a->steps[i].until_ns);
	return due;
}
