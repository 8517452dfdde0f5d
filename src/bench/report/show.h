/* SPDX-License-Identifier: BSD-2-Clause */
/* Single figures of a group of cases with their tables and commands; group.c chooses them. */
#ifndef BENCH_REPORT_SHOW_H
#define BENCH_REPORT_SHOW_H

#include "bench/report/figure.h"
#include "bench/report/page.h"

#define SHOW_LATENCIES_MAX 8
#define SHOW_VALUES_MAX 12
/* With more cases that have nothing in order, single figures would be more than anybody
 * looks at: several cases then share one. */
#define SHOW_CASES_MAX 12

struct work {
	struct page *p;
	const struct report_group *g;
	struct report_axes axes;
	const char *latencies[SHOW_LATENCIES_MAX]; /* names, as they appear first */
	size_t latency_count;
	const struct report_value *values[SHOW_VALUES_MAX];
	size_t value_count;
};

enum curves_as { AS_HISTOGRAM, AS_TAIL };

/* All functions: 0, -EINTR (asked to end) or -ENOMEM. */

/* All latencies of a case in one figure. */
int show_case(struct work *w, enum curves_as as, struct report_case *c);
/* The first latency of several cases, REPORT_CURVES_MAX in a figure; `what` tells these
 * cases from the others of the group, or NULL. */
int show_cases(struct work *w, enum curves_as as, struct report_case *const *cases,
	       size_t count, const char *what);
/* Its first latency over time. */
int show_bands(struct work *w, struct report_case *c);
/* A latency over the first axis, or over both. */
int show_medians(struct work *w, const char *name);
int show_surfaces(struct work *w, const char *name);
/* A number over the first axis; or, without one, of each case. */
int show_numbers(struct work *w, const struct report_value *like);
int show_points(struct work *w, const struct report_value *like);
/* All numbers of a case, a figure for each unit. */
int show_units(struct work *w, struct report_case *c);
/* Where the time of a case goes: each of its budgets (show_budget.c). */
int show_budgets(struct work *w, struct report_case *c);
/* The signals of recordings over time. */
int show_recorded(struct work *w);
/* All cases and latencies in a table. */
int show_table(struct work *w);

#endif
