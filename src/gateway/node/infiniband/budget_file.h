/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an infiniband node with the key `budget` leaves in that file: the times at which its
 * last reads and writes passed certain points, in ticks of util/clock.h. Read by the benchmark
 * of node-types (bench/node/budget.h), which makes a budget of it.
 *
 * The file is a header, `sent` rows of writes, then `received` rows of reads, each the oldest
 * first, in the byte order of the machine.
 */
#ifndef GATEWAY_NODE_INFINIBAND_BUDGET_FILE_H
#define GATEWAY_NODE_INFINIBAND_BUDGET_FILE_H

#include <stdint.h>

#define IB_BUDGET_MAGIC "busbarT1"

/* Each point stands behind the part of the call that its comment names. */
enum ib_write_point {
	IB_WRITE_CALL,      /* (the path calls) */
	IB_WRITE_ENTERED,   /* whether the channel is open */
	IB_WRITE_PREPARED,  /* the work requests */
	IB_WRITE_POSTED,    /* ibv_post_send() */
	IB_WRITE_SORTED,    /* which samples go back at once */
	IB_WRITE_COLLECTED, /* ibv_poll_cq() for completions, and their samples */
	IB_WRITE_RETURNED,
	IB_WRITE_POINTS,
};

enum ib_read_point {
	IB_READ_CALL,       /* (the path calls) */
	IB_READ_ENTERED,    /* whether the channel is open, and the queue full enough */
	IB_READ_POLLED,     /* ibv_poll_cq(), which gave something */
	IB_READ_STAMPED,    /* the time of receiving */
	IB_READ_TAKEN,      /* checks of the samples, exchange for empty ones */
	IB_READ_REFILLED,   /* ibv_post_recv() of the empty ones */
	IB_READ_RETURNED,
	IB_READ_POINTS,
};

#define IB_BUDGET_POINTS 7
_Static_assert((int)IB_WRITE_POINTS == IB_BUDGET_POINTS &&
	       (int)IB_READ_POINTS == IB_BUDGET_POINTS, "rows are of one size");

struct ib_budget_header {
	char magic[8];
	uint32_t row_bytes;
	uint32_t step_ps;           /* the counter moves in steps of so long, in ps */
	uint64_t sent, received;    /* rows */
	uint64_t tick_hz;           /* ticks in a second */
	uint64_t stamp_ps;          /* what one time stamp costs, in ps */
};

/* One call that moved samples. */
struct ib_budget_row {
	uint64_t sequence;          /* of its first sample */
	uint32_t samples;
	/* 1: only the first and the last point have a time; the call between them was that of
	 * a node without `budget`. */
	uint32_t whole;
	/* Of a write: since the first sample's step was taken, ns; INT64_MIN: not known. */
	int64_t age_ns;
	uint64_t at[IB_BUDGET_POINTS];
};

_Static_assert(sizeof(struct ib_budget_header) == 48, "no padding");
_Static_assert(sizeof(struct ib_budget_row) == 80, "no padding");

#endif
