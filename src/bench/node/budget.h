/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of the infiniband node goes: from the time stamps that both nodes left
 * (gateway/node/infiniband/budget_file.h) to columns and latencies of the case.
 *
 * Three budgets, each a latency NAME that was measured from outside and its parts
 * NAME.PART (result/budget.h):
 *
 *   way    from the step taken to the receive time: what the case measures as from_step
 *   write  the source's calls of the node's write
 *   read   the target's calls of its read that found something, without the waiting
 *
 * Columns are times of the source's clock. They come from the counter that all processors of
 * the host share, so the two gateways' clocks need not agree; how far they differ is a part
 * of the way. What the stamps cost is taken off.
 *
 * Only calls with one sample count: of others the parts are those of all samples together.
 */
#ifndef BENCH_NODE_BUDGET_H
#define BENCH_NODE_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "bench/delivery/match.h"
#include "bench/node/settings.h"
#include "bench/result/result.h"
#include "gateway/node/infiniband/budget_file.h"

/* One file as it lies in memory. */
struct bench_node_stamps {
	struct ib_budget_header header;
	struct ib_budget_row *sent, *received; /* ascending by sequence; into `data` */
	void *data;                            /* owned */
};

enum bench_node_budget_column {
	/* The way; absent unless both calls have all stamps, but ARRIVED: neither has. */
	BUDGET_ARRIVED, BUDGET_WAY_POLLED, BUDGET_WAY_STAMPED, BUDGET_WAY_RECV,
	/* Calls with all stamps. */
	BUDGET_WRITE, BUDGET_READ = BUDGET_WRITE + IB_BUDGET_POINTS,
	/* Ordinary calls, seen from outside. */
	BUDGET_WRITE_CALL = BUDGET_READ + IB_BUDGET_POINTS, BUDGET_WRITE_END,
	BUDGET_READ_CALL, BUDGET_READ_END,
	BUDGET_COLUMNS,
};

struct bench_node_budget {
	double stamp_ns;                /* cost of a stamp; of both ends the larger one */
	double step_ns;                 /* of the counter, likewise */
	size_t writes, reads;           /* calls that count */
	size_t rows;
	int64_t *values;                /* owned; [column][row], RESULT_ABSENT: not there */
};

extern const struct result_latency bench_node_budget_latencies[];
extern const size_t bench_node_budget_latency_count;

/* Checks `size` bytes, which it takes over (malloc()ed). 0; -EBADMSG: not such a file, not
 * logged; free it in any case. */
int bench_node_stamps_parse(void *data, size_t size, struct bench_node_stamps *out);
void bench_node_stamps_free(struct bench_node_stamps *s);

/* Row i is sent->samples[i]. `received` are the samples that its `match` means. Frees nothing.
 * 0 or -ENOMEM. */
int bench_node_budget_fill(const struct bench_node_stamps *source,
			   const struct bench_node_stamps *target,
			   const struct delivery_samples *sent,
			   const struct delivery_samples *received,
			   struct bench_node_budget *out);

/* The same from DIR/source.budget and DIR/target.budget. 0 or a negative errno, logged. */
int bench_node_budget_load(const char *dir, const struct delivery_samples *sent,
			   const struct delivery_samples *received,
			   struct bench_node_budget *out);
void bench_node_budget_free(struct bench_node_budget *b);

/* All columns as result_case_rows() takes them, BUDGET_COLUMNS. */
void bench_node_budget_columns(const struct bench_node_budget *b,
			       struct result_column *columns);
/* What else there is to say, once the rows were written. 0 or -ENOMEM. */
int bench_node_budget_figures(const struct bench_node_budget *b, struct result_case *result);

#endif
