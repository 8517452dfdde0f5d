/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Points that busbar-odp-sim runs, which has the adapter in virtual time, and what they give. And
 * what experiments have in common: points that run together, their results, and rows that hold a
 * figure of ours beside the source's. An experiment adds points, runs them, and adds rows.
 */
#ifndef BENCH_ODP_LAB_H
#define BENCH_ODP_LAB_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* `points`: a line of PARAMETER=VALUE words for each point; `dir` is a folder for files of the run.
 * *results: for each point an array of its trials, as the program prints them. 0; -EOPNOTSUPP: the
 * program is not there; -EINTR: `stop` was set; or another negative errno, logged. */
int odp_simulate(const char *points, const char *dir, const atomic_bool *stop,
		 json_t **results);

/* Figures over the trials of a point. */
/* The median of a number; 0 without trials, and without memory. */
double odp_trials_median(const json_t *trials, const char *name);
/* The share of the trials in which it is above `limit`, 0 to 1. */
double odp_trials_share(const json_t *trials, const char *name, double limit);

enum lab_verdict { LAB_HOLDS, LAB_DOES_NOT_HOLD, LAB_NOT_IN_SOURCE };

struct lab {
	const char *dir;          /* for files of a run */
	const atomic_bool *stop;
	double scale;             /* of numbers of requests; 1: those of the source */
	unsigned trials;
	const char *experiment;
	json_t *rows;
	/* Points that have not run yet, as text. */
	char *text;
	size_t text_bytes;
	FILE *points;
	size_t count;
	json_t *results;          /* of those that ran last */
};

/* Words of a point (odp_simulate()); further ones are those of the source: two READs of 100 bytes
 * on one queue pair, RNR NAK delay 1.28 ms, ACK timeout code 1, 7 retries. Returns its number. */
size_t lab_point(struct lab *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs the points since the last call. 0 or a negative errno. */
int lab_run(struct lab *l);

/* The median of all trials of a point, of a number by its name in the output of the simulation. */
double lab_value(const struct lab *l, size_t point, const char *name);
/* The median of the time in ms. */
static inline double lab_ms(const struct lab *l, size_t point)
{
	return lab_value(l, point, "time_ns") / 1e6;
}

/* The number of requests of the source, scaled, but at least so many. */
static inline unsigned lab_scaled(const struct lab *l, unsigned all, unsigned least)
{
	unsigned n = (unsigned)(all * l->scale);

	return n < least ? least : n;
}

/* The share of its trials in which the number is above `limit`, 0 to 1. */
double lab_share(const struct lab *l, size_t point, const char *name, double limit);

/* `holds` as a verdict. */
static inline enum lab_verdict lab_if(bool holds)
{
	return holds ? LAB_HOLDS : LAB_DOES_NOT_HOLD;
}

static inline bool lab_within(double value, double least, double most)
{
	return value >= least && value <= most;
}

/* Adds a row: `figure` of the source, and `source`, its value or shape; `value` is ours as one
 * number of this unit; `what` is measured; the text of ours follows. */
void lab_row(struct lab *l, const char *figure, enum lab_verdict verdict, const char *source,
	     double value, const char *unit, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 8, 9)));

/* ---- the experiments; 0 or a negative errno ---- */
int lab_timeouts(struct lab *l);
int lab_single(struct lab *l);
int lab_damming(struct lab *l);
int lab_damming_more(struct lab *l);
int lab_flood(struct lab *l);
int lab_stale(struct lab *l);
int lab_writes(struct lab *l);
int lab_applications(struct lab *l);
int lab_mitigations(struct lab *l);

#endif
