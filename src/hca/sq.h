/* SPDX-License-Identifier: BSD-2-Clause */
/* Send queues and their entries. */
#ifndef HCA_SQ_H
#define HCA_SQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/ah.h"
#include "hca/cq.h"
#include "hca/opcode.h"

struct hca_qp;

/* The first four are those of enum ibv_send_flags. */
enum hca_swqe_flags {
	HCA_SWQE_FENCE = IBV_SEND_FENCE,
	HCA_SWQE_SIGNALED = IBV_SEND_SIGNALED,
	HCA_SWQE_SOLICITED = IBV_SEND_SOLICITED,
	HCA_SWQE_INLINE = IBV_SEND_INLINE,
	HCA_SWQE_LOCAL = 1 << 4,   /* no message: BIND_MW, LOCAL_INV */
	HCA_SWQE_STARTED = 1 << 5, /* LOCAL_INV: withdrawn, peers may still copy */
	HCA_SWQE_HELD = 1 << 6,    /* a datagram that waits: see hold.h */
};

/* One posted send; `sge` has room for max_sge entries or max_inline bytes. */
struct hca_swqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum ibv_wr_opcode, or HCA_WR_ATOMIC_WRITE */
	uint8_t flags;  /* enum hca_swqe_flags */
	uint8_t num_sge;
	uint8_t reserved;
	uint32_t length; /* bytes in all */
	uint32_t imm;    /* __be32, or the rkey to invalidate */
	uint32_t rkey;
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			struct hca_ah *ah;
			uint32_t qpn, qkey;
		} ud;
		uint32_t srqn; /* see hca_swqe_srqn() */
		/* BIND_MW: also remote_addr, rkey (the new one), imm (the
		 * region's lkey). */
		struct {
			uint64_t length;
			uint32_t window; /* index in the key table */
			uint32_t access;
		} bind;
	};
	union {
		struct ibv_sge sge[0];
		uint8_t inline_data[0];
	};
};

/*
 * Send queue. tail <= next <= head (free running):
 * [tail, next) transmitted and not yet completed, [next, head) waiting.
 */
struct hca_sq {
	uint32_t head, next, tail;
	uint32_t limit;
	uint32_t mask;
	uint32_t max_sge, max_inline;
	uint32_t stride;
	uint8_t *wqes;
	/* SQD: entries before `drain_to` are still processed; `draining`: an
	 * event is owed when they are done. */
	uint32_t drain_to;
	bool draining;
	/* Extended posting: the entry being built and what went wrong. */
	uint32_t build_head;
	int build_error;
};

static inline struct hca_swqe *hca_sq_entry(struct hca_sq *sq, uint32_t index)
{
	return (struct hca_swqe *)(sq->wqes +
				   (size_t)(index & sq->mask) * sq->stride);
}

int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad);

/* The next free entry with its common part filled, for work that no list of
 * requests describes; the caller fills the rest and counts `head` up. 0 or a
 * negative errno. sq_lock is held. */
int hca_sq_open(struct hca_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id,
		unsigned send_flags, struct hca_swqe **out);
void hca_sq_builders_init(struct hca_qp *qp);

/* Behind a posting call, outside of hca_enter(): a datagram has nobody to go to yet.
 * The caller finds out sooner than the progress thread wakes up. */
void hca_sq_call(struct hca_qp *qp);

/* Where an entry of an XRC initiator keeps the number of the SRQ: atomic
 * operations need the space of the others for their operands. */
static inline uint32_t *hca_swqe_srqn(struct hca_swqe *e)
{
	return hca_op_is_atomic(e->opcode) ? &e->imm : &e->srqn;
}

/* Not IBV_SEND_IP_CSUM: it is for Ethernet packets. */
#define HCA_SEND_FLAGS_KNOWN                                            \
	((unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED |                \
		    IBV_SEND_SOLICITED | IBV_SEND_INLINE))

/* May work be posted in this state? */
static inline bool hca_sq_accepts(enum ibv_qp_state s)
{
	return s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE ||
	       s == IBV_QPS_ERR;
}

/* Transmits or flushes what waits, as the state says. sq_lock is held. */
void hca_sq_run(struct hca_qp *qp);

/* Raises SQ_DRAINED if it is owed and due. sq_lock is held. */
void hca_sq_drained(struct hca_qp *qp);

/* Datagrams that are posted and will complete to the queue. Nobody else has to do
 * anything for that: to the program they are as good as complete. No lock is held. */
uint32_t hca_sq_datagrams_to(const struct hca_cq *cq);

/* Transmit again from entry `index` on. sq_lock is held. */
void hca_sq_go_back(struct hca_qp *qp, uint32_t index);

/*
 * Completes the oldest transmitted entry with `status`; entries complete in
 * posting order. On an error status the QP goes to ERR (RC, UC) or SQE (UD)
 * and the rest is flushed. sq_lock is held.
 */
void hca_sq_complete(struct hca_qp *qp, enum ibv_wc_status status);

/* Flushes all of [tail, head); while a part of a copy is under way (HCA_TX_COPYING)
 * nothing: who copies runs the queue afterwards. sq_lock is held. */
void hca_sq_flush(struct hca_qp *qp);

#endif
