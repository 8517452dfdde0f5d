/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums over a window: exact, for ever, whatever was in it before. */
#include "rig.h"

#include "gateway/hook/part/window.h"

static uint64_t seed = 1;

/* In [-1, 1), the same in every run. */
static double random_value(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(int64_t)seed * 0x1p-63;
}

static void the_sum_is_that_of_the_last_values(void **state)
{
	struct window_sum w;
	double all[1000];

	(void)state;
	for (unsigned size = 1; size < 40; size += 3) {
		assert_int_equal(window_sum_init(&w, size), 0);
		for (unsigned n = 0; n < 1000; n++) {
			long double sum = 0;

			all[n] = random_value() * exp2(40 * random_value());
			for (unsigned i = n + 1 > size ? n + 1 - size : 0; i <= n; i++)
				sum += (long double)all[i];
			/* 40 additions of up to 2^40 in 64 bits of mantissa. */
			assert_near(window_sum_push(&w, all[n]), (double)sum,
				    40 * 0x1p-24 + fabs((double)sum) * 0x1p-52);
			assert_int_equal(w.filled, n + 1 < size ? n + 1 : size);
		}
		window_sum_destroy(&w);
	}
}

static void ten_million_values_do_not_drift(void **state)
{
	enum { SIZE = 1000 };
	struct window_sum w;
	double last[SIZE], plain = 0, sum = 0;
	long double exact = 0;

	(void)state;
	assert_int_equal(window_sum_init(&w, SIZE), 0);
	for (unsigned n = 0; n < 10000000; n++) {
		double v = 1e6 + random_value();

		if (n >= SIZE)
			plain -= last[n % SIZE];
		plain += v;
		last[n % SIZE] = v;
		sum = window_sum_push(&w, v);
	}
	for (unsigned i = 0; i < SIZE; i++)
		exact += (long double)last[i];
	/* The sum is rounded once: half a unit in the last place of 1e9. */
	assert_near(sum, (double)exact, 1e9 * 0x1p-53);
	/* The plain running sum does drift, so this test can fail. */
	assert_true(fabs(plain - (double)exact) > 1e9 * 0x1p-53);
	window_sum_destroy(&w);
}

static void a_spike_leaves_nothing_behind(void **state)
{
	struct window_sum w;

	(void)state;
	assert_int_equal(window_sum_init(&w, 10), 0);
	for (unsigned n = 0; n < 100; n++) {
		double sum = window_sum_push(&w, n == 25 ? 1e15 : 0.1);

		if (n < 25 || n >= 35)
			assert_near(sum, 0.1 * w.filled, 1e-15);
	}
	window_sum_destroy(&w);
}

static void what_is_no_number_is_gone_when_it_left_the_window(void **state)
{
	static const double strange[] = { (double)NAN, (double)INFINITY,
					  -(double)INFINITY };
	struct window_sum w;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(window_sum_init(&w, 7), 0);
		for (unsigned n = 0; n < 50; n++) {
			bool bad = n >= 10 && n < 10 + 7;
			double sum = window_sum_push(&w, n == 10 ? strange[i] : 1);

			assert_int_equal(isnan(sum), bad);
			if (!bad)
				assert_near(sum, w.filled, 0);
		}
		window_sum_destroy(&w);
	}
}

static void clearing_is_a_new_beginning(void **state)
{
	struct window_sum w;

	(void)state;
	assert_int_equal(window_sum_init(&w, 5), 0);
	for (unsigned n = 0; n < 13; n++)
		window_sum_push(&w, n == 12 ? (double)NAN : 3);
	window_sum_clear(&w);
	for (unsigned n = 0; n < 12; n++) {
		double sum = window_sum_push(&w, 2);

		assert_near(sum, 2.0 * w.filled, 0);
	}
	assert_int_equal(w.filled, 5);
	window_sum_destroy(&w);
}

static void stamps_are_given_by_their_age(void **state)
{
	struct window_stamps w;
	struct sample s = { .flags = SAMPLE_HAS_ORIGIN };

	(void)state;
	assert_int_equal(window_stamps_init(&w, 4), 0);
	for (long n = 0; n < 11; n++) {
		s.origin.tv_nsec = n;
		s.flags = n == 5 ? 0 : SAMPLE_HAS_ORIGIN;
		window_stamps_push(&w, &s);
		assert_int_equal(window_stamps_full(&w), n >= 3);
		assert_int_equal(w.missing, n >= 5 && n < 9);
		for (unsigned i = 0; i < 4 && n >= 3; i++)
			if (n - 3 + i != 5)
				assert_int_equal(window_stamps_get(&w, i).tv_nsec,
						 n - 3 + i);
	}
	window_stamps_destroy(&w);
	assert_int_equal(window_aligned(WINDOW_LEFT, 4), 0);
	assert_int_equal(window_aligned(WINDOW_CENTER, 4), 2);
	assert_int_equal(window_aligned(WINDOW_CENTER, 5), 2);
	assert_int_equal(window_aligned(WINDOW_RIGHT, 4), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_is_that_of_the_last_values),
		cmocka_unit_test(ten_million_values_do_not_drift),
		cmocka_unit_test(a_spike_leaves_nothing_behind),
		cmocka_unit_test(what_is_no_number_is_gone_when_it_left_the_window),
		cmocka_unit_test(clearing_is_a_new_beginning),
		cmocka_unit_test(stamps_are_given_by_their_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
