/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads all samples of recordings into memory, and matches two lists of samples: which sent samples
 * were received, and how. */
#ifndef BENCH_DELIVERY_MATCH_H
#define BENCH_DELIVERY_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gateway/sample/sample.h"

#define DELIVERY_NONE SIZE_MAX

struct delivery_sample {
	uint64_t sequence, position; /* position: index in the file, from 0 */
	struct timespec origin, received;
	uint32_t flags, length;
	size_t data;                 /* index of its first value in `values` */
	size_t match;                /* of sent samples, set by delivery_match(): index in
				      * the list of received ones, DELIVERY_NONE: lost */
};

struct delivery_samples {
	struct delivery_sample *samples;
	union signal_data *values;
	size_t count, capacity, value_count, value_capacity;
	struct signal_list *signals; /* owned reference */
};

/* 0 or -ENOMEM. */
int delivery_samples_add(struct delivery_samples *l, const struct sample *s);
void delivery_samples_free(struct delivery_samples *l);

struct delivery_options {
	double epsilon;        /* 0: compare bit by bit; all NaNs are equal */
	bool ignore_values, ignore_times, ignore_sequence;
	FILE *differences;     /* the first few are printed there; NULL: none */
};

struct delivery_result {
	uint64_t sent, received;
	uint64_t matched;      /* sent samples that were received */
	uint64_t before;       /* sent before the first sample that was received */
	uint64_t lost;         /* sent, not received, and not counted in `before` */
	uint64_t out_of_order; /* received after a sample with a higher number */
	uint64_t duplicates;   /* received more than once */
	uint64_t unknown;      /* received, but not in the list of sent samples */
	uint64_t values_differ, times_differ;
	uint64_t latency_count;
	int64_t latency_ns[5]; /* min, p50, p99, p99.9, max of received - origin */
	/* For pairs with a receive timestamp in both files: received minus the receive
	 * time in the file of sent samples, when the sample was made or taken in there. */
	uint64_t service_count;
	int64_t service_ns[5];
};

/* Sorts both lists by sequence number. 0 or -ENOMEM. */
int delivery_match(struct delivery_samples *sent, struct delivery_samples *received,
		  const struct delivery_options *o, struct delivery_result *r);

/* ---- recordings ---- */

struct config;
struct format;

/* The format of a file, by the end of its name. */
const char *delivery_format_by_name(const char *path);

struct delivery_file {
	const char *path;
	/* As a configuration says it: a name, or an object as text: "{ ... }". */
	const char *format;
	const char *types;  /* of the values: "12f3i"; NULL: floats, or what the file says */
	/* Keep one hash of the values of a sample instead of the values, so that long
	 * recordings of large samples fit into memory. */
	bool digest;
};

/* A recording's format, as it was asked for. */
struct delivery_reading {
	struct config *config;
	struct format *format;
	uint64_t malformed; /* lines that delivery_read() has left out */
};

/* Makes the format. 0 or a negative errno, logged; then there is nothing to close. */
int delivery_open(const struct delivery_file *file, struct delivery_reading *r);
/* Calls `take`, which returns 0 or a negative errno, for each sample of the file. 0 or a negative
 * errno, logged but for those of `take`. */
int delivery_read(struct delivery_reading *r, const char *path,
		  int (*take)(void *data, struct sample *s), void *data);
void delivery_close(struct delivery_reading *r);

/*
 * Adds the samples of the file to *out, which delivery_samples_free() frees also after an
 * error. 0; -EBADMSG: malformed lines; or another negative errno; logs the cause.
 */
int delivery_load(const struct delivery_file *file, struct delivery_samples *out);

#endif
