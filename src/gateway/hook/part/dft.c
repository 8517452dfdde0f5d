/* SPDX-License-Identifier: BSD-2-Clause */
/* Sliding transform at chosen frequencies; see dft.h. */
#include "gateway/hook/part/dft.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

const char *const dft_window_names[] = {
	[DFT_NONE] = "none",
	[DFT_FLATTOP] = "flattop",
	[DFT_HAMMING] = "hamming",
	[DFT_HANN] = "hann",
	[DFT_NUTTAL] = "nuttal",
	[DFT_BLACKMAN] = "blackman",
	NULL,
};

/*
 * Window functions: the sum of shapes[k] cos(2 pi k n / N), in the periodic form,
 * whose cosines are frequencies of the transform. Each is even about n = N / 2.
 */
static const struct {
	unsigned cosines;
	double weights[DFT_COSINES_MAX + 1];
} shapes[] = {
	[DFT_NONE] = { 0, { 1 } },
	[DFT_FLATTOP] = { 4, { 0.21557895, -0.41663158, 0.277263158,
			       -0.083578947, 0.006947368 } },
	[DFT_HAMMING] = { 1, { 0.54, -0.46 } },
	[DFT_HANN] = { 1, { 0.5, -0.5 } },
	[DFT_NUTTAL] = { 3, { 0.355768, -0.487396, 0.144232, -0.012604 } },
	[DFT_BLACKMAN] = { 2, { 0.42, -0.5, 0.08 } },
};

struct dft_complex dft_turn(double turns)
{
	struct dft_complex c;
	double angle = 2 * M_PI * (turns - rint(turns));

	c.re = cos(angle);
	c.im = sin(angle);
	return c;
}

struct dft_complex dft_phase_turn(uint64_t phase)
{
	return dft_turn((double)(int64_t)phase * 0x1p-64);
}

uint64_t dft_phase(double turns)
{
	turns -= floor(turns);
	/* In two parts: a double has 53 bits, and 1.0 would overflow. */
	return (uint64_t)(turns * 0x1p32) << 32 |
	       (uint64_t)((turns * 0x1p32 - floor(turns * 0x1p32)) * 0x1p32);
}

int dft_init(struct dft *d, unsigned size, unsigned channels,
	     unsigned frequencies, double first, double step,
	     enum dft_window window)
{
	size_t sums, n = 0;
	double *memory;

	memset(d, 0, sizeof(*d));
	d->size = size;
	d->channels = channels;
	d->frequencies = frequencies;
	d->cosines = shapes[window].cosines;
	d->shape = shapes[window].weights;
	d->first = first;
	d->step = step;
	d->first_phase = dft_phase(first);
	d->step_phase = dft_phase(step);
	sums = (size_t)frequencies * (1 + 2 * d->cosines);
	if (!size || !sums || sums > DFT_SUMS_MAX)
		return -EINVAL;
	d->sums = (unsigned)sums;

	/* One piece of memory: values, four sums, four factors, circle. */
	memory = calloc((size_t)channels * (size + 4 * sums) + 4 * sums +
				2 * (size_t)size, sizeof(double));
	d->strange = calloc(channels ? channels : 1, sizeof(*d->strange));
	d->values = memory;
	if (!memory || !d->strange) {
		dft_destroy(d);
		return -ENOMEM;
	}
	n = (size_t)channels * size;
	d->run_re = memory + n;
	d->run_im = d->run_re + channels * sums;
	d->fresh_re = d->run_im + channels * sums;
	d->fresh_im = d->fresh_re + channels * sums;
	d->now_re = d->fresh_im + channels * sums;
	d->now_im = d->now_re + sums;
	d->then_re = d->now_im + sums;
	d->then_im = d->then_re + sums;
	d->circle_re = d->then_im + sums;
	d->circle_im = d->circle_re + size;
	for (unsigned i = 0; i < size; i++) {
		struct dft_complex c = dft_turn((double)i / size);

		d->circle_re[i] = c.re;
		d->circle_im[i] = c.im;
	}
	return 0;
}

void dft_destroy(struct dft *d)
{
	free(d->values);
	free(d->strange);
	d->values = NULL;
	d->strange = NULL;
}

void dft_clear(struct dft *d)
{
	d->count = 0;
	d->position = 0;
	memset(d->values, 0, (size_t)d->channels * d->size * sizeof(double));
	/* run and fresh stand together. */
	memset(d->run_re, 0,
	       4 * (size_t)d->channels * d->sums * sizeof(double));
	memset(d->strange, 0, d->channels * sizeof(*d->strange));
}

/*
 * exp(-2 pi i (f m - k m / size)) for all frequencies f and cosines k of both
 * signs. The same `count` always gives the same bits, so that what is taken
 * from a sum is what was added to it.
 */
static void make_factors(const struct dft *d, uint64_t count, unsigned position,
			 double *re, double *im)
{
	struct dft_complex now = dft_phase_turn(-(count * d->first_phase));
	struct dft_complex step = dft_phase_turn(-(count * d->step_phase));
	unsigned at = 0;

	for (unsigned i = 0; i < d->frequencies; i++) {
		unsigned turn = 0;

		re[at] = now.re;
		im[at++] = now.im;
		for (unsigned k = 0; k < d->cosines; k++) {
			struct dft_complex c;

			turn += position;
			if (turn >= d->size)
				turn -= d->size;
			c.re = d->circle_re[turn];
			c.im = d->circle_im[turn];
			re[at] = now.re * c.re - now.im * c.im;
			im[at++] = now.re * c.im + now.im * c.re;
			re[at] = now.re * c.re + now.im * c.im;
			im[at++] = now.im * c.re - now.re * c.im;
		}
		now = dft_mul(now, step);
	}
}

static void push_one(struct dft *d, unsigned channel, double value)
{
	double *slot = &d->values[(size_t)channel * d->size + d->position];
	size_t from = (size_t)channel * d->sums;
	double *run_re = d->run_re + from, *run_im = d->run_im + from;
	double *fresh_re = d->fresh_re + from, *fresh_im = d->fresh_im + from;
	double old = *slot;

	*slot = value;
	if (unlikely(!isfinite(old))) {
		d->strange[channel]--;
		old = 0;
	}
	if (unlikely(!isfinite(value))) {
		d->strange[channel]++;
		value = 0;
	}
	for (unsigned i = 0; i < d->sums; i++) {
		double re = value * d->now_re[i], im = value * d->now_im[i];

		run_re[i] += re - old * d->then_re[i];
		run_im[i] += im - old * d->then_im[i];
		fresh_re[i] += re;
		fresh_im[i] += im;
	}
}

void dft_push(struct dft *d, const double values[])
{
	size_t bytes = (size_t)d->channels * d->sums * sizeof(double);

	make_factors(d, d->count, d->position, d->now_re, d->now_im);
	/* Before the window is full the old values are zeros. */
	make_factors(d, d->count - d->size, d->position, d->then_re,
		     d->then_im);
	for (unsigned c = 0; c < d->channels; c++)
		push_one(d, c, values[c]);
	d->count++;
	if (++d->position == d->size) {
		d->position = 0;
		memcpy(d->run_re, d->fresh_re, bytes);
		memcpy(d->run_im, d->fresh_im, bytes);
		memset(d->fresh_re, 0, bytes);
		memset(d->fresh_im, 0, bytes);
	}
}

struct dft_complex dft_transform(const struct dft *d, unsigned channel,
				 unsigned i)
{
	size_t at = (size_t)channel * d->sums +
		    (size_t)i * (1 + 2 * d->cosines);
	const double *re = d->run_re + at, *im = d->run_im + at;
	struct dft_complex sum = { d->shape[0] * re[0], d->shape[0] * im[0] };
	unsigned turn = 0;
	double scale = 1 / (d->shape[0] * d->size);

	if (unlikely(d->strange[channel]))
		return (struct dft_complex){ (double)NAN, (double)NAN };
	for (unsigned k = 0; k < d->cosines; k++) {
		/* cos(2 pi k n / N) with n counted from the oldest sample,
		 * whose index modulo N is `position`. */
		struct dft_complex back, plus, minus;
		double half = d->shape[k + 1] / 2;

		turn += d->position;
		if (turn >= d->size)
			turn -= d->size;
		back = (struct dft_complex){ d->circle_re[turn],
					     -d->circle_im[turn] };
		plus = (struct dft_complex){ re[1 + 2 * k], im[1 + 2 * k] };
		minus = (struct dft_complex){ re[2 + 2 * k], im[2 + 2 * k] };
		plus = dft_mul(plus, back);
		minus = dft_mul(minus, dft_conj(back));
		sum.re += half * (plus.re + minus.re);
		sum.im += half * (plus.im + minus.im);
	}
	sum.re *= scale;
	sum.im *= scale;
	return sum;
}

struct dft_complex dft_phasor(const struct dft *d, unsigned channel, unsigned i)
{
	uint64_t center = d->count - d->size + d->size / 2;
	uint64_t phase = center * (d->first_phase + i * d->step_phase);

	return dft_mul(dft_transform(d, channel, i), dft_phase_turn(phase));
}

/* Sum of exp(2 pi i f (n - N / 2)), n from 0 to N - 1; N / 2 is a whole number. */
static struct dft_complex dirichlet(unsigned size, double f)
{
	double slow, fast, ratio;
	struct dft_complex c;

	f -= rint(f);
	slow = sin(M_PI * f);
	fast = sin(M_PI * (size * f - 2 * rint(size * f / 2)));
	ratio = fabs(f) < 1e-14 ? size : fast / slow;
	/* The middle of the window is at (N - 1) / 2. */
	c = dft_turn(f * ((size - 1) * 0.5 - size / 2));
	c.re *= ratio;
	c.im *= ratio;
	return c;
}

struct dft_complex dft_kernel(const struct dft *d, double offset)
{
	struct dft_complex sum = dirichlet(d->size, offset);
	double scale = 1 / (d->shape[0] * d->size);

	sum.re *= d->shape[0];
	sum.im *= d->shape[0];
	for (unsigned k = 1; k <= d->cosines; k++) {
		double beside = (double)k / d->size, half = d->shape[k] / 2;
		struct dft_complex up = dirichlet(d->size, offset + beside);
		struct dft_complex down = dirichlet(d->size, offset - beside);
		/* exp(2 pi i k n / N) at n = N / 2. */
		struct dft_complex turn = dft_turn(beside * (d->size / 2));

		up = dft_mul(up, turn);
		down = dft_mul(down, dft_conj(turn));
		sum.re += half * (up.re + down.re);
		sum.im += half * (up.im + down.im);
	}
	sum.re *= scale;
	sum.im *= scale;
	return sum;
}

struct dft_complex dft_amplitude(const struct dft *d, double frequency,
				 double at, struct dft_complex shown)
{
	/* shown = c near + conj(c) far */
	struct dft_complex near = dft_kernel(d, frequency - at);
	struct dft_complex far = dft_kernel(d, -frequency - at);
	double det = near.re * near.re + near.im * near.im - far.re * far.re -
		     far.im * far.im;
	struct dft_complex a = dft_mul(shown, dft_conj(near));
	struct dft_complex b = dft_mul(dft_conj(shown), far);

	/* Near 0 and half the sample rate both parts fall together. */
	if (fabs(det) < 1e-9)
		return shown;
	return (struct dft_complex){ (a.re - b.re) / det, (a.im - b.im) / det };
}

/* What a tone with amplitude 1 and phases 0 and 90 degrees shows at `at`. */
static void model(const struct dft *d, double frequency, double at,
		  struct dft_complex *real, struct dft_complex *imaginary)
{
	struct dft_complex near = dft_kernel(d, frequency - at);
	struct dft_complex far = dft_kernel(d, -frequency - at);

	*real = dft_add(near, far);
	*imaginary = (struct dft_complex){ far.im - near.im, near.re - far.re };
}

static double dot(struct dft_complex a, struct dft_complex b)
{
	return a.re * b.re + a.im * b.im;
}

/* Solves the symmetric 3 by 3 system by Cramer's rule; false when singular. */
static bool solve(double m[3][3], const double y[3], double x[3])
{
	double c0 = m[1][1] * m[2][2] - m[1][2] * m[2][1];
	double c1 = m[1][2] * m[2][0] - m[1][0] * m[2][2];
	double c2 = m[1][0] * m[2][1] - m[1][1] * m[2][0];
	double det = m[0][0] * c0 + m[0][1] * c1 + m[0][2] * c2;

	if (!(fabs(det) > 1e-14 * fabs(m[0][0] * m[1][1] * m[2][2])))
		return false;
	x[0] = (y[0] * c0 + m[0][1] * (m[1][2] * y[2] - y[1] * m[2][2]) +
		m[0][2] * (y[1] * m[2][1] - m[1][1] * y[2])) / det;
	x[1] = (m[0][0] * (y[1] * m[2][2] - m[1][2] * y[2]) + y[0] * c1 +
		m[0][2] * (m[1][0] * y[2] - y[1] * m[2][0])) / det;
	x[2] = (m[0][0] * (m[1][1] * y[2] - y[1] * m[2][1]) +
		m[0][1] * (y[1] * m[2][0] - m[1][0] * y[2]) + y[0] * c2) / det;
	return true;
}

/* One step; the change of frequency in *change, in turns per window. */
static bool fit_step(const struct dft *d, const double at[],
		     const struct dft_complex shown[], unsigned count,
		     struct dft_tone *t, double *change)
{
	const double h = 1e-4 / d->size; /* truncation and rounding: 1e-8 */
	double m[3][3] = { 0 }, y[3] = { 0 }, x[3];

	for (unsigned i = 0; i < count; i++) {
		struct dft_complex column[3], real[2], imaginary[2], rest;

		model(d, t->frequency, at[i], &column[0], &column[1]);
		model(d, t->frequency + h, at[i], &real[0], &imaginary[0]);
		model(d, t->frequency - h, at[i], &real[1], &imaginary[1]);
		column[2].re = (t->c.re * (real[0].re - real[1].re) +
				t->c.im * (imaginary[0].re - imaginary[1].re)) / 2e-4;
		column[2].im = (t->c.re * (real[0].im - real[1].im) +
				t->c.im * (imaginary[0].im - imaginary[1].im)) / 2e-4;
		rest.re = shown[i].re - t->c.re * column[0].re -
			  t->c.im * column[1].re;
		rest.im = shown[i].im - t->c.re * column[0].im -
			  t->c.im * column[1].im;
		for (unsigned r = 0; r < 3; r++) {
			y[r] += dot(column[r], rest);
			for (unsigned k = 0; k < 3; k++)
				m[r][k] += dot(column[r], column[k]);
		}
	}
	if (!solve(m, y, x))
		return false;
	/* A step of more than a bin leaves the lobe that was begun in. */
	*change = fmax(-1, fmin(1, x[2]));
	t->c.re += x[0];
	t->c.im += x[1];
	t->frequency += *change / d->size;
	return true;
}

bool dft_fit(const struct dft *d, const double at[],
	     const struct dft_complex shown[], unsigned count, double range,
	     struct dft_tone *t)
{
	const double begin = t->frequency;
	unsigned largest = 0;
	double change = 1;

	for (unsigned i = 1; i < count; i++)
		if (dot(shown[i], shown[i]) > dot(shown[largest], shown[largest]))
			largest = i;
	t->c = dft_amplitude(d, t->frequency, at[largest], shown[largest]);
	for (unsigned step = 0; step < 16 && fabs(change) > 1e-11; step++)
		if (!fit_step(d, at, shown, count, t, &change) ||
		    !(fabs(t->frequency - begin) <= range))
			return false;
	return fabs(change) < 1e-6;
}
