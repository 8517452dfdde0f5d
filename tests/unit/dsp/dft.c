/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sliding transform against its definition, its model of a tone, and the fit.
 *
 * Bound of rounding: `size` products with factors right to 2^-52 added up three
 * times over (once slid in, once slid out, once afresh), so 3 size 2^-52 of the
 * largest value, divided by the size: 1e-15 of it times 3, and as much again
 * for the window function.
 */
#include "rig.h"

#include "gateway/hook/part/dft.h"

#define ROUNDING 2e-14

static uint64_t seed = 1;

static double random_value(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(int64_t)seed * 0x1p-63;
}

/* The window functions as their textbooks give them, in the periodic form. */
static double window_at(enum dft_window w, unsigned n, unsigned size)
{
	double x = 2 * M_PI * n / size;

	switch (w) {
	case DFT_NONE:
		return 1;
	case DFT_HANN:
		return pow(sin(x / 2), 2);
	case DFT_HAMMING:
		return 0.54 - 0.46 * cos(x);
	case DFT_BLACKMAN:
		return 0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x);
	case DFT_NUTTAL:
		return 0.355768 - 0.487396 * cos(x) + 0.144232 * cos(2 * x) -
		       0.012604 * cos(3 * x);
	case DFT_FLATTOP:
		return 0.21557895 - 0.41663158 * cos(x) +
		       0.277263158 * cos(2 * x) - 0.083578947 * cos(3 * x) +
		       0.006947368 * cos(4 * x);
	}
	return 0;
}

/* dft_phasor() by its definition. */
static struct dft_complex defined(const double x[], unsigned size,
				  enum dft_window w, double f)
{
	struct dft_complex sum = { 0, 0 };
	double weights = 0;

	for (unsigned n = 0; n < size; n++) {
		double at = 2 * M_PI * f * ((double)n - size / 2);

		sum.re += window_at(w, n, size) * x[n] * cos(at);
		sum.im -= window_at(w, n, size) * x[n] * sin(at);
		weights += window_at(w, n, size);
	}
	return (struct dft_complex){ sum.re / weights, sum.im / weights };
}

static void it_slides_as_it_is_defined(void **state)
{
	enum { SIZE = 48, ALL = 500 };
	static double x[2][ALL];

	(void)state;
	for (int w = DFT_NONE; w <= DFT_BLACKMAN; w++) {
		struct dft d;

		assert_int_equal(dft_init(&d, SIZE - (w & 1), 2, 5, 0.031, 0.017,
					  (enum dft_window)w), 0);
		for (unsigned n = 0; n < ALL; n++) {
			double now[2] = { x[0][n] = random_value(),
					  x[1][n] = random_value() };

			dft_push(&d, now);
			assert_int_equal(dft_full(&d), n + 1 >= d.size);
			if (n + 1 < d.size)
				continue;
			for (unsigned c = 0; c < 2; c++) {
				unsigned i = n % 5;
				struct dft_complex a = dft_phasor(&d, c, i);
				struct dft_complex b =
					defined(&x[c][n + 1 - d.size], d.size,
						(enum dft_window)w,
						dft_frequency(&d, i));

				assert_near(a.re, b.re, ROUNDING);
				assert_near(a.im, b.im, ROUNDING);
			}
		}
		dft_destroy(&d);
	}
}

static void a_tone_is_what_the_model_says(void **state)
{
	(void)state;
	for (int w = DFT_NONE; w <= DFT_BLACKMAN; w++) {
		for (unsigned size = 40; size < 43; size++) {
			struct dft d;
			double x[64];

			assert_int_equal(dft_init(&d, size, 1, 1, 0.11, 0,
						  (enum dft_window)w), 0);
			for (double f = 0.013; f < 0.5; f += 0.047) {
				struct dft_complex k, far, shown, c;
				double phase = 1.3;

				for (unsigned n = 0; n < size; n++) {
					x[n] = 4 * cos(2 * M_PI * f * ((double)n -
							size / 2) + phase);
					dft_push(&d, &x[n]);
				}
				shown = dft_phasor(&d, 0, 0);
				k = dft_kernel(&d, f - 0.11);
				far = dft_kernel(&d, -f - 0.11);
				c = (struct dft_complex){ 2 * cos(phase),
							  2 * sin(phase) };
				k = dft_add(dft_mul(c, k),
					    dft_mul(dft_conj(c), far));
				assert_near(shown.re, k.re, 8 * ROUNDING);
				assert_near(shown.im, k.im, 8 * ROUNDING);
			}
			dft_destroy(&d);
		}
	}
}

/* The kernel is a ratio of sines; where both vanish it must not lose digits. */
static void the_kernel_is_smooth_where_its_sines_vanish(void **state)
{
	struct dft d;

	(void)state;
	for (int w = DFT_NONE; w <= DFT_BLACKMAN; w++) {
		assert_int_equal(dft_init(&d, 100, 1, 1, 0.1, 0,
					  (enum dft_window)w), 0);
		for (double e = 1e-18; e < 1e-9; e *= 10) {
			assert_near(dft_kernel(&d, e).re, 1, 1e-13);
			assert_near(dft_kernel(&d, 1 - e).re, 1, 1e-13);
			/* Slope is below 2 pi size. */
			assert_near(hypot(dft_kernel(&d, 0.05 + e).re -
						  dft_kernel(&d, 0.05).re,
					  dft_kernel(&d, 0.05 + e).im -
						  dft_kernel(&d, 0.05).im),
				    0, 700 * e + 1e-13);
		}
		dft_destroy(&d);
	}
}

static void a_tone_between_frequencies_is_fitted_exactly(void **state)
{
	(void)state;
	for (int w = DFT_NONE; w <= DFT_BLACKMAN; w++) {
		/* Ten periods: even flattop's lobe of five ends above 0 Hz. */
		for (double beside = -0.5; beside <= 0.5; beside += 0.05) {
			struct dft d;
			struct dft_tone t;
			struct dft_complex shown[3];
			double f = (10 + beside) / 500, at[3];

			assert_int_equal(dft_init(&d, 500, 1, 3, 9.0 / 500,
						  1.0 / 500, (enum dft_window)w), 0);
			for (unsigned n = 0; n < 500; n++) {
				double x = 7 * cos(2 * M_PI * f * ((double)n - 250) - 2);

				dft_push(&d, &x);
			}
			for (unsigned i = 0; i < 3; i++) {
				at[i] = dft_frequency(&d, i);
				shown[i] = dft_phasor(&d, 0, i);
			}
			t.frequency = at[1];
			assert_true(dft_fit(&d, at, shown, 3, 2.0 / 500, &t));
			/* Well conditioned: rounding, times ten. */
			assert_near(t.frequency * 500, f * 500, 10 * ROUNDING);
			assert_near(2 * hypot(t.c.re, t.c.im), 7, 70 * ROUNDING);
			assert_near(atan2(t.c.im, t.c.re), -2, 10 * ROUNDING);
			dft_destroy(&d);
		}
	}
}

static void a_fit_ends_at_its_range(void **state)
{
	struct dft d;
	struct dft_tone t = { .frequency = 0.1 };
	struct dft_complex shown[3];
	double at[3];

	(void)state;
	assert_int_equal(dft_init(&d, 100, 1, 3, 0.09, 0.01, DFT_HANN), 0);
	for (unsigned n = 0; n < 100; n++) {
		double x = cos(2 * M_PI * 0.108 * n);

		dft_push(&d, &x);
	}
	for (unsigned i = 0; i < 3; i++) {
		at[i] = dft_frequency(&d, i);
		shown[i] = dft_phasor(&d, 0, i);
	}
	assert_false(dft_fit(&d, at, shown, 3, 0.005, &t));
	t.frequency = 0.1;
	assert_true(dft_fit(&d, at, shown, 3, 0.01, &t));
	/* Nothing at all is no tone, and ends too. */
	memset(shown, 0, sizeof(shown));
	t.frequency = 0.1;
	dft_fit(&d, at, shown, 3, 0.01, &t);
	assert_near(hypot(t.c.re, t.c.im), 0, 0);
	shown[1].re = (double)NAN;
	t.frequency = 0.1;
	assert_false(dft_fit(&d, at, shown, 3, 0.01, &t));
	dft_destroy(&d);
}

static void ten_million_samples_do_not_drift(void **state)
{
	enum { SIZE = 200, ALL = 10000000 };
	/* One and a half periods: the constant part stays in the sum, and a
	 * period is no whole number of samples. */
	const double f = 0.0075037;
	struct dft d;
	double x[SIZE];
	struct dft_complex a, b;

	(void)state;
	assert_int_equal(dft_init(&d, SIZE, 1, 1, f, 0, DFT_NONE), 0);
	for (unsigned n = 0; n < ALL; n++) {
		x[n % SIZE] = 1000 + random_value();
		dft_push(&d, &x[n % SIZE]);
	}
	/* ALL is a multiple of SIZE: x[] begins with the oldest. */
	a = dft_phasor(&d, 0, 0);
	b = defined(x, SIZE, DFT_NONE, f);
	/* Phases are products of whole numbers and do not drift. A sum of up to
	 * 6e4 is rounded by 3.6e-12 at most, 600 times: 5e-13 of the mean of 200
	 * by chance, of which ten times is allowed. (Without a
	 * fresh beginning it was 6.5e-12.) */
	assert_near(a.re, b.re, 5e-12);
	assert_near(a.im, b.im, 5e-12);
	dft_destroy(&d);
}

/* Rounding of a huge value goes with the sums that held it. */
static void a_spike_leaves_nothing_behind(void **state)
{
	struct dft d;
	double x[20];

	(void)state;
	assert_int_equal(dft_init(&d, 20, 1, 1, 0.05, 0, DFT_HANN), 0);
	for (unsigned n = 0; n < 80; n++) {
		x[n % 20] = n == 33 ? 1e15 : random_value();
		dft_push(&d, &x[n % 20]);
	}
	/* 80 is a multiple of 20: x[] begins with the oldest. */
	assert_near(dft_phasor(&d, 0, 0).re, defined(x, 20, DFT_HANN, 0.05).re,
		    ROUNDING);
	assert_near(dft_phasor(&d, 0, 0).im, defined(x, 20, DFT_HANN, 0.05).im,
		    ROUNDING);
	dft_destroy(&d);
}

static void what_is_no_number_is_gone_when_it_left_the_window(void **state)
{
	struct dft d;

	(void)state;
	assert_int_equal(dft_init(&d, 20, 1, 1, 0.05, 0, DFT_HANN), 0);
	for (unsigned n = 0; n < 100; n++) {
		double x = n == 50 ? (double)NAN : cos(2 * M_PI * 0.05 * n);

		dft_push(&d, &x);
		assert_int_equal(isnan(dft_phasor(&d, 0, 0).re),
				 n >= 50 && n < 70);
		if (n >= 70)
			assert_near(hypot(dft_phasor(&d, 0, 0).re,
					  dft_phasor(&d, 0, 0).im), 0.5, ROUNDING);
	}
	dft_clear(&d);
	assert_false(dft_full(&d));
	dft_destroy(&d);
	assert_int_equal(dft_init(&d, 20, 1, DFT_SUMS_MAX, 0.05, 0, DFT_HANN),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_slides_as_it_is_defined),
		cmocka_unit_test(a_tone_is_what_the_model_says),
		cmocka_unit_test(the_kernel_is_smooth_where_its_sines_vanish),
		cmocka_unit_test(a_tone_between_frequencies_is_fitted_exactly),
		cmocka_unit_test(a_fit_ends_at_its_range),
		cmocka_unit_test(ten_million_samples_do_not_drift),
		cmocka_unit_test(a_spike_leaves_nothing_behind),
		cmocka_unit_test(what_is_no_number_is_gone_when_it_left_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
