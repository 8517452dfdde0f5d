/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loops of the three modes share. */
#ifndef BENCH_HCA_LOOPS_H
#define BENCH_HCA_LOOPS_H

#include "bench/hca/queue.h"

/* How often a loop that finds nothing looks whether it should go on. */
#define HCA_LOOK_EVERY 1024
/* Receives that are posted together within a burst, where the queue is shorter than it. */
#define HCA_REFILL 16

/* A receiver's burst. */
struct hca_wait {
	unsigned burst;     /* its number, the warm-up's is 0 */
	unsigned idle;      /* polls without a result since the last one with */
	uint64_t since_ns;  /* since when nothing came, though all is sent; 0: not so */
};

static inline void hca_wait_over(struct hca_end *e, struct hca_wait *w)
{
	w->idle = 0;
	w->since_ns = 0;
	e->recv.idle_since_ns = 0;
}

/* Nothing was received: 0: poll again; 1: the rest is lost; or a negative errno. */
int hca_loop_idle(struct hca_end *e, struct hca_wait *w);

/* Takes one completion of the receive queue: 1 and *wc, whose time is *t_ns; 0: there is none;
 * or a negative errno. */
int hca_loop_poll(struct hca_end *e, struct ibv_wc *wc, uint64_t *t_ns);

/* The time of the next message: spins, or sleeps if there is much of it; completions are
 * polled meanwhile. */
int hca_loop_pause(struct hca_end *e, uint64_t until_ns);

/* Calls `burst` for the warm-up, if any, and for each burst with the number of its first
 * message and that of its messages; both ends keep pace. */
int hca_loop_bursts(struct hca_end *e,
		    int (*burst)(struct hca_end *e, unsigned number, uint64_t first,
				 uint32_t count));

/* One time stamp and its storage: fills own_ns and own_max_ns of the report. */
void hca_loop_own_cost(struct hca_end *e);

/* stamp = send: who overwrites the time. */
int hca_stamper_start(struct hca_end *e);
void hca_stamper_stop(struct hca_end *e);
static inline void hca_stamp(const struct hca_end *e)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)e->s->stamped, hca_end_now(e),
			      memory_order_relaxed);
}

#endif
