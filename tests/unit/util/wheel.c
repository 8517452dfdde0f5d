/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timing wheel against a model: a plain table of deadlines. Times of all sizes,
 * random arming, moving and cancelling; steps of time from one tick to hours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/wheel.h"

enum { TIMERS = 300, STEPS = 200000 };

static uint64_t random_state = 88172645463325252u;

static uint64_t dice(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Numbers of all magnitudes are equally likely. */
static uint64_t any_size(unsigned bits)
{
	return dice() >> (64 - 1 - dice() % bits);
}

static uint64_t rounded(uint64_t deadline)
{
	return deadline > UINT64_MAX - WHEEL_TICK_NS ?
		       deadline & ~(WHEEL_TICK_NS - 1) :
		       (deadline + WHEEL_TICK_NS - 1) & ~(WHEEL_TICK_NS - 1);
}

struct model {
	struct wheel wheel;
	struct wheel_timer timers[TIMERS];
	bool armed[TIMERS];
	uint64_t now;
};

static uint64_t first_deadline(const struct model *m)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < TIMERS; i++)
		if (m->armed[i] && m->timers[i].deadline_ns < first)
			first = m->timers[i].deadline_ns;
	return first;
}

static void step_time(struct model *m)
{
	uint64_t was = m->now, before = 0;
	struct wheel_timer *t;

	m->now += any_size(45);
		if (dice() % 4 == 0) /* exactly to wheel_next_ns() */
		m->now = wheel_next_ns(&m->wheel) < UINT64_MAX / 2 &&
					 wheel_next_ns(&m->wheel) > was ?
				 wheel_next_ns(&m->wheel) : m->now;
	while ((t = wheel_expire(&m->wheel, m->now))) {
		size_t i = (size_t)(t - m->timers);

		assert_true(m->armed[i]);
		assert_false(wheel_is_armed(t));
		assert_true(rounded(t->deadline_ns) <= m->now);
		/* In order, except for those whose deadline had passed when armed. */
		if (t->deadline_ns > was) {
			assert_true(rounded(t->deadline_ns) >= before);
			before = rounded(t->deadline_ns);
		}
		m->armed[i] = false;
	}
	for (unsigned i = 0; i < TIMERS; i++)
		assert_true(!m->armed[i] ||
			    rounded(m->timers[i].deadline_ns) > m->now);
}

static void check_next(const struct model *m)
{
	uint64_t next = wheel_next_ns(&m->wheel), first = first_deadline(m);

	if (first == UINT64_MAX)
		assert_int_equal(next, UINT64_MAX);
	else
		assert_true(next <= rounded(first));
}

static void test_model(void **state)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->now = dice() >> 8;
	wheel_init(&m->wheel, m->now);
	for (unsigned i = 0; i < TIMERS; i++)
		wheel_timer_init(&m->timers[i]);
	for (unsigned n = 0; n < STEPS; n++) {
		unsigned i = dice() % TIMERS;
		uint64_t far = any_size(46);

		switch (dice() % 8) {
		case 0:
			assert_int_equal(wheel_cancel(&m->wheel, &m->timers[i]),
					 m->armed[i]);
			m->armed[i] = false;
			break;
		case 1:
			step_time(m);
			break;
		case 2: /* in the past */
			wheel_arm(&m->wheel, &m->timers[i],
				  m->now > far ? m->now - far : 0);
			m->armed[i] = true;
			break;
		default:
			wheel_arm(&m->wheel, &m->timers[i], m->now + far);
			m->armed[i] = true;
		}
		check_next(m);
	}
	free(m);
}

/* Deadlines at the ends of the scale, and on the borders of slots. */
static void test_borders(void **state)
{
	static const uint64_t deadlines[] = {
		0, 1, WHEEL_TICK_NS - 1, WHEEL_TICK_NS, WHEEL_TICK_NS + 1,
		63 * WHEEL_TICK_NS, 64 * WHEEL_TICK_NS, 65 * WHEEL_TICK_NS,
		4095 * WHEEL_TICK_NS, 4096 * WHEEL_TICK_NS,
		UINT64_MAX / 2, UINT64_MAX - WHEEL_TICK_NS, UINT64_MAX - 1, UINT64_MAX,
	};
	struct wheel w;
	struct wheel_timer t;

	for (unsigned i = 0; i < ARRAY_SIZE(deadlines); i++) {
		uint64_t due = rounded(deadlines[i]);

		wheel_init(&w, 0);
		wheel_timer_init(&t);
		wheel_arm(&w, &t, deadlines[i]);
		if (due) {
			assert_true(wheel_next_ns(&w) <= due);
			assert_null(wheel_expire(&w, due - 1));
		}
		assert_ptr_equal(wheel_expire(&w, due), &t);
		assert_false(wheel_cancel(&w, &t));
		assert_int_equal(wheel_next_ns(&w), UINT64_MAX);
	}
}

/* The wheel asks to be called a bounded number of times for one far timer. */
static void test_wakes(void **state)
{
	struct wheel w;
	struct wheel_timer t;
	unsigned calls = 0;

	wheel_init(&w, 12345);
	wheel_timer_init(&t);
	wheel_arm(&w, &t, UINT64_C(1) << 50);
	while (!wheel_expire(&w, wheel_next_ns(&w)))
		calls++;
	assert_true(calls < WHEEL_LEVELS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
