/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_track.h. */
#include "gateway/node/c37.118/c37_track.h"

#include <math.h>

#include "wire/grid/c37.h"

#define SECOND INT64_C(1000000000)

void c37_track_set_rate(struct c37_track *t, int16_t rate)
{
	t->period_ns = rate > 0 ? 1e9 / rate : rate < 0 ? -1e9 * rate : 0;
}

/*
 * Seconds are counted as in POSIX, so an inserted leap second has the number of another one and
 * the time steps back by a second, and a deleted one is a step forward. The device says so
 * beforehand or for a day afterwards.
 */
static int64_t leap_ns(struct c37_track *t, int64_t delta, uint8_t quality)
{
	uint8_t both = quality | t->quality;
	double period = t->period_ns, off_period = fabs((double)delta - period);

	if (!(both & (C37_LEAP_PENDING | C37_LEAP_OCCURRED)))
		t->leapt = false;
	if (t->leapt || !(both & (C37_LEAP_PENDING | C37_LEAP_OCCURRED)) || off_period < 0.25e9)
		return 0;
	/* Behind an inserted one up to half a second may be missing. */
	if (!(both & C37_LEAP_DELETES))
		return delta <= 0 && delta > -SECOND &&
				       (delta <= -SECOND / 2 ||
					fabs((double)(delta + SECOND) - period) < period / 4) ?
			       SECOND : 0;
	return delta > SECOND && (double)(delta - SECOND) < 1.5 * period ? -SECOND : 0;
}

static struct c37_place step(struct c37_track *t, int64_t time_ns)
{
	bool first = !t->began;

	t->began = true;
	t->last_ns = time_ns;
	t->late_ns = 0;
	if (!first)
		t->sequence++;
	return (struct c37_place){ .order = first ? C37_ORDER_NEXT : C37_ORDER_STEP,
				   .sequence = t->sequence };
}

static struct c37_place late(const struct c37_track *t, long long periods)
{
	uint64_t back = periods > 0 ? (uint64_t)periods : 1;

	return (struct c37_place){ .order = C37_ORDER_LATE,
				   .sequence = t->sequence > back ? t->sequence - back : 0 };
}

/*
 * The number of periods since the last frame. The times of a device are multiples of the period.
 * Those of a gateway's samples may be late, so they are compared with a grid of periods on
 * which the frames lie that are not late, and may be three quarters of a period behind it.
 */
static uint64_t advance(struct c37_track *t, double delta)
{
	double periods;

	if (!(t->period_ns > 0))
		return 1;
	periods = fmax(1, floor((delta + t->late_ns) / t->period_ns + 0.25));
	t->late_ns = fmax(0, delta + t->late_ns - periods * t->period_ns);
	return (uint64_t)periods;
}

struct c37_place c37_track_take(struct c37_track *t, int64_t time_ns, uint8_t quality)
{
	struct c37_place p = { .order = C37_ORDER_NEXT };
	int64_t delta = time_ns - t->last_ns, leap = t->began ? leap_ns(t, delta, quality) : 0;
	uint64_t periods;

	t->quality = quality;
	if (!t->began || delta > C37_GAP_MAX_NS || delta < -C37_GAP_MAX_NS)
		return step(t, time_ns);
	if (leap) {
		t->leapt = true;
		p.order = C37_ORDER_LEAP;
		delta += leap;
	}
	if (!delta)
		return (struct c37_place){ .order = C37_ORDER_REPEATED, .sequence = t->sequence };
	if (delta < 0)
		return t->ordered || delta < -C37_LATE_MAX_NS ?
			       step(t, time_ns) :
			       late(t, t->period_ns > 0 ? llround((double)-delta / t->period_ns) : 1);
	periods = advance(t, (double)delta);
	t->last_ns = time_ns;
	t->sequence += periods;
	p.sequence = t->sequence;
	p.missed = periods - 1;
	return p;
}
