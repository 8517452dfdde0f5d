/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the data path's clock follows the system's clocks. Pure: readings go in, a
 * record comes out that tells the time of any tick; no clock, lock or thread is in
 * here. util/clock.c takes the readings and shows the record to all threads.
 *
 * Two clocks hang on one line over the ticks:
 *
 * - The monotonic one follows CLOCK_MONOTONIC by its rate alone. It never steps and
 *   never goes back, whichever of two neighbouring records a reader holds: a record
 *   holds for a span, the next one begins where that ends, and what still reads the
 *   old one behind its end gets a time that goes slower than any next record may.
 * - The wall clock is the monotonic one plus a distance, because the system's own
 *   differ by a number that changes only when somebody sets the clock. So it is
 *   slewed with the monotonic one, and follows a step of the system at once.
 *
 * When the ticks leave CLOCK_MONOTONIC by a jump (the host slept, the counter began
 * again, the process was stopped for hours), the monotonic clock goes on where it is
 * and keeps that distance from the system's; the wall clock is right again with the
 * first reading.
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
	uint64_t span;            /* ticks for which the line holds, or CLOCK_NO_END */
	struct clock_line before; /* up to the line's first tick */
	uint64_t late_mult;       /* behind the span: no faster than any next line */
	uint64_t due;             /* tick from which on a reading is wanted */
	int64_t wall_ns;          /* wall clock minus monotonic clock */
};

/* The monotonic clock at `ticks`. */
uint64_t clock_record_at(const struct clock_record *r, uint64_t ticks);

/* Whether a reading is wanted at `ticks`: it is time, or the counter began again. */
static inline bool clock_record_is_due(const struct clock_record *r, uint64_t ticks)
{
	return ticks >= r->due || ticks < r->before.ticks;
}

struct clock_reading {
	uint64_t ticks;
	uint64_t mono_ns;         /* CLOCK_MONOTONIC at that tick */
	uint64_t uncertainty_ns;  /* it may be wrong by so much */
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

	/* For people: of the last reading, and since the start. */
	int64_t offset_ns;        /* the system's clocks minus ours */
	uint64_t uncertainty_ns;
	uint64_t offset_max_ns;   /* once it has settled; beyond the uncertainty */
	bool settled;
	uint64_t readings;
	uint64_t steps, jumps;    /* of the wall clock; of the monotonic one */
	int64_t step_ns, jump_ns; /* the last ones */
};

/* A first line through (`ticks`, `ns`) without an end. */
void clock_servo_start(struct clock_servo *s, uint64_t tick_hz, uint64_t mult,
		       const struct clock_reading *first);

/*
 * Takes a reading; s->record is the one to show from now on. It begins at least
 * `lead` ticks behind the reading. It is to be shown before that, and has to be
 * shown before its own end; who comes later takes another reading. False when the
 * reading comes too early and changes nothing.
 */
bool clock_servo_take(struct clock_servo *s, const struct clock_reading *r,
		      uint64_t lead);

/* Another wall clock is meant from now on; no step of the system. */
void clock_servo_set_wall(struct clock_servo *s, int64_t low_ns, int64_t high_ns);

/* Rate against that of the first line, in parts of 10^9. */
int64_t clock_servo_rate_ppb(const struct clock_servo *s, uint64_t first_mult);

#endif
