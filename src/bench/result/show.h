/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints summaries of cases. */
#ifndef BENCH_RESULT_SHOW_H
#define BENCH_RESULT_SHOW_H

#include <jansson.h>
#include <stdio.h>

/* "786 ns", "1.25 us", "4.1 ms": three digits. */
const char *show_ns(double ns, char buf[32]);

/* The first latency on one line, else the first figure; no newline. */
void show_brief(FILE *f, const json_t *summary);

/* All of it as a table. */
void show_summary(FILE *f, const json_t *summary);

#endif
