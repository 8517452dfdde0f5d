/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TSC calibration and the wall clock derived from it.
 *
 * The frequency is measured against CLOCK_MONOTONIC rather than read from CPUID
 * leaf 15H, which is absent or incomplete on many processors and on most
 * virtual machines. CLOCK_MONOTONIC (not _RAW) is the reference so that
 * durations agree with what clock_gettime() reports to other programs.
 */
#include "util/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "util/settings.h"
#include "util/spin.h"

struct clock_state clock_state = { .tick_hz = NSEC_PER_SEC,
				   .mult = UINT64_C(1) << 32 };
static const char *source = "clock_gettime (not initialised)";

static uint64_t read_clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return timespec_to_ns(t);
}

uint64_t clock_monotonic_ns_slow(void)
{
	return read_clock_ns(CLOCK_MONOTONIC);
}

#if defined(__x86_64__)
static const char *tsc_refusal(void)
{
	static const struct setting wanted = {
		.env = "BUSBAR_TSC", .fallback = "1", .type = SETTING_BOOL,
	};
	bool use = true;
	unsigned a, b, c, d;

	settings_load(&wanted, 1, &use);
	if (!use)
		return "clock_gettime (BUSBAR_TSC=0)";
	if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(d & (1u << 27)))
		return "clock_gettime (no rdtscp)";
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
		return "clock_gettime (TSC not invariant)";
	return NULL;
}

/* TSC and a clock at the same instant: the tightest of several tries. */
static void sample_pair(clockid_t id, uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;
	uint32_t aux;

	for (int i = 0; i < 16; i++) {
		uint64_t before = __builtin_ia32_rdtscp(&aux);
		uint64_t t = read_clock_ns(id);
		uint64_t after = __builtin_ia32_rdtscp(&aux);

		if (after - before < best) {
			best = after - before;
			*ticks = before + (after - before) / 2;
			*ns = t;
		}
	}
}

static void calibrate_tsc(void)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	uint64_t ticks0 = 0, ns0 = 0, ticks1 = 0, ns1 = 0;

	sample_pair(CLOCK_MONOTONIC, &ticks0, &ns0);
	nanosleep(&pause, NULL);
	sample_pair(CLOCK_MONOTONIC, &ticks1, &ns1);
	if (ticks1 <= ticks0 || ns1 <= ns0) {
		source = "clock_gettime (TSC did not advance)";
		return;
	}
	clock_state.tick_hz = (uint64_t)((unsigned __int128)(ticks1 - ticks0) *
					 NSEC_PER_SEC / (ns1 - ns0));
	clock_state.mult = (uint64_t)(((unsigned __int128)NSEC_PER_SEC << 32) /
				      clock_state.tick_hz);
	clock_state.base_ticks = ticks1;
	clock_state.base_mono_ns = ns1;
	clock_state.tsc = true;
	source = "tsc";
}
#endif

static void init_once(void)
{
#if defined(__x86_64__)
	const char *why = tsc_refusal();

	if (!why) {
		calibrate_tsc();
		return;
	}
	source = why;
#else
	source = "clock_gettime (no TSC on this processor)";
#endif
}

void clock_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_once);
}

const char *clock_source(void)
{
	return source;
}

/*
 * The wall clock: an anchor (ticks, CLOCK_REALTIME) and a rate, guarded by a
 * sequence lock. Whichever thread notices that the anchor is old re-anchors it.
 * The rate is taken over the whole time since the first anchor, so that its
 * error shrinks as the process runs, and the interval doubles from 20 ms to 1 s
 * with it: the distance between two processes stays at the noise of one reading
 * (some tens of ns), which one-way latencies between processes rely on.
 */
#define WALL_INTERVAL_MIN_NS (20 * UINT64_C(1000000))

static struct {
	atomic_uint seq; /* odd while being written, 0 before the first anchor */
	_Atomic uint64_t anchor_ticks;
	_Atomic uint64_t anchor_real_ns;
	_Atomic uint64_t mult;
	_Atomic uint64_t interval_ticks;
	uint64_t first_ticks, first_real_ns; /* under `refresh` */
	struct spin refresh;
} wall;

#define RELAXED memory_order_relaxed

static uint64_t wall_refresh(void)
{
	uint64_t ticks = 0, real = read_clock_ns(CLOCK_REALTIME);
	uint64_t mult = clock_state.mult;
	uint64_t age;

	if (!spin_trylock(&wall.refresh))
		return real;
#if defined(__x86_64__)
	sample_pair(CLOCK_REALTIME, &ticks, &real);
#endif
	if (wall.first_ticks == 0 || ticks - wall.first_ticks > 3600 * clock_state.tick_hz) {
		/* An hour is enough; later, follow a clock that was stepped. */
		wall.first_ticks = ticks;
		wall.first_real_ns = real;
	}
	age = ticks - wall.first_ticks;
	if (age > clock_ns_to_ticks(WALL_INTERVAL_MIN_NS) &&
	    real > wall.first_real_ns) {
		uint64_t rate = (uint64_t)(((unsigned __int128)(real - wall.first_real_ns)
					    << 32) / age);

		/* A stepped clock shows as an impossible rate: start anew. */
		if (rate < mult + mult / 1000 && rate > mult - mult / 1000)
			mult = rate;
		else
			wall.first_ticks = 0;
	}
	atomic_fetch_add_explicit(&wall.seq, 1, memory_order_acq_rel);
	atomic_store_explicit(&wall.anchor_ticks, ticks, RELAXED);
	atomic_store_explicit(&wall.anchor_real_ns, real, RELAXED);
	atomic_store_explicit(&wall.mult, mult, RELAXED);
	atomic_store_explicit(&wall.interval_ticks,
			      MIN(clock_state.tick_hz,
				  MAX(age, clock_ns_to_ticks(WALL_INTERVAL_MIN_NS))),
			      RELAXED);
	atomic_fetch_add_explicit(&wall.seq, 1, memory_order_release);
	spin_unlock(&wall.refresh);
	return real;
}

struct timespec clock_realtime(void)
{
	struct timespec t;
	uint64_t ticks, anchor_ticks, anchor_ns, mult, interval;
	unsigned seq;

	if (!clock_state.tsc) {
		clock_gettime(CLOCK_REALTIME, &t);
		return t;
	}
	ticks = clock_ticks();
	do {
		seq = atomic_load_explicit(&wall.seq, memory_order_acquire);
		anchor_ticks = atomic_load_explicit(&wall.anchor_ticks, RELAXED);
		anchor_ns = atomic_load_explicit(&wall.anchor_real_ns, RELAXED);
		mult = atomic_load_explicit(&wall.mult, RELAXED);
		interval = atomic_load_explicit(&wall.interval_ticks, RELAXED);
		atomic_thread_fence(memory_order_acquire);
	} while ((seq & 1) ||
		 seq != atomic_load_explicit(&wall.seq, RELAXED));
	/* Another thread may have anchored behind our reading: a small negative. */
	if (seq == 0 || (int64_t)(ticks - anchor_ticks) > (int64_t)interval)
		return timespec_from_ns(wall_refresh());
	if ((int64_t)(ticks - anchor_ticks) < 0)
		ticks = anchor_ticks;
	return timespec_from_ns(
		anchor_ns + (uint64_t)(((unsigned __int128)(ticks - anchor_ticks) *
					mult) >> 32));
}
