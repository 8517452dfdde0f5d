/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs.
 *
 * Locks, in the order in which they are taken:
 *   process.lock   control plane (create, destroy, tables); a mutex
 *   transport locks of the receiving and acknowledging side
 *   qp.sq_lock     send queue, state changes of the QP
 *   transport locks of the transmitting side
 *   rq locks       receive queue: post_lock, consume_lock
 *   cq.lock        completion queue
 *   hca_key_lock   objects of keys, windows; no other lock is taken under it
 * On the data path system calls are made under two locks only: sq_lock, for RDMA operations
 * that are copied in one part, and the receive lock of a link, for messages that the receiver
 * copies from the sender's memory.
 */
#ifndef HCA_QP_H
#define HCA_QP_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/cq.h"
#include "hca/object/pd.h"
#include "hca/object/promise.h"
#include "hca/object/public.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/object/srq.h"
#include "hca/path/path.h"
#include "hca/run/progress.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

struct hca_hold;
struct hca_qp_counters;

struct hca_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	bool extended;
	bool single_threaded;         /* its domain has a thread domain */
	uint32_t send_ops;            /* operations of the extended interface, one bit per opcode */
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq;
	struct hca_qp_public *pub;
	struct hca_qp_counters *counters; /* in the segment, like pub */
	struct ibv_qp_attr attr;      /* as set by ibv_modify_qp() */
	struct ibv_qp_cap cap;
	struct hca_memory sq_memory, rq_memory;

	cache_aligned struct spin sq_lock;
	_Atomic uint32_t state;       /* enum ibv_qp_state */
	/* Constant properties of the QP, in the cache line that posting uses. */
	bool reliable;                /* RC, XRC initiator */
	uint8_t always_flags;         /* enum hca_swqe_flags added to each request */
	uint32_t offered;             /* operations of work requests, one bit each (opcode.h) */
	struct hca_path path;
	struct hca_sq sq;
	uint32_t tx_psn;              /* of the next message to transmit */
	uint16_t tx_epoch;            /* counts go-backs, flushes and resets */
	uint8_t tx_blocked;           /* enum hca_tx_blocked */
	struct progress_timer retry;
	_Atomic bool calls;           /* UD: a datagram waits for its peer; see hca_sq_call() */
	/* Private data of the transport (path.h), next to the members that posting uses. */
	cache_aligned uint8_t path_part[HCA_PATH_PART_BYTES];

	cache_aligned struct hca_rq rq;
	struct hca_promising promising;
	/* A receive has failed and is about to complete: for the program the state is ERR
	 * already, which it becomes behind the completion. */
	_Atomic bool failing;
	struct hca_rq *recv;          /* &rq, or that of the SRQ */
	struct hca_srq *srq;          /* shared receive queue, or NULL */
	const struct hca_pd *recv_pd; /* domain of the receive buffers */
	/* A copy of the entry that was taken from the SRQ for a message of which only a
	 * part has arrived; under the consume_lock of the SRQ. */
	struct hca_rwqe *claim;
	bool claimed;
	bool established;             /* COMM_EST was raised since RTR */
	_Atomic uint32_t rx_psn;      /* PSN expected next; under the transport's receive lock */
	uint32_t rx_offset;           /* bytes received of a fragmented message */
	/* The peer whose messages are accepted, as a value to compare and not to
	 * dereference. Set by a transport for which receives are promised (promising.h);
	 * NULL: no receives are promised. */
	_Atomic(const void *) rx_peer;

	uint32_t async_taken;         /* asynchronous events read, to be acknowledged */
	uint32_t windows;             /* windows of type 2 bound to it; under hca_key_lock */
	bool no_self_multicast;
	atomic_int mcast_groups;      /* number of groups it is attached to */

	/* XRC target: a program has handles, which have no state of their own. In a handle,
	 * `target` is its QP; in the QP, `handles` lists its handles. */
	struct hca_qp *target;
	struct hca_xrcd *xrcd;
	struct spin handles_lock;
	struct list handles;
	struct list handle_entry;

	struct hca_hold *hold;        /* UD; under sq_lock */
};

enum hca_tx_blocked {
	HCA_TX_OPEN,
	HCA_TX_RETRY_WAIT, /* until the retry timer expires */
	/* The transport copies the data of the oldest entry in parts. It sets HCA_TX_OPEN
	 * after the last part. */
	HCA_TX_COPY_WAITS, /* no thread copies; the next part is to be copied */
	HCA_TX_COPYING,    /* a thread copies a part without sq_lock: the entry must not
			    * complete meanwhile, not by a flush either */
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

/* The index behind the last entry that may be transmitted: in SQD only entries that were
 * posted before. */
static inline uint32_t hca_sq_end(const struct hca_qp *qp)
{
	return unlikely(hca_qp_state(qp) == IBV_QPS_SQD) ? qp->sq.drain_to :
							   qp->sq.head;
}

/* The QP that a handle stands for; any other QP itself. */
static inline struct hca_qp *hca_qp_behind(struct ibv_qp *ibqp)
{
	struct hca_qp *qp = hca_qp(ibqp);

	return unlikely(qp->target) ? qp->target : qp;
}

#endif
