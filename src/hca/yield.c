/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a thread that polls in vain lets others run on its processor.
 *
 * The peer may wait for this processor, for milliseconds, until the kernel thinks
 * that the caller has had its share. Two processes that answer each other on one
 * processor need it, and there a yield takes as long as the peer's answer.
 *
 * A program may poll with a spin lock of its own held. Then the threads that get the
 * processor do nothing but wait for that lock, each for a whole turn of the
 * scheduler, and the only thread that could get on waits for all of them. What that
 * looks like from here: yields that take a turn of the scheduler or more, while
 * other threads of this process are running. Whether these wait or work cannot be
 * known, so such yields stay a small part of the time. Turns that only other
 * processes took are given as before: nobody there waits for a lock of ours.
 */
#define LOG_ROOM "hca"
#include "hca/yield.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "hca/progress.h"
#include "util/clock.h"
#include "util/container_of.h"

/* An answer takes microseconds, a turn of the scheduler milliseconds. */
#define DEAR_NS 500000
/* Other threads are running when they have used one part of so many of the time. */
#define OTHERS_SHARE 32
/* The kernel counts what others use by its ticks. */
#define WINDOW_NS 10000000
/* So many times as long as a dear yield took there is none. */
#define QUIET_FACTOR 16

/* For all threads: who holds the lock changes. */
static _Atomic uint64_t quiet_until_ns;

/* When this thread looked last, and what others had used by then. */
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
	uint64_t start_ns = clock_monotonic_ns_slow(), end_ns;

	if (start_ns < atomic_load_explicit(&quiet_until_ns,
					    memory_order_relaxed))
		return;
	sched_yield();
	end_ns = clock_monotonic_ns_slow();
	if (unlikely(end_ns - start_ns >= DEAR_NS) && others_run(end_ns))
		atomic_store_explicit(&quiet_until_ns,
				      end_ns + QUIET_FACTOR * (end_ns - start_ns),
				      memory_order_relaxed);
}
