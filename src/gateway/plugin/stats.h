/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics of a node: delays, gaps, losses of what it receives. One thread
 * records each metric (mostly the one that reads the node), any thread reads
 * while that goes on; no locks, no allocation after set-up.
 *
 * The hook `stats` attaches them to its node. Who prints them is in
 * hook/stats.c; who sends them, in node/stats/.
 *
 * Values: times in seconds, `loss_fraction` from 0 to 1, the rest are numbers of
 * samples or packets. Percentiles are right to 1.6 %, all else is exact.
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
	STATS_TOTAL,  /* how many values were recorded */
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
 * "METRIC.TYPE" as in "owd.mean" or "rtp.jitter.p99.9". -EINVAL with what is
 * wrong, and the nearest right name, in `problem`.
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

/* One value. One thread per metric, any number of metrics. */
void node_stats_update(struct node_stats *st, enum stats_metric m,
		       double value);
/* The same for a time, which may be negative. */
void node_stats_update_ns(struct node_stats *st, enum stats_metric m,
			  int64_t ns);

/* Forgets everything; from any thread. Done with the next value of a metric,
 * until then readers see it as empty. */
void node_stats_reset(struct node_stats *st);

/* NAN where nothing was recorded yet; `total` is 0 then. Any thread. */
double node_stats_figure(const struct node_stats *st, enum stats_metric m,
			 enum stats_type t);
/* Of a node; NAN also when it has no hook `stats`. */
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

/* Rows of equal width over [low, high], and what lay outside. */
struct stats_buckets {
	double low, high;
	uint64_t lower, higher;
	unsigned count;
	const _Atomic uint64_t *rows; /* borrowed, still counting */
};

/* False while the range is not known. */
bool node_stats_buckets(const struct node_stats *st, enum stats_metric m,
			struct stats_buckets *out);

#endif
