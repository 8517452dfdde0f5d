/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a report shows: groups of cases, each with what is drawn of its measured values. It is
 * made of a run's folder (load.c) or of recordings (recording.c); the values themselves are
 * not kept.
 *
 * Texts come from files and may hold any character: only text.h may write them out.
 */
#ifndef BENCH_REPORT_MODEL_H
#define BENCH_REPORT_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/report/bins.h"
#include "bench/result/statistics.h"

#define REPORT_HISTOGRAM_BINS 160
#define REPORT_BANDS_MAX 320
#define REPORT_TAIL_MAX 240
/* Curves in one figure that can still be told apart; also the number of colours. */
#define REPORT_CURVES_MAX 6

/* One latency of a case, in ns. */
struct report_series {
	char *name, *label;
	struct statistics statistics; /* share_above: of the case's limit; NAN: it has none */
	int64_t range_ns;             /* of the histogram */
	double histogram[REPORT_HISTOGRAM_BINS]; /* percent */
	struct report_band bands[REPORT_BANDS_MAX];
	size_t band_count;
	struct report_tail tail[REPORT_TAIL_MAX];
	size_t tail_count;
	double reference_ns;          /* median of the source's hardware; NAN: none */
};

/* A number beside the latencies. */
struct report_value {
	char *name, *label, *unit;
	double value;
};

/* A quantity over time, for what is no latency: a signal of a recording. */
struct report_curve {
	char *label, *unit;
	double *seconds, *low, *high; /* of a bin; `count` each */
	size_t count;
	double min, max, mean;
	size_t samples;
};

struct report_case {
	char *id, *kind, *scenario, *question, *label, *command;
	int64_t limit_ns;
	json_t *parameters;           /* object, never NULL */
	json_t *reference;            /* object or NULL */
	struct report_series *series;
	size_t series_count;
	struct report_value *values;
	size_t value_count;
	struct report_curve *curves;
	size_t curve_count;
};

/* Cases of one kind and scenario; points into the report's cases. */
struct report_group {
	const char *kind, *scenario, *question;
	struct report_case **cases;
	size_t count;
};

struct report {
	char *title;                  /* suite, or the recordings */
	json_t *run, *machine;        /* objects or NULL */
	json_t *shapes;               /* of shapes_evaluate(), or NULL */
	double floor_ns;              /* cache line one way; NAN: not measured */
	struct report_case *cases;
	size_t case_count;
	struct report_group *groups;
	size_t group_count;
};

/* Appends an empty case: kind, id and texts copied, NULL allowed for all but `id` and
 * `kind`. NULL without memory; pointers to earlier cases are then and else invalid. */
struct report_case *report_case_add(struct report *r, const char *id, const char *kind);

/* Appends a latency of `values` (in the order in which they were measured), which are sorted
 * on return. Nothing is appended for count 0. 0 or -ENOMEM. */
int report_series_add(struct report_case *c, const char *name, const char *label,
		      int64_t *values, size_t count);

int report_value_add(struct report_case *c, const char *name, const char *label,
		     const char *unit, double value);

/* The value of that name; NAN: there is none. */
double report_value_of(const struct report_case *c, const char *name);
/* Percent of the steps whose sample did not arrive: missed by the generator, or lost behind it;
 * NAN: not known. */
double report_missed(const struct report_case *c);
const struct report_series *report_series_of(const struct report_case *c, const char *name);
/* Does it belong to a budget (result/budget.h), as the whole or a part? That has a figure of its
 * own, and no others. */
bool report_series_is_budgeted(const struct report_case *c, const struct report_series *s);

/* Puts the cases into groups, in the order of their first appearance. 0 or -ENOMEM. */
int report_group_cases(struct report *r);

void report_free(struct report *r);

/* A run's folder. 0 or a negative errno, logged. */
int report_load(struct report *r, const char *dir);

#endif
