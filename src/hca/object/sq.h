/* SPDX-License-Identifier: BSD-2-Clause */
/* Send queues and their entries. */
#ifndef HCA_SQ_H
#define HCA_SQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/ah.h"
#include "hca/object/opcode.h"

/* The first four have the values of enum ibv_send_flags. */
enum hca_swqe_flags {
	HCA_SWQE_FENCE = IBV_SEND_FENCE,
	HCA_SWQE_SIGNALED = IBV_SEND_SIGNALED,
	HCA_SWQE_SOLICITED = IBV_SEND_SOLICITED,
	HCA_SWQE_INLINE = IBV_SEND_INLINE,
	HCA_SWQE_LOCAL = 1 << 4,   /* local operation: BIND_MW, LOCAL_INV */
	HCA_SWQE_STARTED = 1 << 5, /* LOCAL_INV: key withdrawn, peers may still copy */
	HCA_SWQE_HELD = 1 << 6,    /* datagram whose data were copied, see hold.h */
	HCA_SWQE_WATCHED = 1 << 7, /* the transport shows it in a capture */
};

/* One posted send; `sge` has room for max_sge entries or max_inline bytes. */
struct hca_swqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum ibv_wr_opcode, or HCA_WR_ATOMIC_WRITE */
	uint8_t flags;  /* enum hca_swqe_flags */
	uint8_t num_sge;
	uint8_t reserved;
	uint32_t length; /* sum of the lengths of its buffers */
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
		/* BIND_MW. Also remote_addr: start of the window; rkey: the new
		 * key; imm: lkey of the region. */
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
 * A send queue; all members under sq_lock. Indices count modulo 2^32, tail <= next <= head:
 * entries [tail, next) are transmitted and not completed, [next, head) wait.
 */
struct hca_sq {
	uint32_t head, next, tail;
	uint32_t limit;
	uint32_t mask;
	uint32_t max_sge, max_inline;
	uint32_t stride;
	uint8_t *wqes;
	/* In SQD: entries before `drain_to` are still processed. `draining`:
	 * IBV_EVENT_SQ_DRAINED is to be raised when they have completed. */
	uint32_t drain_to;
	bool draining;
	/* Extended posting: index of the entry being built, and the first error. */
	uint32_t build_head;
	int build_error;
};

static inline struct hca_swqe *hca_sq_entry(struct hca_sq *sq, uint32_t index)
{
	return (struct hca_swqe *)(sq->wqes +
				   (size_t)(index & sq->mask) * sq->stride);
}

/* The place of the SRQ number in an entry of an XRC initiator. Entries of atomic operations
 * have it in `imm`, because their operands are in the union. */
static inline uint32_t *hca_swqe_srqn(struct hca_swqe *e)
{
	return hca_op_is_atomic(e->opcode) ? &e->imm : &e->srqn;
}

/* Without IBV_SEND_IP_CSUM, which applies to raw Ethernet packets only. */
#define HCA_SEND_FLAGS_KNOWN                                            \
	((unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED |                \
		    IBV_SEND_SOLICITED | IBV_SEND_INLINE))

/* May send requests be posted in this state? */
static inline bool hca_sq_accepts(enum ibv_qp_state s)
{
	return s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE ||
	       s == IBV_QPS_ERR;
}

#endif
