/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kind "hca" of benchmark suites: one-way latencies between two adapters or queue pairs of one
 * host, with one clock; round trips and throughput too, also between two hosts. Besides RDMA itself
 * the public verbs and the connection manager are used only, so real adapters are measured in the
 * same way. This file makes columns, latencies and figures of what the ends left in shared memory.
 */
#define LOG_ROOM "bench/hca"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/hca/case.h"
#include "bench/hca/remote.h"
#include "bench/result/statistics.h"
#include "util/log.h"

/* stamp = send: a time that was written longer before the message than this tells that the
 * thread which overwrites it did not run. */
#define STALE_NS 1000

static int64_t *add_column(struct hca_outcome *o, const char *name, const char *unit)
{
	int64_t *values = o->values + o->column_count * o->rows;

	o->columns[o->column_count++] = (struct result_column){
		.name = name, .unit = unit, .values = values,
	};
	return values;
}

static void add_times(struct hca_outcome *o, const char *name, const uint64_t *times)
{
	int64_t *values = add_column(o, name, "ns");

	for (size_t i = 0; i < o->rows; i++)
		values[i] = times[i] ? (int64_t)times[i] : RESULT_ABSENT;
}

/* Median over the bursts of messages per second, from the first post to the last receipt: what
 * the receiver sees alone is how fast a queue is drained that had filled meanwhile. */
static double rate_oneway(const struct hca_case *c, const struct hca_shared *s)
{
	const uint64_t *subm = s->column[HCA_T_SUBM], *recv = s->column[HCA_T_RECV];
	int64_t *rates = calloc(c->repetitions, sizeof(*rates));
	size_t n = 0;
	double rate;

	for (uint32_t run = 0; rates && run < c->repetitions; run++) {
		uint64_t first = UINT64_MAX, last = 0, got = 0;

		for (size_t i = (size_t)run * c->burst; i < (size_t)(run + 1) * c->burst; i++) {
			if (subm[i])
				first = MIN(first, subm[i]);
			last = MAX(last, recv[i]);
			got += recv[i] != 0;
		}
		if (got && last > first)
			rates[n++] = (int64_t)((double)got * 1e9 / (double)(last - first));
	}
	rate = statistics_median(rates, n);
	free(rates);
	return rate;
}

/* Of both ends in one host by their common clock, of all bursts. */
static double rate_throughput(const struct hca_shared *s)
{
	const uint64_t *first = s->column[HCA_T_SUBM], *last = s->column[HCA_T_RECV];
	uint64_t ns = 0;

	for (size_t i = 0; i < s->rows; i++)
		if (first[i] && last[i] > first[i])
			ns += last[i] - first[i];
	return ns ? (double)s->end[HCA_RECEIVER].received * 1e9 / (double)ns : NAN;
}

/* Two hosts have no common clock. The last completion of RC tells its sender that all has
 * arrived; of UC and UD the first receipt has to begin the time. */
static double rate_remote(const struct hca_case *c, const struct hca_shared *s)
{
	const struct hca_report *tx = &s->end[HCA_SENDER], *rx = &s->end[HCA_RECEIVER];

	if (c->type == HCA_RC)
		return tx->busy_ns ? (double)tx->sent * 1e9 / (double)tx->busy_ns : NAN;
	return rx->busy_ns && rx->received > c->repetitions ?
		       (double)(rx->received - c->repetitions) * 1e9 / (double)rx->busy_ns : NAN;
}

static double rate_of(const struct hca_case *c, const struct hca_shared *s)
{
	switch (c->mode) {
	case HCA_ONEWAY: return rate_oneway(c, s);
	case HCA_THROUGHPUT: return c->remote ? rate_remote(c, s) : rate_throughput(s);
	case HCA_ROUNDTRIP: break;
	}
	return NAN;
}

static const char *rate_label(const struct hca_case *c)
{
	return !c->remote ? "messages/s, first post to last receipt" :
	       c->type == HCA_RC ? "messages/s, first post to last acknowledgement" :
				   "messages/s, first to last receipt";
}

/* A round trip is over when the reply is there. */
static uint64_t arrived(const struct hca_case *c, const struct hca_shared *s)
{
	return s->end[c->mode == HCA_ROUNDTRIP ? HCA_SENDER : HCA_RECEIVER].received;
}

/* RC has none: its sender was told that each message arrived. */
static int check_losses(const struct hca_case *c, const struct hca_shared *s)
{
	uint64_t sent = s->end[HCA_SENDER].sent, came = arrived(c, s);

	if (c->type != HCA_RC || came == sent)
		return 0;
	return log_fail(-EIO, "of %llu messages %llu arrived, though RC loses none",
			(unsigned long long)sent, (unsigned long long)came);
}

/* The times of each mode. */
static const struct {
	enum hca_mode mode;
	const char *name;
	enum hca_column from;
} times[] = {
	{ HCA_ONEWAY, "t_subm", HCA_T_SUBM },      { HCA_ONEWAY, "t_recv", HCA_T_RECV },
	{ HCA_ONEWAY, "t_comp", HCA_T_COMP },      { HCA_ROUNDTRIP, "t_subm", HCA_T_SUBM },
	{ HCA_ROUNDTRIP, "t_recv", HCA_T_RECV },   { HCA_ROUNDTRIP, "t_back", HCA_T_BACK },
	{ HCA_ROUNDTRIP, "t_comp", HCA_T_COMP },   { HCA_THROUGHPUT, "t_first", HCA_T_SUBM },
	{ HCA_THROUGHPUT, "t_last", HCA_T_RECV },
};

/* What the messages carried: of stamp = send the times that were written in time, in a column. */
struct carried {
	size_t stale, damaged;
};

static struct carried add_columns(const struct hca_case *c, const struct hca_shared *s,
				  struct hca_outcome *o)
{
	uint32_t burst = c->mode == HCA_THROUGHPUT ? 1 : c->burst;
	int64_t *run = add_column(o, "run", ""), *id = add_column(o, "id", ""), *sent;
	struct carried carried = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i].mode == c->mode)
			add_times(o, times[i].name, s->column[times[i].from]);
	sent = c->stamp_send ? add_column(o, "t_send", "ns") : NULL;
	for (size_t i = 0; i < o->rows; i++) {
		uint64_t subm = s->column[HCA_T_SUBM][i], at = s->column[HCA_T_SENT][i];
		bool came = s->column[HCA_T_RECV][i], old = at + STALE_NS < subm;

		run[i] = (int64_t)(i / burst);
		id[i] = (int64_t)(i % burst);
		carried.damaged += came && at != subm;
		carried.stale += came && old;
		if (sent)
			sent[i] = came && !old ? (int64_t)at : RESULT_ABSENT;
	}
	return carried;
}

static void add_latencies(const struct hca_case *c, struct hca_outcome *o)
{
	const struct {
		bool is_there;
		struct result_latency latency;
	} all[] = {
		{ c->mode == HCA_ROUNDTRIP, { "t_rtt", "round trip", "t_subm", "t_back" } },
		{ c->mode == HCA_ROUNDTRIP && !c->remote,
		  { "t_lat", "one-way latency, there", "t_subm", "t_recv" } },
		{ c->mode == HCA_ONEWAY, { "t_lat", "one-way latency", "t_subm", "t_recv" } },
		{ c->stamp_send,
		  { "t_lat_send", "latency from the adapter's reading", "t_send", "t_recv" } },
		{ c->mode == HCA_ONEWAY,
		  { "t_lat_comp", "until the completion", "t_subm", "t_comp" } },
		{ c->mode == HCA_THROUGHPUT && !c->remote,
		  { "t_burst", "time of a burst", "t_first", "t_last" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].is_there)
			o->latencies[o->latency_count++] = all[i].latency;
}

/* Half of the median round trip; NAN: there is none. */
static double half_of_trip(const struct hca_case *c, const struct hca_shared *s)
{
	const uint64_t *subm = s->column[HCA_T_SUBM], *back = s->column[HCA_T_BACK];
	int64_t *trips = c->mode == HCA_ROUNDTRIP ? calloc(s->rows, sizeof(*trips)) : NULL;
	size_t n = 0;
	double median;

	for (size_t i = 0; trips && i < s->rows; i++)
		if (subm[i] && back[i])
			trips[n++] = (int64_t)(back[i] - subm[i]);
	median = statistics_median(trips, n);
	free(trips);
	return median / 2;
}

static double percent(uint64_t part, uint64_t of)
{
	return of ? 100.0 * (double)part / (double)of : NAN;
}

static void add_figures(const struct hca_case *c, const struct hca_shared *s,
			const struct carried *carried, struct hca_outcome *o)
{
	const struct hca_report *tx = &s->end[HCA_SENDER], *rx = &s->end[HCA_RECEIVER];
	const struct hca_report *here = c->remote && !tx->tid && !tx->wall_ns ? rx : tx;
	const double rate = rate_of(c, s), half = half_of_trip(c, s);
	const bool oneway = c->mode == HCA_ONEWAY, single = c->mode != HCA_THROUGHPUT;
	/* A write may come before the one before it in the same buffer was looked at. */
	const bool looked = c->op == HCA_SEND || rx->buffers >= c->burst;
	const struct result_figure figures[] = {
		{ c->stamp_send ? "stale" : NULL, "times that nobody had overwritten", "",
		  (double)carried->stale },
		{ oneway && !c->stamp_send && looked ? "damaged" : NULL,
		  "messages with another content", "", (double)carried->damaged },
		{ isnan(rate) ? NULL : "rate", rate_label(c), "1/s", rate },
		{ isnan(rate) ? NULL : "bandwidth", "payload", "MB/s", rate * c->size / 1e6 },
		{ isnan(half) ? NULL : "half_rtt", "half of the median round trip", "ns", half },
		{ "sent", "messages sent", "", (double)tx->sent },
		{ "lost", "messages lost", "", (double)tx->sent - (double)arrived(c, s) },
		{ single ? "duplicates" : NULL, "messages that came twice", "",
		  (double)(rx->duplicates + tx->duplicates) },
		{ oneway ? "reordered" : NULL, "messages behind a later one", "",
		  (double)rx->reordered },
		{ "cpu_send", "processor time of the sender", "%",
		  percent(tx->cpu_ns, tx->wall_ns) },
		{ "cpu_recv", "processor time of the receiver", "%",
		  percent(rx->cpu_ns, rx->wall_ns) },
		/* What the tool itself takes, in a loop that does nothing else. */
		{ "own_send", "own cost of a time stamp, sender", "ns", (double)tx->own_ns },
		{ "own_recv", "own cost of a time stamp, receiver", "ns", (double)rx->own_ns },
		{ "events", "events that woke a thread", "", (double)(tx->events + rx->events) },
		{ "depth", "requests that the send queue holds", "", here->depth },
		{ "buffers", "message buffers of each side", "", here->buffers },
		{ "locked", "memory is locked", "", here->locked },
		{ "huge", "memory lies in huge pages", "", s->huge && here->huge },
	};

	_Static_assert(ARRAY_SIZE(figures) <= HCA_OUTCOME_FIGURES, "room in the outcome");
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		if (figures[i].name)
			o->figures[o->figure_count++] = figures[i];
}

int hca_outcome_make(const struct hca_case *c, const struct hca_shared *s,
		     struct hca_outcome *o)
{
	struct carried carried;
	int ret = check_losses(c, s);

	if (ret)
		return ret;
	*o = (struct hca_outcome){ .rows = s->rows };
	o->values = calloc(HCA_OUTCOME_COLUMNS * s->rows, sizeof(*o->values));
	if (!o->values)
		return log_fail(-ENOMEM, "no memory for the times of %zu messages", s->rows);
	carried = add_columns(c, s, o);
	add_latencies(c, o);
	add_figures(c, s, &carried, o);
	return 0;
}

void hca_outcome_free(struct hca_outcome *o)
{
	free(o->values);
	o->values = NULL;
}

/* ---- the kind ---- */

static int check(const json_t *parameters)
{
	struct hca_case c;

	return hca_case_read(parameters, 1, &c);
}

static double seconds(const json_t *parameters, double scale)
{
	struct hca_case c;

	return hca_case_read(parameters, scale, &c) ? 0 : hca_case_seconds(&c);
}

static int measure(const json_t *parameters, const struct bench_context *context,
		   const struct hca_case *c, struct hca_shared *s)
{
	int fd, ret;

	if (!c->remote)
		return hca_measure_local(c, s, context);
	fd = hca_remote_connect(bench_text(parameters, "peer"), parameters, context->scale);
	if (fd < 0)
		return fd;
	ret = hca_measure_end(c, s, HCA_SENDER, fd, context);
	close(fd);
	return ret;
}

static int run(const json_t *parameters, const struct bench_context *context)
{
	struct hca_outcome outcome = { .values = NULL };
	struct hca_shared *s = NULL;
	struct hca_case c;
	int ret = hca_case_read(parameters, context->scale, &c) ?: hca_shared_create(&c, &s) ?:
		  measure(parameters, context, &c, s) ?: hca_outcome_make(&c, s, &outcome) ?:
		  result_case_rows(context->result, outcome.columns, outcome.column_count,
				   outcome.rows, outcome.latencies, outcome.latency_count) ?:
		  result_case_figures(context->result, outcome.figures, outcome.figure_count);

	hca_outcome_free(&outcome);
	hca_shared_destroy(s);
	return ret;
}

const struct bench_kind bench_kind_hca = {
	.name = "hca",
	.summary = "messages between two queue pairs of one host",
	.parameters = hca_parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
