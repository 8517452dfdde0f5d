/* SPDX-License-Identifier: BSD-2-Clause */
/* What the table of shapes, their values and their evaluation share. */
#ifndef BENCH_RESULT_SHAPES_PRIVATE_H
#define BENCH_RESULT_SHAPES_PRIVATE_H

#include "bench/result/shapes.h"

#define SHAPE_DRAWS 1000
#define SHAPE_CASES 2

/* A value of a case, or the ratio of two. */
struct shape_value {
	struct shape_value *next;
	char *key;                 /* what was asked for */
	double value;
	double *draws;             /* SHAPE_DRAWS of the bootstrap; NULL: there are no rows */
	bool is_time, counts_time; /* in ns; ratio of such ones, too */
	const struct result_read *of[SHAPE_CASES]; /* the cases; NULL behind the last one */
};

struct shape_run {
	const char *dir;
	const json_t *disturbance; /* NULL: not known */
	const struct result_read *cases;
	size_t count;
	struct shape_value *values; /* all that were asked for */
	uint64_t seed;
};

/* What the source says of the ratio of two values. */
enum shape_rule {
	SHAPE_ABOVE,   /* it is more than the bound */
	SHAPE_AT_MOST, /* it is not */
	SHAPE_ALIKE,   /* neither it nor its inverse is */
};

struct shape_answer {
	const struct shape_run *run;
	json_t *comparisons;
	char figures[400];
};

struct shape {
	const char *number; /* of the source's list */
	const char *claim;
	void (*look)(struct shape_run *r, struct shape_answer *a);
};

/* Each ends with a claim NULL. */
extern const struct shape shapes_table[], shapes_tutorial[];

/* ---- values; NULL: the run lacks them. They belong to the run. ---- */

/* A value ("p50", "max") of a latency of the first case of the scenario that has the parameters
 * "type=RC inline=yes size=32". */
const struct shape_value *shape_latency(struct shape_run *r, const char *scenario,
					const char *latency, const char *key,
					const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* A figure, which has no interval; NAN: the run lacks it. */
double shape_figure(const struct shape_run *r, const char *scenario, const char *figure,
		    const char *wanted);
/* The share of steps that the generator of a case missed, in percent. */
const struct shape_value *shape_missed(struct shape_run *r, const char *scenario,
				       const char *wanted);
/* above / below. */
const struct shape_value *shape_ratio(struct shape_run *r, const struct shape_value *above,
				      const struct shape_value *below);
void shape_values_free(struct shape_run *r);

/* ---- answers ---- */

/* Appends to the figures. */
void shape_say(struct shape_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Is high / low as `rule` says? Nothing if one of them is NULL. */
void shape_compare(struct shape_answer *a, const char *what, const struct shape_value *low,
		   const struct shape_value *high, enum shape_rule rule, double bound);
/* Compares a count that no disturbance changes with the one that is expected; nothing for
 * NAN. */
void shape_count(struct shape_answer *a, const char *what, double is, double expected,
		 double tolerance);

#endif
