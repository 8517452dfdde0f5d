/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of a report: the figures in numbers, for all who need them exactly. */
#ifndef BENCH_REPORT_TABLE_H
#define BENCH_REPORT_TABLE_H

#include <stdio.h>

#include "bench/report/figure.h"
#include "bench/report/model.h"

/* Percentiles of latencies, also as multiples of the floor where it is known. */
void table_latencies(FILE *out, const struct figure_curve *curves, size_t count,
		     double floor_ns);
/* Parts, sum, whole and rest. */
void table_budget(FILE *out, const struct budget *b);
/* Lowest and highest of each tenth of the rows. */
void table_tenths(FILE *out, const struct report_series *s);
/* All numbers beside the latencies, one row a case; `only`: just that one, or NULL. */
void table_values(FILE *out, const struct report_group *g, struct report_case *const *cases,
		  size_t count, const char *only);
/* What the source measured on its hardware; nothing where it has no figures. */
void table_references(FILE *out, const struct report_group *g);
void table_curves(FILE *out, const struct report_curve *curves, size_t count);

/* An object as rows of a name and a value; what is in it is flattened: "cpu.model". */
void table_object(FILE *out, const json_t *object);
/* The words of a command line as a shell reads them, malloc()ed; NULL without memory. Not
 * escaped for HTML. */
char *table_command(const json_t *words);

#endif
