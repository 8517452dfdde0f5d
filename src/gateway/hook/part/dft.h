/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sliding discrete Fourier transform at chosen frequencies, and the parameters
 * of the tone that best explains what it shows. Pure: no clock, no samples, no
 * configuration.
 *
 * Indices of samples count from 0; frequencies are in turns (cycles) per sample.
 *
 * The work per sample is constant: 4 multiplications for each sum and channel,
 * where a frequency has one sum and two more for each cosine of the window
 * function. The sums are replaced every `size` samples by ones that were made
 * of the samples in the window alone, so their error stays below 3 * size *
 * 2^-53 of the largest magnitude in the last two windows, for ever. The phases
 * of all exponentials come from integers modulo one turn and do not drift
 * either.
 */
#ifndef GATEWAY_HOOK_PART_DFT_H
#define GATEWAY_HOOK_PART_DFT_H

#include <stdbool.h>
#include <stdint.h>

enum dft_window {
	DFT_NONE,
	DFT_FLATTOP,
	DFT_HAMMING,
	DFT_HANN,
	DFT_NUTTAL, /* as users' files spell it */
	DFT_BLACKMAN,
};

/* "none", "flattop", "hamming", "hann", "nuttal", "blackman"; NULL terminated. */
extern const char *const dft_window_names[];

#define DFT_COSINES_MAX 4
/* Sums per channel, that is frequencies times 1 + 2 * cosines. */
#define DFT_SUMS_MAX 8192

struct dft_complex {
	double re, im;
};

static inline struct dft_complex dft_mul(struct dft_complex a,
					 struct dft_complex b)
{
	return (struct dft_complex){ a.re * b.re - a.im * b.im,
				     a.re * b.im + a.im * b.re };
}

static inline struct dft_complex dft_add(struct dft_complex a,
					 struct dft_complex b)
{
	return (struct dft_complex){ a.re + b.re, a.im + b.im };
}

static inline struct dft_complex dft_conj(struct dft_complex a)
{
	return (struct dft_complex){ a.re, -a.im };
}

/* exp(2 pi i turns); exact to rounding for any size of `turns`. */
struct dft_complex dft_turn(double turns);

/* Turns modulo one, as a whole number: 2^64 is a turn. Products with indices of
 * samples are exact, so phases do not drift. */
uint64_t dft_phase(double turns);
struct dft_complex dft_phase_turn(uint64_t phase);

struct dft {
	unsigned size;        /* samples in the window */
	unsigned channels;
	unsigned frequencies;
	unsigned cosines;     /* of the window function, beside the constant */
	unsigned sums;        /* per channel */
	const double *shape;  /* weights of constant and cosines, signs included */
	double first, step;   /* the frequencies, in turns per sample */
	uint64_t first_phase, step_phase; /* the same, 2^64 is a turn */

	uint64_t count;       /* samples so far */
	unsigned position;    /* in values and circle: count modulo size */
	double *values;       /* channels * size, rings */
	unsigned *strange;    /* per channel: not finite in the window */
	double *run_re, *run_im, *fresh_re, *fresh_im;   /* channels * sums */
	double *now_re, *now_im, *then_re, *then_im;     /* factors, sums */
	double *circle_re, *circle_im; /* exp(2 pi i n / size) */
};

/*
 * Transforms `channels` signals over the last `size` samples at the frequencies
 * first, first + step, ... -EINVAL when that is more than DFT_SUMS_MAX sums.
 */
int dft_init(struct dft *d, unsigned size, unsigned channels,
	     unsigned frequencies, double first, double step,
	     enum dft_window window);
void dft_destroy(struct dft *d);
/* As after init. */
void dft_clear(struct dft *d);
/* One value for each channel. */
void dft_push(struct dft *d, const double values[]);

static inline bool dft_full(const struct dft *d)
{
	return d->count >= d->size;
}

static inline double dft_frequency(const struct dft *d, unsigned i)
{
	return d->first + i * d->step;
}

/*
 * The transform at frequency number `i`: sum of w[n] x[n] exp(-2 pi i f m)
 * over the window, divided by the sum of w; `m` counts from sample `size / 2` of
 * the window (the oldest is sample 0 of it). A tone A cos(2 pi f m + phi) gives
 * about A / 2 exp(i phi). NaN when something in the window is not finite.
 */
struct dft_complex dft_phasor(const struct dft *d, unsigned channel, unsigned i);

/* The same with `m` counted from sample 0. */
struct dft_complex dft_transform(const struct dft *d, unsigned channel,
				 unsigned i);

/*
 * What dft_phasor() would show, `offset` turns per sample beside it, of the
 * complex tone exp(2 pi i f m).
 */
struct dft_complex dft_kernel(const struct dft *d, double offset);

/*
 * The complex amplitude c of the real tone c exp(2 pi i f m) + its conjugate at
 * `frequency` that gives `shown` at `at`. Both parts are taken into account, so
 * the result is exact for a single tone whatever the window.
 */
struct dft_complex dft_amplitude(const struct dft *d, double frequency,
				 double at, struct dft_complex shown);

struct dft_tone {
	double frequency;      /* turns per sample */
	struct dft_complex c;  /* half the amplitude, phase at sample size / 2 */
};

/*
 * The real tone that explains `count` (2 to 5) shown values at frequencies at[]
 * best, in the sense of least squares (Gauss-Newton, a bounded number of
 * steps), beginning at t->frequency. Exact for a single tone. False when it does
 * not settle within `range` turns per sample of the beginning.
 */
bool dft_fit(const struct dft *d, const double at[],
	     const struct dft_complex shown[], unsigned count, double range,
	     struct dft_tone *t);

#endif
