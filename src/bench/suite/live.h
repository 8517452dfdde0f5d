/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person sees while cases are measured: on a terminal one line that moves, with the
 * share that is done and the time left; else nothing but the lines of finished cases. The log
 * goes on beside it. One at a time in a process.
 */
#ifndef BENCH_SUITE_LIVE_H
#define BENCH_SUITE_LIVE_H

#include <stddef.h>

#define LIVE_REASON_SIZE 300

/* `seconds`: what all cases will take, as their kinds think. */
void live_begin(size_t cases, double seconds);
void live_end(void);

/* A case begins, of which its kind thinks that it takes so long. */
void live_case(const char *id, double seconds);
/* Its share that is done, 0 to 1; cheap. */
void live_share(double share);
/* The case has ended, or was not measured; the next line on standard output is free. Returns
 * the seconds that it took. */
double live_case_end(void);

/* How long the rest takes, judged by what the finished cases took; below 0: not known. */
double live_seconds_left(void);

/* The last warning or error that was logged since live_case(), without time and room; "" if
 * there was none. It is shown at the end of the case, unless live_take_reason() takes it. */
void live_take_reason(char reason[LIVE_REASON_SIZE]);

/* "3 min 20 s" */
const char *live_duration(double seconds, char buf[32]);

#endif
