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

static void add_figure(struct hca_outcome *o, const char *name, const char *label,
		       const char *unit, double value)
{
	if (o->figure_count < HCA_OUTCOME_FIGURES)
		o->figures[o->figure_count++] = (struct result_figure){
			.name = name, .label = label, .unit = unit, .value = value,
		};
}

static void add_latency(struct hca_outcome *o, const char *name, const char *label,
			const char *from, const char *to)
{
	o->latencies[o->latency_count++] = (struct result_latency){
		.name = name, .label = label, .from = from, .to = to,
	};
}

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

static void add_counters(const struct hca_case *c, struct hca_outcome *o)
{
	uint32_t burst = c->mode == HCA_THROUGHPUT ? 1 : c->burst;
	int64_t *run = add_column(o, "run", ""), *id = add_column(o, "id", "");

	for (size_t i = 0; i < o->rows; i++) {
		run[i] = (int64_t)(i / burst);
		id[i] = (int64_t)(i % burst);
	}
}

/* What the messages carried: of stamp = send the times, else a check. */
static void add_carried(const struct hca_case *c, const struct hca_shared *s,
			struct hca_outcome *o)
{
	const uint64_t *subm = s->column[HCA_T_SUBM], *sent = s->column[HCA_T_SENT];
	int64_t *values = c->stamp_send ? add_column(o, "t_send", "ns") : NULL;
	size_t stale = 0, damaged = 0;

	for (size_t i = 0; i < o->rows; i++) {
		bool came = s->column[HCA_T_RECV][i];
		bool old = sent[i] + STALE_NS < subm[i];

		damaged += came && sent[i] != subm[i];
		stale += came && old;
		if (values)
			values[i] = came && !old ? (int64_t)sent[i] : RESULT_ABSENT;
	}
	if (c->stamp_send)
		add_figure(o, "stale", "times that nobody had overwritten", "", (double)stale);
	/* A write may come before the one before it in the same buffer was looked at. */
	else if (c->op == HCA_SEND || s->end[HCA_RECEIVER].buffers >= c->burst)
		add_figure(o, "damaged", "messages with another content", "", (double)damaged);
}

/* Median over the bursts of messages per second, from the first post to the last receipt: what
 * the receiver sees alone is how fast a queue is drained that had filled meanwhile. */
static double rate_oneway(const struct hca_case *c, const struct hca_shared *s)
{
	const uint64_t *subm = s->column[HCA_T_SUBM], *recv = s->column[HCA_T_RECV];
	int64_t *rates = calloc(c->repetitions, sizeof(*rates));
	struct statistics st;
	size_t n = 0;

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
	if (n)
		statistics_of(rates, n, 0, &st);
	free(rates);
	return n ? (double)st.percentile[2] : NAN;
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

static void add_losses(const struct hca_case *c, const struct hca_shared *s,
		       struct hca_outcome *o)
{
	const struct hca_report *tx = &s->end[HCA_SENDER], *rx = &s->end[HCA_RECEIVER];

	add_figure(o, "sent", "messages sent", "", (double)tx->sent);
	add_figure(o, "lost", "messages lost", "",
		   (double)tx->sent - (double)arrived(c, s));
	if (c->mode == HCA_THROUGHPUT)
		return;
	add_figure(o, "duplicates", "messages that came twice", "",
		   (double)(rx->duplicates + tx->duplicates));
	if (c->mode == HCA_ONEWAY)
		add_figure(o, "reordered", "messages behind a later one", "",
			   (double)rx->reordered);
}

static void add_costs(const struct hca_case *c, const struct hca_shared *s,
		      struct hca_outcome *o)
{
	const struct hca_report *tx = &s->end[HCA_SENDER], *rx = &s->end[HCA_RECEIVER];
	const struct hca_report *here = c->remote && !tx->tid && !tx->wall_ns ? rx : tx;

	add_figure(o, "cpu_send", "processor time of the sender", "%",
		   tx->wall_ns ? 100.0 * (double)tx->cpu_ns / (double)tx->wall_ns : NAN);
	add_figure(o, "cpu_recv", "processor time of the receiver", "%",
		   rx->wall_ns ? 100.0 * (double)rx->cpu_ns / (double)rx->wall_ns : NAN);
	/* What the tool itself takes, in a loop that does nothing else. */
	add_figure(o, "own_send", "own cost of a time stamp, sender", "ns",
		   (double)tx->own_ns);
	add_figure(o, "own_recv", "own cost of a time stamp, receiver", "ns",
		   (double)rx->own_ns);
	add_figure(o, "events", "events that woke a thread", "",
		   (double)(tx->events + rx->events));
	add_figure(o, "depth", "requests that the send queue holds", "", here->depth);
	add_figure(o, "buffers", "message buffers of each side", "", here->buffers);
	add_figure(o, "locked", "memory is locked", "", here->locked);
	add_figure(o, "huge", "memory lies in huge pages", "",
		   s->huge && here->huge);
}

static void add_modes(const struct hca_case *c, const struct hca_shared *s,
		      struct hca_outcome *o)
{
	double rate = rate_of(c, s);

	switch (c->mode) {
	case HCA_ONEWAY:
		add_times(o, "t_subm", s->column[HCA_T_SUBM]);
		add_times(o, "t_recv", s->column[HCA_T_RECV]);
		add_times(o, "t_comp", s->column[HCA_T_COMP]);
		add_carried(c, s, o);
		add_latency(o, "t_lat", "one-way latency", "t_subm", "t_recv");
		if (c->stamp_send)
			add_latency(o, "t_lat_send", "latency from the adapter's reading",
				    "t_send", "t_recv");
		add_latency(o, "t_lat_comp", "until the completion", "t_subm", "t_comp");
		break;
	case HCA_ROUNDTRIP:
		add_times(o, "t_subm", s->column[HCA_T_SUBM]);
		add_times(o, "t_recv", s->column[HCA_T_RECV]);
		add_times(o, "t_back", s->column[HCA_T_BACK]);
		add_times(o, "t_comp", s->column[HCA_T_COMP]);
		add_latency(o, "t_rtt", "round trip", "t_subm", "t_back");
		if (!c->remote)
			add_latency(o, "t_lat", "one-way latency, there", "t_subm", "t_recv");
		break;
	case HCA_THROUGHPUT:
		add_times(o, "t_first", s->column[HCA_T_SUBM]);
		add_times(o, "t_last", s->column[HCA_T_RECV]);
		if (!c->remote)
			add_latency(o, "t_burst", "time of a burst", "t_first", "t_last");
		break;
	}
	if (!isnan(rate)) {
		add_figure(o, "rate", rate_label(c), "1/s", rate);
		add_figure(o, "bandwidth", "payload", "MB/s", rate * c->size / 1e6);
	}
}

static void add_half(const struct hca_shared *s, struct hca_outcome *o)
{
	const uint64_t *subm = s->column[HCA_T_SUBM], *back = s->column[HCA_T_BACK];
	int64_t *trips = calloc(o->rows, sizeof(*trips));
	struct statistics st;
	size_t n = 0;

	for (size_t i = 0; trips && i < o->rows; i++)
		if (subm[i] && back[i])
			trips[n++] = (int64_t)(back[i] - subm[i]);
	if (n) {
		statistics_of(trips, n, 0, &st);
		add_figure(o, "half_rtt", "half of the median round trip", "ns",
			   (double)st.percentile[2] / 2);
	}
	free(trips);
}

int hca_outcome_make(const struct hca_case *c, const struct hca_shared *s,
		     struct hca_outcome *o)
{
	int ret = check_losses(c, s);

	if (ret)
		return ret;
	*o = (struct hca_outcome){ .rows = s->rows };
	o->values = calloc(HCA_OUTCOME_COLUMNS * s->rows, sizeof(*o->values));
	if (!o->values)
		return log_fail(-ENOMEM, "no memory for the times of %zu messages", s->rows);
	add_counters(c, o);
	add_modes(c, s, o);
	if (c->mode == HCA_ROUNDTRIP)
		add_half(s, o);
	add_losses(c, s, o);
	add_costs(c, s, o);
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
	.summary = "one-way latencies between two adapters or queue pairs of a host",
	.parameters = hca_parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
