/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of suites and results: argv[0] is the command's name. Exit statuses are those
 * of kind/command.h. */
#ifndef BENCH_SUITE_COMMANDS_H
#define BENCH_SUITE_COMMANDS_H

#include "bench/kind/command.h"

int bench_run_main(int argc, char **argv);     /* `busbar bench run SUITE` */
int bench_list_main(int argc, char **argv);    /* `busbar bench list` */
int bench_compare_main(int argc, char **argv); /* `busbar bench compare A B` */
int bench_shapes_main(int argc, char **argv);  /* `busbar bench shapes DIR` */
/* `busbar bench KIND`, argv[0] is the kind's name. */
int bench_single_main(int argc, char **argv);

#endif
