/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that arrive: scatter, atomics, requests that the target carries out, XRC.
 */
#ifndef TRANSPORT_SHM_RECEIVE_H
#define TRANSPORT_SHM_RECEIVE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/pd.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/sq.h"
#include "hca/srq.h"
#include "transport/shm/state.h"

struct shm_extent;
struct shm_header;
struct shm_slot;
struct shm_xrc_header;

/* A QP that takes the message in, on behalf of the target; NULL: it is dropped.
 * rx_lock is held. */
struct hca_qp *shm_xrc_responder(struct shm_link *l,
				 const struct shm_xrc_header *h, bool first,
				 uint8_t rnr_timer);
void shm_srq_forget(struct hca_srq *srq);

/* The link's end; rx_lock is held. */
void shm_responders_free(struct shm_link *l);
#define SHM_RECEIVE_BUDGET 32 /* slots per call, so that others get their turn */

/* Bytes that a posted receive can take. */
uint64_t shm_room_of(const struct hca_rwqe *e);

/*
 * The pieces of the buffers that [at, at + length) of a message falls into. Returns
 * their number, or -EFAULT when a key does not allow it. `kernel`, unless it is NULL:
 * they need not be there where only the kernel copies; set when that is so.
 */
int shm_sge_iov(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		uint32_t at, uint32_t length, unsigned access, struct iovec *iov,
		bool *kernel);

/* A part of a message into them; 0 or -EFAULT. */
int shm_copy_in(const struct hca_qp *qp, const struct hca_rwqe *e, uint32_t at,
		const uint8_t *from, uint32_t length);

/* Any message, in full; true if the sender has to act. rx_lock is held. */
bool shm_receive_other(struct shm_link *l, struct shm_slot *slot,
		       struct shm_header h);

/* Takes messages in; true if there were any. rx_lock is held. */
bool shm_receive(struct shm_link *l);

/* Takes in all that is on its way now. */
void shm_receive_rest(struct shm_link *l);

/* The next slot, if it is filled; rx_lock is held and the link is up. */
static inline struct shm_slot *shm_slot_ready(struct shm_link *l, uint32_t pos)
{
	struct shm_slot *s = &l->rx->slots[pos % SHM_SLOTS];

	return atomic_load_explicit(&s->tag, memory_order_acquire) ==
			       pos / SHM_SLOTS + 1 ?
		       s : NULL;
}

/* `word`: the data of an ATOMIC WRITE. */
void shm_atomic_request(const struct hca_swqe *e, uint64_t word,
			struct shm_slot *slot);

/* The operation itself, SHM_COMPARE_SWAP and the like; the original value. */
uint64_t shm_atomic_apply(uint64_t *at, enum shm_op op, uint64_t compare_add,
			  uint64_t swap);

/* At the responder; rx_lock is held. */
enum ibv_wc_status shm_atomic_execute(struct hca_qp *qp, struct shm_slot *slot,
				      enum shm_op op);

/* The original value into the initiator's buffers; sq_lock is held. */
enum ibv_wc_status shm_atomic_result(const struct hca_qp *qp,
				     const struct hca_swqe *e, uint64_t result);

/* Bytes of the next part of an entry of which `at` bytes are sent, and whether
 * they travel in the data area. */
uint32_t shm_request_part(const struct hca_swqe *e, uint32_t at, bool *in_data);

/* At the responder. `part`: as it was looked at, of data in the data area; and as
 * it is. IBV_WC_GENERAL_ERR: the peer broke the rules. rx_lock is held. */
enum ibv_wc_status shm_request_execute(struct shm_link *l, struct hca_qp *qp,
				       struct shm_slot *slot, uint8_t op,
				       uint8_t flags, uint32_t length,
				       struct shm_extent *part);

/* At the initiator: the data of an acknowledged READ into its buffers, before the
 * slot is used again. ack_lock is held. */
enum shm_status shm_read_arrived(struct shm_link *l,
				 const struct shm_inflight *f,
				 const struct shm_slot *slot,
				 enum shm_status status);

#endif
