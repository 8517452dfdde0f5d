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

/* What the source says of a row. */
enum shape_rule {
	SHAPE_ABOVE,   /* high / low is more than the bound */
	SHAPE_AT_MOST, /* it is not */
	SHAPE_ALIKE,   /* neither it nor its inverse is */
	SHAPE_COUNT,   /* the figure `low` is the bound, within a share of it; nothing disturbs a count */
	SHAPE_SAID,    /* nothing: high / low is told for comparison */
	SHAPE_END,     /* of the table */
};

/* A value of the first case of the scenario that has the parameters "type=RC inline=yes size=32". */
struct shape_term {
	const char *scenario;      /* "A1"; "A2/A1": the ratio of these values of two */
	const char *latency;       /* NULL: `key` is the name of a figure */
	const char *key;           /* "p50", "max" */
	const char *wanted;
};

/* A shape begins with a row that has a number and a claim; rows without are further comparisons
 * of it. */
struct shape_row {
	const char *number;        /* of the source's list */
	const char *claim;
	const char *each;          /* "RC|UC|UD": one comparison for each, which '*' stands for in all
				    * texts; NULL: one */
	bool range;                /* one comparison: of the lowest and the highest of them all */
	const char *what;          /* NULL: there is no other comparison to tell it from */
	struct shape_term low, high;
	enum shape_rule rule;
	double bound, tolerance;
};

extern const struct shape_row shapes_table[];

/* ---- values; NULL: the run lacks them. They belong to the run. ---- */

/* `latency` NULL: a figure that is a share of steps, `key`, in percent. */
const struct shape_value *shape_value(struct shape_run *r, const char *scenario,
				      const char *latency, const char *key, const char *wanted);
/* A figure, which has no interval; NAN: the run lacks it. */
double shape_figure(const struct shape_run *r, const char *scenario, const char *figure,
		    const char *wanted);
/* above / below. */
const struct shape_value *shape_ratio(struct shape_run *r, const struct shape_value *above,
				      const struct shape_value *below);
void shape_values_free(struct shape_run *r);

#endif
