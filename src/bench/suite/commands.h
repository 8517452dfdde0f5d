/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of suites and results: argv[0] is the command's name. Exit statuses: 0; 1: it
 * did not succeed; 2: the command line or a suite is wrong; 130: Ctrl-C. */
#ifndef BENCH_SUITE_COMMANDS_H
#define BENCH_SUITE_COMMANDS_H

#include <stdatomic.h>

enum { BENCH_OK = 0, BENCH_FAILED = 1, BENCH_USAGE = 2, BENCH_INTERRUPTED = 130 };

int bench_run_main(int argc, char **argv);     /* `busbar bench run SUITE` */
int bench_list_main(int argc, char **argv);    /* `busbar bench list` */
int bench_compare_main(int argc, char **argv); /* `busbar bench compare A B` */
int bench_shapes_main(int argc, char **argv);  /* `busbar bench shapes DIR` */
/* `busbar bench KIND`, argv[0] is the kind's name. */
int bench_single_main(int argc, char **argv);

/* Ctrl-C, SIGTERM and SIGHUP set the flag that this returns; a second one ends the process. */
const atomic_bool *bench_catch_signals(void);

/* "busbar", "bench" and the arguments: the whole command line, to be freed; its words are
 * those of `argv`. NULL without memory. */
char **bench_command(int argc, char **argv);

#endif
