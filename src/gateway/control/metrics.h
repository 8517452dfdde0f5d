/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters, states and histograms of a gateway as Prometheus reads them: its text format
 * 0.0.4, or OpenMetrics 1.0. metrics_print.h prints the lines, metrics.c chooses what is
 * shown.
 */
#ifndef GATEWAY_CONTROL_METRICS_H
#define GATEWAY_CONTROL_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct super_node;

#define METRICS_PLAIN "text/plain"
#define METRICS_OPEN "application/openmetrics-text"
#define METRICS_PLAIN_TYPE METRICS_PLAIN "; version=0.0.4; charset=utf-8"
#define METRICS_OPEN_TYPE METRICS_OPEN "; version=1.0.0; charset=utf-8"

/* The whole text, of *len bytes; the caller frees it. NULL without memory. */
char *metrics_text(struct super_node *sn, bool open, size_t *len);

/*
 * Sets where the figures of RDMA adapters come from, which this room cannot read: `read`
 * returns a new reference of { NAME: { "queue_pairs": N, "links": N, "counters": { ... } } },
 * or NULL. Before any request; NULL: none.
 */
void metrics_set_adapters(json_t *(*read)(void));

#endif
