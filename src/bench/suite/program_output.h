/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what programs of perftest, ibv_rc_pingpong and ucx_perftest print. The file is named in
 * errors: -EBADMSG when it has no table of results. */
#ifndef BENCH_SUITE_PROGRAM_OUTPUT_H
#define BENCH_SUITE_PROGRAM_OUTPUT_H

#include "bench/result/result.h"

/* A latency program with -U: its measured times become rows, its table figures. With -C its
 * times are cycles; -EOPNOTSUPP: this process' clock cannot tell how long one is. */
int program_read_latency(const char *path, struct result_case *c);
int program_read_bandwidth(const char *path, struct result_case *c);
/* Latencies of one way; with `rate` bandwidth and messages a second. */
int program_read_ucx(const char *path, bool rate, struct result_case *c);
int program_read_pingpong(const char *path, struct result_case *c);

/* The numbers of a line of a table of results: how many there are (at most `max`), 0 when
 * there is something else in the line. "nan" is a number. */
size_t program_numbers(const char *line, double *values, size_t max);
/* "17, 0.83": a measured time in us. */
bool program_time(const char *line, double *us);

#endif
