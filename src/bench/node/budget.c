/* SPDX-License-Identifier: BSD-2-Clause */
/* Time stamps of two infiniband nodes as columns and latencies; see budget.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/budget.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/result/number.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* Stamps on the way of a sample, up to and with that of its point. */
#define WAY_PREPARED 3 /* IB_WRITE_CALL, ENTERED, PREPARED */
#define WAY_POLLED 4
#define WAY_STAMPED 5
/* Differences above are those of a file that was not written by these two. */
#define SPAN_NS_MAX 3600e9

static const char *const names[BUDGET_COLUMNS] = {
	"t_arrived", "t_way_polled", "t_way_stamped", "t_way_recv",
	"t_write", "t_w_entered", "t_w_prepared", "t_w_posted", "t_w_sorted",
	"t_w_collected", "t_w_returned",
	"t_read", "t_r_entered", "t_r_polled", "t_r_stamped", "t_r_taken",
	"t_r_refilled", "t_r_returned",
	"t_write_call", "t_write_end", "t_read_call", "t_read_end",
};

const struct result_latency bench_node_budget_latencies[] = {
	{ "way", "way of a sample, from outside", "t_origin", "t_arrived" },
	{ "way.path", "generator and path", "t_origin", "t_write" },
	{ "way.prepare", "write: up to post_send", "t_write", "t_w_prepared" },
	{ "way.adapter", "adapter: post_send to poll_cq", "t_w_prepared", "t_way_polled" },
	{ "way.stamp", "read: takes the time", "t_way_polled", "t_way_stamped" },
	{ "way.clocks", "the two clocks differ by", "t_way_stamped", "t_way_recv" },
	{ "write", "write, from outside", "t_write_call", "t_write_end" },
	{ "write.enter", "enters the channel", "t_write", "t_w_entered" },
	{ "write.prepare", "prepares the work request", "t_w_entered", "t_w_prepared" },
	{ "write.post", "adapter: ibv_post_send", "t_w_prepared", "t_w_posted" },
	{ "write.sort", "sorts what goes back", "t_w_posted", "t_w_sorted" },
	{ "write.collect", "adapter: polls completions", "t_w_sorted", "t_w_collected" },
	{ "write.leave", "leaves the channel", "t_w_collected", "t_w_returned" },
	{ "read", "read, from outside", "t_read_call", "t_read_end" },
	{ "read.enter", "enters the channel", "t_read", "t_r_entered" },
	{ "read.poll", "adapter: ibv_poll_cq", "t_r_entered", "t_r_polled" },
	{ "read.stamp", "takes the time", "t_r_polled", "t_r_stamped" },
	{ "read.take", "checks, exchanges samples", "t_r_stamped", "t_r_taken" },
	{ "read.refill", "adapter: ibv_post_recv", "t_r_taken", "t_r_refilled" },
	{ "read.leave", "leaves the channel", "t_r_refilled", "t_r_returned" },
};
const size_t bench_node_budget_latency_count = ARRAY_SIZE(bench_node_budget_latencies);

static int by_sequence(const void *a, const void *b)
{
	uint64_t x = ((const struct ib_budget_row *)a)->sequence;
	uint64_t y = ((const struct ib_budget_row *)b)->sequence;

	return (x > y) - (x < y);
}

int bench_node_stamps_parse(void *data, size_t size, struct bench_node_stamps *out)
{
	struct ib_budget_header *h = &out->header;
	size_t rows = size > sizeof(*h) ? (size - sizeof(*h)) / sizeof(*out->sent) : 0;

	*out = (struct bench_node_stamps){ .data = data };
	if (size < sizeof(*h))
		return -EBADMSG;
	memcpy(h, data, sizeof(*h));
	if (memcmp(h->magic, IB_BUDGET_MAGIC, sizeof(h->magic)) ||
	    h->row_bytes != sizeof(*out->sent) || h->tick_hz < 1000 ||
	    h->sent > rows || h->received != rows - h->sent ||
	    size != sizeof(*h) + rows * sizeof(*out->sent))
		return -EBADMSG;
	out->sent = (struct ib_budget_row *)((char *)data + sizeof(*h));
	out->received = out->sent + h->sent;
	qsort(out->sent, h->sent, sizeof(*out->sent), by_sequence);
	qsort(out->received, h->received, sizeof(*out->received), by_sequence);
	return 0;
}

void bench_node_stamps_free(struct bench_node_stamps *s)
{
	free(s->data);
	*s = (struct bench_node_stamps){ .data = NULL };
}

/* The call for this sample alone; NULL: there is none. */
static const struct ib_budget_row *find(const struct ib_budget_row *rows, uint64_t count,
					uint64_t sequence)
{
	const struct ib_budget_row key = { .sequence = sequence }, *row;

	row = bsearch(&key, rows, count, sizeof(*rows), by_sequence);
	return row && row->samples == 1 ? row : NULL;
}

/* One row while it is made. */
struct row {
	const struct ib_budget_row *write, *read; /* NULL: none */
	int64_t origin_ns, recv_ns;               /* RESULT_ABSENT: none */
	double ns_per_tick, stamp_ns;
	int64_t *values;                          /* [column * stride] */
	size_t stride;
};

static void set(struct row *r, unsigned column, double since_origin_ns)
{
	int64_t ns;

	if (fabs(since_origin_ns) < SPAN_NS_MAX &&
	    !__builtin_add_overflow(r->origin_ns, llround(since_origin_ns), &ns))
		r->values[column * r->stride] = ns;
}

static double span_ns(const struct row *r, uint64_t from, uint64_t to)
{
	return (double)(int64_t)(to - from) * r->ns_per_tick;
}

/* A call whose first stamp stands `at` ns behind the origin. Each part is shorter by a stamp
 * than it was measured. */
static void set_call(struct row *r, const struct ib_budget_row *call, double at,
		     unsigned full, unsigned whole)
{
	unsigned last = IB_BUDGET_POINTS - 1;

	if (call->whole) {
		set(r, whole, at);
		set(r, whole + 1, at + span_ns(r, call->at[0], call->at[last]) - r->stamp_ns);
		return;
	}
	for (unsigned i = 0; i <= last; i++)
		set(r, full + i, at + span_ns(r, call->at[0], call->at[i]) -
				 i * r->stamp_ns);
}

/* The stamps of the writer have made everything behind them later. */
static void set_way(struct row *r, double write_at)
{
	uint64_t base = r->write->at[IB_WRITE_CALL];
	double recv = (double)(r->recv_ns - r->origin_ns);

	if (r->write->whole != r->read->whole || r->recv_ns == RESULT_ABSENT)
		return;
	if (r->write->whole) {
		/* The stamp at the call of write, alone. */
		set(r, BUDGET_ARRIVED, recv - r->stamp_ns);
		return;
	}
	set(r, BUDGET_WAY_POLLED, write_at - WAY_POLLED * r->stamp_ns +
	    span_ns(r, base, r->read->at[IB_READ_POLLED]));
	set(r, BUDGET_WAY_STAMPED, write_at - WAY_STAMPED * r->stamp_ns +
	    span_ns(r, base, r->read->at[IB_READ_STAMPED]));
	/* What the target's clock said when it was asked, between the two. */
	set(r, BUDGET_WAY_RECV, recv - WAY_POLLED * r->stamp_ns);
}

static void set_row(struct row *r)
{
	double at;

	if (!r->write || r->write->age_ns == INT64_MIN || r->origin_ns == RESULT_ABSENT)
		return;
	/* Less the stamp itself. */
	at = (double)r->write->age_ns - r->stamp_ns;
	set_call(r, r->write, at, BUDGET_WRITE, BUDGET_WRITE_CALL);
	if (!r->read)
		return;
	set_call(r, r->read,
		 at + span_ns(r, r->write->at[IB_WRITE_CALL], r->read->at[IB_READ_CALL]),
		 BUDGET_READ, BUDGET_READ_CALL);
	set_way(r, at + r->stamp_ns);
}

static int64_t time_of(const struct delivery_sample *s)
{
	return s && s->flags & SAMPLE_HAS_RECEIVED ? (int64_t)timespec_to_ns(s->received) :
						    RESULT_ABSENT;
}

int bench_node_budget_fill(const struct bench_node_stamps *source,
			   const struct bench_node_stamps *target,
			   const struct delivery_samples *sent,
			   const struct delivery_samples *received,
			   struct bench_node_budget *out)
{
	size_t all = BUDGET_COLUMNS * sent->count;

	*out = (struct bench_node_budget){
		.rows = sent->count,
		.stamp_ns = (double)MAX(source->header.stamp_ps, target->header.stamp_ps) / 1e3,
		.step_ns = (double)MAX(source->header.step_ps, target->header.step_ps) / 1e3,
		.values = malloc((all + 1) * sizeof(*out->values)),
	};
	if (!out->values)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		out->values[i] = RESULT_ABSENT;
	for (size_t i = 0; i < sent->count; i++) {
		const struct delivery_sample *a = &sent->samples[i], *b = NULL;
		struct row r = {
			.write = find(source->sent, source->header.sent, a->sequence),
			.read = find(target->received, target->header.received, a->sequence),
			.ns_per_tick = 1e9 / (double)source->header.tick_hz,
			.stamp_ns = out->stamp_ns,
			.values = out->values + i,
			.stride = sent->count,
		};

		if (a->match != DELIVERY_NONE)
			b = &received->samples[a->match];
		r.origin_ns = time_of(a);
		r.recv_ns = time_of(b);
		set_row(&r);
		out->writes += r.write != NULL;
		out->reads += r.read != NULL;
	}
	return 0;
}

static int read_stamps(const char *dir, const char *name, struct bench_node_stamps *out)
{
	char path[PATH_MAX];
	struct stat st;
	void *data = NULL;
	FILE *f;
	int ret = -EBADMSG;

	*out = (struct bench_node_stamps){ .data = NULL };
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (f && !fstat(fileno(f), &st))
		data = malloc((size_t)st.st_size + 1);
	if (data && fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size) {
		ret = bench_node_stamps_parse(data, (size_t)st.st_size, out);
		data = NULL;
	}
	free(data);
	if (f)
		fclose(f);
	if (ret)
		log_error("%s is not what the infiniband node writes with 'budget'", path);
	return ret;
}

int bench_node_budget_load(const char *dir, const struct delivery_samples *sent,
			   const struct delivery_samples *received,
			   struct bench_node_budget *out)
{
	struct bench_node_stamps source, target = { .data = NULL };
	int ret = read_stamps(dir, "source.budget", &source) ?:
		  read_stamps(dir, "target.budget", &target) ?:
		  bench_node_budget_fill(&source, &target, sent, received, out);

	if (ret == -ENOMEM)
		log_error("no memory for the budget of %zu samples", sent->count);
	bench_node_stamps_free(&source);
	bench_node_stamps_free(&target);
	return ret;
}

void bench_node_budget_free(struct bench_node_budget *b)
{
	free(b->values);
	b->values = NULL;
}

void bench_node_budget_columns(const struct bench_node_budget *b,
			       struct result_column *columns)
{
	for (size_t i = 0; i < BUDGET_COLUMNS; i++)
		columns[i] = (struct result_column){ names[i], "ns",
						     b->values + i * b->rows };
}

static double middle(const struct result_case *result, const char *name)
{
	const json_t *all = json_object_get(result_case_summary(result), "latencies");

	return number_of(json_object_get(all, name), "middle");
}

int bench_node_budget_figures(const struct bench_node_budget *b, struct result_case *result)
{
	const struct result_figure figures[] = {
		{ "stamp_cost", "cost of a time stamp, taken off each part", "ns",
		  b->stamp_ns },
		{ "counter_step", "step of the processor's counter", "ns", b->step_ns },
		{ "budget_writes", "writes of one sample in the budget", "",
		  (double)b->writes },
		{ "budget_reads", "reads of one sample in the budget", "", (double)b->reads },
		{ "beside_adapter", "of the way outside of the adapter", "ns",
		  middle(result, "way") - middle(result, "way.adapter") },
	};

	return result_case_figures(result, figures, ARRAY_SIZE(figures));
}
