/* SPDX-License-Identifier: BSD-2-Clause */
/* Access to a peer's memory, and RDMA operations that the initiator carries out. */
#ifndef TRANSPORT_SHM_REACH_REACH_H
#define TRANSPORT_SHM_REACH_REACH_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "transport/shm/link/control.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"

const char *shm_path_name(enum shm_path path);

/* Chooses how the memory of a link's peer is accessed; sets shm_ack.pulls for the peer.
 * Without the peer's keys (peer.c) it is SHM_PATH_TARGET; with `keys_follow` this is called
 * again when they have come. shm.lock is held. */
void shm_access_choose(struct shm_link *l, bool keys_follow);

/* enum hca_link_flags, for inspection (hca/view/inspect.h). */
uint32_t shm_access_flags(const struct shm_link *l);

/* If the peer's memory is not accessible, asks the peer for the descriptor of it, if both
 * sides allow that. The link is up. */
void shm_access_improve(struct shm_link *l);

/* Handles a control message about memory on a link that is up. 0 or -EPROTO. Progress
 * thread; shm.lock is held. */
int shm_access_message(struct shm_link *l, const struct shm_control *msg, int fds[3]);

/*
 * Copies `length` bytes between `far`, addresses of the peer, and `near`; both
 * arrays are changed. 0, -ESRCH (the peer has ended), -EPERM (this way of access does not
 * work any more; another one is used from now on) or -EFAULT (`near` begins where the
 * copy stopped).
 */
int shm_access_copy(struct shm_link *l, bool read, struct iovec *near,
		    int near_count, struct iovec *far, int far_count,
		    uint64_t length);

/*
 * The address where [offset, offset + length) of the peer's region `id` is mapped; NULL
 * when it is not. A region that is not mapped is requested from the peer by `rkey`, once,
 * without waiting. During the call and while the address is used, the caller holds the
 * sq_lock of a QP or carries out a part that shm_copy_fence() waits for.
 */
uint8_t *shm_map_find(struct shm_link *l, uint32_t rkey, uint32_t id,
		      uint64_t offset, uint64_t length, bool write);

/* The part of shm_access_message() that is about regions. */
int shm_map_message(struct shm_link *l, const struct shm_control *msg, int fds[3]);

/* True if this region was requested from the peer and may be mapped. */
bool shm_map_awaits(const struct shm_link *l, uint32_t id);

/* Unmaps all regions, at the end of a link: no thread is inside it. */
void shm_map_release(struct shm_link *l);

/* hca_local_ops.region_gone: tells the peers to unmap the region. Takes shm.lock. */
void shm_region_gone(uint32_t id);

/* True if the peer can copy from or to our memory itself. tx_lock or shm.lock is held,
 * and the link is up for the peer. */
static inline bool shm_reaches_us(const struct shm_link *l)
{
	return ((l->lends & HCA_PEER_MEMORY) &&
		atomic_load_explicit(&l->tx->ack.pulls, memory_order_relaxed)) ||
	       atomic_load_explicit(&l->lent, memory_order_relaxed);
}

enum shm_step {
	SHM_STEP_DONE,      /* carried out; the status says how it ended */
	SHM_STEP_TO_TARGET, /* the target has to do it */
};

/* True if the initiator can probably carry out this entry itself; shm_onesided() may still
 * return SHM_STEP_TO_TARGET. Cheap. sq_lock is held. */
bool shm_onesided_reaches(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e);

/* How the target's memory is accessed. Valid while sq_lock is held or the links are
 * borrowed. */
struct shm_way {
	struct shm_link *link;
	const struct hca_qp_public *remote; /* that the QP is connected to */
	/* In whose protection domain the memory has to be: `remote`, or the XRC SRQ. */
	const struct hca_qp_public *owner;
};

/* A part of the entry's data. With `length` 0 all checks are made and nothing is copied. */
struct shm_part {
	uint32_t at, length;
};

/* Carries out the entry, or one part of it, at the initiator, after checking buffers,
 * rights and key. *status is set with SHM_STEP_DONE. sq_lock is held, or the links are
 * borrowed and the part is one that shm_copy_fence() waits for. */
enum shm_step shm_onesided(struct hca_qp *qp, const struct hca_swqe *e,
			   const struct shm_way *way, const struct shm_part *part,
			   enum ibv_wc_status *status);

/* hca_transport_ops.fence: waits for the copies that peers began before the QP (NULL: an
 * XRC SRQ) went out of service. */
void shm_qp_fence(const struct hca_qp *qp);

/* Likewise: waits for all copies with a key that was withdrawn. */
void shm_key_fence(uint32_t key);

/* Likewise: true while a copy with the key of a withdrawn window is under way. Does not
 * wait for it. */
bool shm_key_busy(uint32_t key);

/* The pieces of an entry's buffers that [at, at + length) of its message falls
 * into; their number, or -EFAULT. `*kernel` is set when the program may not touch
 * some of them, as pages may be missing (hca_sge_for_kernel). */
int shm_swqe_iov(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		 uint32_t length, unsigned access, struct iovec *iov,
		 bool *kernel);

/* Drops the first `done` bytes of iov[0..n); returns the new n. */
static inline int shm_iov_advance(struct iovec *iov, int n, size_t done)
{
	int skip = 0;

	while (skip < n && done >= iov[skip].iov_len)
		done -= iov[skip++].iov_len;
	memmove(iov, iov + skip, (size_t)(n - skip) * sizeof(*iov));
	if (n > skip && done) {
		iov[0].iov_base = (char *)iov[0].iov_base + done;
		iov[0].iov_len -= done;
	}
	return n - skip;
}

/* True if `srq`, a peer's public part or NULL, has the number `srqn` and the XRC domain of
 * the target QP. */
bool shm_xrc_serves(const struct hca_qp_public *srq, uint32_t srqn,
		    const struct hca_qp_public *target);

/* Fills the slot's payload with a request. `word`: the data of an ATOMIC WRITE. */
void shm_atomic_request(const struct hca_swqe *e, uint64_t word, struct shm_slot *slot);

/* At the responder: checks and executes the request in the slot, and stores the original
 * value there. rx_lock is held. */
enum ibv_wc_status shm_atomic_execute(struct hca_qp *qp, struct shm_slot *slot, enum shm_op op);

/* Stores the original value in the initiator's buffers. IBV_WC_SUCCESS or
 * IBV_WC_LOC_PROT_ERR. sq_lock is held. */
enum ibv_wc_status shm_atomic_result(const struct hca_qp *qp,
				     const struct hca_swqe *e, uint64_t result);

#endif
