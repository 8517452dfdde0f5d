/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time goes. Latencies of a case of which one is called NAME and others NAME.PART are
 * a budget: NAME was measured from outside, the parts inside, one behind the other. What their
 * sum does not explain is the rest; it is below zero where calls with time stamps in them are
 * slower than those without.
 *
 * Beside the percentiles each part has its "middle", the mean without the tenth at either end.
 * Sum and rest are those of middles: medians do not add up, and where the processor's counter
 * moves in steps of 10 ns, as some do, a median is one of its steps.
 */
#ifndef BENCH_RESULT_BUDGET_H
#define BENCH_RESULT_BUDGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define BUDGET_PARTS_MAX 16

/* Times in ns; NAN: not known, and then `count` is 0. */
struct budget_part {
	const char *label;          /* borrowed */
	size_t count;
	double p10, median, p90, middle;
};

struct budget {
	struct budget_part whole, parts[BUDGET_PARTS_MAX];
	size_t count;               /* parts */
	double sum_ns, rest_ns;     /* of middles; whole minus sum; NAN: one is not known */
};

/* Is `name` a part of another latency? */
bool budget_is_part(const char *name);
/* Is `part` one of `whole`? */
bool budget_is_part_of(const char *part, const char *whole);

/* Share of the whole in percent; NAN: not known. */
double budget_share(const struct budget *b, double ns);

/* Latency `whole` of summary.json's latencies and its parts; texts are borrowed. False: it has no
 * parts. */
bool budget_of(const json_t *latencies, const char *whole, struct budget *b);

/* All budgets as tables of text. */
void budget_print(FILE *f, const json_t *latencies);

#endif
