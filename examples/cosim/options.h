/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the program cosim: NAME=VALUE, the same for all of its commands. */
#ifndef COSIM_OPTIONS_H
#define COSIM_OPTIONS_H

#include "couple.h"

struct options {
	struct network net;
	double duration_s;
	double start_s;         /* CLOCK_REALTIME; 0: now */
	unsigned delay_v, delay_i; /* steps, without real time */
	unsigned behind;        /* in real time: steps that an input is old */
	bool polling;
	const char *label;      /* first column of the table */
	const char *log;        /* of one half */
	const char *plot;       /* both solutions, for gnuplot; NULL: none */
};

/* Takes argv[from...]. 0, or -1 after a message. */
int options_parse(struct options *o, int argc, char *argv[], int from);

static inline uint64_t options_steps(const struct options *o)
{
	return (uint64_t)(o->duration_s / o->net.step_s + 0.5);
}

/* half.c: one half in real time. Returns the exit status. */
int half_run(bool source, const char *write_name, const char *read_name,
	     const struct options *o);

/* report.c: a row of the table, and its heading. */
int report_compare(const char *source_log, const char *load_log,
		   const struct options *o);
int report_offline(const struct options *o);
void report_heading(void);
void report_theory(const struct options *o);

#endif
