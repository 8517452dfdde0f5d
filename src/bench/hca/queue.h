/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of an end: posting, polling, waiting. */
#ifndef BENCH_HCA_QUEUE_H
#define BENCH_HCA_QUEUE_H

#include <endian.h>

#include "bench/hca/end.h"

int hca_queue_open(struct hca_end *e, struct hca_watched_cq *q, enum hca_polling polling,
		   int entries);
void hca_queue_close(struct hca_watched_cq *q);

/*
 * Nothing was to be polled: waits as the queue is watched. Busy: returns at once. Event: the
 * queue is armed first, then polled once more, and only then waited for; otherwise a completion
 * between the last poll and the arming would wake nobody. So the caller polls again after each
 * return. Events are acknowledged by hca_queue_acknowledge(), outside of measured times.
 * 0; -EINTR: woken without an event, the caller looks why; or another negative errno, logged.
 */
int hca_queue_wait(struct hca_end *e, struct hca_watched_cq *q);
void hca_queue_acknowledge(struct hca_watched_cq *q);

/* The sequence number of a received message, behind `taken` others. Where a message has no
 * immediate data, because iWARP has none, all arrive, and in their order. */
static inline uint32_t hca_queue_seq(const struct ibv_wc *wc, uint64_t taken)
{
	return wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : (uint32_t)taken;
}

/* Posts the receives that are missing, at most `most`. */
int hca_queue_fill(struct hca_end *e, uint64_t most);

/* How many of `wanted` messages the next list holds: `batch` at most, and no more than there
 * are buffers before the ring of them begins anew. */
static inline uint32_t hca_queue_batch(const struct hca_end *e, uint64_t wanted)
{
	wanted = MIN(wanted, e->buffers - e->posted % e->buffers);
	return (uint32_t)MIN(wanted, e->c->batch);
}

/* Posts `count` messages (see above) with the sequence numbers from `seq` on, whose
 * first word is `t_ns`; `last`: nothing follows, so a completion is wanted. There is room. */
int hca_queue_post(struct hca_end *e, uint32_t seq, uint32_t count, uint64_t t_ns, bool last);

/* One completion of the send queue, if there is one: 1, 0, or a negative errno, logged. */
int hca_queue_harvest(struct hca_end *e);
/* Waits until `count` more requests may be posted. */
int hca_queue_room(struct hca_end *e, uint32_t count);
/* Waits until all posted requests are completed. */
int hca_queue_flush(struct hca_end *e);

/* A received completion that is not a message: logs why, returns a negative errno. */
int hca_queue_complain(const struct hca_end *e, const struct ibv_wc *wc, const char *what);

/* The thread that watches the send queue, if it is not polled by the end itself. */
int hca_queue_serve(struct hca_end *e);
void hca_queue_serve_end(struct hca_end *e);

#endif
