/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks on a peer and on what it passes (limits.c); its segment and key table
 * (peer.c). */
#ifndef TRANSPORT_SHM_LINK_PEER_H
#define TRANSPORT_SHM_LINK_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"

/* True if one more caller that is not allowed a link may be accepted for inspection
 * (hca/view/inspect.h). shm.lock is held. */
bool shm_inspectors_have_room(void);

/* False if the peer's process or user has too many links already; logs that. shm.lock
 * is held. */
bool shm_peer_has_room(const struct ucred *peer);

/* No link is made with a banned process for `ns`. shm.lock is held for both. */
#define SHM_BAN_NS UINT64_C(60000000000) /* after a violation or a refusal */
void shm_peer_ban(pid_t pid, uint64_t ns);
bool shm_peer_is_banned(pid_t pid);

/* True for a non-blocking eventfd. */
bool shm_wakeup_is_eventfd(int fd);

/* True if the process owns the QP block, by the credentials that the kernel gives.
 * Makes a connection to the owner. */
bool shm_block_is_of(uint32_t block, pid_t pid);

/* The slow half of shm_from_peer(). */
bool shm_from_owner(struct hca_qp *qp, struct shm_link *l, uint32_t src_qpn);

/* True if a message from QP `src_qpn` on this link comes from the peer of the
 * connected QP. The link is compared, too, as a process can write any number into its
 * messages. */
static inline bool shm_from_peer(struct hca_qp *qp, struct shm_link *l, uint32_t src_qpn)
{
	if (src_qpn != atomic_load_explicit(&qp->pub->dest_qpn, memory_order_relaxed))
		return false;
	return likely(qp->rx_peer == l->rx_peer) || shm_from_owner(qp, l, src_qpn);
}

/* Maps the peer's segment; its head can be read then. 0, -EPROTO (the file could
 * become shorter) or -ENOMEM. */
int shm_peer_map(struct shm_link *l, int fd);

/* Maps the peer's table of keys; with `fd` -1 there is none. Before the link is up.
 * 0, -EPROTO or -ENOMEM as above. */
int shm_peer_map_keys(struct shm_link *l, int fd);
void shm_peer_unmap(struct shm_link *l);

/* The descriptor of our table of keys to be passed to the peer, which needs it to
 * access our memory itself; -1 if the peer may not. It stays ours. */
int shm_keys_for_peer(const struct shm_link *l);

/* True if our table of keys is given to the peer. A peer without it carries out no
 * copies on our memory itself. */
static inline bool shm_keys_given(const struct shm_link *l)
{
	return l->lends & (HCA_PEER_MEMORY | HCA_PEER_REGIONS);
}

/* The public part of the peer's QP or XRC SRQ; NULL: the number is not in a block of
 * the peer, or there is no memory. */
const struct hca_qp_public *shm_find_remote(struct shm_link *l, uint32_t number);

/* The slow half of shm_keys_upto(). */
uint32_t shm_keys_open(struct shm_link *l, uint32_t index);

/* How many of the peer's keys can be read; includes the entry of `rkey` if the peer
 * has one. */
static inline uint32_t shm_keys_upto(struct shm_link *l, uint32_t rkey)
{
	uint32_t count = atomic_load_explicit(&l->key_count, memory_order_relaxed);

	return likely(rkey >> 8 < count) ? count : shm_keys_open(l, rkey >> 8);
}

/* True if the peer has ended. Stores to its mapped memory would still succeed. */
static inline bool shm_peer_died(const struct shm_link *l)
{
	return atomic_load_explicit(&l->peer->alive, memory_order_relaxed) & HCA_DIED;
}

/* True if `r`, the public part of a peer's QP, is connected to this QP by the same service
 * and in a state that receives. */
static inline bool shm_answers(const struct hca_qp *qp, const struct hca_qp_public *r)
{
	uint32_t state;

	if (!r || atomic_load_explicit(&r->qpn, memory_order_relaxed) !=
			  qp->attr.dest_qp_num)
		return false;
	state = atomic_load_explicit(&r->state, memory_order_acquire);
	return shm_receives_in((enum ibv_qp_state)state) &&
	       atomic_load_explicit(&r->dest_qpn, memory_order_relaxed) ==
		       qp->ibv.qp_num &&
	       (atomic_load_explicit(&r->type, memory_order_relaxed) ==
		IBV_QPT_UC) == !shm_is_reliable(qp);
}

static inline bool shm_remote_ready(const struct hca_qp *qp)
{
	return shm_answers(qp, shm_qp(qp)->remote);
}

#endif
