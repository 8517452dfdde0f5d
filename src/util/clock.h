/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time on the data path: the calibrated time-stamp counter (TSC).
 *
 * clock_gettime() costs 20 to 70 ns on virtual machines, reading the TSC a few.
 * The TSC is used only when the processor declares it invariant (constant and
 * non-stop) and its frequency could be measured against CLOCK_MONOTONIC; else
 * every function here falls back to clock_gettime() and clock_source() says so;
 * ticks then are nanoseconds. clock_servo.h describes how the counter follows the
 * system's clocks, which NTP and PTP discipline.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "util/container_of.h"

#define NSEC_PER_SEC UINT64_C(1000000000)

struct clock_state {
	bool tsc;              /* ticks are TSC cycles, not nanoseconds */
	uint64_t tick_hz;      /* ticks in a second, as calibrated */
	uint64_t mult;         /* ns = (ticks * mult) >> 32, likewise */
};

extern struct clock_state clock_state;

/*
 * The record (clock_servo.h) for all threads, in two copies: while one is written the
 * other one is complete, so no reader waits for a writer, whatever their priorities.
 * The lowest bit of `seq` is the index of the complete one.
 */
struct clock_shown {
	_Atomic uint64_t ticks, ns, mult, span;     /* the line */
	_Atomic int64_t wall_ns;
	_Atomic uint64_t due;
	_Atomic uint64_t before_ticks, before_ns, before_mult, late_mult;
};

struct clock_latch {
	cache_aligned _Atomic uint64_t seq;
	cache_aligned struct clock_shown shown[2];
};

extern struct clock_latch clock_latch;

/*
 * Calibrates (about 20 ms the first time in a process). Must be called once
 * before any other function of this file; calling it again is cheap and safe
 * from several threads. `BUSBAR_TSC=0` in the environment forces the fallback.
 */
void clock_init(void);

/* "tsc" or "clock_gettime (why)". */
const char *clock_source(void);

uint64_t clock_monotonic_ns_slow(void);

/*
 * Following the system's clocks; see clock_servo.h. A process may have a thread that
 * keeps the clock: it calls clock_keep_begin(), then clock_keep() again and again, then
 * clock_keep_end(). No other thread then makes a system call for the time. Without such
 * a thread, or when it is 100 ms late, the callers of clock_realtime() take the
 * readings, about 2 us four times a second.
 *
 * clock_keep() takes a reading if one is due, and returns the ns until the next one.
 */
void clock_keep_begin(void);
void clock_keep_end(void);
uint64_t clock_keep(void);

enum clock_wall { CLOCK_WALL_REALTIME, CLOCK_WALL_TAI };

/* Chooses the system's clock that clock_realtime() follows; CLOCK_REALTIME at first.
 * Other threads may call clock_realtime() meanwhile. */
void clock_set_wall(enum clock_wall wall);

/* The accuracy at the last reading, and counters since the start of the process. */
struct clock_status {
	const char *wall;            /* "CLOCK_REALTIME", "CLOCK_TAI" */
	int64_t offset_ns;           /* the system's clock minus ours, before correction */
	uint64_t uncertainty_ns;     /* of that reading */
	uint64_t offset_max_ns;      /* largest offset beyond the uncertainty */
	int64_t rate_ppb;            /* correction of the calibrated rate */
	uint64_t readings;
	uint64_t steps, jumps;       /* of the wall clock; of CLOCK_MONOTONIC */
	int64_t step_ns, jump_ns;    /* the last ones */
};

void clock_get_status(struct clock_status *out);

/* Ticks now, read after earlier loads (rdtscp). */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(clock_state.tsc, 1)) {
		uint32_t aux;

		return __builtin_ia32_rdtscp(&aux);
	}
#endif
	return clock_monotonic_ns_slow();
}

static inline uint64_t clock_ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * clock_state.mult) >> 32);
}

static inline uint64_t clock_ns_to_ticks(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * clock_state.tick_hz /
			  NSEC_PER_SEC);
}

/* The time outside of the record's span: see clock_record_at(). */
uint64_t clock_now_ns_outside(void);

/*
 * Monotonic time in ns. It never goes back or steps, in any thread. Its scale is that of
 * CLOCK_MONOTONIC, the same in all processes of the host, unless the host was suspended
 * meanwhile. If the clock is kept (clock_keep()), it is disciplined like CLOCK_MONOTONIC.
 */
static inline uint64_t clock_now_ns(void)
{
	uint64_t seq, past, ns, mult, span;

	do {
		const struct clock_shown *c;

		seq = atomic_load_explicit(&clock_latch.seq, memory_order_acquire);
		c = &clock_latch.shown[seq & 1];
		past = atomic_load_explicit(&c->ticks, memory_order_relaxed);
		ns = atomic_load_explicit(&c->ns, memory_order_relaxed);
		mult = atomic_load_explicit(&c->mult, memory_order_relaxed);
		span = atomic_load_explicit(&c->span, memory_order_relaxed);
		/* Read after the line: a late reader has an old line and new ticks,
		 * which gives a slow time. New ticks before the line would not. */
		past = clock_ticks() - past;
		atomic_thread_fence(memory_order_acquire);
	} while (__builtin_expect(seq != atomic_load_explicit(
						 &clock_latch.seq,
						 memory_order_relaxed), 0));
	if (__builtin_expect(past >= span, 0))
		return clock_now_ns_outside();
	return ns + (uint64_t)(((unsigned __int128)past * mult) >> 32);
}

/*
 * The wall clock for timestamps of samples: CLOCK_REALTIME, or the clock that
 * clock_set_wall() chose. It is slewed like that clock, within a microsecond of it, and
 * follows within a third of a second when somebody sets it.
 */
struct timespec clock_realtime(void);

static inline uint64_t timespec_to_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static inline struct timespec timespec_from_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

#endif
