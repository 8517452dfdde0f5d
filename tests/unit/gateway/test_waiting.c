/* SPDX-License-Identifier: BSD-2-Clause */
/* When threads spin and sleep (base/waiting.h), with times that the test makes up, and
 * turns that others run (base/turn.h). */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "gateway/base/turn.h"
#include "gateway/base/waiting.h"
#include "util/container_of.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static uint64_t now, replaced;

static uint64_t count_replaced(void)
{
	return replaced;
}

static int begin(void **state)
{
	now += UINT64_C(1000000) * MS;
	waiting_switches = count_replaced;
	waiting_reset(2);
	return 0;
}

/* Another thread has the processor for `ns`. */
static uint64_t others_run(uint64_t ns)
{
	replaced++;
	return now += ns;
}

/* Samples `interval` apart, each `jitter` early or late in turns. */
static void arrive(struct waiting *w, unsigned times, uint64_t interval,
		   uint64_t jitter)
{
	for (unsigned i = 0; i < times; i++) {
		now += interval;
		waiting_arrived(w, now + (i % 2 ? jitter : 0));
	}
}

static void who_knows_nothing_sleeps_until_woken(void **state)
{
	struct waiting w = { 0 };

	assert_true(waiting_plan(&w, now) == WAITING_FOREVER);
	waiting_arrived(&w, now);
	assert_true(waiting_plan(&w, now) == WAITING_FOREVER);
	arrive(&w, 2, 100 * US, 0);
	assert_true(waiting_plan(&w, now) == WAITING_FOREVER);
}

/* Samples `interval` apart; the sleeps that are planned end `late` behind their time. How many there
 * were; *awake: how long before the last sample the last one ended, 0: behind it. */
static unsigned sleep_between(struct waiting *w, unsigned times, uint64_t interval, uint64_t late,
			      uint64_t *awake)
{
	unsigned slept = 0;

	*awake = 0;
	for (unsigned i = 0; i < times; i++) {
		uint64_t until = waiting_plan(w, now + US), due = now + interval;

		if (until && until != WAITING_FOREVER) {
			slept++;
			/* A sample ends it, too. */
			waiting_woke(w, until, until + late < due ? until + late : due);
			*awake = until + late < due ? due - until - late : 0;
		}
		now = due;
		waiting_arrived(w, now);
	}
	return slept;
}

static void a_dense_stream_is_slept_over_where_sleeps_end_in_time(void **state)
{
	struct waiting w = { 0 };
	uint64_t awake;

	/* At first it is measured. */
	assert_in_range(sleep_between(&w, 160, 100 * US, 15 * US, &awake), 7, 50);
	assert_in_range(sleep_between(&w, 1000, 100 * US, 15 * US, &awake), 1000, 1000);
	assert_in_range(awake, 2 * US, 15 * US);
	/* Sleeps end later and later. */
	for (uint64_t late = 15; late < 80; late++)
		sleep_between(&w, 10, 100 * US, late * US, &awake);
	assert_in_range(sleep_between(&w, 4096, 100 * US, 80 * US, &awake), 1, 3);
	/* As before, after a while. */
	sleep_between(&w, 100000, 100 * US, 15 * US, &awake);
	assert_in_range(sleep_between(&w, 1000, 100 * US, 15 * US, &awake), 1000, 1000);
	/* Too dense. */
	sleep_between(&w, 1000, 20 * US, 15 * US, &awake);
	assert_in_range(sleep_between(&w, 4096, 20 * US, 15 * US, &awake), 1, 3);
}

/* Two samples 10 us apart, every 400 us: the second one ends each sleep behind the first. */
static unsigned sleep_between_pairs(unsigned phase)
{
	struct waiting w = { 0 };
	unsigned slept = 0;

	for (unsigned i = phase; i < 20000; i++) {
		uint64_t until = waiting_plan(&w, now + US);
		uint64_t due = now + (i % 2 ? 10 * US : 390 * US);

		if (until && until != WAITING_FOREVER) {
			slept++;
			waiting_woke(&w, until, MIN(due, until + 15 * US));
		}
		now = due;
		waiting_arrived(&w, now);
	}
	return slept;
}

static void trials_of_sleeps_that_samples_end_become_rare(void **state)
{
	assert_in_range(sleep_between_pairs(0), 8, 40);
	assert_in_range(sleep_between_pairs(1), 8, 40);
}

static void a_dense_stream_is_spun_over_until_it_stops(void **state)
{
	struct waiting w = { 0 };

	arrive(&w, 20, 100 * US, 20 * US);
	for (unsigned i = 0; i < 8; i++)
		waiting_woke(&w, now, now + 90 * US);
	assert_true(waiting_plan(&w, now + 1) == 0);
	assert_true(waiting_plan(&w, now + 150 * US) == 0);
	assert_true(waiting_plan(&w, now + 2 * MS) == WAITING_FOREVER);
}

static void a_slow_regular_stream_is_slept_over_until_shortly_before(void **state)
{
	struct waiting w = { 0 };
	uint64_t until;

	arrive(&w, 30, 10 * MS, 10 * US);
	until = waiting_plan(&w, now);
	assert_in_range(until, now + 9 * MS, now + 10 * MS - 50 * US);
	assert_true(waiting_plan(&w, until) == 0);
	assert_true(waiting_plan(&w, now + 11 * MS) == WAITING_FOREVER);
}

static void ten_a_second_take_less_than_one_per_cent(void **state)
{
	struct waiting w = { 0 };
	uint64_t from, until;

	arrive(&w, 80, 100 * MS, 50 * US);
	from = waiting_plan(&w, now);
	for (until = from; waiting_plan(&w, until) == 0; until += 10 * US)
		;
	assert_in_range(until - from, 1, 1 * MS);
}

static void what_comes_at_random_is_slept_over(void **state)
{
	struct waiting w = { 0 };
	uint64_t x = 1;

	for (unsigned i = 0; i < 200; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		now += (x >> 33) % (20 * MS);
		waiting_arrived(&w, now);
	}
	assert_true(waiting_plan(&w, now + 1) == WAITING_FOREVER);
}

/* Each 25th sample is 4 ms late, and those behind it come at once. */
static void a_stream_that_is_held_up_at_times_is_still_predicted(void **state)
{
	struct waiting w = { 0 };
	unsigned predicted = 0;

	arrive(&w, 20, MS, 10 * US);
	for (unsigned i = 0; i < 1000; i++) {
		if (i % 25 == 21)
			now += 5 * MS;
		else if (i % 25 < 22)
			now += i % 2 ? MS + 10 * US : MS - 10 * US;
		else
			now += 5 * US;
		waiting_arrived(&w, now);
		predicted += waiting_plan(&w, now + MS) == 0;
	}
	assert_true(predicted > 900);
}

/* The mean follows when the rate changes for good. */
static void another_rate_is_learnt(void **state)
{
	struct waiting w = { 0 };

	arrive(&w, 50, MS, 0);
	arrive(&w, 100, 5 * MS, 0);
	assert_int_equal(waiting_plan(&w, now + 5 * MS), 0);
	assert_true(waiting_plan(&w, now + MS) > now + 4 * MS);
	assert_true(waiting_plan(&w, now + MS) != WAITING_FOREVER);
}

static void one_processor_is_left_over(void **state)
{
	struct waiting a = { 0 }, b = { 0 }, g = { .generator = true };

	assert_true(waiting_begin_spin(&a));
	assert_true(waiting_begin_spin(&a));
	assert_false(waiting_begin_spin(&b));
	waiting_end_spin(&a);
	assert_true(waiting_begin_spin(&b));
	assert_true(waiting_begin_spin(&g));
	assert_false(waiting_begin_spin(&a));
	waiting_end_spin(&b);
	waiting_end_spin(&g);
	waiting_reset(1);
	assert_false(waiting_begin_spin(&a));
}

static void who_loses_the_processor_is_banned_for_longer_and_longer(void **state)
{
	struct waiting w = { 0 };
	uint64_t length[3];

	arrive(&w, 20, 100 * US, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(length); i++) {
		uint64_t start;

		assert_true(waiting_look(&w, now));
		start = others_run(4 * MS); /* a time slice of another process */
		assert_false(waiting_look(&w, now));
		assert_true(waiting_is_banned(now));
		while (waiting_is_banned(now))
			now += MS;
		length[i] = now - start;
		waiting_worked(&w);
	}
	assert_true(length[1] > length[0] && length[2] > length[1]);
}

/* A time slice in twenty is better borne than slept for: a step in ten would be left out. */
static void a_generator_gives_way_to_those_who_need_much(void **state)
{
	struct waiting g = { .generator = true };
	bool spins = true;

	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 6000; k++)
			assert_true(waiting_look(&g, now += 10 * US));
		assert_true(waiting_look(&g, others_run(3 * MS)));
	}
	for (unsigned i = 0; i < 20 && spins; i++) {
		for (unsigned k = 0; k < 300; k++)
			waiting_look(&g, now += 10 * US);
		spins = waiting_look(&g, others_run(3 * MS));
	}
	assert_false(spins);
	assert_true(waiting_is_banned(now));
}

/* Whoever sleeps then only is late: the kernel takes its share of each second all the same. */
static void a_real_time_thread_gives_way_to_nobody(void **state)
{
	struct sched_param real_time = { .sched_priority = 1 }, normal = { 0 };
	struct waiting w = { 0 };

	if (sched_setscheduler(0, SCHED_FIFO, &real_time))
		skip(); /* not permitted */
	for (unsigned i = 0; i < 100; i++) {
		assert_true(waiting_look(&w, now += 10 * US));
		assert_true(waiting_look(&w, others_run(50 * MS)));
	}
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &normal), 0);
	assert_true(waiting_look(&w, now += 10 * US));
	assert_false(waiting_look(&w, others_run(4 * MS)));
}

/* They are there before the next look at the clock. */
static void samples_that_came_meanwhile_do_not_hide_who_had_the_processor(void **state)
{
	struct waiting w = { 0 };

	arrive(&w, 20, 100 * US, 0);
	assert_true(waiting_look(&w, now += 10 * US));
	waiting_arrived(&w, others_run(4 * MS));
	assert_true(waiting_is_banned(now));
}

/* A virtual processor that its host stops for 4 ms in 100 ms: nobody could use the time. */
static void what_the_host_takes_is_no_reason_to_sleep(void **state)
{
	struct waiting w = { 0 };

	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 96; k++)
			assert_true(waiting_look(&w, now += MS / 10));
		assert_true(waiting_look(&w, now += 4 * MS));
		/* Somebody had the processor for a moment. */
		assert_true(waiting_look(&w, others_run(20 * US)));
	}
	assert_false(waiting_look(&w, others_run(4 * MS)));
}

static void short_interruptions_are_forgiven(void **state)
{
	struct waiting w = { 0 };

	/* 100 us in 10 ms, as kernel threads take. */
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned k = 0; k < 1000; k++)
			assert_true(waiting_look(&w, now += 10 * US));
		assert_true(waiting_look(&w, others_run(100 * US)));
	}
}

/* ---- turns ---- */

struct worker {
	struct turn turn;
	unsigned ran;
	bool left;      /* something is left for the owner */
};

static bool work(struct turn *t)
{
	struct worker *w = container_of(t, struct worker, turn);

	w->ran++;
	return !w->left;
}

static void a_turn_is_run_by_others_while_its_owner_sleeps_only(void **state)
{
	struct worker w = { .turn.run = work };
	struct turn_slot slot = { 0 };

	assert_false(turn_run(&slot));
	turn_offer(&slot, &w.turn);
	assert_false(turn_run(&slot));
	turn_open(&w.turn);
	assert_true(turn_run(&slot));
	w.left = true;
	assert_false(turn_run(&slot));
	assert_int_equal(w.ran, 2);
	turn_close(&w.turn);
	assert_false(turn_run(&slot));
	turn_open(&w.turn);
	turn_withdraw(&slot);
	assert_false(turn_run(&slot));
	assert_int_equal(w.ran, 2);
}

static unsigned woken;

static void wake(struct turn *t)
{
	woken++;
}

static void *spin_for_a_moment(void *arg)
{
	turn_spinner_begins();
	assert_true(turn_has_spinner());
	turn_run_offered();
	turn_spinner_ends();
	return NULL;
}

static void the_last_spinner_wakes_whose_turns_it_ran(void **state)
{
	struct worker w = { .turn = { .run = work, .wake = wake } };
	pthread_t other;

	assert_false(turn_run_offered());
	turn_spinner_begins();
	turn_spinner_begins();
	assert_false(turn_has_spinner()); /* it is the only one */
	assert_true(turn_offer_to_spinners(&w.turn));
	turn_open(&w.turn);
	assert_true(turn_run_offered());
	assert_int_equal(w.ran, 1);
	pthread_create(&other, NULL, spin_for_a_moment, NULL);
	pthread_join(other, NULL);
	assert_int_equal(w.ran, 2);
	assert_int_equal(woken, 0);
	turn_spinner_ends();
	assert_int_equal(woken, 1);
	assert_false(turn_has_spinner());
	turn_spinner_ends();
	assert_int_equal(woken, 1);
	assert_false(turn_has_spinner());
	turn_withdraw_from_spinners(&w.turn);
	assert_false(turn_run_offered());
	assert_int_equal(w.ran, 2);
}

static void the_last_processor_is_seen_to_be_the_last(void **state)
{
	struct waiting generator = { .generator = true }, first = { 0 }, second = { 0 };

	waiting_reset(3);
	assert_false(waiting_is_crowded(&first));
	assert_true(waiting_begin_spin(&generator));
	assert_false(waiting_is_crowded(&first));
	assert_true(waiting_begin_spin(&first));
	/* It spins itself: the second processor of three is its own. */
	assert_false(waiting_is_crowded(&first));
	assert_true(waiting_is_crowded(&second));
	waiting_reset(2);
	assert_true(waiting_is_crowded(&first));
	waiting_end_spin(&first);
	waiting_end_spin(&generator);
	waiting_reset(1);
	assert_true(waiting_is_crowded(&first));
	waiting_reset(0);
}

static struct turn_slot contested;
static struct worker shared = { .turn.run = work };
static atomic_bool enough;

static void *take_turns(void *arg)
{
	while (!atomic_load(&enough))
		turn_run(&contested);
	return NULL;
}

/* What the turn guards is a plain counter: ThreadSanitizer would see a second one. */
static void a_turn_is_run_by_one_thread_at_a_time(void **state)
{
	pthread_t threads[3];
	unsigned mine = 0;

	turn_offer(&contested, &shared.turn);
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, take_turns, NULL);
	for (unsigned i = 0; i < 5000; i++) {
		turn_open(&shared.turn);
		turn_close(&shared.turn);
		shared.ran++;
		mine++;
	}
	atomic_store(&enough, true);
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	turn_withdraw(&contested);
	assert_true(shared.ran >= mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_knows_nothing_sleeps_until_woken, begin),
		cmocka_unit_test_setup(a_dense_stream_is_slept_over_where_sleeps_end_in_time, begin),
		cmocka_unit_test_setup(trials_of_sleeps_that_samples_end_become_rare, begin),
		cmocka_unit_test_setup(a_dense_stream_is_spun_over_until_it_stops, begin),
		cmocka_unit_test_setup(a_slow_regular_stream_is_slept_over_until_shortly_before, begin),
		cmocka_unit_test_setup(ten_a_second_take_less_than_one_per_cent, begin),
		cmocka_unit_test_setup(what_comes_at_random_is_slept_over, begin),
		cmocka_unit_test_setup(a_stream_that_is_held_up_at_times_is_still_predicted, begin),
		cmocka_unit_test_setup(another_rate_is_learnt, begin),
		cmocka_unit_test_setup(one_processor_is_left_over, begin),
		cmocka_unit_test_setup(who_loses_the_processor_is_banned_for_longer_and_longer, begin),
		cmocka_unit_test_setup(samples_that_came_meanwhile_do_not_hide_who_had_the_processor, begin),
		cmocka_unit_test_setup(what_the_host_takes_is_no_reason_to_sleep, begin),
		cmocka_unit_test_setup(short_interruptions_are_forgiven, begin),
		cmocka_unit_test(a_turn_is_run_by_others_while_its_owner_sleeps_only),
		cmocka_unit_test(the_last_spinner_wakes_whose_turns_it_ran),
		cmocka_unit_test(the_last_processor_is_seen_to_be_the_last),
		cmocka_unit_test_setup(a_generator_gives_way_to_those_who_need_much, begin),
		cmocka_unit_test_setup(a_real_time_thread_gives_way_to_nobody, begin),
		cmocka_unit_test(a_turn_is_run_by_one_thread_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
