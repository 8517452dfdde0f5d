/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `stats`: records the metrics of a node from what it receives, and prints
 * them from the statistics thread and at the end. The metrics themselves, and
 * how others read them, are in stats.h. The age of a sample is recorded by the
 * path that sends it on.
 */
#define LOG_ROOM "gateway/stats"
#include "gateway/plugin/stats.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/plugin/hook.h"
#include "gateway/hook/part/output.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/sequence.h"
#include "gateway/sample/time.h"
#include "util/bounded_write.h"
#include "util/clock.h"
#include "util/log.h"

/* At the end a reader may be slow; one that has stopped before is not waited for. */
#define PATIENCE_MS 1000
#define STUCK_MS 10

enum { FORMAT_HUMAN, FORMAT_JSON, FORMAT_MATLAB };
static const char *const format_names[] = { "human", "json", "matlab", NULL };

struct stats {
	int format;
	bool verbose;
	int64_t warmup, buckets;
	const char *output;
	int fd;                  /* standard output when no output is given; -1: stopped */
	FILE *file;              /* one printout, in memory */
	char *rest;              /* of it, what nobody has read yet */
	size_t rest_len;
	uint64_t left_out;       /* printouts since somebody read one */

	struct node_stats *metrics;
	_Atomic uint64_t samples, lost, late, negative;
	struct sequence sequence;
	struct timespec last_origin, last_received; /* 0: none */
	bool seen;
};

extern const struct hook_type hook_stats;

static const struct config_key stats_keys[] = {
	{ "format", CONFIG_ENUM, offsetof(struct stats, format), "human",
	  .names = format_names, .help = "How the figures are printed" },
	{ "verbose", CONFIG_BOOL, offsetof(struct stats, verbose), "false",
	  .help = "Print the distributions too" },
	{ "warmup", CONFIG_INT, offsetof(struct stats, warmup), "500",
	  .min = 0, .max = 1e12,
	  .help = "The first so many values set the range of the buckets; they count in all else" },
	{ "buckets", CONFIG_INT, offsetof(struct stats, buckets), "20",
	  .min = 0, .max = 1000,
	  .help = "Rows of the distributions, 0 for none" },
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

static inline uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void record_sequence(struct stats *st, const struct sample *s)
{
	switch (sequence_judge(&st->sequence, s)) {
	case SEQUENCE_LOST:
		count(&st->lost, st->sequence.distance);
		node_stats_update(st->metrics, STATS_SKIPPED,
				  (double)st->sequence.distance);
		break;
	case SEQUENCE_LATE:
		count(&st->late, 1);
		node_stats_update(st->metrics, STATS_REORDERED,
				  (double)st->sequence.distance);
		break;
	default:
		break;
	}
}

static bool is_time(struct timespec t)
{
	return t.tv_sec || t.tv_nsec;
}

static void record_difference(struct stats *st, enum stats_metric m, struct timespec later,
			      struct timespec earlier)
{
	if (likely(is_time(later) && is_time(earlier)))
		node_stats_update_ns(st->metrics, m, sample_time_since_ns(later, earlier));
}

static enum hook_verdict stats_process(struct hook *h, struct sample **smp)
{
	const struct sample *s = *smp;
	struct stats *st = h->private_data;
	const struct timespec none = { 0, 0 };
	struct timespec origin = s->flags & SAMPLE_HAS_ORIGIN ? s->origin : none;
	struct timespec received = s->flags & SAMPLE_HAS_RECEIVED ? s->received : none;

	/* All of these from the second sample on, so that one number of samples
	 * stands behind the delays and the gaps. */
	if (st->seen) {
		if (is_time(origin) && is_time(received) &&
		    sample_time_is_later(origin, received))
			count(&st->negative, 1);
		record_difference(st, STATS_OWD, received, origin);
		record_difference(st, STATS_GAP_SENT, origin, st->last_origin);
		record_difference(st, STATS_GAP_RECEIVED, received, st->last_received);
	}
	record_sequence(st, s);
	node_stats_update(st->metrics, STATS_SIGNAL_CNT, s->length);
	count(&st->samples, 1);
	st->last_origin = origin;
	st->last_received = received;
	st->seen = true;
	return HOOK_OK;
}

static double figure(const struct stats *st, int m, enum stats_type t)
{
	return node_stats_figure(st->metrics, (enum stats_metric)m, t);
}

static bool in_seconds(int m)
{
	return *stats_unit((enum stats_metric)m, STATS_MEAN);
}

static bool has_buckets(const struct stats *st, int m, struct stats_buckets *b)
{
	return st->verbose &&
	       node_stats_buckets(st->metrics, (enum stats_metric)m, b);
}

static void print_distribution(struct stats *st, int m)
{
	double unit = in_seconds(m) ? 1e-6 : 1;
	struct stats_buckets b;

	if (!has_buckets(st, m, &b))
		return;
	fprintf(st->file, "    below %12.3f  %10llu\n", b.low / unit,
		(unsigned long long)b.lower);
	for (unsigned i = 0; i < b.count; i++)
		fprintf(st->file, "    up to %12.3f  %10llu\n",
			(b.low + (b.high - b.low) * (i + 1) / b.count) / unit,
			(unsigned long long)get(&b.rows[i]));
	fprintf(st->file, "    above %12.3f  %10llu\n", b.high / unit,
		(unsigned long long)b.higher);
}

static void print_human(struct hook *h, struct stats *st)
{
	static const enum stats_type columns[] = {
		STATS_MEAN, STATS_STDDEV, STATS_P50, STATS_P99, STATS_P999,
		STATS_HIGHEST,
	};

	fprintf(st->file,
		"%s: %llu samples, %llu lost, %llu reordered, %llu delays below zero\n",
		h->owner, (unsigned long long)get(&st->samples),
		(unsigned long long)get(&st->lost),
		(unsigned long long)get(&st->late),
		(unsigned long long)get(&st->negative));
	fprintf(st->file, "  %-20s %10s", "", "total");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		fprintf(st->file, " %12s", stats_type_names[columns[i]]);
	fputc('\n', st->file);
	for (int m = 0; m < STATS_METRICS; m++) {
		double unit = in_seconds(m) ? 1e-6 : 1;
		double total = figure(st, m, STATS_TOTAL);

		if (total == 0)
			continue;
		fprintf(st->file, "  %-17s%3s %10.0f", stats_metric_names[m],
			in_seconds(m) ? "us" : "", total);
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
			fprintf(st->file, " %12.3f",
				figure(st, m, columns[i]) / unit);
		fputc('\n', st->file);
		print_distribution(st, m);
	}
}

static json_t *metric_json(const struct stats *st, int m)
{
	json_t *o = json_object(), *rows;
	struct stats_buckets b;

	for (int t = 0; t < STATS_TYPES; t++) {
		double value = figure(st, m, (enum stats_type)t);

		/* Nothing recorded is null: JSON has no NaN. */
		json_object_set_new(o, stats_type_names[t],
				    t == STATS_TOTAL ?
					    json_integer((json_int_t)value) :
				    isfinite(value) ? json_real(value) :
						      json_null());
	}
	if (!has_buckets(st, m, &b))
		return o;
	rows = json_array();
	for (unsigned i = 0; i < b.count; i++)
		json_array_append_new(rows, json_integer((json_int_t)get(
						    &b.rows[i])));
	json_object_set_new(o, "low", json_real(b.low));
	json_object_set_new(o, "high", json_real(b.high));
	json_object_set_new(o, "lower", json_integer((json_int_t)b.lower));
	json_object_set_new(o, "higher", json_integer((json_int_t)b.higher));
	json_object_set_new(o, "buckets", rows);
	return o;
}

/* One line; times in seconds, as users of the field's tools expect. */
static void print_json(struct hook *h, struct stats *st)
{
	json_t *o = json_pack("{ss sf sI sI sI}", "node", h->owner, "time",
			      (double)timespec_to_ns(clock_realtime()) / 1e9,
			      "received", (json_int_t)get(&st->samples), "lost",
			      (json_int_t)get(&st->lost), "negative",
			      (json_int_t)get(&st->negative));

	if (!o)
		return;
	for (int m = 0; m < STATS_METRICS; m++)
		json_object_set_new(o, stats_metric_names[m],
				    metric_json(st, m));
	json_dumpf(o, st->file, JSON_COMPACT);
	fputc('\n', st->file);
	json_decref(o);
}

/* A name that the language takes: letters, digits, underscores. */
static void print_identifier(FILE *f, const char *name)
{
	if (!isalpha((unsigned char)*name))
		fputc('n', f);
	for (; *name; name++)
		fputc(isalnum((unsigned char)*name) ? *name : '_', f);
}

/* One statement per metric: NODE.METRIC = struct(...); */
static void print_matlab(struct hook *h, struct stats *st)
{
	for (int m = 0; m < STATS_METRICS; m++) {
		struct stats_buckets b;

		print_identifier(st->file, h->owner);
		fputc('.', st->file);
		print_identifier(st->file, stats_metric_names[m]);
		fputs(" = struct(", st->file);
		for (int t = 0; t < STATS_TYPES; t++) {
			double value = figure(st, m, (enum stats_type)t);

			fputs(t ? ", '" : "'", st->file);
			print_identifier(st->file, stats_type_names[t]);
			if (isfinite(value))
				fprintf(st->file, "', %.17g", value);
			else
				fputs("', NaN", st->file);
		}
		if (has_buckets(st, m, &b)) {
			fprintf(st->file,
				", 'low', %.17g, 'high', %.17g, 'lower', %llu, 'higher', %llu, 'buckets', [",
				b.low, b.high, (unsigned long long)b.lower,
				(unsigned long long)b.higher);
			for (unsigned i = 0; i < b.count; i++)
				fprintf(st->file, "%s%llu", i ? " " : "",
					(unsigned long long)get(&b.rows[i]));
			fputc(']', st->file);
		}
		fputs(");\n", st->file);
	}
}

static void print_figures(struct hook *h, struct stats *st)
{
	switch (st->format) {
	case FORMAT_HUMAN:
		print_human(h, st);
		break;
	case FORMAT_JSON:
		print_json(h, st);
		break;
	case FORMAT_MATLAB:
		print_matlab(h, st);
		break;
	}
}

/*
 * What a hook `print` has put into the buffer goes first. False when that waits
 * for the reader: who prints figures holds what the whole gateway needs, and must
 * not.
 */
static bool is_next(const struct stats *st, unsigned patience_ms)
{
	return st->fd != STDOUT_FILENO ||
	       hook_output_flush_stdout(patience_ms > 0);
}

/* True when nothing is left. */
static bool write_rest(struct stats *st, unsigned patience_ms)
{
	size_t done;

	if (!st->rest_len)
		return true;
	if (!is_next(st, patience_ms))
		return false;
	done = bounded_write(st->fd, st->rest, st->rest_len, patience_ms);
	st->rest_len -= done;
	memmove(st->rest, st->rest + done, st->rest_len);
	return st->rest_len == 0;
}

/* A reader that stops finds whole printouts later, but not all of them. */
static void print_within(struct hook *h, struct stats *st, unsigned patience_ms)
{
	if (st->fd < 0)
		return;
	if (!write_rest(st, patience_ms)) {
		if (st->left_out++ == 0)
			log_warn("%s: hook stats: nobody reads %s, printouts are left out",
				 h->owner, st->output ?: "standard output");
		return;
	}
	if (st->left_out)
		log_info("%s: hook stats: %llu printouts were left out", h->owner,
			 (unsigned long long)st->left_out);
	st->left_out = 0;
	free(st->rest);
	st->rest = NULL;
	st->file = open_memstream(&st->rest, &st->rest_len);
	if (!st->file)
		return;
	print_figures(h, st);
	fclose(st->file);
	st->file = NULL;
	write_rest(st, patience_ms);
}

static void stats_print(struct hook *h)
{
	print_within(h, h->private_data, 0);
}

/* Known from here on, so that paths and nodes can name the metrics. */
static int stats_parse_hook(struct hook *h, struct config *c, json_t *cfg)
{
	struct stats *st = h->private_data;

	st->fd = -1;
	st->metrics = node_stats_new((unsigned)st->buckets,
				     (uint64_t)st->warmup);
	if (!st->metrics)
		return -ENOMEM;
	/* A second one prints its own. */
	if (h->node && !h->node->stats)
		h->node->stats = st->metrics;
	return 0;
}

static void stats_destroy(struct hook *h)
{
	struct stats *st = h->private_data;

	if (h->node && h->node->stats == st->metrics)
		h->node->stats = NULL;
	node_stats_put(st->metrics);
}

static void stats_reset(struct hook *h)
{
	struct stats *st = h->private_data;

	node_stats_reset(st->metrics);
	atomic_store(&st->samples, 0);
	atomic_store(&st->lost, 0);
	atomic_store(&st->late, 0);
	atomic_store(&st->negative, 0);
}

static int stats_start(struct hook *h)
{
	struct stats *st = h->private_data;

	stats_reset(h);
	st->seen = false;
	st->sequence = (struct sequence){ 0 };
	st->left_out = 0;
	st->fd = st->output ? open(st->output,
				   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
					   O_NONBLOCK, 0666) :
			      STDOUT_FILENO;
	if (st->fd < 0) {
		int ret = -errno;

		log_error("%s: cannot write %s: %s", h->owner, st->output,
			  ret == -ENXIO ? "nobody reads from this pipe" :
					  strerror(-ret));
		return ret;
	}
	return 0;
}

static int stats_stop(struct hook *h)
{
	struct stats *st = h->private_data;

	print_within(h, st, st->rest_len ? STUCK_MS : PATIENCE_MS);
	if (st->rest_len)
		log_warn("%s: hook stats: nobody reads %s, the last printout is left out",
			 h->owner, st->output ?: "standard output");
	if (st->output && st->fd >= 0)
		close(st->fd);
	st->fd = -1;
	free(st->rest);
	st->rest = NULL;
	st->rest_len = 0;
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
	.parse = stats_parse_hook,
	.start = stats_start,
	.stop = stats_stop,
	.destroy = stats_destroy,
	.process = stats_process,
	.periodic = stats_print,
	.reset = stats_reset,
};
