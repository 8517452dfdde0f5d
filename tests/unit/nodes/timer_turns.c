/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a generator runs turns of paths while it spins; with a clock of the test's own. */
#include "gateway/part/timer.h"

#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/base/turn.h"
#include "util/clock.h"
#include "util/container_of.h"

static uint64_t simulated_ns = 1000000;

static uint64_t simulated_now(void)
{
	return simulated_ns += 40;
}

/* A path whose owner sleeps. */
static struct worker {
	struct turn turn;
	uint64_t takes_ns;    /* each of its turns */
	unsigned ran, woken;
	uint64_t begun_ns;    /* the last turn */
} worker;

static unsigned slept, woken_at_sleep;

static int simulated_sleep(struct timer *t, uint64_t ns)
{
	slept++;
	woken_at_sleep = worker.woken;
	simulated_ns += ns;
	return 0;
}

static bool work(struct turn *t)
{
	worker.ran++;
	worker.begun_ns = simulated_ns;
	simulated_ns += worker.takes_ns;
	return true;
}

static void wake(struct turn *t)
{
	worker.woken++;
}

static void offer(uint64_t takes_ns)
{
	worker = (struct worker){ .turn = { .run = work, .wake = wake }, .takes_ns = takes_ns };
	assert_true(turn_offer_to_spinners(&worker.turn));
	turn_open(&worker.turn);
}

static void withdraw(void)
{
	turn_withdraw_from_spinners(&worker.turn);
	turn_close(&worker.turn);
	turn_spinner_ends();
}

static void open_timer(struct timer *t, enum timer_kind kind, double rate)
{
	assert_int_equal(timer_open(t, kind, rate), 0);
	t->now_ns = simulated_now;
	t->sleep = simulated_sleep;
	t->runs_turns = true;
	timer_start(t, rate);
	slept = 0;
}

static void turns_are_run_in_each_wait_and_delay_no_step(void **state)
{
	struct timer t;
	uint64_t late;

	open_timer(&t, TIMER_AUTO, 1e5);
	offer(300);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned before = worker.ran;
		uint64_t deadline = timer_grid_next_ns(&t.grid);

		assert_int_equal(timer_wait_step(&t, &late), 1);
		/* All the time until shortly before the step. */
		assert_in_range(worker.ran - before, 10, 30);
		assert_true(worker.begun_ns + 900 < deadline);
		assert_true(late < 100);
	}
	assert_int_equal(worker.woken, 0);
	assert_int_equal(slept, 0);
	withdraw();
	timer_close(&t);
}

/* The path sent for long; the step is due. The turn is not put off for ever. */
static void a_late_step_runs_turns_once(void **state)
{
	struct timer t;
	uint64_t late;

	open_timer(&t, TIMER_AUTO, 1e6);
	offer(300);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned before = worker.ran;

		simulated_ns += 950; /* the samples of the last step */
		assert_true(timer_wait_step(&t, &late) >= 1);
		assert_int_equal(worker.ran, before + 1);
	}
	withdraw();
	timer_close(&t);
}

static void turns_that_delay_the_steps_are_left_to_their_owners(void **state)
{
	struct timer t;
	uint64_t late, left_ns;
	unsigned ran;

	open_timer(&t, TIMER_AUTO, 1e5);
	offer(8000);
	for (unsigned i = 0; i < 20000 && !worker.woken; i++) {
		simulated_ns += 4000;
		assert_true(timer_wait_step(&t, &late) >= 1);
	}
	assert_int_equal(worker.woken, 1);
	assert_true(worker.ran > 900); /* to work off a gap it takes so long */
	left_ns = simulated_ns;
	ran = worker.ran;
	for (unsigned i = 0; i < 90000; i++) {
		simulated_ns += 4000;
		assert_int_equal(timer_wait_step(&t, &late), 1);
	}
	assert_int_equal(worker.ran, ran);
	while (simulated_ns < left_ns + UINT64_C(1100000000))
		timer_wait_step(&t, &late);
	assert_true(worker.ran > ran);
	withdraw();
	timer_close(&t);
}

static void a_few_long_turns_change_nothing(void **state)
{
	struct timer t;
	uint64_t late;

	open_timer(&t, TIMER_AUTO, 1e5);
	offer(300);
	for (unsigned i = 0; i < 100000; i++) {
		worker.takes_ns = i % 8 ? 300 : 12000;
		timer_wait_step(&t, &late);
	}
	assert_int_equal(worker.woken, 0);
	withdraw();
	timer_close(&t);
}

static void owners_are_woken_before_the_timer_sleeps(void **state)
{
	struct timer t;
	uint64_t late;

	open_timer(&t, TIMER_AUTO, 1e5);
	offer(300);
	assert_int_equal(timer_wait_step(&t, &late), 1);
	assert_true(worker.ran > 0);
	assert_int_equal(timer_wait_until(&t, simulated_ns + 5000000), 0);
	assert_true(slept > 0);
	assert_int_equal(woken_at_sleep, 1);
	withdraw();
	timer_close(&t);
}

/* `tsc` is for those who want every step as exactly as can be; and others were not asked. */
static void other_timers_run_no_turns(void **state)
{
	struct timer t;
	uint64_t late;

	open_timer(&t, TIMER_TSC, 1e5);
	offer(300);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(timer_wait_step(&t, &late), 1);
	timer_close(&t);
	open_timer(&t, TIMER_AUTO, 1e5);
	t.runs_turns = false;
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(timer_wait_step(&t, &late), 1);
	assert_int_equal(worker.ran, 0);
	withdraw();
	timer_close(&t);
}

static void who_may_no_more_runs_no_more(void **state)
{
	struct timer t;
	uint64_t late;
	unsigned ran;

	open_timer(&t, TIMER_AUTO, 1e5);
	offer(300);
	assert_int_equal(timer_wait_step(&t, &late), 1);
	ran = worker.ran;
	t.runs_turns = false;
	assert_int_equal(timer_wait_step(&t, &late), 1);
	assert_int_equal(worker.ran, ran);
	assert_int_equal(worker.woken, 1);
	withdraw();
	timer_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_run_in_each_wait_and_delay_no_step),
		cmocka_unit_test(a_late_step_runs_turns_once),
		cmocka_unit_test(turns_that_delay_the_steps_are_left_to_their_owners),
		cmocka_unit_test(a_few_long_turns_change_nothing),
		cmocka_unit_test(owners_are_woken_before_the_timer_sleeps),
		cmocka_unit_test(other_timers_run_no_turns),
		cmocka_unit_test(who_may_no_more_runs_no_more),
	};

	clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
