/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which parameters of a group of cases vary: up to two numbers are axes (rate, size), the
 * others name the curves.
 */
#ifndef BENCH_REPORT_AXES_H
#define BENCH_REPORT_AXES_H

#include <stddef.h>

#include "bench/report/model.h"

#define REPORT_LABEL_MAX 96

struct report_axis {
	const char *key;    /* of the parameters; NULL: there is no such axis */
	const char *label;  /* "message size" */
	const char *unit;   /* "B", or "" */
};

/* Cases that differ in nothing but the axes. */
struct report_line {
	char label[REPORT_LABEL_MAX];   /* "RC, inline"; may be empty */
	struct report_case **cases;     /* ascending by the axes */
	size_t count;
};

struct report_axes {
	struct report_axis x, y;        /* y: only beside x, for surfaces */
	struct report_line *lines;
	size_t line_count;
};

/* Free with report_axes_free(). 0 or -ENOMEM. */
int report_axes_find(const struct report_group *g, struct report_axes *axes);
void report_axes_free(struct report_axes *axes);

/* The case's value on an axis; NAN: it has none. */
double report_axis_value(const struct report_axis *axis, const struct report_case *c);

/* The parameters that vary within the group as text, all of them; `buf` of
 * REPORT_LABEL_MAX bytes, which is returned. Of a group of one case its label or id. */
const char *report_case_label(const struct report_group *g, const struct report_case *c,
			      char *buf);

#endif
