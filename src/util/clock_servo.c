/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Following the system's clocks; see clock_servo.h.
 *
 * Each reading gives an error and, together with earlier ones, the present rate. The next
 * line has this rate plus a correction by which the error is gone at the line's end.
 * A line may be slower than the one before by a limited amount. The limit is set when the
 * one before is made (late_mult): large while there is an error, 2 ppm when settled.
 */
#include "util/clock_servo.h"

#include <string.h>

#include "util/container_of.h"

#define NS_PER_S UINT64_C(1000000000)
#define MS 1000000 /* in ns */

/* Length of a record: short while there is an error to correct. */
#define INTERVAL_MIN_NS (25 * MS)
#define INTERVAL_MAX_NS (250 * MS)
/* A reading is due that long before the end of a record, or a third of its length. */
#define EARLY_NS (60 * MS)
/* A larger error is not corrected by slewing. */
#define JUMP_NS MS
/* Limits of the slewing, and of how much slower a line may be than the one before. */
#define SLACK_MIN_PPB 2000
#define SLACK_MAX_PPB 200000
/* The rate is computed only from readings at least that far apart. */
#define BASE_MIN_NS (15 * MS)
/* An error above this plus the uncertainty of the readings is a change of the rate. */
#define SURPRISE_NS 150
/* Error by rounding in the system's clocks. */
#define WALL_ROUNDING_NS 2

static uint64_t along(const struct clock_line *l, uint64_t ticks)
{
	return l->ns + (uint64_t)(((unsigned __int128)(ticks - l->ticks) *
				   l->mult) >> 32);
}

/* The time at the end of the record's span: the latest that a reader can have got. */
static uint64_t at_end(const struct clock_record *r)
{
	return r->span == CLOCK_NO_END ? r->line.ns :
					 along(&r->line, r->line.ticks + r->span);
}

uint64_t clock_record_at(const struct clock_record *r, uint64_t ticks)
{
	uint64_t end = r->line.ticks + r->span;

	if (ticks - r->line.ticks < r->span)
		return along(&r->line, ticks);
	if (ticks < r->line.ticks) {
		/* If the counter began again: the time stands still until the next
		 * reading, at the latest time that a reader can have got. */
		return ticks < r->before.ticks ? at_end(r) :
						 along(&r->before, ticks);
	}
	return at_end(r) +
	       (uint64_t)(((unsigned __int128)(ticks - end) * r->late_mult) >> 32);
}

static uint64_t to_ticks(const struct clock_servo *s, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * s->tick_hz / NS_PER_S);
}

static uint64_t part_of(uint64_t mult, uint64_t ppb)
{
	return (uint64_t)((unsigned __int128)mult * ppb / NS_PER_S);
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

/* When the next reading is due. */
static uint64_t due_of(const struct clock_servo *s, const struct clock_record *r)
{
	uint64_t early = MIN(to_ticks(s, EARLY_NS), r->span / 3);

	return r->line.ticks + r->span - early;
}

void clock_servo_start(struct clock_servo *s, uint64_t tick_hz, uint64_t mult,
		       const struct clock_reading *first)
{
	memset(s, 0, sizeof(*s));
	s->tick_hz = tick_hz;
	s->interval = to_ticks(s, INTERVAL_MIN_NS);
	s->best_ns = first->uncertainty_ns;
	s->uncertainty_ns = first->uncertainty_ns;
	s->last_ticks = first->ticks;
	s->kept[0].ticks = first->ticks;
	s->kept[0].ns = first->mono_ns;
	s->kept_count = 1;
	s->record.line.ticks = first->ticks;
	s->record.line.ns = first->mono_ns;
	s->record.line.mult = mult;
	s->record.before = s->record.line;
	s->record.late_mult = mult;
	s->record.span = CLOCK_NO_END;
	s->record.due = first->ticks + s->interval;
	clock_servo_set_wall(s, first->wall_low_ns, first->wall_high_ns);
}

void clock_servo_set_wall(struct clock_servo *s, int64_t low_ns, int64_t high_ns)
{
	s->wall_low_ns = low_ns - WALL_ROUNDING_NS;
	s->wall_high_ns = high_ns + WALL_ROUNDING_NS;
	s->record.wall_ns = s->wall_low_ns +
			    (s->wall_high_ns - s->wall_low_ns) / 2 - s->ahead_ns;
}

/* The wall clock's distance lies in the intersection of the bounds of all readings since
 * its last step; an empty intersection is a new step. */
static void take_wall(struct clock_servo *s, const struct clock_reading *r)
{
	int64_t low = MAX(s->wall_low_ns, r->wall_low_ns - WALL_ROUNDING_NS);
	int64_t high = MIN(s->wall_high_ns, r->wall_high_ns + WALL_ROUNDING_NS);
	int64_t was = s->record.wall_ns + s->ahead_ns, is;

	if (low > high) {
		clock_servo_set_wall(s, r->wall_low_ns, r->wall_high_ns);
		is = s->record.wall_ns + s->ahead_ns;
		s->step_ns = is - was;
		s->steps++;
		return;
	}
	s->wall_low_ns = low;
	s->wall_high_ns = high;
	s->record.wall_ns = MIN(MAX(was, low), high) - s->ahead_ns;
}

/* The monotonic clock continues, with a new distance from CLOCK_MONOTONIC. */
static void take_jump(struct clock_servo *s, int64_t error_ns)
{
	s->ahead_ns -= error_ns;
	s->jump_ns = error_ns;
	s->jumps++;
	s->record.wall_ns += error_ns;
	s->kept_count = 0;
	s->interval = to_ticks(s, INTERVAL_MIN_NS);
}

/* Is the uncertainty not much above the usual one? An interrupted reading is useless. */
static bool is_good(struct clock_servo *s, const struct clock_reading *r)
{
	bool good = r->uncertainty_ns <= 2 * s->best_ns + 50;

	s->best_ns += s->best_ns / 16 + 1;
	s->best_ns = MIN(s->best_ns, r->uncertainty_ns);
	return good;
}

static void keep(struct clock_servo *s, const struct clock_reading *r,
		 bool surprised)
{
	/* After a change of the rate the older readings are useless. */
	unsigned most = surprised ? 1 : CLOCK_READINGS - 1;

	if (s->kept_count > most) {
		memmove(s->kept, s->kept + (s->kept_count - most),
			most * sizeof(s->kept[0]));
		s->kept_count = most;
	}
	s->kept[s->kept_count].ticks = r->ticks;
	s->kept[s->kept_count++].ns = r->mono_ns;
}

/* The rate over the kept readings; the present one if they are too close together. */
static uint64_t rate_of(const struct clock_servo *s)
{
	uint64_t mult = s->record.line.mult;
	uint64_t ticks, ns, rate;

	if (s->kept_count < 2)
		return mult;
	ticks = s->kept[s->kept_count - 1].ticks - s->kept[0].ticks;
	ns = s->kept[s->kept_count - 1].ns - s->kept[0].ns;
	if (ns < BASE_MIN_NS)
		return mult;
	rate = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
	/* The kernel changes the rate by at most a tenth. */
	return rate > mult - mult / 8 && rate < mult + mult / 8 ? rate : mult;
}

/* Makes the next line, from `start` on; `error_ns` is the error there. */
static void make_line(struct clock_servo *s, uint64_t start, uint64_t rate,
		      int64_t error_ns)
{
	struct clock_record *r = &s->record;
	uint64_t slowest = r->span == CLOCK_NO_END ? 0 : r->late_mult;
	uint64_t change = rate > r->line.mult ? rate - r->line.mult :
						r->line.mult - rate;
	uint64_t ppb = SLACK_MIN_PPB;
	struct clock_line next = {
		.ticks = start,
		.ns = along(&r->line, start),
	};
	__int128 correction = ((__int128)error_ns * ((__int128)1 << 32)) / (__int128)s->interval;
	__int128 bound;

	/* Four times the rate that corrects the error in the longest interval. */
	ppb += MIN(16 * magnitude(error_ns), (uint64_t)SLACK_MAX_PPB);
	ppb += MIN((uint64_t)((unsigned __int128)change * NS_PER_S / rate),
		   (uint64_t)SLACK_MAX_PPB);
	ppb = MIN(ppb, (uint64_t)SLACK_MAX_PPB);
	/* Bounded by what the next line can take back. */
	bound = part_of(rate, ppb);
	correction = MIN(MAX(correction, -bound), bound);
	next.mult = MAX((uint64_t)((__int128)rate + correction), slowest);
	r->before = r->line;
	r->line = next;
	r->span = s->interval;
	r->late_mult = next.mult - part_of(next.mult, ppb);
	r->due = due_of(s, r);
}

/* Keeps the error, and sets the interval: the shortest with `soon`, else doubled. */
static void note_error(struct clock_servo *s, int64_t error_ns, bool soon)
{
	uint64_t off = magnitude(error_ns);

	s->offset_ns = error_ns;
	s->interval = soon ? to_ticks(s, INTERVAL_MIN_NS) :
				  MIN(s->interval * 2,
				      to_ticks(s, INTERVAL_MAX_NS));
	s->settled |= s->interval == to_ticks(s, INTERVAL_MAX_NS);
	off -= MIN(off, s->uncertainty_ns);
	if (s->settled && off > s->offset_max_ns)
		s->offset_max_ns = off;
}

bool clock_servo_take(struct clock_servo *s, const struct clock_reading *r,
		      uint64_t lead)
{
	struct clock_record *now = &s->record;
	uint64_t end, start, ours, rate;
	bool again = r->ticks < now->before.ticks, surprised, good;
	int64_t error;

	if (!again && r->ticks < now->line.ticks)
		return false;
	end = now->line.ticks + now->span;
	s->readings++;
	good = is_good(s, r);
	s->uncertainty_ns = r->uncertainty_ns;
	s->last_ticks = r->ticks;
	if (unlikely(again)) {
		/* The line continues from the latest time that a reader can have got. */
		now->line.ns = at_end(now);
		now->line.ticks = r->ticks;
		now->span = 0;
		end = r->ticks;
	}
	/* Also after the end of the record: as if the line continued. */
	ours = along(&now->line, r->ticks);
	error = (int64_t)(r->mono_ns - ours) + s->ahead_ns;
	if (unlikely(again || magnitude(error) > JUMP_NS)) {
		take_jump(s, error);
		error = 0;
	}
	take_wall(s, r);
	surprised = magnitude(error) > r->uncertainty_ns + s->best_ns + SURPRISE_NS;
	note_error(s, error, surprised || !good);
	if (good)
		keep(s, r, surprised);
	else /* only as far as the error is certain */
		error = error < 0 ?
			MIN(error + (int64_t)r->uncertainty_ns, (int64_t)0) :
			MAX(error - (int64_t)r->uncertainty_ns, (int64_t)0);
	rate = good ? rate_of(s) : now->line.mult;
	start = now->span == CLOCK_NO_END ? r->ticks + lead :
					  MAX(end, r->ticks + lead);
	/* At the beginning of the next line: plus the difference of the rates until then. */
	error += (int64_t)(((__int128)(start - r->ticks) *
			    ((__int128)rate - (__int128)now->line.mult)) >> 32);
	make_line(s, start, rate, error);
	return true;
}

int64_t clock_servo_rate_ppb(const struct clock_servo *s, uint64_t first_mult)
{
	__int128 change = (__int128)s->record.line.mult - (__int128)first_mult;

	return (int64_t)(change * (__int128)NS_PER_S / (__int128)first_mult);
}
