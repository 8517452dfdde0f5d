/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's own limits, measured in one short run: no transport on this machine can
 * be faster. Results of other benchmarks are given as multiples of these, because an
 * absolute figure from a shared machine means little.
 *
 * This is no hardware benchmark: each measurement takes a fraction of a second.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stddef.h>
#include <stdio.h>

#define FLOOR_ROUNDS 15
#define FLOOR_MEASURES_MAX 32

struct floor_cpus {
	int first;  /* of the measuring process */
	int second; /* of its partner; -1: there is only one CPU */
};

struct floor_result {
	double median, best; /* over FLOOR_ROUNDS rounds, in the unit below */
	int err;             /* negative errno: it could not be measured */
};

struct floor_measure {
	const char *name;    /* "cacheline_oneway_ns", also the JSON key */
	const char *label;   /* in the printed table */
	const char *unit;    /* "ns", "GB/s" or "%" */
	size_t size_bytes;   /* argument of `run`, 0 if it needs none */
	/* Fills `rounds` with one figure each; 0 or a negative errno. */
	int (*run)(const struct floor_cpus *cpus, size_t size_bytes,
		   double rounds[FLOOR_ROUNDS]);
};

extern const struct floor_measure floor_measures[];
extern const size_t floor_measure_count;

/* The first two CPUs that this process may use. 0 or a negative errno. */
int floor_default_cpus(struct floor_cpus *cpus);

/* Measures entry `m`; restores the caller's CPU affinity. */
void floor_measure_run(const struct floor_measure *m,
		       const struct floor_cpus *cpus, struct floor_result *r);

/* Results are in the order of floor_measures; those that were not asked for have
 * -ECANCELED and are not printed. */
void floor_print_text(const struct floor_cpus *cpus,
		      const struct floor_result *results, FILE *out);
void floor_print_json(const struct floor_cpus *cpus,
		      const struct floor_result *results, FILE *out);

/* `busbar bench floor`. */
int bench_floor_main(int argc, char **argv);

#endif
