/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows and figures; see rows.h. A row is a sample that the generator made. A step that it
 * missed has no row: it is a gap in the sequence numbers of the file of what was sent. A sample
 * that is in this file and not in the one of what was received was lost by the node: at the
 * start when it lies before the first one that was received, else on the way.
 */
#define LOG_ROOM "bench/node"
#include "bench/node/rows.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/delivery/match.h"
#include "bench/node/budget.h"
#include "bench/node/medium.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* Of the generator, unless the user says so. */
#define CATCH_UP_NS 100000.0

enum { SEQUENCE, PLAN, ORIGIN, RECV, COLUMNS };

/* `format` as a configuration has it. */
static int load(const char *dir, const char *name, const char *format, struct delivery_samples *out)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return delivery_load(&(struct delivery_file){ .path = path, .format = format,
						      .digest = true }, out);
}

static int64_t time_of(const struct delivery_sample *s, uint32_t flag,
		       struct timespec t)
{
	return s && s->flags & flag ? (int64_t)timespec_to_ns(t) : RESULT_ABSENT;
}

static int fill(const struct delivery_samples *sent,
		const struct delivery_samples *received, int64_t *column[COLUMNS])
{
	for (size_t i = 0; i < sent->count; i++) {
		const struct delivery_sample *a = &sent->samples[i], *b = NULL;

		if (a->match != DELIVERY_NONE)
			b = &received->samples[a->match];
		column[SEQUENCE][i] = (int64_t)a->sequence;
		column[PLAN][i] = time_of(a, SAMPLE_HAS_ORIGIN, a->origin);
		column[ORIGIN][i] = time_of(a, SAMPLE_HAS_RECEIVED, a->received);
		column[RECV][i] = b ? time_of(b, SAMPLE_HAS_RECEIVED, b->received) :
				      RESULT_ABSENT;
		if (b && column[RECV][i] == RESULT_ABSENT)
			return log_fail(-EBADMSG,
					"the node does not say when it received sample %ju",
					(uintmax_t)b->sequence);
	}
	return 0;
}

static const struct result_latency latencies[] = {
	{ "from_plan", "latency from the planned step", "t_plan", "t_recv" },
	{ "from_step", "latency from the step taken", "t_origin", "t_recv" },
	{ "late", "lateness of the step", "t_plan", "t_origin" },
};

/* With those of the budget behind the others, if there is one. */
static int write_columns(int64_t *const column[COLUMNS], size_t rows,
			 const struct bench_node_budget *budget, struct result_case *result)
{
	struct result_latency *all = calloc(ARRAY_SIZE(latencies) +
					    bench_node_budget_latency_count, sizeof(*all));
	struct result_column columns[COLUMNS + BUDGET_COLUMNS] = {
		{ "sequence", "", column[SEQUENCE] },
		{ "t_plan", "ns", column[PLAN] },
		{ "t_origin", "ns", column[ORIGIN] },
		{ "t_recv", "ns", column[RECV] },
	};
	size_t n = ARRAY_SIZE(latencies);
	int ret;

	if (!all)
		return -ENOMEM;
	memcpy(all, latencies, sizeof(latencies));
	if (budget) {
		bench_node_budget_columns(budget, columns + COLUMNS);
		memcpy(all + n, bench_node_budget_latencies,
		       bench_node_budget_latency_count * sizeof(*all));
		n += bench_node_budget_latency_count;
	}
	ret = result_case_rows(result, columns, COLUMNS + (budget ? BUDGET_COLUMNS : 0), rows,
			       all, n);
	free(all);
	return ret;
}

static int write_rows(const struct delivery_samples *sent,
		      const struct delivery_samples *received,
		      const struct bench_node_budget *budget, struct result_case *result)
{
	int64_t *values = malloc((COLUMNS * sent->count + 1) * sizeof(*values));
	int64_t *column[COLUMNS];
	int ret;

	if (!values)
		return log_fail(-ENOMEM, "no memory for %zu rows", sent->count);
	for (size_t c = 0; c < COLUMNS; c++)
		column[c] = values + c * sent->count;
	ret = fill(sent, received, column) ?: write_columns(column, sent->count, budget, result);
	free(values);
	return ret;
}

/* The case of `--budget`: the same rows, and where the time went. */
static int write_budget(const char *dir, const struct delivery_samples *sent,
			const struct delivery_samples *received, struct result_case *result)
{
	struct bench_node_budget budget = { .values = NULL };
	int ret = bench_node_budget_load(dir, sent, received, &budget) ?:
		  write_rows(sent, received, &budget, result) ?:
		  bench_node_budget_figures(&budget, result);

	bench_node_budget_free(&budget);
	return ret;
}

/* Samples a second that came out, from the first to the last one. */
static double rate_of(const struct delivery_samples *received)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < received->count; i++) {
		int64_t t = (int64_t)timespec_to_ns(received->samples[i].received);

		first = t < first ? t : first;
		last = t > last ? t : last;
	}
	if (received->count < 2 || last <= first)
		return 0;
	return (double)(received->count - 1) * 1e9 / (double)(last - first);
}

/* Processors that an end used; -1: unknown, as where whoever measured it came so late, on a busy
 * machine, that data did not flow all the time. `sent` is sorted. */
static double cpu_of(const struct bench_node_facts *f, enum bench_node_end end,
		     const struct delivery_samples *sent)
{
	const struct delivery_sample *last = &sent->samples[sent->count - 1];

	if (f->cpu_ns[end] < 0 || f->cpu_to_ns <= f->cpu_from_ns ||
	    f->cpu_from_ns < (int64_t)timespec_to_ns(sent->samples[0].origin) ||
	    f->cpu_to_ns > (int64_t)timespec_to_ns(last->origin))
		return -1;
	return (double)f->cpu_ns[end] / (double)(f->cpu_to_ns - f->cpu_from_ns);
}

static double percent(double part, double of)
{
	return of > 0 ? 100 * part / of : 0;
}

static int write_figures(const struct bench_node_settings *s,
			 const struct bench_node_facts *f,
			 const struct delivery_result *d,
			 const struct delivery_samples *samples, double rate_hz,
			 struct result_case *result)
{
	double steps = (double)s->steps, sent = (double)d->sent;
	/* The generator's own count may hold steps behind the last one. */
	double gaps = steps - sent, missed = fmin(gaps, (double)f->missed);
	double source_cpu = cpu_of(f, BENCH_NODE_SOURCE, samples);
	double target_cpu = cpu_of(f, BENCH_NODE_TARGET, samples);
	const struct result_figure figures[] = {
		{ "steps", "steps of the generator", "", steps },
		{ "sent", "samples sent", "", sent },
		{ "received", "samples received", "", (double)d->matched },
		{ "missed", "steps missed by the generator", "", missed },
		{ "missed_share", "share of the steps missed", "%",
		  percent(missed, steps) },
		{ "made_up", "steps late by a period and made up", "",
		  (double)f->made_up },
		{ "made_up_share", "share of the steps made up", "%",
		  percent((double)f->made_up, steps) },
		{ "lost_start", "lost before the first one received", "",
		  (double)d->before },
		{ "lost_start_share", "share of the samples lost at the start", "%",
		  percent((double)d->before, sent) },
		{ "lost", "lost by the node", "", (double)d->lost },
		{ "lost_share", "share of the samples lost by the node", "%",
		  percent((double)d->lost, sent) },
		{ "refused", "of all lost, not taken by the node", "",
		  (double)f->refused },
		{ "unrecorded", "steps in no file and not missed", "", gaps - missed },
		{ "out_of_order", "received out of order", "",
		  (double)d->out_of_order },
		{ "duplicates", "received more than once", "",
		  (double)d->duplicates },
		{ "never_sent", "received but never sent", "", (double)d->unknown },
		{ "damaged", "received with other values", "",
		  (double)d->values_differ },
		{ "rate", "samples received", "1/s", rate_hz },
		{ source_cpu < 0 ? NULL : "source_cpu", "processors that the source used", "",
		  source_cpu },
		{ target_cpu < 0 ? NULL : "target_cpu", "processors that the target used", "",
		  target_cpu },
	};

	return result_case_figures(result, figures, ARRAY_SIZE(figures));
}

/* ---- the file under test ---- */

uint64_t bench_node_missed_behind(const struct delivery_samples *sent,
				  const struct delivery_samples *received,
				  double period_ns, double catch_up_ns)
{
	/* The generator leaves out no step that is late by less than a period. */
	double bound = fmax(catch_up_ns, period_ns);
	uint64_t behind = 0;

	for (size_t i = 1; i < sent->count; i++) {
		const struct delivery_sample *a = &sent->samples[i - 1];
		uint64_t gap = sent->samples[i].sequence - a->sequence - 1;
		double late_ns;

		if (!gap || gap > INT64_MAX || a->match == DELIVERY_NONE)
			continue;
		/* How late the first missed step was when the path was done. */
		late_ns = (double)((int64_t)timespec_to_ns(
					   received->samples[a->match].received) -
				   (int64_t)timespec_to_ns(a->origin)) - period_ns;
		if (late_ns > bound)
			behind += (uint64_t)fmin(ceil((late_ns - bound) / period_ns),
						 (double)gap);
	}
	return behind;
}

/* The format as a configuration has it: what the user says, or ours. */
static char *format_of(const struct bench_node_settings *s)
{
	json_t *format = json_object_get(s->out, "format");

	if (!format)
		format = json_object_get(s->keys, "format");
	if (json_is_object(format))
		return json_dumps(format, JSON_COMPACT);
	return strdup(json_is_string(format) ? json_string_value(format) : "csv");
}

static int logged_figures(const struct bench_node_settings *s, const char *dir,
			  const struct delivery_result *d, uint64_t behind,
			  struct result_case *result)
{
	char path[PATH_MAX];
	double lost = (double)(d->lost + d->before), sent = (double)d->sent, bytes;
	struct stat st;

	snprintf(path, sizeof(path), "%s/" BENCH_NODE_LOGGED, dir);
	bytes = stat(path, &st) ? 0 : (double)st.st_size;
	const struct result_figure figures[] = {
		{ "missed_by_node", "of all missed, because the path still wrote (at most)", "",
		  (double)behind },
		{ "file_lost", "samples that are not in the file", "", lost },
		{ "file_lost_share", "share of the samples not in the file", "%",
		  percent(lost, sent) },
		{ "file_damaged", "in the file with other values", "", (double)d->values_differ },
		{ "file_rate", "written to the file", "MiB/s",
		  bytes / (1 << 20) / bench_node_seconds(s) },
	};

	return result_case_figures(result, figures, ARRAY_SIZE(figures));
}

/* Figures of the file. Matches `sent` anew: whoever needs its matches was before. */
static int write_logged(const char *dir, const struct bench_node_settings *s,
			struct delivery_samples *sent, const struct delivery_samples *received,
			struct result_case *result)
{
	const struct delivery_options options = { .ignore_times = true };
	double catch_up_ns = s->catch_up_ns < 0 ? CATCH_UP_NS : (double)s->catch_up_ns;
	uint64_t behind = bench_node_missed_behind(sent, received, 1e9 / s->rate_hz, catch_up_ns);
	struct delivery_samples logged = { 0 };
	struct delivery_result d;
	char *format = format_of(s);
	int ret = (format ? load(dir, BENCH_NODE_LOGGED, format, &logged) : -ENOMEM) ?:
		  delivery_match(sent, &logged, &options, &d) ?:
		  logged_figures(s, dir, &d, behind, result);

	free(format);
	delivery_samples_free(&logged);
	return ret;
}

int bench_node_rows(const char *dir, const struct bench_node_settings *s,
		    const struct bench_node_facts *facts, struct result_case *result)
{
	struct delivery_samples sent = { 0 }, received = { 0 };
	const struct delivery_options options = { .ignore_times = true };
	struct delivery_result d;
	double rate_hz;
	int ret = load(dir, "sent.bin", "busbar.binary", &sent) ?:
		  load(dir, "received.bin", "busbar.binary", &received);

	if (!ret && !sent.count)
		ret = log_fail(-EBADMSG, "the generator has made no sample");
	if (ret)
		goto out;
	rate_hz = rate_of(&received);
	ret = delivery_match(&sent, &received, &options, &d);
	if (ret)
		log_error("no memory to compare what was sent and received");
	else if (!received.count)
		ret = log_fail(-EIO, "nothing has come through the node '%s'", s->node);
	ret = ret ?: (s->budget ? write_budget(dir, &sent, &received, result) :
				  write_rows(&sent, &received, NULL, result)) ?:
	      write_figures(s, facts, &d, &sent, rate_hz, result) ?:
	      (s->medium->logs ? write_logged(dir, s, &sent, &received, result) : 0);
out:
	delivery_samples_free(&sent);
	delivery_samples_free(&received);
	return ret;
}
