/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock: monotonic in all threads, near the system's, and the same in two
 * processes. Bounds are wide: a loaded machine may take us off the processor
 * between any two readings, so each comparison takes the best of several.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/clock.h"

enum { NEAR_NS = 200000 };

static uint64_t system_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return timespec_to_ns(t);
}

static uint64_t ours_ns(clockid_t id)
{
	return id == CLOCK_MONOTONIC ? clock_now_ns() :
				       timespec_to_ns(clock_realtime());
}

/* The difference of our clock and the system's. The system's clock is read between two
 * readings of ours, so the error is at most half of their difference. */
static int64_t distance_within_ns(clockid_t id, uint64_t *within)
{
	int64_t best = INT64_MAX;
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < 200; i++) {
		uint64_t before = system_ns(id);
		uint64_t ours = ours_ns(id);
		uint64_t after = system_ns(id);

		if (after - before >= width)
			continue;
		width = after - before;
		best = (int64_t)(ours - before - width / 2);
	}
	*within = width / 2;
	return best;
}

static int64_t distance_ns(clockid_t id)
{
	uint64_t within;

	return distance_within_ns(id, &within);
}

static void now_never_goes_back(void **unused)
{
	uint64_t last = clock_now_ns();

	for (int i = 0; i < 200000; i++) {
		uint64_t now = clock_now_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void now_is_the_systems_monotonic_clock(void **unused)
{
	assert_true(llabs(distance_ns(CLOCK_MONOTONIC)) < NEAR_NS);
}

static void realtime_is_the_systems_wall_clock(void **unused)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	/* Over several re-anchorings. */
	for (int i = 0; i < 20; i++) {
		assert_true(llabs(distance_ns(CLOCK_REALTIME)) < NEAR_NS);
		nanosleep(&pause, NULL);
	}
}

/* Keeps the clock during `turns` pauses of 10 ms. */
static void keep_for(unsigned turns)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (unsigned i = 0; i < turns; i++) {
		clock_keep();
		nanosleep(&pause, NULL);
	}
}

static void a_kept_clock_is_within_a_microsecond_of_the_systems(void **unused)
{
	static const clockid_t ids[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
	struct clock_status status;
	int64_t off;
	uint64_t within;

	clock_keep_begin();
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		/* On a loaded machine this thread may not run for some time. */
		for (unsigned tries = 0; tries < 20; tries++) {
			keep_for(10);
			off = distance_within_ns(ids[i], &within);
			if ((uint64_t)llabs(off) <= 1000 + within)
				break;
		}
		assert_true((uint64_t)llabs(off) <= 1000 + within);
	}
	clock_keep_end();
	clock_get_status(&status);
	assert_string_equal(status.wall, "CLOCK_REALTIME");
	if (!clock_state.tsc)
		return;
	assert_true(status.readings >= 2);
	assert_true(llabs(status.rate_ppb) < 1000000);
}

static void it_can_be_the_atomic_time(void **unused)
{
	struct clock_status status;

	clock_set_wall(CLOCK_WALL_TAI);
	clock_get_status(&status);
	assert_string_equal(status.wall, "CLOCK_TAI");
	assert_true(llabs(distance_ns(CLOCK_TAI)) < NEAR_NS);
	clock_set_wall(CLOCK_WALL_REALTIME);
	assert_true(llabs(distance_ns(CLOCK_REALTIME)) < NEAR_NS);
}

/* The latest time that any thread has read. */
static _Atomic uint64_t latest_ns;

static void *read_monotonic(void *arg)
{
	for (int i = 0; i < 200000; i++) {
		uint64_t before = atomic_load_explicit(&latest_ns,
						       memory_order_acquire);
		uint64_t now = clock_now_ns();

		if (now < before)
			return arg;
		atomic_store_explicit(&latest_ns, now, memory_order_release);
	}
	return NULL;
}

static void now_never_goes_back_in_any_thread_while_it_is_kept(void **unused)
{
	pthread_t threads[3];

	clock_keep_begin();
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						read_monotonic, threads), 0);
	keep_for(5);
	for (int i = 0; i < 3; i++) {
		void *ret;

		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
	clock_keep_end();
}

static void ticks_and_nanoseconds_convert_both_ways(void **unused)
{
	static const uint64_t ns[] = { 0, 1000, 1000000, 1000000000,
				       UINT64_C(86400) * 1000000000 };

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		uint64_t back = clock_ticks_to_ns(clock_ns_to_ticks(ns[i]));

		assert_true(back <= ns[i] + 2 + ns[i] / 1000000);
		assert_true(back + 2 + ns[i] / 1000000 >= ns[i]);
	}
	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		assert_true(timespec_to_ns(timespec_from_ns(ns[i])) == ns[i]);
}

static void two_processes_agree_on_the_wall_clock(void **unused)
{
	int64_t here, there = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		there = distance_ns(CLOCK_REALTIME);
		_exit(write(fds[1], &there, sizeof(there)) != sizeof(there));
	}
	here = distance_ns(CLOCK_REALTIME);
	assert_int_equal(read(fds[0], &there, sizeof(there)), sizeof(there));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(llabs(here - there) < NEAR_NS);
	close(fds[0]);
	close(fds[1]);
}

static void *read_wall_clock(void *arg)
{
	uint64_t last = 0;

	for (int i = 0; i < 100000; i++) {
		uint64_t now = timespec_to_ns(clock_realtime());

		/* A re-anchoring may step by the noise of one reading. */
		if (now + NEAR_NS < last)
			return arg;
		last = now;
	}
	return NULL;
}

static void threads_read_the_wall_clock_while_it_is_anchored_anew(void **unused)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						read_wall_clock, threads), 0);
	for (int i = 0; i < 3; i++) {
		void *ret;

		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
}

static void the_source_is_named(void **unused)
{
	assert_true(!strcmp(clock_source(), "tsc") ||
		    !strncmp(clock_source(), "clock_gettime (", 15));
	assert_int_equal(clock_state.tsc, !strcmp(clock_source(), "tsc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(now_never_goes_back),
		cmocka_unit_test(now_is_the_systems_monotonic_clock),
		cmocka_unit_test(realtime_is_the_systems_wall_clock),
		cmocka_unit_test(a_kept_clock_is_within_a_microsecond_of_the_systems),
		cmocka_unit_test(it_can_be_the_atomic_time),
		cmocka_unit_test(now_never_goes_back_in_any_thread_while_it_is_kept),
		cmocka_unit_test(ticks_and_nanoseconds_convert_both_ways),
		cmocka_unit_test(two_processes_agree_on_the_wall_clock),
		cmocka_unit_test(threads_read_the_wall_clock_while_it_is_anchored_anew),
		cmocka_unit_test(the_source_is_named),
	};

	clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
