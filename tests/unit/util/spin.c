/* SPDX-License-Identifier: BSD-2-Clause */
/* Spin locks: a waiter leaves the processor to other threads after a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "util/spin.h"

static struct spin lock;
static _Atomic pid_t waiter_tid;

static void *take(void *arg)
{
	atomic_store(&waiter_tid, gettid());
	spin_lock(&lock);
	spin_unlock(&lock);
	return NULL;
}

/* Voluntary switches are sleeps; a yield does not count as one. */
static long sleeps_of(pid_t tid)
{
	char path[64], line[200];
	long sleeps = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
	if (f)
		fclose(f);
	return sleeps;
}

/* A yield leaves the processor to no thread of lower priority. */
static void a_waiter_sleeps_while_the_holder_does_not_run(void **state)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	pthread_t waiter;
	bool slept = false;

	spin_lock(&lock);
	assert_int_equal(pthread_create(&waiter, NULL, take, NULL), 0);
	for (int i = 0; i < 15000 && !slept; i++) {
		nanosleep(&nap, NULL);
		slept = atomic_load(&waiter_tid) && sleeps_of(waiter_tid) > 10;
	}
	spin_unlock(&lock);
	pthread_join(waiter, NULL);
	assert_true(slept);
}

static void *hold_long(void *arg)
{
	volatile unsigned work = 0;

	spin_lock(&lock);
	atomic_store((atomic_bool *)arg, true);
	while (work < 20000000)
		work++;
	spin_unlock(&lock);
	return NULL;
}

/* Two real-time threads on one processor; the one of lower priority holds the lock. */
static void a_holder_of_lower_priority_comes_to_let_go(void **state)
{
	struct sched_param low = { .sched_priority = 1 }, high = { .sched_priority = 2 };
	pthread_attr_t attr;
	atomic_bool held = false;
	pthread_t holder;
	cpu_set_t one, all;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (sched_setscheduler(0, SCHED_FIFO, &high)) {
		sched_setaffinity(0, sizeof(all), &all);
		skip(); /* real-time priorities are not permitted here */
	}
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &low);
	assert_int_equal(pthread_create(&holder, &attr, hold_long, &held), 0);
	while (!atomic_load(&held))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	spin_lock(&lock);
	spin_unlock(&lock);
	pthread_join(holder, NULL);
	pthread_attr_destroy(&attr);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	sched_setaffinity(0, sizeof(all), &all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_waiter_sleeps_while_the_holder_does_not_run),
		cmocka_unit_test(a_holder_of_lower_priority_comes_to_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
