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
/* Other threads are running if they used at least this fraction of the time (1/32). */
#define OTHERS_SHARE 32
/* The kernel accounts processor time by its ticks: shorter intervals say nothing. */
#define WINDOW_NS 10000000
/* After a long yield there is none for so many times its duration. */
#define QUIET_FACTOR 16

/* Shared by all threads, because any of them may hold the program's lock. */
static _Atomic uint64_t quiet_until_ns;

/* This thread's last measurement: when, and the time that others had used. */
static _Thread_local struct {
	uint64_t at_ns;
	int64_t others_ns;
} last __attribute__((tls_model("initial-exec")));

static uint64_t cpu_ns(clockid_t of)
{
	struct timespec t = { 0 };

	clock_gettime(of, &t);
	return timespec_to_ns(t);
}

/* Have other threads of the program used processors since the last time? */
static bool others_run(uint64_t now_ns)
{
	uint64_t since_ns = now_ns - last.at_ns;
	int64_t before_ns = last.others_ns;
	bool known = last.at_ns != 0;

	if (known && since_ns < WINDOW_NS)
		return false;
	last.at_ns = now_ns;
	last.others_ns = (int64_t)(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) -
				   cpu_ns(CLOCK_THREAD_CPUTIME_ID) -
				   progress_cpu_ns());
	return known && last.others_ns - before_ns >
				(int64_t)since_ns / OTHERS_SHARE;
}

void hca_yield(void)
{
	uint64_t start_ns, end_ns;

	if (!hca_settings.poll_yields)
		return;
	start_ns = clock_monotonic_ns_slow();
	if (start_ns < atomic_load_explicit(&quiet_until_ns,
					    memory_order_relaxed))
		return;
	sched_yield();
	hca_self.yielded = true;
	end_ns = clock_monotonic_ns_slow();
	if (unlikely(end_ns - start_ns >= DEAR_NS) && others_run(end_ns))
		atomic_store_explicit(&quiet_until_ns,
				      end_ns + QUIET_FACTOR * (end_ns - start_ns),
				      memory_order_relaxed);
}
