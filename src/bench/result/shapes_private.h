/* SPDX-License-Identifier: BSD-2-Clause */
/* What the table of shapes and its evaluation share. */
#ifndef BENCH_RESULT_SHAPES_PRIVATE_H
#define BENCH_RESULT_SHAPES_PRIVATE_H

#include "bench/result/shapes.h"

struct shape_run {
	const struct result_read *cases;
	size_t count;
};

struct shape_answer {
	unsigned checked, holds; /* comparisons that could be made, and that were as expected */
	char figures[400];
};

struct shape {
	const char *number; /* of the source's list */
	const char *claim;
	void (*look)(const struct shape_run *r, struct shape_answer *a);
};

/* Each ends with a claim NULL. */
extern const struct shape shapes_table[], shapes_tutorial[];

/* A value ("p50", "max") of a latency of the first case of the scenario that has the parameters
 * "type=RC inline=yes size=32"; NAN: there is none. */
double shape_latency(const struct shape_run *r, const char *scenario, const char *latency,
		     const char *key, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
double shape_figure(const struct shape_run *r, const char *scenario, const char *figure,
		    const char *wanted);

/* Appends to the figures. */
void shape_say(struct shape_answer *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a comparison of two times with its result; nothing if one of them is NAN. */
void shape_compare(struct shape_answer *a, const char *what, double low, double high,
		   bool holds);

#endif
