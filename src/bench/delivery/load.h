/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads all samples of a recording into memory, for delivery_match(). */
#ifndef BENCH_DELIVERY_LOAD_H
#define BENCH_DELIVERY_LOAD_H

#include <stdbool.h>

#include "bench/delivery/match.h"

struct config;
struct format;

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
