/* SPDX-License-Identifier: BSD-2-Clause */
/* The grid with a clock of the test's own; the real waits, shortly. */
#include "gateway/node/signal/timer.h"

#include <errno.h>
#include <pthread.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/clock.h"
#include "util/container_of.h"

static uint64_t random_state = 42;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

static void steps_never_drift_from_the_grid(void **state)
{
	static const double rates[] = { 0.1, 10, 30, 44100, 30707.2, 1e5, 1e6, 3e8 };

	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		const uint64_t start = UINT64_C(1234567890123456789);
		struct timer_grid g;
		uint64_t total = 0, late, now = start;
		long double expected;

		timer_grid_start(&g, rates[r], now);
		for (unsigned i = 0; i < 200000; i++) {
			uint64_t next = timer_grid_next_ns(&g), steps;

			assert_true(next > now || rates[r] > 1e9);
			/* Too early there is no step. */
			assert_int_equal(timer_grid_advance(&g, next - 1, &late), 0);
			/* Then anything from in time to three periods late. */
			now = next + random_below((uint64_t)(3e9 / rates[r]) + 1) *
					     (i > 0 && random_below(4) == 0);
			steps = timer_grid_advance(&g, now, &late);
			assert_true(steps >= 1);
			assert_true(late <= now - next + 1);
			total += steps;
		}
		/* The next step is the (total + 1)-th from the start, exactly. */
		expected = (total + 1) * 1e9L / rates[r];
		assert_true(fabsl((timer_grid_next_ns(&g) - start) - expected) <
			    2 + 1e-9L * expected);
	}
}

static void a_step_late_by_less_than_a_period_is_not_missed(void **state)
{
	struct timer_grid g;
	uint64_t late;

	timer_grid_start(&g, 1000, 0);
	assert_int_equal(timer_grid_advance(&g, 1000000, &late), 1);
	assert_int_equal(timer_grid_advance(&g, 2999999, &late), 1);
	assert_int_equal(late, 999999);
	/* It stays on the grid: the next one is due at 3 ms, not at 4. */
	assert_int_equal(timer_grid_next_ns(&g), 3000000);
	/* One whole period more is one missed step. */
	assert_int_equal(timer_grid_advance(&g, 4000000, &late), 2);
	assert_int_equal(late, 1000000);
	assert_int_equal(timer_grid_advance(&g, 4999999, &late), 0);
	assert_int_equal(timer_grid_advance(&g, 5000000, &late), 1);
	assert_int_equal(late, 0);
	/* A host that slept for an hour. */
	assert_int_equal(timer_grid_advance(&g, UINT64_C(3600005500000), &late),
			 3600000);
	assert_int_equal(timer_grid_next_ns(&g), UINT64_C(3600006000000));
}

static void start_up_is_not_counted_as_missed(void **state)
{
	struct timer_grid g;
	uint64_t late;

	timer_grid_start(&g, 1000, 0);
	assert_int_equal(timer_grid_advance(&g, 12345678, &late), 1);
	assert_int_equal(late, 0);
	assert_int_equal(timer_grid_next_ns(&g), 13345678);
}

/* Steps in about `seconds` at `rate`; returns the missed ones. */
static uint64_t run(enum timer_kind kind, double rate, double seconds)
{
	uint64_t missed = 0, late, begin;
	struct timer t;

	assert_int_equal(timer_open(&t, kind, rate), 0);
	timer_start(&t, rate);
	begin = t.now_ns();
	for (int64_t taken = 0; taken < (int64_t)(rate * seconds);) {
		int64_t steps = timer_wait_step(&t, &late);

		assert_true(steps >= 1);
		taken += steps;
		missed += (uint64_t)steps - 1;
	}
	/* Never faster than the clock. */
	assert_true((double)(t.now_ns() - begin) >= seconds * 1e9 * 0.9999);
	timer_close(&t);
	return missed;
}

static uint64_t simulated_ns;

static uint64_t simulated_now(void)
{
	return simulated_ns += 20 + random_below(60);
}

/* As late as the kernel's timers usually are. */
static int simulated_sleep(struct timer *t, uint64_t ns)
{
	simulated_ns += ns + random_below(200000);
	return 0;
}

static void tsc_misses_nothing_on_an_undisturbed_host(void **state)
{
	static const double rates[] = { 100, 2500, 5000, 10000, 25000, 50000,
					100000, 1e6 };

	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		/* The spinning before a step is simulated turn by turn. */
		unsigned steps = rates[r] < 4000 ? 500 : 5000;
		struct timer t;
		uint64_t late, begin;

		assert_int_equal(timer_open(&t, TIMER_TSC, rates[r]), 0);
		t.now_ns = simulated_now;
		t.sleep = simulated_sleep;
		begin = simulated_ns;
		timer_start(&t, rates[r]);
		for (unsigned i = 0; i < steps; i++) {
			simulated_ns += random_below(300); /* work of the caller */
			assert_int_equal(timer_wait_step(&t, &late), 1);
			assert_true(late < 200);
		}
		assert_true(fabs((double)(simulated_ns - begin) -
				 steps * 1e9 / rates[r]) < 1000);
		timer_close(&t);
	}
}

/* Nanoseconds that this thread was ready but had no processor. */
static uint64_t waited_for_cpu_ns(void)
{
	unsigned long long on, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &on, &waited) != 2)
		waited = 0;
	fclose(f);
	return waited;
}

/*
 * The real waits. A miss needs a pause of a whole period: what the host did not
 * cause by running others is the timer's fault; it would show in every run.
 */
static void assert_misses_little(enum timer_kind kind, double rate)
{
	for (int i = 0; i < 5; i++) {
		uint64_t waited = waited_for_cpu_ns();
		uint64_t missed = run(kind, rate, 0.2);

		waited = waited_for_cpu_ns() - waited;
		if (missed <= 1 + (uint64_t)((double)waited * rate / 1e9))
			return;
	}
	fail_msg("%s at %g Hz misses steps in every run", timer_kind_name(kind),
		 rate);
}

static void real_timers_miss_no_more_than_the_host_takes_away(void **state)
{
	assert_misses_little(TIMER_TSC, 100);
	assert_misses_little(TIMER_TSC, 2000);
	assert_misses_little(TIMER_TIMERFD, 100);
	assert_misses_little(TIMER_TIMERFD, 500);
}

static void auto_takes_timerfd_up_to_two_kilohertz(void **state)
{
	struct timer t;

	assert_int_equal(timer_open(&t, TIMER_AUTO, 2000), 0);
	assert_int_equal(t.kind, TIMER_TIMERFD);
	timer_close(&t);
	assert_int_equal(timer_open(&t, TIMER_AUTO, 2001), 0);
	assert_int_equal(t.kind, TIMER_TSC);
	timer_close(&t);
}

static void the_descriptor_is_readable_when_a_step_is_due(void **state)
{
	for (int kind = TIMER_TIMERFD; kind <= TIMER_TSC; kind++) {
		struct pollfd p = { .events = POLLIN };
		struct timer t;
		uint64_t late;

		assert_int_equal(timer_open(&t, (enum timer_kind)kind, 200), 0);
		timer_start(&t, 200);
		p.fd = timer_poll_fd(&t, false);
		for (int i = 0; i < 10; i++) {
			assert_int_equal(poll(&p, 1, 2000), 1);
			/* tsc spins over the last quarter of a millisecond. */
			assert_true(t.now_ns() + 300000 >=
				    timer_grid_next_ns(&t.grid));
			assert_true(timer_wait_step(&t, &late) >= 1);
		}
		timer_close(&t);
		assert_int_equal(timer_open(&t, (enum timer_kind)kind, 1), 0);
		p.fd = timer_poll_fd(&t, true);
		assert_int_equal(poll(&p, 1, 2000), 1);
		timer_close(&t);
	}
}

static void *interrupt_it(void *arg)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };

	nanosleep(&pause, NULL);
	timer_interrupt(arg);
	return NULL;
}

static void an_interrupt_ends_a_wait_of_an_hour(void **state)
{
	for (int kind = TIMER_TIMERFD; kind <= TIMER_TSC; kind++) {
		pthread_t thread;
		struct timer t;
		uint64_t late;

		assert_int_equal(timer_open(&t, (enum timer_kind)kind, 1), 0);
		timer_start(&t, 1.0 / 3600);
		assert_int_equal(pthread_create(&thread, NULL, interrupt_it, &t), 0);
		assert_int_equal(timer_wait_step(&t, &late), -EINTR);
		/* And all waits after it. */
		assert_int_equal(timer_wait_step(&t, &late), -EINTR);
		pthread_join(thread, NULL);
		timer_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_never_drift_from_the_grid),
		cmocka_unit_test(a_step_late_by_less_than_a_period_is_not_missed),
		cmocka_unit_test(start_up_is_not_counted_as_missed),
		cmocka_unit_test(tsc_misses_nothing_on_an_undisturbed_host),
		cmocka_unit_test(real_timers_miss_no_more_than_the_host_takes_away),
		cmocka_unit_test(auto_takes_timerfd_up_to_two_kilohertz),
		cmocka_unit_test(the_descriptor_is_readable_when_a_step_is_due),
		cmocka_unit_test(an_interrupt_ends_a_wait_of_an_hour),
	};

	clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
