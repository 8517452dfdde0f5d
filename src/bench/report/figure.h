/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One figure: the commands that draw it and the sentence that takes its place for those who
 * cannot see it. Each function below fills both; the caller has set `script` and
 * `description` to streams of its own.
 */
#ifndef BENCH_REPORT_FIGURE_H
#define BENCH_REPORT_FIGURE_H

#include <stdio.h>

#include "bench/report/axes.h"
#include "bench/report/model.h"
#include "bench/result/budget.h"

struct figure {
	FILE *script, *description;
	double floor_ns;      /* NAN: axes have no multiples of it */
};

/* A latency of a case under a name that tells it from the others in the figure. */
struct figure_curve {
	const struct report_case *of;
	const struct report_series *series;
	char label[REPORT_LABEL_MAX];
};

/* At most REPORT_CURVES_MAX curves, at least one, for these three. */
void figure_histogram(struct figure *f, const struct figure_curve *curves, size_t count);
void figure_tail(struct figure *f, const struct figure_curve *curves, size_t count);
/* One latency over its rows. */
void figure_bands(struct figure *f, const struct figure_curve *curve);

/* Medians of latency `name` with bars from the 10th to the 90th percentile over axes->x;
 * `lines` of axes->lines, at most REPORT_CURVES_MAX. */
void figure_medians(struct figure *f, const struct report_axes *axes, const char *name,
		    const struct report_line *lines, size_t count);
/* The number `name` beside the latencies, over axes->x. */
void figure_numbers(struct figure *f, const struct report_axes *axes,
		    const struct report_value *like, const struct report_line *lines,
		    size_t count);
/* Numbers with a name each, one below the other; `what` names all of them. */
struct figure_point {
	char label[REPORT_LABEL_MAX];
	double value;
};
void figure_points(struct figure *f, const char *what, const char *unit,
		   const struct figure_point *points, size_t count);
/* The parts of a budget one behind the other, their sum, the whole and what is left. */
void figure_budget(struct figure *f, const struct budget *b);
/* Medians of latency `name` over both axes, and how much was missed. */
void figure_surface(struct figure *f, const struct report_axes *axes, const char *name,
		    const struct report_line *line);

/* A quantity of a recording over time. */
void figure_curve_over_time(struct figure *f, const struct report_curve *curve);

/* Are there so many different values on the axis that a curve can be drawn? */
size_t figure_axis_values(const struct report_axis *axis, const struct report_line *lines,
			  size_t count, double *values, size_t max);

/* Has the case a raw latency that can be drawn over its rows? */
static inline bool figure_has_rows(const struct report_series *s)
{
	return s->band_count > 0;
}

#endif
