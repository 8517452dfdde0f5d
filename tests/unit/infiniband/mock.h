/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An adapter of arrays for tests of the infiniband node-type's data path: the
 * three calls of the data path go through a context's table, so a table of our
 * own is a perfect adapter. Completions come only when the test says so.
 *
 * Not a simulation of verbs: there are no states, keys or peers.
 */
#ifndef TESTS_UNIT_INFINIBAND_MOCK_H
#define TESTS_UNIT_INFINIBAND_MOCK_H

#include "gateway/node/infiniband/channel.h"
#include "gateway/sample/sample.h"

#define MOCK_MAX 1024
#define MOCK_LKEY 0x4711

struct mock_queue {
	unsigned capacity;             /* open requests, ENOMEM beyond */
	unsigned open, first;
	struct mock_wr {
		uint64_t wr_id;
		struct ibv_sge sge[2];
		int num_sge;
		unsigned flags;
		uint32_t remote_qpn;
	} wr[MOCK_MAX];                /* open ones, oldest first, as a ring */
	unsigned posts;                /* requests accepted so far */
	int error;                     /* of a post, 0: ENOMEM when full */
	unsigned accept;               /* then accept only so many more */
	struct ibv_wc wc[MOCK_MAX];    /* completions, oldest first */
	unsigned wc_first, wc_count;
};

struct mock {
	struct ibv_context context;
	struct ibv_qp qp;
	struct ibv_cq recv_cq, send_cq;
	struct mock_queue rq, sq;
	struct ib_registrar registrar;
	struct memory_type memory;     /* claims to be registered */
	struct ibv_mr mr;
	struct pool pool;
	bool automatic;                /* polling completes open requests first */
	/* Completion events of the receive queue. */
	struct ibv_comp_channel events; /* an eventfd that counts */
	bool armed;
	_Atomic unsigned arms;         /* requests for an event */
	unsigned events_raised, events_taken, events_acked, ack_calls;
	char calls[16];                /* p poll, a arm, e event; the first ones */
	void (*before_arm)(struct mock *m);
	void (*after_empty_poll)(struct mock *m);
	struct ib_channel channel;
};

struct mock_setup {
	unsigned rx_depth, rx_threshold;
	unsigned tx_depth;             /* 0: 32 */
	unsigned signal_every;         /* 0: 16 */
	size_t inline_limit;
	unsigned samples, capacity;
	bool ud;
	bool sleeps;                   /* the reader may */
	uint64_t spin_ns;
};

void mock_init(struct mock *m, const struct mock_setup *s);
/* Opens receiving and sending. */
void mock_open(struct mock *m, const struct mock_setup *s);
/* Everything is released; fails the test when a sample is missing. */
void mock_destroy(struct mock *m);

/* Completes the oldest open receive request as if `values` values had come. */
struct sample *mock_receive(struct mock *m, unsigned values);
/* The same with any byte count and status. */
struct sample *mock_receive_raw(struct mock *m, uint32_t byte_len,
				enum ibv_wc_status status);
/* One with a single value, which raises an event if the queue is armed. */
void mock_receive_event(struct mock *m);
/* Completes the oldest open send request and all unsignaled ones before it. */
bool mock_sent(struct mock *m, enum ibv_wc_status status);
/* Completes everything that is open as flushed. */
void mock_flush(struct mock *m);

/* Samples a, b, c ... with `values` values each, owned by the caller. */
void mock_samples(struct mock *m, struct sample *smps[], unsigned cnt,
		  unsigned values);

#endif
