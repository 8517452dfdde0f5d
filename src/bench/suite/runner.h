/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures the cases of a suite, one after the other, into the folder of a run. */
#ifndef BENCH_SUITE_RUNNER_H
#define BENCH_SUITE_RUNNER_H

#include <stdatomic.h>

#include "bench/suite/place.h"
#include "bench/suite/suite.h"

struct runner_options {
	const char *only;    /* pattern of ids or scenarios; NULL: all */
	double scale;        /* of the sample counts */
	bool ci;             /* times the case's own scale for short runs */
	const struct place *place; /* NULL: where this process may run */
	const atomic_bool *stop;
};

struct runner_counts {
	size_t wanted;       /* cases that `only` lets through */
	size_t measured, there_already, left_out, failed;
};

/* Does `only` choose this case? */
bool runner_wants(const struct runner_options *o, const struct suite_case *c);
/* Seconds that the case will take, as its kind thinks; 0 without a kind. */
double runner_seconds(const struct runner_options *o, const struct suite_case *c);

/* How many of the cases lack packages, and which: "openmpi-bin perftest", in the order of the
 * cases; what does not fit is left out. */
size_t runner_lacks(const struct suite *s, const struct runner_options *o, char *packages,
		    size_t size);

/* Measures one case that is not there yet. 0; -EINTR; -EOPNOTSUPP: left out; or another
 * negative errno. `done` is called with its summary before the case ends; it may be NULL. */
int runner_measure(struct result_run *run, const struct suite_case *c,
		   const struct runner_options *o,
		   void (*done)(const struct suite_case *c, const json_t *summary));

/* Measures all that are wanted and not there yet; prints a line for each. 0, or -EINTR, or
 * another negative errno when the folder cannot be written. */
int runner_run(const struct suite *s, struct result_run *run,
	       const struct runner_options *o, struct runner_counts *counts);

#endif
