/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected RC queue pairs of the adapter soft0 in this process: the near
 * one belongs to a channel, the far one is driven by hand. Public verbs only.
 */
#ifndef TESTS_UNIT_INFINIBAND_PAIR_H
#define TESTS_UNIT_INFINIBAND_PAIR_H

#include <infiniband/verbs.h>

#include "gateway/node/infiniband/channel.h"

#define PAIR_FAR 64 /* buffers of the far side */

struct pair_setup {
	unsigned rx_depth, rx_threshold, rx_granted;
	unsigned tx_depth, tx_granted;
	unsigned signal_every;
	unsigned inline_size;
	unsigned samples, capacity;
	bool sleeps;                     /* the near reader may */
	uint64_t spin_ns;
};

struct pair {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events; /* of the near send queue */
	struct ibv_comp_channel *recv_events; /* NULL: the reader never sleeps */
	struct ibv_cq *recv_cq, *send_cq, *far_recv_cq, *far_send_cq;
	struct ibv_qp *near, *far;
	struct ibv_mr *far_mr;
	char far_buffer[PAIR_FAR + 1][4096]; /* the last one receives */
	struct ib_registrar registrar;
	struct pool pool;
	struct ib_channel channel;
};

/* False when there is no adapter soft0. */
bool pair_present(void);
/* Gives the queue pair to the channel: at first, and after a close. */
void pair_open_channel(struct pair *p, const struct pair_setup *s);
void pair_open(struct pair *p, const struct pair_setup *s);
/* Error state, drain, destroy, release; fails when a sample is missing. */
void pair_close(struct pair *p);

/* The far side sends a sample and waits until it has been received. */
void pair_far_send(struct pair *p, unsigned values, uint64_t sequence);
/* Posts one without waiting for it. */
void pair_far_post_send(struct pair *p, unsigned values, uint64_t sequence);
/* It offers room for `n` messages. */
void pair_far_post(struct pair *p, unsigned n);
/* It takes what has come, up to `n`; returns how many. */
unsigned pair_far_take(struct pair *p, unsigned n);
/* The near side posts `s` as write would; its completion is there, unpolled,
 * when this returns. */
void pair_near_send(struct pair *p, struct sample *s);

#endif
