/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar tune`: looks at the settings of this host that decide how punctual a gateway is,
 * has tuned change them when asked to, and take the changes back. Each function is one sub-command
 * and returns the exit status of the process (0, 1), after having logged what went wrong.
 */
#ifndef BENCH_TUNE_TUNE_H
#define BENCH_TUNE_TUNE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tune_options {
	const char *root;       /* "", or a folder with a copy of /proc, /sys and /dev */
	const char *only;       /* names of settings with commas between; NULL: all */
	const char *cpus;       /* list of processors for the gateway; NULL: none chosen */
	bool json;              /* check */
	bool no_measure;        /* check */
	uint64_t measure_ns;    /* check: for how long the loops run */
	bool dry_run;           /* apply, undo */
	int32_t latency_us;     /* hold */
};

#define TUNE_OPTIONS_DEFAULT { .root = "", .measure_ns = 1000000000 }

int tune_check_main(const struct tune_options *o, FILE *out);
int tune_apply_main(const struct tune_options *o, FILE *out);
int tune_undo_main(const struct tune_options *o, FILE *out);
/* Names and sentences of all settings. */
void tune_list(FILE *out);

/*
 * Runs a program, and keeps /dev/cpu_dma_latency open until it ends. argv ends with NULL.
 * Returns the program's exit status, 128 + N if signal N ended it, 126 or 127 as shells do.
 */
int tune_hold_main(const struct tune_options *o, char **argv);
/* Becomes the program, in the cgroup of the partition; returns only after a failure. */
int tune_exec_main(const struct tune_options *o, char **argv);

#endif
