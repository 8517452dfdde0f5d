/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gateway's recording as a case of a report: samples that a file node wrote, or what the
 * hook `stats` printed as JSON.
 */
#ifndef BENCH_REPORT_RECORDING_H
#define BENCH_REPORT_RECORDING_H

#include "bench/report/data.h"
#include "gateway/plugin/format.h"

struct recording_options {
	const char *format;   /* name or object of a format; NULL: by the file's name */
	const char *types;    /* of the signals, "3f1i"; NULL: reals */
	int64_t limit_ns;     /* of "above the limit" */
	const char *command;  /* that makes this report; text */
};

/* 0 or a negative errno, logged. */
int recording_add(json_t *run, const char *path, const struct recording_options *o);

/* Lines of the hook `stats` (recording_stats.c). 0; -ENOENT: the file begins with something
 * else; or a negative errno, logged. */
int recording_stats_add(json_t *run, const char *path, const struct recording_options *o);

/* Texts that the case of a recording has. 0 or -ENOMEM. */
int recording_name(json_t *c, const char *label, const char *path, const char *question,
		   const struct recording_options *o);

#endif
