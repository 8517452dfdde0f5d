/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics of the samples that a node receives: delays, gaps, losses. One thread records
 * each metric (mostly the one that reads the node); any thread may read it at the same
 * time. No locks, no allocation after set-up.
 *
 * The hook `stats` (hook/stats.c) makes the metrics for its node and prints them; the
 * node-type `stats` (node/stats/) sends them.
 *
 * Values: times in seconds, `loss_fraction` from 0 to 1, the rest are numbers of
 * samples or packets. Percentiles are exact to 1.6 %, all other figures are exact.
 */
#ifndef GATEWAY_PLUGIN_STATS_H
#define GATEWAY_PLUGIN_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct node;

enum stats_metric {
	STATS_SKIPPED,       /* sequence numbers left out, per gap */
	STATS_REORDERED,     /* steps back, per sample that came too late */
	STATS_GAP_SENT,      /* between the origins of two samples */
	STATS_GAP_RECEIVED,  /* between their receptions */
	STATS_OWD,           /* one-way delay, received - origin */
	STATS_AGE,           /* from reception until a path sends it on */
	STATS_SIGNAL_CNT,    /* values per sample */
	STATS_RTP_LOSS_FRACTION,
	STATS_RTP_PKTS_LOST,
	STATS_RTP_JITTER,
	STATS_METRICS,
};

enum stats_type {
	STATS_LAST,
	STATS_HIGHEST,
	STATS_LOWEST,
	STATS_MEAN,
	STATS_VAR,
	STATS_STDDEV,
	STATS_TOTAL,  /* number of values recorded */
	STATS_P50,
	STATS_P90,
	STATS_P99,
	STATS_P999,
	STATS_TYPES,
};

/* "owd", "rtp.jitter"; NULL terminated. */
extern const char *const stats_metric_names[STATS_METRICS + 1];
/* "last", "p99.9"; NULL terminated. */
extern const char *const stats_type_names[STATS_TYPES + 1];
/* "s" or "". */
const char *stats_unit(enum stats_metric m, enum stats_type t);

/*
 * Parses "METRIC.TYPE" such as "owd.mean" or "rtp.jitter.p99.9". 0, or -EINVAL with the
 * error and the nearest known name in `problem`.
 */
int stats_parse(const char *text, enum stats_metric *m, enum stats_type *t,
		char *problem, size_t size);

struct node_stats;

/*
 * `buckets` rows of the distribution (0: none), their range taken from the
 * first `warmup` values of each metric. One reference; NULL on no memory.
 */
struct node_stats *node_stats_new(unsigned buckets, uint64_t warmup);
struct node_stats *node_stats_get(struct node_stats *st);
void node_stats_put(struct node_stats *st); /* NULL allowed */

/* Records one value. One thread per metric; different metrics may have different threads. */
void node_stats_update(struct node_stats *st, enum stats_metric m,
		       double value);
/* The same for a time, which may be negative. */
void node_stats_update_ns(struct node_stats *st, enum stats_metric m,
			  int64_t ns);

/* Empties all metrics; from any thread. The recording thread does it with its next value;
 * until then readers see empty metrics. */
void node_stats_reset(struct node_stats *st);

/* A figure of a metric; NAN, or 0 for `total`, when no value was recorded. Any thread. */
double node_stats_figure(const struct node_stats *st, enum stats_metric m,
			 enum stats_type t);
/* The same for a node; NAN also when it has no hook `stats`. */
double node_stats_value(const struct node *n, enum stats_metric m,
			enum stats_type t);
bool node_has_stats(const struct node *n);

/*
 * All metrics as the control requests give them: an object by the name of each, as
 * users of VILLASnode know it, "low", "high", "total", and once there are values
 * "higher", "lower", "highest", "lowest", "mean", "variance", "stddev" and
 * "buckets"; besides "last" and percentiles. The caller's; NULL on no memory.
 */
json_t *node_stats_json(const struct node_stats *st);

/* Rows of equal width over [low, high], and the numbers of values outside. */
struct stats_buckets {
	double low, high;
	uint64_t lower, higher;
	unsigned count;
	const _Atomic uint64_t *rows; /* borrowed, still counting */
};

/* Fills *out; false while the range is not known. */
bool node_stats_buckets(const struct node_stats *st, enum stats_metric m,
			struct stats_buckets *out);

#endif
