/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer's memory: the ways to it, and RDMA that the initiator carries out alone. */
#ifndef TRANSPORT_SHM_REACH_H
#define TRANSPORT_SHM_REACH_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hca/public.h"
#include "hca/qp.h"
#include "hca/sq.h"
#include "transport/shm/control.h"
#include "transport/shm/state.h"

const char *shm_path_name(enum shm_path path);

/* Finds out how the new link's peer is reached, and tells it; not without its keys
 * (peer.c). If they follow, again when they are there. shm.lock is held. */
void shm_access_choose(struct shm_link *l, bool keys_follow);

/* For those who look from outside: enum hca_link_flags. */
uint32_t shm_access_flags(const struct shm_link *l);

/* The link is up: asks for a better path if there may be one. */
void shm_access_improve(struct shm_link *l);

/* Messages about it, on a link that is up. 0 or -EPROTO. Progress thread;
 * shm.lock is held. */
int shm_access_message(struct shm_link *l, const struct shm_control *msg,
		       int fds[3]);

/*
 * Copies `length` bytes between `far`, addresses of the peer, and `near`; both
 * are used up. 0, -ESRCH (the peer is gone), -EPERM (the path does not work any
 * more, another one is used from now on) or -EFAULT.
 */
int shm_access_copy(struct shm_link *l, bool read, struct iovec *near,
		    int near_count, struct iovec *far, int far_count,
		    uint64_t length);

/*
 * Where [offset, offset + length) of the peer's region `id` is mapped; NULL when
 * it is not. A region that is not mapped is asked for by `rkey`, once; that does
 * not wait. The sq_lock of a QP of the link is held, also while it is used, or a part
 * of a copy is announced to shm_copy_fence().
 */
uint8_t *shm_map_find(struct shm_link *l, uint32_t rkey, uint32_t id,
		      uint64_t offset, uint64_t length, bool write);

int shm_map_message(struct shm_link *l, const struct shm_control *msg,
		    int fds[3]);

/* Was the peer asked for this region, and may it be mapped? */
bool shm_map_awaits(const struct shm_link *l, uint32_t id);
void shm_map_release(struct shm_link *l);
void shm_region_gone(uint32_t id);

/* Can the peer copy from or to our memory by itself? tx_lock or shm.lock is held,
 * and the link is up. */
static inline bool shm_reaches_us(const struct shm_link *l)
{
	return ((l->lends & HCA_PEER_MEMORY) &&
		atomic_load_explicit(&l->tx->ack.pulls, memory_order_relaxed)) ||
	       atomic_load_explicit(&l->lent, memory_order_relaxed);
}

/* The peer has ended. Its memory would still take our stores. */
static inline bool shm_peer_died(const struct shm_link *l)
{
	return atomic_load_explicit(&l->peer->alive, memory_order_relaxed) &
	       HCA_DIED;
}

enum shm_step {
	SHM_STEP_DONE,      /* carried out; the status says how it ended */
	SHM_STEP_TO_TARGET, /* the target has to do it */
};

/* Whether the initiator may carry this entry out itself. Cheap, and may be wrong
 * a moment later. sq_lock is held. */
bool shm_onesided_reaches(struct hca_qp *qp, struct shm_link *l,
			  const struct hca_swqe *e);

/* Where the memory is, as it is while sq_lock is held, or the links are borrowed. */
struct shm_way {
	struct shm_link *link;
	const struct hca_qp_public *remote; /* that the QP is connected to */
	/* Whose protection domain the memory has to be in: the same, or an XRC SRQ. */
	const struct hca_qp_public *owner;
};

/* Of the entry's data; with a length of 0 it is found out whether it could be done, and
 * nothing is copied. */
struct shm_part {
	uint32_t at, length;
};

enum shm_step shm_onesided(struct hca_qp *qp, const struct hca_swqe *e,
			   const struct shm_way *way, const struct shm_part *part,
			   enum ibv_wc_status *status);
void shm_qp_fence(const struct hca_qp *qp); /* NULL: an XRC SRQ is gone */
void shm_key_fence(uint32_t key);
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

#endif
