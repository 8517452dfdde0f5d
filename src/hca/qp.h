/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs.
 *
 * Locks, in the order in which they are taken:
 *   process.lock   control plane (create, destroy, tables); sleeps
 *   transport locks of the receiving and acknowledging side
 *   qp.sq_lock     send queue, state changes of the QP
 *   transport locks of the transmitting side
 *   rq locks       receive queue: posting, consuming
 *   cq.lock        completion queue
 *   key table      who owns which key, windows; nothing is taken inside
 * No lock is held over a system call on the data path except the QP's own
 * sq_lock over one-sided copies that are not large and a link's receive lock over
 * pulled messages.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/counters.h"
#include "hca/cq.h"
#include "hca/elide.h"
#include "hca/path.h"
#include "hca/pd.h"
#include "hca/progress.h"
#include "hca/promise.h"
#include "hca/public.h"
#include "hca/rq.h"
#include "hca/sq.h"
#include "hca/srq.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

struct hca_hold;

struct hca_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	bool extended;
	bool single_threaded;         /* the application says so */
	uint32_t send_ops;            /* those that builders offer, a bit an opcode */
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq;
	struct hca_qp_public *pub;
	struct hca_qp_counters *counters; /* in the segment, like pub */
	struct ibv_qp_attr attr;      /* what modify set */
	struct ibv_qp_cap cap;
	struct hca_memory sq_memory, rq_memory;

	cache_aligned struct spin sq_lock;
	_Atomic uint32_t state;       /* enum ibv_qp_state */
	/* Properties of the QP, where who posts has them at hand. */
	bool reliable;                /* RC, XRC initiator */
	bool event_sends;             /* somebody may sleep until it completes */
	uint8_t always_flags;         /* enum hca_swqe_flags of each request */
	struct hca_path path;
	struct hca_sq sq;
	uint32_t tx_psn;              /* of the next message to transmit */
	uint16_t tx_epoch;            /* grows with each go-back */
	uint8_t tx_blocked;           /* enum hca_tx_blocked */
	uint8_t rnr_left;
	uint32_t tx_offset;           /* bytes sent of a fragmented message */
	uint64_t lost_since_ns;       /* first loss of the oldest entry, 0 none */
	uint32_t lost_tries;
	struct progress_timer retry;
	_Atomic bool calls;           /* UD: who posts may look for the peer */
	/* What the transport keeps here, beside what posting uses anyway: a structure
	 * of its own (path.h). */
	_Alignas(8) uint8_t path_part[HCA_PATH_PART_BYTES];

	cache_aligned struct hca_rq rq;
	struct hca_promising promising;
	struct hca_rq *recv;          /* own, or of the shared receive queue */
	struct hca_srq *srq;          /* NULL: none */
	const struct hca_pd *recv_pd; /* of the receive buffers */
	/* An entry taken from a shared queue for a message of which only a part
	 * is here; under the shared queue's consume_lock. */
	struct hca_rwqe *claim;
	bool claimed;
	bool established;             /* COMM_EST was raised since RTR */
	_Atomic uint32_t rx_psn;      /* expected next; under the rx lock */
	uint32_t rx_offset;           /* bytes of a fragmented message so far */
	/* Whose messages are taken, to be compared only: set by a transport that lets
	 * receives be promised to its peer; NULL: none are. */
	_Atomic(const void *) rx_peer;

	uint32_t async_taken;         /* events to be acknowledged */
	uint32_t windows;             /* bound to it; the key table's lock */
	bool no_self_multicast;
	atomic_int mcast_groups;      /* it is attached to */

	/* XRC target: programs hold handles, which have no state of their own.
	 * `target` is a handle's QP, `handles` the QP's handles. */
	struct hca_qp *target;
	struct hca_xrcd *xrcd;
	struct spin handles_lock;
	struct list handles;
	struct list handle_entry;

	struct hca_hold *hold;        /* UD; under sq_lock */
};

enum hca_tx_blocked {
	HCA_TX_OPEN,
	HCA_TX_RETRY_WAIT, /* the retry timer will open it */
	/* The transport carries the oldest entry out by parts and opens it behind the
	 * last one. */
	HCA_TX_COPY_WAITS, /* for somebody to carry out the next part */
	HCA_TX_COPYING,    /* a part is under way, without sq_lock: the entry must not
			    * complete before it is done, not by a flush either */
};

static inline struct hca_qp *hca_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct hca_qp, ibv);
}

static inline struct hca_qp *hca_qp_of_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct hca_qp, ex);
}

static inline enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state,
						       memory_order_acquire);
}

static inline void hca_sq_called(struct hca_qp *qp, uint8_t tx_blocked)
{
	if (unlikely(tx_blocked != HCA_TX_OPEN))
		hca_sq_call(qp);
}

/* Is the caller, who entered for another call, between ibv_wr_start() and its end?
 * It then has the lock of a send queue, which moving messages needs. The progress
 * thread is always inside, and builds nothing. */
static inline bool hca_builds(void)
{
	return unlikely(hca_self.depth > 1) && !hca_self.elided &&
	       !progress_is_self();
}

/* Entries that may be transmitted: all, in SQD those of before. */
static inline uint32_t hca_sq_end(const struct hca_qp *qp)
{
	return unlikely(hca_qp_state(qp) == IBV_QPS_SQD) ? qp->sq.drain_to :
							   qp->sq.head;
}

/* QPs that complete to this CQ cannot report completions any more. */
void hca_qps_fail_on(struct hca_cq *cq);

/* All of a device (N of softN, or HCA_INSPECT_DEVICES); process.lock is held. */
void hca_qps_fail_of(uint32_t device);

/* Takes in what has arrived, so that it is done when a QP is flushed. No lock but
 * process.lock is held. */
void hca_take_in(void);

/* A message came in a state before RTS: tells the application, once. */
void hca_qp_established(struct hca_qp *qp);

/* Moves to ERR and flushes both queues. sq_lock is not held. */
void hca_qp_fail(struct hca_qp *qp);

/* The same with sq_lock held. */
void hca_qp_fail_locked(struct hca_qp *qp);
void hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state state);

int hca_target_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		      struct ibv_qp **out);

/* Gives a handle back; with the last one the QP ends. */
void hca_target_put(struct hca_qp *handle);

/* The QP behind what a program holds. */
static inline struct hca_qp *hca_qp_behind(struct ibv_qp *ibqp)
{
	struct hca_qp *qp = hca_qp(ibqp);

	return unlikely(qp->target) ? qp->target : qp;
}

#endif
