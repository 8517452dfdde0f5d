/* SPDX-License-Identifier: BSD-2-Clause */
/* The grid with a clock of the test's own; the real waits, shortly. */
#include "gateway/part/timer.h"

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

		timer_grid_start(&g, rates[r], 0, now);
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

	timer_grid_start(&g, 1000, 0, 0);
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

	timer_grid_start(&g, 1000, 0, 0);
	assert_int_equal(timer_grid_advance(&g, 12345678, &late), 1);
	assert_int_equal(late, 0);
	assert_int_equal(timer_grid_next_ns(&g), 13345678);
}

/* 100 kHz from 0, with the usual bound; one step has been taken. */
static void start_at_100k(struct timer_grid *g)
{
	uint64_t late;

	timer_grid_start(g, 1e5, 100000, 0);
	assert_int_equal(timer_grid_advance(g, 10000, &late), 1);
	assert_false(g->made_up);
}

static void late_steps_are_made_up_within_the_bound(void **state)
{
	struct timer_grid g;
	uint64_t late;

	start_at_100k(&g);
	/* Steps are due at 20, 30 ... 60 us; all of them come, each once. */
	for (unsigned i = 0; i < 5; i++) {
		uint64_t now = 65000 + i * 200;

		assert_int_equal(timer_grid_advance(&g, now, &late), 1);
		assert_int_equal(late, now - (20000 + i * 10000));
		assert_int_equal(g.made_up, late >= 10000);
	}
	assert_int_equal(timer_grid_advance(&g, 69999, &late), 0);
	/* Late by the bound is not too late, and by more is. */
	assert_int_equal(timer_grid_advance(&g, 170000, &late), 1);
	assert_int_equal(late, 100000);
	assert_int_equal(timer_grid_advance(&g, 180001, &late), 2);
	assert_int_equal(late, 100001);
	assert_int_equal(timer_grid_next_ns(&g), 100000);
}

static void of_a_long_pause_the_steps_beyond_the_bound_are_left_out(void **state)
{
	struct timer_grid g;
	uint64_t late;

	start_at_100k(&g);
	/* Due at 20 us ... 6 ms: those of the last 100 us are made up. */
	assert_int_equal(timer_grid_advance(&g, 6000000, &late), 1 + 588);
	assert_int_equal(late, 6000000 - 20000);
	assert_true(g.made_up);
	for (unsigned i = 1; i <= 10; i++) {
		assert_int_equal(timer_grid_next_ns(&g), 5900000 + i * 10000);
		assert_int_equal(timer_grid_advance(&g, 6000000, &late), 1);
		assert_int_equal(late, 100000 - i * 10000);
	}
	assert_int_equal(timer_grid_advance(&g, 6000000, &late), 0);
}

static void a_bound_up_to_a_period_is_none(void **state)
{
	static const uint64_t bounds[] = { 0, 1, 99999, 100000 };
	struct timer_grid strict, g;

	for (size_t b = 0; b < ARRAY_SIZE(bounds); b++) {
		uint64_t now = 0, late, strict_late;

		timer_grid_start(&strict, 1e4, 0, now);
		timer_grid_start(&g, 1e4, bounds[b], now);
		for (unsigned i = 0; i < 20000; i++) {
			now += random_below(3) ? random_below(120000) :
						 random_below(8) * 100000;
			assert_int_equal(timer_grid_advance(&g, now, &late),
					 timer_grid_advance(&strict, now,
							    &strict_late));
			assert_int_equal(late, strict_late);
			assert_false(g.made_up);
		}
	}
}

static void whoever_is_forgiven_makes_up_nothing(void **state)
{
	struct timer_grid g;
	uint64_t late;

	start_at_100k(&g);
	timer_grid_forgive(&g);
	assert_int_equal(timer_grid_advance(&g, 15000, &late), 0);
	/* It holds for the next step, however late, and for no more. */
	assert_int_equal(timer_grid_advance(&g, 85000, &late), 7);
	assert_false(g.made_up);
	assert_int_equal(timer_grid_advance(&g, 85000, &late), 0);
	assert_int_equal(timer_grid_advance(&g, 115000, &late), 1);
	assert_true(g.made_up);
	/* The first step after a start is forgiven, too. */
	timer_grid_start(&g, 1e5, 100000, 0);
	assert_int_equal(timer_grid_advance(&g, 85000, &late), 1);
	assert_int_equal(timer_grid_advance(&g, 85000, &late), 0);
}

static void a_step_keeps_the_time_that_was_planned_for_it(void **state)
{
	struct timer_grid g;
	uint64_t late;

	timer_grid_start(&g, 1e5, 100000, 0);
	assert_int_equal(timer_grid_taken_ns(&g), 0);
	/* The grid begins with the first step. */
	assert_int_equal(timer_grid_advance(&g, 65000, &late), 1);
	assert_int_equal(timer_grid_taken_ns(&g), 65000);
	/* In time, and late by three quarters of a period. */
	assert_int_equal(timer_grid_advance(&g, 75000, &late), 1);
	assert_int_equal(timer_grid_taken_ns(&g), 75000);
	assert_int_equal(timer_grid_advance(&g, 92500, &late), 1);
	assert_int_equal(timer_grid_taken_ns(&g), 85000);
	/* Not due: the last one stays the last one. */
	assert_int_equal(timer_grid_advance(&g, 94999, &late), 0);
	assert_int_equal(timer_grid_taken_ns(&g), 85000);
	/* Steps that are made up were planned one period after the other. */
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(timer_grid_advance(&g, 140000 + i, &late), 1);
		assert_int_equal(timer_grid_taken_ns(&g), 95000 + i * 10000);
	}
	/* Behind steps that are left out: the one that was taken counts. */
	assert_int_equal(timer_grid_advance(&g, 1145000, &late), 91);
	assert_int_equal(late, 1145000 - 145000);
	assert_int_equal(timer_grid_taken_ns(&g), 1045000);
	/* Never behind the clock, also where a period is no whole nanosecond. */
	timer_grid_start(&g, 30707.2, 0, 1);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t now = timer_grid_next_ns(&g) + random_below(2);

		assert_int_equal(timer_grid_advance(&g, now, &late), 1);
		assert_true(now - timer_grid_taken_ns(&g) <= 1);
	}
}

/* Work that takes one and a half periods, for a second: a third is left out. */
static void overload_is_counted_at_its_rate(void **state)
{
	uint64_t now = 10000, taken = 1, left_out = 0, late;
	struct timer_grid g;

	start_at_100k(&g);
	while (now < 1000000000) {
		uint64_t steps;

		now += 15000;
		steps = timer_grid_advance(&g, now, &late);
		assert_true(steps >= 1 && late <= 100000 + 15000);
		left_out += steps - 1;
		taken++;
	}
	assert_true(llabs((int64_t)(taken + left_out) - 100000) <= 11);
	assert_true(llabs((int64_t)taken - 66667) <= 11);
}

/* The rule step by step: due at k periods, the oldest that is not too late. */
struct model {
	uint64_t period, bound, next;
};

static uint64_t model_advance(struct model *m, uint64_t now, uint64_t *late,
			      bool *made_up)
{
	uint64_t steps = 1;

	*late = 0;
	if (now < m->next)
		return 0;
	*late = now - m->next;
	while (now - m->next > m->bound && now - m->next >= m->period) {
		m->next += m->period;
		steps++;
	}
	*made_up = now - m->next >= m->period;
	m->next += m->period;
	return steps;
}

static void the_grid_does_as_a_simple_model(void **state)
{
	for (unsigned round = 0; round < 400; round++) {
		struct model m = { .period = 1 + random_below(20000) };
		uint64_t now = random_below(2) ? 0 : UINT64_MAX / 4 * 3;
		uint64_t late, model_late;
		bool made_up = false;
		struct timer_grid g;

		m.bound = random_below(4) ? random_below(12 * m.period) : 0;
		/* A period of whole nanoseconds, exactly. */
		timer_grid_start(&g, 1, m.bound, now);
		g.period = (unsigned __int128)m.period << 32;
		g.bound = (unsigned __int128)m.bound << 32;
		if (g.bound <= g.period)
			g.bound = g.period - 1;
		m.next = now += m.period;
		g.next = (unsigned __int128)now << 32;
		for (unsigned i = 0; i < 2000; i++) {
			uint64_t steps = timer_grid_advance(&g, now, &late);

			assert_int_equal(steps, model_advance(&m, now, &model_late,
							      &made_up));
			assert_int_equal(late, model_late);
			assert_int_equal(timer_grid_next_ns(&g), m.next);
			if (steps)
				assert_int_equal(g.made_up, made_up);
			now += random_below(8) ? random_below(m.period + 2) :
						 random_below(30 * m.period);
		}
	}
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

/* A host that takes some tens of microseconds away, thousands of times. */
static void what_the_host_takes_from_tsc_is_made_up(void **state)
{
	uint64_t late, begin, made_up = 0;
	struct timer t;

	assert_int_equal(timer_open(&t, TIMER_TSC, 1e5), 0);
	t.now_ns = simulated_now;
	t.sleep = simulated_sleep;
	timer_set_catch_up(&t, 100e-6);
	begin = simulated_ns;
	timer_start(&t, 1e5);
	for (unsigned i = 0; i < 50000; i++) {
		simulated_ns += 500; /* work of the caller */
		if (random_below(40) == 0)
			simulated_ns += 14000 + random_below(26000);
		assert_int_equal(timer_wait_step(&t, &late), 1);
		made_up += t.grid.made_up;
	}
	assert_true(made_up > 1000);
	assert_true(simulated_ns - begin - UINT64_C(500000000) < 100000);
	timer_close(&t);
}

/* While late steps are outstanding the timer does not sleep, and an interrupt still counts. */
static void late_steps_are_due_at_once_for_every_kind(void **state)
{
	for (int kind = TIMER_TIMERFD; kind <= TIMER_TSC; kind++) {
		struct pollfd p = { .events = POLLIN };
		struct timer t;
		uint64_t late;

		assert_int_equal(timer_open(&t, (enum timer_kind)kind, 1), 0);
		simulated_ns = 1; /* the kernel's clock is far beyond it */
		t.now_ns = simulated_now;
		t.sleep = simulated_sleep;
		timer_set_catch_up(&t, 3600);
		timer_start(&t, 1);
		p.fd = timer_poll_fd(&t, false);
		simulated_ns += UINT64_C(1000000000);
		assert_int_equal(timer_wait_step(&t, &late), 1);
		simulated_ns += UINT64_C(100000000000);
		for (unsigned i = 0; i < 100; i++) {
			/* For ever: a limit would only hide that it sleeps. */
			assert_int_equal(poll(&p, 1, -1), 1);
			assert_int_equal(timer_wait_step(&t, &late), 1);
			assert_int_equal(t.grid.made_up, i < 99);
			if (i != 49)
				continue;
			timer_interrupt(&t);
			assert_int_equal(timer_wait_step(&t, &late), -EINTR);
			timer_rearm(&t);
		}
		timer_close(&t);
	}
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

static void auto_sleeps_up_to_twenty_kilohertz(void **state)
{
	struct timer t;

	assert_int_equal(timer_open(&t, TIMER_AUTO, 20000), 0);
	assert_int_equal(t.kind, TIMER_TIMERFD);
	timer_close(&t);
	assert_int_equal(timer_open(&t, TIMER_AUTO, 20001), 0);
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
		cmocka_unit_test(late_steps_are_made_up_within_the_bound),
		cmocka_unit_test(of_a_long_pause_the_steps_beyond_the_bound_are_left_out),
		cmocka_unit_test(a_bound_up_to_a_period_is_none),
		cmocka_unit_test(whoever_is_forgiven_makes_up_nothing),
		cmocka_unit_test(a_step_keeps_the_time_that_was_planned_for_it),
		cmocka_unit_test(overload_is_counted_at_its_rate),
		cmocka_unit_test(the_grid_does_as_a_simple_model),
		cmocka_unit_test(what_the_host_takes_from_tsc_is_made_up),
		cmocka_unit_test(late_steps_are_due_at_once_for_every_kind),
		cmocka_unit_test(tsc_misses_nothing_on_an_undisturbed_host),
		cmocka_unit_test(real_timers_miss_no_more_than_the_host_takes_away),
		cmocka_unit_test(auto_sleeps_up_to_twenty_kilohertz),
		cmocka_unit_test(the_descriptor_is_readable_when_a_step_is_due),
		cmocka_unit_test(an_interrupt_ends_a_wait_of_an_hour),
	};

	clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
