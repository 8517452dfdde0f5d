/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock elision with different mixes of threads: data under a lock is never used by two
 * threads at once, and the thread that does the work becomes the owner.
 *
 * The guarded word is plain memory that is read, changed and written in steps, so that a
 * second thread in between makes the sum wrong.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/run/yield.h"
#include "util/clock.h"

void hca_yield(bool (*peer_ran_on)(unsigned cpu))
{
	sched_yield();
}

static struct spin outer, inner;
static uint64_t guarded, half;
static atomic_int trouble, turn = 1;
static pthread_barrier_t start;

static void touch(void)
{
	uint64_t seen = guarded;

	half = seen + 1;
	atomic_signal_fence(memory_order_seq_cst);
	if (guarded != seen || half != seen + 1)
		atomic_fetch_add(&trouble, 1);
	guarded = half;
}

/* Like the data path: two locks, one inside the other. */
static void work_inside(void)
{
	hca_enter();
	hca_lock(&outer);
	hca_lock(&inner);
	touch();
	hca_unlock(&inner);
	hca_unlock(&outer);
	hca_leave();
}

/* Like calls of set-up: without hca_enter(). */
static void work_outside(void)
{
	hca_lock(&outer);
	hca_lock(&inner);
	touch();
	hca_unlock(&inner);
	hca_unlock(&outer);
}

struct job {
	unsigned inside, outside, pause_us;
	bool progress;
	int turn;   /* 1, 2: the two threads of a phase alternate strictly */
	bool owned; /* result: did it take no locks in the end? */
};

static void *run(void *arg)
{
	struct job *j = arg;

	hca_self.progress = j->progress;
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < j->inside || i < j->outside; i++) {
		while (j->turn && atomic_load(&turn) != j->turn)
			sched_yield();
		if (i < j->inside)
			work_inside();
		if (i < j->outside)
			work_outside();
		if (j->turn)
			atomic_store(&turn, 3 - j->turn);
		if (j->pause_us)
			usleep(j->pause_us); /* only to come at other times */
	}
	hca_enter();
	j->owned = hca_self.elided;
	hca_leave();
	return NULL;
}

static void expect(bool ok, const char *what)
{
	if (ok)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

/* Runs all jobs at the same time; each change must be in the sum. */
static void phase(const char *name, struct job *jobs, unsigned count)
{
	pthread_t threads[8];
	uint64_t want = guarded;

	pthread_barrier_init(&start, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		want += jobs[i].inside + jobs[i].outside;
		if (pthread_create(&threads[i], NULL, run, &jobs[i]))
			exit(77);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	printf("%s: owner %s%s\n", name,
	       jobs[0].owned ? "the first" : "not the first",
	       atomic_load(&hca_elision.off) ? ", elision off" : "");
	expect(guarded == want && !atomic_load(&trouble),
	       "a lock let two threads in");
	expect(!atomic_load(&outer.held) && !atomic_load(&inner.held),
	       "a lock is left held");
	expect(atomic_load(&hca_elision.others) ==
		       (atomic_load(&hca_elision.off) ? 1u : 0u),
	       "somebody is still announced");
}

int main(void)
{
	struct job alone[] = { { .inside = 20000 } };
	struct job second[] = { { .inside = 20000 } };
	struct job with_progress[] = {
		{ .inside = 2000000 },
		{ .inside = 2000, .pause_us = 50, .progress = true },
	};
	struct job with_setup[] = {
		{ .inside = 2000000 },
		{ .outside = 300, .pause_us = 300 },
	};
	struct job crowd[] = {
		{ .inside = 200000 },
		{ .inside = 200000, .outside = 1000 },
		{ .inside = 100000 },
		{ .inside = 2000, .pause_us = 50, .progress = true },
	};
	struct job rivals[] = {
		{ .inside = 10000, .turn = 1 },
		{ .inside = 10000, .turn = 2 },
	};
	uint64_t start_ns;
	bool usable;

	hca_elision_start();
	usable = !atomic_load(&hca_elision.off);
	phase("one thread", alone, 1);
	expect(alone[0].owned == usable, "who works alone becomes the owner");
	phase("one after the other", second, 1);
	expect(second[0].owned == usable, "ownership passes on");
	phase("with a progress thread", with_progress, 2);
	phase("with set-up calls", with_setup, 2);
	phase("a crowd", crowd, 4);
	start_ns = progress_now_ns();
	phase("two by turns", rivals, 2);
	expect(atomic_load(&hca_elision.off) ||
		       progress_now_ns() - start_ns > 2 * NSEC_PER_SEC,
	       "two threads that are at it all the time end elision");
	phase("a crowd again", crowd, 4);
	phase("alone again", alone, 1);
	return 0;
}
