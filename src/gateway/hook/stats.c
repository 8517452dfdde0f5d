/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `stats`: figures of what a node receives. Written by the thread of the
 * path, printed by the statistics thread and at the end.
 *
 *	owd           one-way delay, received - origin
 *	age           from reception until it came here
 *	gap_sent      between the origin times of two samples
 *	gap_received  between their receptions
 *	signal_cnt    values per sample
 *
 * A delay below zero (the clocks of two hosts differ) counts as zero and is
 * counted apart.
 */
#define LOG_ROOM "gateway/stats"
#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gateway/hook.h"
#include "util/clock.h"
#include "util/hist.h"
#include "util/log.h"

enum metric { OWD, AGE, GAP_SENT, GAP_RECEIVED, SIGNAL_CNT, METRICS };

static const char *const metric_names[] = {
	[OWD] = "owd",
	[AGE] = "age",
	[GAP_SENT] = "gap_sent",
	[GAP_RECEIVED] = "gap_received",
	[SIGNAL_CNT] = "signal_cnt",
};

enum { FORMAT_HUMAN, FORMAT_JSON };
static const char *const format_names[] = { "human", "json", NULL };

struct stats {
	int format;
	bool verbose;
	int64_t warmup, buckets;
	const char *output;
	FILE *file;              /* stdout when no output is given */

	struct hist metrics[METRICS];
	_Atomic uint64_t samples, lost, reordered, negative;
	uint64_t last_sequence, last_origin_ns, last_received_ns;
	bool seen;
};

extern const struct hook_type hook_stats;

static const struct config_key stats_keys[] = {
	{ "format", CONFIG_ENUM, offsetof(struct stats, format), "human",
	  .names = format_names, .help = "How the figures are printed" },
	{ "verbose", CONFIG_BOOL, offsetof(struct stats, verbose), "false",
	  .help = "Print the distribution of the one-way delay too" },
	{ "warmup", CONFIG_INT, offsetof(struct stats, warmup), "0",
	  .min = 0, .max = 1e12,
	  .help = "Leave out this many samples at the beginning" },
	{ "buckets", CONFIG_INT, offsetof(struct stats, buckets), "20",
	  .min = 1, .max = 1000,
	  .help = "Rows of the distribution that verbose prints" },
	{ "output", CONFIG_STRING, offsetof(struct stats, output),
	  .help = "File to print to; default is standard output" },
};

static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter,
						   memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void record_delay(struct stats *st, enum metric m, uint64_t from,
				uint64_t to)
{
	if (unlikely(to < from)) {
		count(&st->negative, 1);
		to = from;
	}
	hist_record(&st->metrics[m], to - from);
}

static void record_sequence(struct stats *st, const struct sample *s)
{
	uint64_t step = s->sequence - st->last_sequence;

	if (s->flags & SAMPLE_NEW_SIMULATION || step == 1)
		return;
	if (s->sequence > st->last_sequence)
		count(&st->lost, step - 1);
	else
		count(&st->reordered, 1);
}

static enum hook_verdict stats_process(struct hook *h, struct sample **smp)
{
	const struct sample *s = *smp;
	struct stats *st = h->private_data;
	uint64_t origin = 0, received = 0;

	if (unlikely(st->warmup > 0)) {
		st->warmup--;
		return HOOK_OK;
	}
	if (s->flags & SAMPLE_HAS_ORIGIN)
		origin = timespec_to_ns(s->origin);
	if (s->flags & SAMPLE_HAS_RECEIVED) {
		received = timespec_to_ns(s->received);
		record_delay(st, AGE, received,
			     timespec_to_ns(clock_realtime()));
	}
	if (origin && received)
		record_delay(st, OWD, origin, received);
	if (st->seen) {
		if (origin && st->last_origin_ns)
			record_delay(st, GAP_SENT, st->last_origin_ns, origin);
		if (received && st->last_received_ns)
			record_delay(st, GAP_RECEIVED, st->last_received_ns,
				     received);
		if (s->flags & SAMPLE_HAS_SEQUENCE)
			record_sequence(st, s);
	}
	hist_record(&st->metrics[SIGNAL_CNT], s->length);
	count(&st->samples, 1);
	st->last_sequence = s->sequence;
	st->last_origin_ns = origin;
	st->last_received_ns = received;
	st->seen = true;
	return HOOK_OK;
}

static void print_distribution(struct stats *st)
{
	const struct hist *hist = &st->metrics[OWD];
	uint64_t low = hist->min, high = hist_percentile(hist, 99.9);
	uint64_t total = hist->count;
	double step = (double)(high - low) / (double)st->buckets;

	if (!total || high <= low)
		return;
	for (int64_t i = 1; i <= st->buckets; i++) {
		double edge = (double)low + step * (double)i;
		double lo = 0, hi = 100;

		/* The share up to an edge, by halving. */
		for (int k = 0; k < 24; k++) {
			double mid = (lo + hi) / 2;

			if ((double)hist_percentile(hist, mid) <= edge)
				lo = mid;
			else
				hi = mid;
		}
		fprintf(st->file, "    up to %10.3f us  %6.2f %%\n",
			edge / 1e3, lo);
	}
}

static void print_human(struct hook *h, struct stats *st)
{
	fprintf(st->file,
		"%s: %llu samples, %llu lost, %llu reordered, %llu delays below zero\n",
		h->owner, (unsigned long long)st->samples,
		(unsigned long long)st->lost,
		(unsigned long long)st->reordered,
		(unsigned long long)st->negative);
	fprintf(st->file, "  %-16s %12s %12s %12s %12s %12s\n", "", "mean",
		"p50", "p99", "p99.9", "max");
	for (int m = 0; m < METRICS; m++) {
		const struct hist *hist = &st->metrics[m];
		double unit = m == SIGNAL_CNT ? 1 : 1e3;

		if (!hist->count)
			continue;
		fprintf(st->file, "  %-13s%3s %12.3f %12.3f %12.3f %12.3f %12.3f\n",
			metric_names[m], m == SIGNAL_CNT ? "" : "us",
			hist_mean(hist) / unit,
			(double)hist_percentile(hist, 50) / unit,
			(double)hist_percentile(hist, 99) / unit,
			(double)hist_percentile(hist, 99.9) / unit,
			(double)hist->max / unit);
	}
	if (st->verbose)
		print_distribution(st);
}

static json_t *metric_json(const struct hist *hist, double unit)
{
	return json_pack("{sI sf sf sf sf sf sf}", "count",
			 (json_int_t)hist->count, "min",
			 hist->count ? (double)hist->min / unit : 0.0, "mean",
			 hist_mean(hist) / unit, "p50",
			 (double)hist_percentile(hist, 50) / unit, "p99",
			 (double)hist_percentile(hist, 99) / unit, "p99.9",
			 (double)hist_percentile(hist, 99.9) / unit, "max",
			 (double)hist->max / unit);
}

/* One line; times in seconds, as users of the field's tools expect. */
static void print_json(struct hook *h, struct stats *st)
{
	json_t *o = json_pack("{ss sf sI sI sI sI}", "node", h->owner, "time",
			      (double)timespec_to_ns(clock_realtime()) / 1e9,
			      "received", (json_int_t)st->samples, "lost",
			      (json_int_t)st->lost, "reordered",
			      (json_int_t)st->reordered, "negative",
			      (json_int_t)st->negative);

	if (!o)
		return;
	for (int m = 0; m < METRICS; m++)
		json_object_set_new(o, metric_names[m],
				    metric_json(&st->metrics[m],
						m == SIGNAL_CNT ? 1 : 1e9));
	json_dumpf(o, st->file, JSON_COMPACT);
	fputc('\n', st->file);
	json_decref(o);
}

static void stats_print(struct hook *h)
{
	struct stats *st = h->private_data;

	if (!st->file)
		return;
	if (st->format == FORMAT_JSON)
		print_json(h, st);
	else
		print_human(h, st);
	fflush(st->file);
}

static int stats_start(struct hook *h)
{
	struct stats *st = h->private_data;

	for (int m = 0; m < METRICS; m++)
		hist_init(&st->metrics[m]);
	if (!st->output) {
		st->file = stdout;
		return 0;
	}
	st->file = fopen(st->output, "we");
	if (!st->file) {
		int ret = -errno;

		log_error("%s: cannot write %s: %s", h->owner, st->output,
			  strerror(-ret));
		return ret;
	}
	return 0;
}

static int stats_stop(struct hook *h)
{
	struct stats *st = h->private_data;

	stats_print(h);
	if (st->file && st->file != stdout)
		fclose(st->file);
	st->file = NULL;
	return 0;
}

const struct hook_type hook_stats = {
	.name = "stats",
	.description = "delays, gaps, losses of what a node receives",
	.places = HOOK_NODE_READ,
	.priority = 2, /* before `drop`, which would hide doubles from it */
	.read_only = true,
	.size = sizeof(struct stats),
	.keys = stats_keys,
	.key_count = ARRAY_SIZE(stats_keys),
	.start = stats_start,
	.stop = stats_stop,
	.process = stats_process,
	.periodic = stats_print,
};
