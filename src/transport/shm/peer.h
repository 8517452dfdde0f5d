/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of a peer before it is believed, and what it shows of itself. */
#ifndef TRANSPORT_SHM_PEER_H
#define TRANSPORT_SHM_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hca/public.h"
#include "hca/qp.h"
#include "transport/shm/state.h"
#include "util/container_of.h"

/* May one that may not talk to us ask who we are? shm.lock is held. */
bool shm_strangers_have_room(void);

/* Or has it enough links already? shm.lock is held. */
bool shm_peer_has_room(const struct ucred *peer);

/* For that time; shm.lock is held for both. */
#define SHM_BAN_NS UINT64_C(60000000000) /* after a violation */
void shm_peer_ban(pid_t pid, uint64_t ns);
bool shm_peer_is_banned(pid_t pid);

/* Can `size` bytes of it be mapped and read for good? */
bool shm_memory_stays(int fd, size_t size);
bool shm_wakeup_is_eventfd(int fd);
bool shm_block_is_of(uint32_t block, pid_t pid);
bool shm_from_owner(struct hca_qp *qp, struct shm_link *l, uint32_t src_qpn);

/* Does a message of QP `src_qpn` that came by this link come from the peer of
 * the (connected) QP? Any process can write any numbers into its messages. */
static inline bool shm_from_peer(struct hca_qp *qp, struct shm_link *l,
				 uint32_t src_qpn)
{
	if (src_qpn != atomic_load_explicit(&qp->pub->dest_qpn,
					    memory_order_relaxed))
		return false;
	return likely(qp->rx_peer == l->rx_peer) || shm_from_owner(qp, l, src_qpn);
}

/* Copies out of memory that the peer can write, so that the compiler cannot
 * read there a second time what it has checked. */
static inline void shm_copy_once(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__asm__ volatile("" : : "r"(to) : "memory");
}

/* Its segment, whose head then can be read. 0 or a negative errno. */
int shm_peer_map(struct shm_link *l, int fd);

/* Its table of keys; `fd` may be -1. Before the link is up. */
int shm_peer_map_keys(struct shm_link *l, int fd);
void shm_peer_unmap(struct shm_link *l);

/* Our descriptor for the peer, with which it may look up our keys and then reach our
 * memory by itself, or -1: it may not. */
int shm_keys_for_peer(const struct shm_link *l);

/* Is it given to the peer? Of one that it is not given to, nobody copies on its own. */
static inline bool shm_keys_given(const struct shm_link *l)
{
	return l->lends & (HCA_PEER_MEMORY | HCA_PEER_REGIONS);
}

/* What it shows of a QP or XRC SRQ of its; NULL: not its number. */
const struct hca_qp_public *shm_find_remote(struct shm_link *l, uint32_t number);

/* The slow half of shm_keys_upto(). */
uint32_t shm_keys_open(struct shm_link *l, uint32_t index);

/* How many of the peer's keys may be looked at, `rkey` among them if there is one. */
static inline uint32_t shm_keys_upto(struct shm_link *l, uint32_t rkey)
{
	uint32_t count = atomic_load_explicit(&l->key_count,
					      memory_order_relaxed);

	return likely(rkey >> 8 < count) ? count : shm_keys_open(l, rkey >> 8);
}

#endif
