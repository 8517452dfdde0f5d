/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording and reading the metrics of a node; see stats.h.
 *
 * Mean and variance run along (Welford's recurrence), because a sum of squares
 * of times near each other has no digits left. Percentiles come from a
 * histogram of whole units (ns or pieces), with a second one for values below
 * zero: where two clocks differ, delays are negative, and hiding that would
 * make them look like fast ones.
 */
#include "gateway/plugin/stats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "util/hist.h"
#include "util/log.h"
#include "util/nearest.h"

#define RELAXED memory_order_relaxed

struct metric {
	_Atomic uint64_t total;
	_Atomic double last, highest, lowest, mean, m2;
	atomic_bool reset;             /* asked for, not done yet */
	_Atomic double low, high;      /* range of the rows, once known */
	atomic_bool ranged;
	_Atomic uint64_t lower, higher;
	_Atomic uint64_t *rows;
	struct hist positive, negative;
};

struct node_stats {
	atomic_int refcnt;
	unsigned buckets;
	uint64_t warmup;
	struct metric metrics[STATS_METRICS];
};

const char *const stats_metric_names[] = {
	[STATS_SKIPPED] = "skipped",
	[STATS_REORDERED] = "reordered",
	[STATS_GAP_SENT] = "gap_sent",
	[STATS_GAP_RECEIVED] = "gap_received",
	[STATS_OWD] = "owd",
	[STATS_AGE] = "age",
	[STATS_SIGNAL_CNT] = "signal_cnt",
	[STATS_RTP_LOSS_FRACTION] = "rtp.loss_fraction",
	[STATS_RTP_PKTS_LOST] = "rtp.pkts_lost",
	[STATS_RTP_JITTER] = "rtp.jitter",
	[STATS_METRICS] = NULL,
};

const char *const stats_type_names[] = {
	[STATS_LAST] = "last",
	[STATS_HIGHEST] = "highest",
	[STATS_LOWEST] = "lowest",
	[STATS_MEAN] = "mean",
	[STATS_VAR] = "var",
	[STATS_STDDEV] = "stddev",
	[STATS_TOTAL] = "total",
	[STATS_P50] = "p50",
	[STATS_P90] = "p90",
	[STATS_P99] = "p99",
	[STATS_P999] = "p99.9",
	[STATS_TYPES] = NULL,
};

/* Units of the histogram in one of the metric's. */
static double scale_of(enum stats_metric m)
{
	switch (m) {
	case STATS_GAP_SENT:
	case STATS_GAP_RECEIVED:
	case STATS_OWD:
	case STATS_AGE:
	case STATS_RTP_JITTER:
	case STATS_RTP_LOSS_FRACTION:
		return 1e9;
	default:
		return 1;
	}
}

const char *stats_unit(enum stats_metric m, enum stats_type t)
{
	if (t == STATS_TOTAL || m == STATS_RTP_LOSS_FRACTION ||
	    scale_of(m) == 1)
		return "";
	return t == STATS_VAR ? "s^2" : "s";
}

static int fail_metric(const char *text, char *problem, size_t size)
{
	char name[64], hint[100];
	struct nearest near;

	/* The last point is in front of the type, mostly. */
	snprintf(name, sizeof(name), "%s", text);
	if (strrchr(name, '.'))
		*strrchr(name, '.') = '\0';
	near = NEAREST(name);
	for (int i = 0; stats_metric_names[i]; i++)
		nearest_try(&near, stats_metric_names[i]);
	snprintf(problem, size, "no metric '%s'%s", name,
		 nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

int stats_parse(const char *text, enum stats_metric *m, enum stats_type *t,
		char *problem, size_t size)
{
	const char *type = NULL;
	struct nearest near;
	char hint[100];

	for (int i = 0; stats_metric_names[i] && !type; i++) {
		size_t len = strlen(stats_metric_names[i]);

		if (strncmp(text, stats_metric_names[i], len) ||
		    (text[len] != '.' && text[len] != '\0'))
			continue;
		*m = (enum stats_metric)i;
		type = text + len;
	}
	if (!type)
		return fail_metric(text, problem, size);
	if (!*type) {
		snprintf(problem, size,
			 "'%s' lacks what of it is meant, for example '%s.mean'",
			 text, text);
		return -EINVAL;
	}
	near = NEAREST(++type);
	for (int i = 0; stats_type_names[i]; i++) {
		nearest_try(&near, stats_type_names[i]);
		if (strcmp(type, stats_type_names[i]))
			continue;
		*t = (enum stats_type)i;
		return 0;
	}
	snprintf(problem, size,
		 "no figure '%.40s' of a metric%s (last, highest, lowest, mean, var, stddev, total, p50, p90, p99, p99.9)",
		 type, nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

struct node_stats *node_stats_new(unsigned buckets, uint64_t warmup)
{
	struct node_stats *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	atomic_init(&st->refcnt, 1);
	st->buckets = buckets;
	st->warmup = MAX(warmup, 1);
	for (int m = 0; m < STATS_METRICS; m++) {
		/* Pages of what is never recorded are never touched. */
		atomic_init(&st->metrics[m].positive.min, UINT64_MAX);
		atomic_init(&st->metrics[m].negative.min, UINT64_MAX);
		st->metrics[m].rows = calloc(buckets ? buckets : 1,
					     sizeof(st->metrics[m].rows[0]));
		if (!st->metrics[m].rows) {
			node_stats_put(st);
			return NULL;
		}
	}
	return st;
}

struct node_stats *node_stats_get(struct node_stats *st)
{
	atomic_fetch_add_explicit(&st->refcnt, 1, RELAXED);
	return st;
}

void node_stats_put(struct node_stats *st)
{
	if (!st || atomic_fetch_sub_explicit(&st->refcnt, 1,
					     memory_order_acq_rel) != 1)
		return;
	for (int m = 0; m < STATS_METRICS; m++)
		free(st->metrics[m].rows);
	free(st);
}

/* One writer: no locked addition. */
static inline void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, RELAXED) + n,
			      RELAXED);
}

static inline void set(_Atomic double *to, double value)
{
	atomic_store_explicit(to, value, RELAXED);
}

static inline double get(const _Atomic double *from)
{
	return atomic_load_explicit(from, RELAXED);
}

static void clear_hist(struct hist *h)
{
	if (!atomic_load_explicit(&h->count, RELAXED))
		return;
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		atomic_store_explicit(&h->buckets[b], 0, RELAXED);
	atomic_store_explicit(&h->count, 0, RELAXED);
	atomic_store_explicit(&h->sum, 0, RELAXED);
	atomic_store_explicit(&h->max, 0, RELAXED);
	atomic_store_explicit(&h->min, UINT64_MAX, RELAXED);
}

static void clear(const struct node_stats *st, struct metric *m)
{
	atomic_store_explicit(&m->total, 0, RELAXED);
	atomic_store_explicit(&m->ranged, false, RELAXED);
	atomic_store_explicit(&m->lower, 0, RELAXED);
	atomic_store_explicit(&m->higher, 0, RELAXED);
	for (unsigned i = 0; i < st->buckets; i++)
		atomic_store_explicit(&m->rows[i], 0, RELAXED);
	clear_hist(&m->positive);
	clear_hist(&m->negative);
	atomic_store_explicit(&m->reset, false, memory_order_release);
}

/* Three deviations to both sides of the mean of the first values. */
static void set_range(struct metric *m, uint64_t total)
{
	double mean = get(&m->mean);
	double reach = 3 * sqrt(get(&m->m2) / (double)total);

	/* All alike: any width that can be seen. */
	if (!(reach > 0))
		reach = mean != 0 ? fabs(mean) * 1e-3 : 1e-9;
	set(&m->low, mean - reach);
	set(&m->high, mean + reach);
	atomic_store_explicit(&m->ranged, true, memory_order_release);
}

static void count_row(const struct node_stats *st, struct metric *m,
		      double value)
{
	double low = get(&m->low), high = get(&m->high);
	double row = (value - low) / (high - low) * st->buckets;

	if (value < low)
		add(&m->lower, 1);
	else if (value > high)
		add(&m->higher, 1);
	else
		add(&m->rows[MIN((unsigned)row, st->buckets - 1)], 1);
}

static void record(struct node_stats *st, enum stats_metric which, double value,
		   int64_t units)
{
	struct metric *m = &st->metrics[which];
	double delta, mean;
	uint64_t total;

	if (unlikely(atomic_load_explicit(&m->reset, RELAXED)))
		clear(st, m);
	total = atomic_load_explicit(&m->total, RELAXED) + 1;
	mean = total == 1 ? 0 : get(&m->mean);
	delta = value - mean;
	mean += delta / (double)total;
	set(&m->mean, mean);
	set(&m->m2, (total == 1 ? 0 : get(&m->m2)) + delta * (value - mean));
	set(&m->last, value);
	if (total == 1 || value > get(&m->highest))
		set(&m->highest, value);
	if (total == 1 || value < get(&m->lowest))
		set(&m->lowest, value);
	if (units >= 0)
		hist_record(&m->positive, (uint64_t)units);
	else
		hist_record(&m->negative, -(uint64_t)units);
	if (st->buckets && total > st->warmup)
		count_row(st, m, value);
	else if (total == st->warmup)
		set_range(m, total);
	/* Last: who sees the number finds the rest. */
	atomic_store_explicit(&m->total, total, memory_order_release);
}

void node_stats_update(struct node_stats *st, enum stats_metric m, double value)
{
	double units = value * scale_of(m);

	if (!isfinite(value))
		return;
	record(st, m, value,
	       units >= 9e18 ? INT64_MAX :
	       units <= -9e18 ? -INT64_MAX :
				(int64_t)(units < 0 ? units - 0.5 : units + 0.5));
}

void node_stats_update_ns(struct node_stats *st, enum stats_metric m,
			  int64_t ns)
{
	record(st, m, (double)ns / 1e9, ns);
}

void node_stats_reset(struct node_stats *st)
{
	for (int m = 0; m < STATS_METRICS; m++)
		if (atomic_load_explicit(&st->metrics[m].total, RELAXED))
			atomic_store(&st->metrics[m].reset, true);
}

/*
 * The value that `percent` % of all do not exceed. Those below zero come first,
 * the ones farthest from zero before the others.
 */
static double percentile(const struct metric *m, enum stats_metric which,
			 double percent)
{
	uint64_t below = atomic_load_explicit(&m->negative.count, RELAXED);
	uint64_t above = atomic_load_explicit(&m->positive.count, RELAXED);
	double rank = ceil((double)(below + above) * percent / 100.0);
	double highest = get(&m->highest), lowest = get(&m->lowest), value;

	rank = MAX(rank, 1.0);
	/* Half a place less, so that rounding never leads to the next one. */
	if (rank <= (double)below)
		value = -(double)hist_percentile(
			&m->negative,
			((double)below - rank + 0.5) / (double)below * 100.0);
	else
		value = (double)hist_percentile(
			&m->positive,
			(rank - (double)below - 0.5) / (double)above * 100.0);
	value /= scale_of(which);
	/* The edge of a bucket may lie outside of what was seen. */
	return value > highest ? highest : value < lowest ? lowest : value;
}

double node_stats_figure(const struct node_stats *st, enum stats_metric which,
			 enum stats_type t)
{
	const struct metric *m = &st->metrics[which];
	uint64_t total = atomic_load_explicit(&m->total, memory_order_acquire);

	if (atomic_load_explicit(&m->reset, memory_order_acquire))
		total = 0;
	if (t == STATS_TOTAL)
		return (double)total;
	if (!total)
		return NAN;
	switch (t) {
	case STATS_LAST: return get(&m->last);
	case STATS_HIGHEST: return get(&m->highest);
	case STATS_LOWEST: return get(&m->lowest);
	case STATS_MEAN: return get(&m->mean);
	case STATS_VAR:
		return total > 1 ? get(&m->m2) / (double)(total - 1) : 0.0;
	case STATS_STDDEV:
		return sqrt(node_stats_figure(st, which, STATS_VAR));
	case STATS_P50: return percentile(m, which, 50);
	case STATS_P90: return percentile(m, which, 90);
	case STATS_P99: return percentile(m, which, 99);
	case STATS_P999: return percentile(m, which, 99.9);
	default: return NAN;
	}
}

double node_stats_value(const struct node *n, enum stats_metric m,
			enum stats_type t)
{
	return n->stats ? node_stats_figure(n->stats, m, t) : NAN;
}

bool node_has_stats(const struct node *n)
{
	return n->stats;
}

bool node_stats_buckets(const struct node_stats *st, enum stats_metric which,
			struct stats_buckets *out)
{
	const struct metric *m = &st->metrics[which];

	if (!st->buckets || atomic_load(&m->reset) ||
	    !atomic_load_explicit(&m->ranged, memory_order_acquire))
		return false;
	*out = (struct stats_buckets){
		.low = get(&m->low),
		.high = get(&m->high),
		.lower = atomic_load_explicit(&m->lower, RELAXED),
		.higher = atomic_load_explicit(&m->higher, RELAXED),
		.count = st->buckets,
		.rows = m->rows,
	};
	return true;
}

static json_t *buckets_json(const struct stats_buckets *b)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < b->count; i++)
		json_array_append_new(rows, json_integer((json_int_t)
							 atomic_load(&b->rows[i])));
	return rows;
}

static json_t *metric_json(const struct node_stats *st, enum stats_metric m)
{
	static const struct {
		const char *name;
		enum stats_type type;
	} figures[] = {
		{ "last", STATS_LAST },	      { "highest", STATS_HIGHEST },
		{ "lowest", STATS_LOWEST },   { "mean", STATS_MEAN },
		{ "variance", STATS_VAR },    { "stddev", STATS_STDDEV },
		{ "p50", STATS_P50 },	      { "p90", STATS_P90 },
		{ "p99", STATS_P99 },	      { "p99.9", STATS_P999 },
	};
	double total = node_stats_figure(st, m, STATS_TOTAL);
	struct stats_buckets b = { 0 };
	bool ranged = node_stats_buckets(st, m, &b);
	json_t *o = json_pack("{sf sf sI}", "low", b.low, "high", b.high,
			      "total", (json_int_t)total);

	if (!o || total == 0)
		return o;
	json_object_set_new(o, "higher", json_integer((json_int_t)b.higher));
	json_object_set_new(o, "lower", json_integer((json_int_t)b.lower));
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		json_object_set_new(o, figures[i].name,
				    json_real(node_stats_figure(
					    st, m, figures[i].type)));
	if (ranged)
		json_object_set_new(o, "buckets", buckets_json(&b));
	return o;
}

json_t *node_stats_json(const struct node_stats *st)
{
	json_t *o = json_object();

	for (int m = 0; m < STATS_METRICS; m++)
		json_object_set_new(o, stats_metric_names[m],
				    metric_json(st, (enum stats_metric)m));
	return o;
}
