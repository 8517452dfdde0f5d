/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the data path's clock follows the system's clocks. Pure: readings go in, and a
 * record comes out that gives the time at any tick; there is no clock, lock or thread
 * in here. util/clock.c takes the readings and publishes the record to all threads.
 *
 * One line over the ticks gives two clocks:
 *
 * - The monotonic clock follows CLOCK_MONOTONIC by its rate alone. It never steps or goes
 *   back, whichever of two successive records a reader has: a record is valid for a
 *   span, the next one begins at its end, and a reader of the old record after that
 *   end gets a time that is slower than any next record may be.
 * - The wall clock is the monotonic clock plus a distance. The system's two clocks differ
 *   by a number that changes only when somebody sets the clock. So the wall clock is
 *   slewed with the monotonic one, and follows a step of the system's at once.
 *
 * When the ticks and CLOCK_MONOTONIC differ by a jump (the host was suspended, the counter
 * began again, the process was stopped for hours), the monotonic clock continues and
 * keeps that distance from the system's clock; the wall clock is right again after
 * the first reading.
 */
#ifndef UTIL_CLOCK_SERVO_H
#define UTIL_CLOCK_SERVO_H

#include <stdbool.h>
#include <stdint.h>

/* ns + ((ticks - this->ticks) * mult >> 32) */
struct clock_line {
	uint64_t ticks, ns, mult;
};

#define CLOCK_NO_END (UINT64_MAX / 2)

struct clock_record {
	struct clock_line line;
	uint64_t span;            /* ticks for which the line is valid, or CLOCK_NO_END */
	struct clock_line before; /* valid before the line's first tick */
	uint64_t late_mult;       /* rate after the span: the slowest that may follow */
	uint64_t due;             /* tick from which on a reading is due */
	int64_t wall_ns;          /* wall clock minus monotonic clock */
};

/* The monotonic clock at `ticks`. */
uint64_t clock_record_at(const struct clock_record *r, uint64_t ticks);

/* Is a reading due at `ticks`? Also if the counter began again. */
static inline bool clock_record_is_due(const struct clock_record *r, uint64_t ticks)
{
	return ticks >= r->due || ticks < r->before.ticks;
}

struct clock_reading {
	uint64_t ticks;
	uint64_t mono_ns;         /* CLOCK_MONOTONIC at that tick */
	uint64_t uncertainty_ns;  /* its largest possible error */
	/* The system's wall clock minus CLOCK_MONOTONIC lies between these. */
	int64_t wall_low_ns, wall_high_ns;
};

#define CLOCK_READINGS 8

struct clock_servo {
	struct clock_record record;
	uint64_t tick_hz;
	uint64_t interval;        /* ticks from one record to the next */
	struct {
		uint64_t ticks, ns;
	} kept[CLOCK_READINGS];   /* good readings, the newest last */
	unsigned kept_count;
	uint64_t best_ns;         /* uncertainty of a good reading */
	uint64_t last_ticks;      /* of the last reading */
	int64_t ahead_ns;         /* jumps: monotonic clock minus CLOCK_MONOTONIC */
	int64_t wall_low_ns, wall_high_ns;

	/* For display: of the last reading, and since the start. */
	int64_t offset_ns;        /* the system's clocks minus ours */
	uint64_t uncertainty_ns;
	uint64_t offset_max_ns;   /* largest since it settled, minus the uncertainty */
	bool settled;
	uint64_t readings;
	uint64_t steps, jumps;    /* of the wall clock; of the monotonic one */
	int64_t step_ns, jump_ns; /* the last ones */
};

/* Begins with a line through (`ticks`, `ns`) of the first reading, without an end. */
void clock_servo_start(struct clock_servo *s, uint64_t tick_hz, uint64_t mult,
		       const struct clock_reading *first);

/*
 * Takes a reading and makes the next record, s->record. It begins at least `lead` ticks
 * after the reading. It should be published before its beginning and must be published
 * before its end; if it is too late, take another reading. False: the reading came
 * too early, nothing has changed.
 */
bool clock_servo_take(struct clock_servo *s, const struct clock_reading *r,
		      uint64_t lead);

/* Changes to another wall clock; this counts as no step. */
void clock_servo_set_wall(struct clock_servo *s, int64_t low_ns, int64_t high_ns);

/* The rate relative to that of the first line, in parts of 10^9. */
int64_t clock_servo_rate_ppb(const struct clock_servo *s, uint64_t first_mult);

#endif
