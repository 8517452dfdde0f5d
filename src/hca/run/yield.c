/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Yielding the processor in a thread that polls without finding anything.
 *
 * The peer may be waiting for this processor, for milliseconds, until the scheduler
 * preempts the caller. If two processes that answer each other share a processor, a yield
 * is needed, and takes as long as the peer's answer.
 *
 * A program may poll while it holds a spin lock of its own. Then the other threads that
 * get the processor only wait for that lock, each for a whole time slice, and the polling
 * thread, the only one that could go on, waits for all of them. Such yields take a time
 * slice or more while other threads of this process are running. It cannot be known
 * whether these wait or work, so after such a yield none follows for a multiple of its
 * duration. If only other processes ran meanwhile, yields go on as before: their threads
 * do not wait for a lock of this process.
 *
 * A peer on another processor loses that for a time slice now and then, where others compute
 * there. To yield then would cost this thread the next time slice here, in which the peer comes back
 * and loses its own. So behind a yield that took long, and where no peer ran on this processor, a
 * thread polls in vain for as long as that yield took before it yields again.
 */
#define LOG_ROOM "hca"
#include "hca/run/yield.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "hca/host/settings.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "util/clock.h"
#include "util/container_of.h"

/* An answer takes microseconds, a time slice of the scheduler milliseconds. */
#define DEAR_NS 500000
/* For so long at most a thread polls before it yields again. */
#define DEAREST_NS UINT64_C(4000000)
/* Other threads are running if they used at least this fraction of the time (1/32). */
#define OTHERS_SHARE 32
/* The kernel accounts processor time by its ticks: shorter intervals say nothing. */
#define WINDOW_NS 10000000
/* After a long yield there is none for so many times its duration. */
#define QUIET_FACTOR 16

/* Shared by all threads, because any of them may hold the program's lock. */
static _Atomic uint64_t quiet_until_ns;

/* This thread's last measurement: when, the time that others had used, and what it showed. */
static _Thread_local struct {
	uint64_t at_ns;
	int64_t others_ns;
	bool run;
	uint64_t dear_ns; /* what the last yield took, if it was long and no peer was near */
} last __attribute__((tls_model("initial-exec")));

static uint64_t cpu_ns(clockid_t of)
{
	struct timespec t = { 0 };

	clock_gettime(of, &t);
	return timespec_to_ns(t);
}

/* Measures whether the other threads of the program, without the progress thread, have used
 * processors since the last measurement of this thread. False: that is too short a time. */
static bool measure_others(uint64_t now_ns)
{
	uint64_t since_ns = now_ns - last.at_ns;
	int64_t others_ns;

	if (last.at_ns && since_ns < WINDOW_NS)
		return false;
	others_ns = (int64_t)(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - progress_cpu_ns());
	if (!progress_is_self())
		others_ns -= (int64_t)cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	last.run = last.at_ns && others_ns - last.others_ns > (int64_t)since_ns / OTHERS_SHARE;
	last.at_ns = now_ns;
	last.others_ns = others_ns;
	return true;
}

bool hca_others_compute(uint64_t now_ns)
{
	measure_others(now_ns);
	return last.run;
}

static bool is_near(bool (*peer_ran_on)(unsigned cpu))
{
	int cpu = sched_getcpu();

	return !peer_ran_on || cpu < 0 || peer_ran_on((unsigned)cpu);
}

void hca_yield(bool (*peer_ran_on)(unsigned cpu))
{
	uint64_t start_ns, end_ns;

	if (!hca_settings.poll_yields)
		return;
	start_ns = clock_monotonic_ns_slow();
	if (!hca_self.vain_since_ns)
		hca_self.vain_since_ns = start_ns;
	if (start_ns < atomic_load_explicit(&quiet_until_ns, memory_order_relaxed) ||
	    start_ns - hca_self.vain_since_ns < last.dear_ns)
		return;
	sched_yield();
	hca_self.yielded = true;
	end_ns = clock_monotonic_ns_slow();
	last.dear_ns = 0;
	if (likely(end_ns - start_ns < DEAR_NS))
		return;
	if (measure_others(end_ns) && last.run)
		atomic_store_explicit(&quiet_until_ns,
				      end_ns + QUIET_FACTOR * (end_ns - start_ns),
				      memory_order_relaxed);
	if (!is_near(peer_ran_on))
		last.dear_ns = MIN(end_ns - start_ns, DEAREST_NS);
}
