/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_align.h. */
#include "gateway/node/c37.118/c37_align.h"

#include "util/container_of.h"

/* For so long a stream may stand still, and what it brings then is late. */
#define OFFSET_NS UINT64_C(10000000000)

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

/* Frames that were delayed say nothing about the clock: the largest offset of the last time counts,
 * of 1 to 2 OFFSET_NS. */
static void note_offset(struct c37_offset *o, int64_t offset_ns, uint64_t now_ns)
{
	if (!o->until_ns || now_ns >= o->until_ns) {
		o->before_ns = o->until_ns && now_ns < o->until_ns + OFFSET_NS ? o->last_ns : INT64_MIN;
		o->last_ns = INT64_MIN;
		o->until_ns = now_ns + OFFSET_NS;
	}
	o->last_ns = MAX(o->last_ns, offset_ns);
}

static int64_t offset_of(const struct c37_align *a, unsigned stream)
{
	const struct c37_offset *o = &a->offsets[stream];

	return MAX(o->last_ns, o->before_ns);
}

/* Whether the clocks of all these streams are ahead of that of `stream` by more than any step
 * waits, so that no frame of it could have come in time. */
static bool are_ahead(const struct c37_align *a, uint32_t streams, unsigned stream)
{
	for (; streams; streams &= streams - 1) {
		int64_t ahead = offset_of(a, (unsigned)__builtin_ctz(streams)) -
				offset_of(a, stream);

		if (ahead <= (int64_t)a->wait_ns)
			return false;
	}
	return true;
}

/* Has the step of this frame gone out? One of streams that are ahead was another step. */
static bool is_past(const struct c37_align *a, unsigned stream, int64_t time_ns)
{
	for (unsigned i = 0; i < a->past_count; i++)
		if (is_same(a, a->past[i].time_ns, time_ns) &&
		    !are_ahead(a, a->past[i].present, stream))
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
	note_offset(&a->offsets[stream], time_ns - (int64_t)now_ns, now_ns);
	if (!s && is_past(a, stream, time_ns))
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
	a->past[a->past_next] = (struct c37_past){ to->time_ns, to->present };
	a->past_next = (a->past_next + 1) % C37_PAST;
	a->past_count = MIN(a->past_count + 1, (unsigned)C37_PAST);
}

static bool is_alone(const struct c37_step *s)
{
	return !(s->present & (s->present - 1));
}

/*
 * The step that gives way if there is no room: the one that waits longest, of the stream that has
 * most of them for itself. So a device with a wrong clock, or one that floods, costs its own
 * samples, and the others still meet.
 */
static unsigned find_oldest(const struct c37_align *a)
{
	unsigned alone[C37_STREAMS_MAX] = { 0 }, most = 0, oldest = a->count;

	for (unsigned i = 0; i < a->count; i++)
		if (is_alone(&a->steps[i]))
			alone[__builtin_ctz(a->steps[i].present)]++;
	for (unsigned i = 1; i < a->streams; i++)
		most = alone[i] > alone[most] ? i : most;
	for (unsigned i = 0; i < a->count; i++) {
		const struct c37_step *s = &a->steps[i], *o = &a->steps[oldest];

		if (alone[most] && s->present != UINT32_C(1) << most)
			continue;
		if (oldest == a->count || s->until_ns < o->until_ns ||
		    (s->until_ns == o->until_ns && s->time_ns < o->time_ns))
			oldest = i;
	}
	return oldest;
}

bool c37_align_make_room(struct c37_align *a, struct c37_step *step)
{
	if (a->count < C37_STEPS_MAX)
		return false;
	take_out(a, find_oldest(a), step);
	return true;
}

bool c37_align_next(struct c37_align *a, uint64_t now_ns, struct c37_step *step)
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
	if (is_done(a, &a->steps[first]))
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
