/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hooks over a window of samples share: sums over the last N values that
 * do not drift, and the timestamps of the last N samples.
 *
 * Constant work per value, no memory is taken after init.
 */
#ifndef GATEWAY_HOOK_PART_WINDOW_H
#define GATEWAY_HOOK_PART_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/sample/sample.h"
#include "util/container_of.h"

/* Longest window in samples that a configuration may ask for. */
#define WINDOW_SIZE_MAX 10000000

/*
 * Sum over the last `size` values. The running sum is compensated (what
 * rounding loses is carried in `rest`) and is replaced, every `size` values, by
 * one that was made of these values alone. So its error stays below
 * 2 * size * 2^-104 of the largest sum of magnitudes in the last two windows,
 * however long it runs. A value that is not finite, or so large that a window of
 * such might not be, makes the sum NaN as long as it is in the window, and no
 * longer.
 */
struct window_sum {
	double *values;
	unsigned size, position, filled;
	unsigned strange;         /* values in the window that are too large */
	double limit;             /* the largest that is not */
	double sum, rest;
	double fresh, fresh_rest; /* since `position` was 0 */
};

int window_sum_init(struct window_sum *w, unsigned size);
void window_sum_destroy(struct window_sum *w);
/* As after init. */
void window_sum_clear(struct window_sum *w);
/* Returns what window_sum_get() would. */
double window_sum_push(struct window_sum *w, double value);

/* The sum over the last min(size, pushed so far) values. */
static inline double window_sum_get(const struct window_sum *w)
{
	return unlikely(w->strange) ? __builtin_nan("") : w->sum + w->rest;
}

/* Adds `value` to the unevaluated sum *sum + *rest. */
static inline void window_add(double *sum, double *rest, double value)
{
	double total = *sum + value, part = total - *sum;

	*rest += (*sum - (total - part)) + (value - part);
	*sum = total;
}

enum window_align {
	WINDOW_LEFT,   /* the oldest sample */
	WINDOW_CENTER, /* sample size / 2, counted from the oldest */
	WINDOW_RIGHT,  /* the newest sample */
};

/* "left", "center", "right"; NULL terminated. */
extern const char *const window_align_names[];

/* Position, counted from the oldest sample of `size`, that `align` means. */
static inline unsigned window_aligned(enum window_align align, unsigned size)
{
	return align == WINDOW_LEFT ? 0 :
	       align == WINDOW_RIGHT ? size - 1 : size / 2;
}

/* Origin timestamps of the last `size` samples. */
struct window_stamps {
	struct timespec *at;
	unsigned size, position, filled;
	unsigned missing; /* samples in the window that had none */
};

int window_stamps_init(struct window_stamps *w, unsigned size);
void window_stamps_destroy(struct window_stamps *w);
void window_stamps_clear(struct window_stamps *w);
void window_stamps_push(struct window_stamps *w, const struct sample *s);

static inline bool window_stamps_full(const struct window_stamps *w)
{
	return w->filled == w->size;
}

/* The stamp at `position` from the oldest of a full window. */
static inline struct timespec window_stamps_get(const struct window_stamps *w,
						unsigned position)
{
	unsigned i = w->position + position;

	return w->at[i < w->size ? i : i - w->size];
}

/* A value as a number, by the type of its signal (complex: the real part). */
static inline double window_value(union signal_data d, enum signal_type type)
{
	if (likely(type == SIGNAL_FLOAT))
		return d.f;
	return type == SIGNAL_COMPLEX ? (double)d.z.re : (double)d.i;
}

#endif
