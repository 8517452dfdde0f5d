/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time on the data path: the calibrated time-stamp counter (TSC).
 *
 * clock_gettime() costs 20 to 70 ns on virtual machines, reading the TSC a few.
 * The TSC is used only when the processor declares it invariant (constant and
 * non-stop) and its frequency could be measured against CLOCK_MONOTONIC; else
 * every function here falls back to clock_gettime() and clock_source() says so.
 * Ticks then are nanoseconds.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC UINT64_C(1000000000)

struct clock_state {
	bool tsc;              /* ticks are TSC cycles, not nanoseconds */
	uint64_t tick_hz;      /* ticks in a second */
	uint64_t mult;         /* ns = (ticks * mult) >> 32 */
	uint64_t base_ticks;   /* tick count at calibration */
	uint64_t base_mono_ns; /* CLOCK_MONOTONIC at calibration */
};

extern struct clock_state clock_state;

/*
 * Calibrates (about 20 ms the first time in a process). Must be called once
 * before any other function of this file; calling it again is cheap and safe
 * from several threads. `BUSBAR_TSC=0` in the environment forces the fallback.
 */
void clock_init(void);

/* "tsc" or "clock_gettime (why)". */
const char *clock_source(void);

uint64_t clock_monotonic_ns_slow(void);

/* Ticks now, ordered behind earlier loads (rdtscp). */
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

/* Monotonic time in ns, on the same scale in all processes of the host. */
static inline uint64_t clock_now_ns(void)
{
	return clock_state.base_mono_ns +
	       clock_ticks_to_ns(clock_ticks() - clock_state.base_ticks);
}

/*
 * Wall-clock time (CLOCK_REALTIME scale) for sample timestamps, from the TSC.
 * Re-anchored to CLOCK_REALTIME now and then (20 ms to 1 s); a re-anchoring may
 * step by the noise of one reading, some tens of ns, in either direction.
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
