/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What experiments have in common: points that run together, their results, and rows that hold a
 * figure of ours beside the source's. An experiment adds points, runs them, and adds rows.
 */
#ifndef BENCH_ODP_LAB_H
#define BENCH_ODP_LAB_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

/* Words of a point (simulate.h); further ones are those of the source: two READs of 100 bytes on
 * one queue pair, RNR NAK delay 1.28 ms, ACK timeout code 1, 7 retries. Returns its number. */
size_t lab_point(struct lab *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs the points since the last call. 0 or a negative errno. */
int lab_run(struct lab *l);

/* The median of all trials of a point, of a number by its name in the output of the simulation. */
double lab_value(const struct lab *l, size_t point, const char *name);
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

struct lab_row {
	const char *figure;       /* of the source */
	enum lab_verdict verdict;
	const char *source;       /* its figure or shape */
	double value;             /* ours as one number */
	const char *unit;
};
/* `what` is measured; the text of ours follows. */
void lab_row(struct lab *l, const struct lab_row *row, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

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
