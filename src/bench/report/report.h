/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar report`: the results of a benchmark, or a recording, as a page with figures. */
#ifndef BENCH_REPORT_REPORT_H
#define BENCH_REPORT_REPORT_H

/* Arguments as of main(); returns the exit status: 0, 1 (failed), 2 (wrong usage), 130 or 143 when
 * it was asked to end by a signal. */
int bench_report_main(int argc, char **argv);

#endif
