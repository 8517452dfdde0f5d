/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of Prometheus' text formats: escaping, numbers, histograms. */
#ifndef GATEWAY_CONTROL_METRICS_PRINT_H
#define GATEWAY_CONTROL_METRICS_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum metrics_kind { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

struct metrics {
	FILE *out;
	bool open;          /* OpenMetrics */
	const char *family; /* the present one */
	enum metrics_kind kind;
};

/* Name and value of a label. */
struct metrics_label {
	const char *name, *value;
};

#define METRICS_LABELS_MAX 4

/* Labels of a sample, ended by one without a name. */
struct metrics_labels {
	struct metrics_label at[METRICS_LABELS_MAX + 1];
};

/* A family begins: its HELP and TYPE. `family` is without "_total" and stays valid. All
 * samples of a family follow one another. */
void metrics_family(struct metrics *m, const char *family, enum metrics_kind kind,
		    const char *help);
/* A sample of a counter ("_total" is added) or gauge. */
void metrics_count(struct metrics *m, const struct metrics_labels *labels, uint64_t value);
void metrics_real(struct metrics *m, const struct metrics_labels *labels, double value);

/*
 * A sample of a histogram: how many values were <= bounds[i]. `total` is that of all. The
 * sum is left out when it is no number, as where values may be negative.
 */
void metrics_histogram(struct metrics *m, const struct metrics_labels *labels,
		       const double *bounds, const uint64_t *counts, unsigned rows,
		       uint64_t total, double sum);
/* The end of the text. */
void metrics_end(struct metrics *m);

/* The form of a number that the Go library prints, which readers of `le` expect. */
void metrics_number(char *buf, size_t size, double value);

#endif
