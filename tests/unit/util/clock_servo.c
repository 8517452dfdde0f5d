/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path's clock against a simulated system: a counter whose rate wanders, a
 * system clock that is disciplined, set, suspended; readings that are uncertain and
 * come late. Hours pass in milliseconds.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/clock_servo.h"
#include "util/container_of.h"

#define HZ UINT64_C(2445406123)
#define S 1e9
#define BOUND_NS 1000

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

/* The simulated host. True time is the counter's, as ns at a rate of HZ. */
struct host {
	double now;            /* true time in ns */
	double rate;           /* of CLOCK_MONOTONIC relative to the counter, minus 1 */
	long double mono;      /* CLOCK_MONOTONIC now */
	double wall;           /* wall clock minus CLOCK_MONOTONIC */
	double gone;           /* time during which the counter stood still */

	struct clock_servo servo;
	struct clock_record shown; /* the published record */
	uint64_t last;             /* the time that look() read last */
	double worst, worst_wall;  /* largest errors since they were cleared, ns */
	unsigned noise_ns;
	bool broken;               /* some readings are interrupted */
};

static uint64_t counter(const struct host *h)
{
	return (uint64_t)((long double)(h->now - h->gone) * HZ / 1000000000.0L) +
	       UINT64_C(1000000000000);
}

static void pass(struct host *h, double ns)
{
	h->now += ns;
	h->mono += (long double)ns * (1.0L + (long double)h->rate);
}

static struct clock_reading take_reading(struct host *h)
{
	struct clock_reading r = { .uncertainty_ns = h->noise_ns };
	int64_t width;

	if (h->broken && random_below(20) == 0)
		r.uncertainty_ns += random_below(200000);
	width = (int64_t)r.uncertainty_ns;
	r.ticks = counter(h);
	r.mono_ns = (uint64_t)(h->mono + 0.5L) + random_below(2 * width + 1) -
		    (uint64_t)width;
	r.wall_low_ns = (int64_t)h->wall - (int64_t)random_below(40);
	r.wall_high_ns = (int64_t)h->wall + (int64_t)random_below(40);
	return r;
}

/* Reads the clock; checks that time does not go back, and its error. */
static void look(struct host *h)
{
	uint64_t ours = clock_record_at(&h->shown, counter(h));
	double error = (double)((long double)ours - h->mono) -
		       (double)h->servo.ahead_ns;
	double wall = (double)((long double)(ours + (uint64_t)h->shown.wall_ns) -
			       h->mono) - h->wall;

	assert_true(ours >= h->last);
	h->last = ours;
	h->worst = MAX(h->worst, fabs(error));
	h->worst_wall = MAX(h->worst_wall, fabs(wall));
}

static void look_until(struct host *h, double end, unsigned looks)
{
	for (unsigned i = 0; i < looks && h->now < end; i++) {
		pass(h, (double)random_below((uint64_t)(end - h->now) + 1));
		look(h);
	}
	if (h->now < end)
		pass(h, end - h->now);
	look(h);
}

static void begin(struct host *h, double calibration_error)
{
	struct clock_reading r;

	random_state = 42;
	*h = (struct host){ .mono = 123456789012.0L, .wall = 1.7e18,
			    .noise_ns = 30 };
	r = take_reading(h);
	clock_servo_start(&h->servo, HZ,
			  (uint64_t)(1e9 / HZ * 0x1p32 * (1 + calibration_error)),
			  &r);
	h->shown = h->servo.record;
}

/* Takes the next reading `late_ns` after it was due, publishes it after `show_ns`. */
static void update(struct host *h, double late_ns, double show_ns)
{
	int64_t left = (int64_t)(h->servo.record.due - counter(h));
	struct clock_servo next;
	struct clock_reading r;

	if (clock_record_is_due(&h->servo.record, counter(h)))
		left = 0;
	look_until(h, h->now + MAX((double)left / HZ * S, 0.0) + late_ns, 3);
	for (;;) {
		next = h->servo;
		r = take_reading(h);
		assert_true(clock_servo_take(&next, &r, HZ / 100));
		look_until(h, h->now + show_ns, 2);
		show_ns /= 2;
		if (counter(h) < next.record.line.ticks + next.record.span)
			break;
	}
	h->servo = next;
	h->shown = h->servo.record;
	look(h);
}

static void run(struct host *h, double seconds)
{
	double end = h->now + seconds * S;

	while (h->now < end)
		update(h, (double)random_below(2000000),
		       (double)random_below(100000));
}

static void assert_worst(struct host *h, double bound)
{
	if (h->worst >= bound || h->worst_wall >= bound)
		fail_msg("off by %.0f ns, the wall clock by %.0f ns", h->worst,
			 h->worst_wall);
	h->worst = h->worst_wall = 0;
}

static void a_wrong_calibration_is_corrected_within_a_second(void **unused)
{
	static const double errors[] = { 0, 5e-6, -5e-6, 40e-6, -40e-6 };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct host h;

		begin(&h, errors[i]);
		run(&h, 1);
		assert_worst(&h, 10000);
		run(&h, 10);
		assert_worst(&h, 150);
		assert_true(h.servo.settled);
		assert_int_equal(h.servo.jumps, 0);
		assert_int_equal(h.servo.steps, 0);
	}
}

/* The rate drifts with temperature, and the system's clock follows a PTP grandmaster. */
static void six_hours_of_a_wandering_counter_stay_within_a_microsecond(void **unused)
{
	double disciplined = 0;
	struct host h;

	begin(&h, 3e-6);
	h.rate = 20e-6;
	h.broken = true;
	run(&h, 5);
	h.worst = h.worst_wall = 0;
	while (h.now < 6 * 3600 * S) {
		double minutes = h.now / S / 60;

		/* Once per second, by up to 1 ppm. */
		disciplined = 0.9 * disciplined +
			      ((double)random_below(2001) - 1000) * 1e-9;
		h.rate = 20e-6 + 2e-6 * sin(minutes / 7) + disciplined;
		run(&h, 1);
	}
	assert_worst(&h, BOUND_NS);
	assert_true(h.servo.offset_max_ns < BOUND_NS);
	assert_int_equal(h.servo.jumps, 0);
	assert_int_equal(h.servo.steps, 0);
	assert_true(h.servo.readings > 6 * 3600 * 3);
}

/* As a daemon slews the clock after its start. */
static void a_slew_of_the_system_is_followed_within_seconds(void **unused)
{
	struct host h;

	begin(&h, 0);
	run(&h, 5);
	assert_worst(&h, 150);
	for (int i = 0; i < 6; i++) {
		h.rate = i % 2 ? 0 : i < 3 ? 500e-6 : -500e-6;
		run(&h, 5);
		assert_worst(&h, 250000);
		run(&h, 5);
		assert_worst(&h, BOUND_NS);
	}
	assert_int_equal(h.servo.jumps, 0);
	assert_int_equal(h.servo.steps, 0);
}

static void the_wall_clock_follows_a_step_and_the_monotonic_one_does_not(void **unused)
{
	static const double steps[] = { 3600 * S, -3600 * S, 1e6, -500 };
	struct host h;

	begin(&h, 0);
	run(&h, 5);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		double start;

		h.worst = h.worst_wall = 0;
		start = h.now;
		h.wall += steps[i];
		/* With the next reading, a third of a second later at most. */
		update(&h, 0, 1000);
		assert_true(h.now - start < 0.4 * S);
		assert_true(h.worst < 150);
		h.worst = h.worst_wall = 0;
		run(&h, 2);
		assert_worst(&h, 150);
		assert_int_equal(h.servo.steps, i + 1);
		assert_true(llabs(h.servo.step_ns - (int64_t)steps[i]) < 80);
	}
	assert_int_equal(h.servo.jumps, 0);
}

/* The counter advances while CLOCK_MONOTONIC stands still, and the other way round. */
static void after_a_suspend_deadlines_go_on_and_the_wall_clock_is_right(void **unused)
{
	struct host h;
	uint64_t before;

	begin(&h, 0);
	run(&h, 5);
	h.now += 3600 * S;
	h.wall += 3600 * S;
	update(&h, 0, 1000);
	assert_int_equal(h.servo.jumps, 1);
	h.worst = h.worst_wall = 0;
	run(&h, 5);
	assert_worst(&h, 300);

	/* The counter stood still for ten seconds. */
	before = clock_record_at(&h.shown, counter(&h));
	pass(&h, 10 * S);
	h.gone += 10 * S;
	update(&h, 0, 1000);
	assert_int_equal(h.servo.jumps, 2);
	assert_true(clock_record_at(&h.shown, counter(&h)) - before < S);
	h.worst = h.worst_wall = 0;
	run(&h, 5);
	assert_worst(&h, 300);
}

static void a_counter_that_begins_again_does_not_take_time_back(void **unused)
{
	struct host h;
	uint64_t before;

	begin(&h, 0);
	run(&h, 1000);
	before = clock_record_at(&h.shown, counter(&h));
	h.gone = h.now - 5 * S;
	/* Time stands still until the next reading. */
	look(&h);
	assert_true(h.last - before < 0.4 * S);
	update(&h, 0, 1000);
	h.worst = h.worst_wall = 0;
	run(&h, 10);
	assert_worst(&h, 300);
	assert_int_equal(h.servo.jumps, 1);
}

/* The thread that takes the readings does not run for up to seconds. */
static void late_readings_never_take_time_back(void **unused)
{
	struct host h;

	begin(&h, 5e-6);
	h.broken = true;
	for (unsigned i = 0; i < 20000; i++) {
		bool starved = random_below(8) == 0;

		if (random_below(16) == 0)
			h.rate = ((double)random_below(100001) - 50000) * 1e-9;
		/* look() checks after each step that time does not go back. */
		update(&h, starved ? (double)random_below(3000000000) :
				     (double)random_below(100000000),
		       starved ? (double)random_below(1000000000) : 0);
	}
	h.rate = 0;
	run(&h, 20);
	h.worst = h.worst_wall = 0;
	run(&h, 20);
	assert_worst(&h, BOUND_NS);
}

static void who_is_not_read_for_an_hour_is_right_again_with_a_reading(void **unused)
{
	struct host h;

	begin(&h, 0);
	run(&h, 5);
	h.rate = 1e-6;
	update(&h, 3600 * S, 0);
	h.worst = h.worst_wall = 0;
	run(&h, 5);
	assert_worst(&h, BOUND_NS);
}

static void a_reading_before_its_time_changes_nothing(void **unused)
{
	struct clock_reading r;
	struct clock_record was;
	struct host h;

	begin(&h, 0);
	run(&h, 2);
	update(&h, 0, 0);
	was = h.servo.record;
	r = take_reading(&h);
	assert_true(r.ticks < was.line.ticks);
	assert_false(clock_servo_take(&h.servo, &r, HZ / 100));
	assert_memory_equal(&was, &h.servo.record, sizeof(was));
}

static void the_wall_clock_narrows_down_without_moving(void **unused)
{
	struct host h;
	int64_t was;

	begin(&h, 0);
	run(&h, 10);
	was = h.servo.record.wall_ns;
	assert_true(llabs(was - (int64_t)h.wall) < 10);
	assert_true(h.servo.wall_high_ns - h.servo.wall_low_ns < 20);
	run(&h, 100);
	assert_true(llabs(h.servo.record.wall_ns - was) < 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_calibration_is_corrected_within_a_second),
		cmocka_unit_test(six_hours_of_a_wandering_counter_stay_within_a_microsecond),
		cmocka_unit_test(a_slew_of_the_system_is_followed_within_seconds),
		cmocka_unit_test(the_wall_clock_follows_a_step_and_the_monotonic_one_does_not),
		cmocka_unit_test(after_a_suspend_deadlines_go_on_and_the_wall_clock_is_right),
		cmocka_unit_test(a_counter_that_begins_again_does_not_take_time_back),
		cmocka_unit_test(late_readings_never_take_time_back),
		cmocka_unit_test(who_is_not_read_for_an_hour_is_right_again_with_a_reading),
		cmocka_unit_test(a_reading_before_its_time_changes_nothing),
		cmocka_unit_test(the_wall_clock_narrows_down_without_moving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
