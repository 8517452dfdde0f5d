/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs gnuplot, which is a program of its own and may be absent. Commands and picture go
 * through memory, so no file is left behind, however this process ends; gnuplot ends with
 * it.
 */
#ifndef BENCH_REPORT_GNUPLOT_H
#define BENCH_REPORT_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>

/* From here until report_gnuplot_end() SIGINT and SIGTERM set a flag. */
void report_gnuplot_begin(void);
void report_gnuplot_end(void);
/* The signal that came; 0: none. */
int report_gnuplot_stopped(void);

/* Is the program there? */
bool report_gnuplot_found(void);

/*
 * What gnuplot answers to `script`, malloc()ed and NUL-terminated. 0; -EINTR: asked to end;
 * -ENOEXEC: gnuplot failed (its message is logged, with `name` of the figure); -ETIMEDOUT: it
 * took longer than a minute; or another negative errno, logged.
 */
int report_gnuplot_run(const char *name, const char *script, size_t size, char **picture);

#endif
