/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of samples: sums and timestamps; see window.h. */
#include "gateway/hook/part/window.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/container_of.h"

const char *const window_align_names[] = { "left", "center", "right", NULL };

int window_sum_init(struct window_sum *w, unsigned size)
{
	memset(w, 0, sizeof(*w));
	w->values = calloc(size, sizeof(w->values[0]));
	if (!w->values)
		return -ENOMEM;
	w->size = size;
	w->limit = DBL_MAX / 4 / size;
	return 0;
}

void window_sum_destroy(struct window_sum *w)
{
	free(w->values);
	w->values = NULL;
}

void window_sum_clear(struct window_sum *w)
{
	double *values = w->values;
	unsigned size = w->size;
	double limit = w->limit;

	/* The values need not be cleared: none is looked at before it is set,
	 * because `filled` says how many there are. */
	memset(w, 0, sizeof(*w));
	w->values = values;
	w->size = size;
	w->limit = limit;
}

/* Also where it is no number. */
static inline bool fits(const struct window_sum *w, double value)
{
	return likely(fabs(value) <= w->limit);
}

double window_sum_push(struct window_sum *w, double value)
{
	if (likely(w->filled == w->size)) {
		double old = w->values[w->position];

		if (fits(w, old))
			window_add(&w->sum, &w->rest, -old);
		else
			w->strange--;
	} else {
		w->filled++;
	}
	w->values[w->position] = value;
	if (fits(w, value)) {
		window_add(&w->sum, &w->rest, value);
		window_add(&w->fresh, &w->fresh_rest, value);
	} else {
		w->strange++;
	}
	if (++w->position == w->size) {
		/* `fresh` now holds just the values of the window. */
		w->sum = w->fresh;
		w->rest = w->fresh_rest;
		w->fresh = w->fresh_rest = 0;
		w->position = 0;
	}
	return window_sum_get(w);
}

int window_stamps_init(struct window_stamps *w, unsigned size)
{
	memset(w, 0, sizeof(*w));
	w->at = calloc(size, sizeof(w->at[0]));
	if (!w->at)
		return -ENOMEM;
	w->size = size;
	return 0;
}

void window_stamps_destroy(struct window_stamps *w)
{
	free(w->at);
	w->at = NULL;
}

void window_stamps_clear(struct window_stamps *w)
{
	w->position = w->filled = w->missing = 0;
}

/* No real stamp: marks samples without one. */
#define NO_STAMP (-1L)

void window_stamps_push(struct window_stamps *w, const struct sample *s)
{
	struct timespec *at = &w->at[w->position];

	if (w->filled < w->size)
		w->filled++;
	else if (at->tv_nsec == NO_STAMP)
		w->missing--;
	if (likely(s->flags & SAMPLE_HAS_ORIGIN)) {
		*at = s->origin;
		at->tv_nsec = sample_time_nsec(s->origin);
	} else {
		at->tv_nsec = NO_STAMP;
		w->missing++;
	}
	if (++w->position == w->size)
		w->position = 0;
}
