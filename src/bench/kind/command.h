/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands of benchmarks have in common. */
#ifndef BENCH_KIND_COMMAND_H
#define BENCH_KIND_COMMAND_H

#include <errno.h>
#include <stdatomic.h>

/* Exit statuses: 1: it did not succeed; 2: the command line or a suite is wrong; 130: Ctrl-C. */
enum { BENCH_OK = 0, BENCH_FAILED = 1, BENCH_USAGE = 2, BENCH_INTERRUPTED = 130 };

/* The status of what returned 0, -EINTR or another negative errno. */
static inline int bench_status(int ret)
{
	return ret == -EINTR ? BENCH_INTERRUPTED : ret ? BENCH_FAILED : BENCH_OK;
}

/* Ctrl-C, SIGTERM and SIGHUP set the flag that this returns; a second one ends the process. */
const atomic_bool *bench_catch_signals(void);

/* "busbar", "bench" and the arguments: the whole command line, to be freed; its words are
 * those of `argv`. NULL without memory. */
char **bench_command(int argc, char **argv);

/* Commands that are no case of a kind; they return exit statuses. `busbar bench formats`, `busbar
 * bench odp --experiment NAME|all`, and `busbar bench hca --server`, which a build may lack. */
int bench_formats_main(int argc, char **argv);
int bench_odp_experiments_main(int argc, char **argv);
int bench_hca_server_main(int argc, char **argv);

#endif
