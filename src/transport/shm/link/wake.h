/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking the peer, or its progress thread, when it sleeps. */
#ifndef TRANSPORT_SHM_LINK_WAKE_H
#define TRANSPORT_SHM_LINK_WAKE_H

#include <stdatomic.h>

#include "hca/object/sq.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"

/* Wakes the peer, by its eventfd or through the socket. Never waits; failure is logged. */
void shm_wake(struct shm_link *l);

/* For which messages the peer wants to be woken. */
static inline uint32_t shm_wanted(const struct shm_link *l)
{
	/* Our slot must be visible before `wants_kick` is read. The peer's membarrier()
	 * ensures that, unless one of the two processes cannot use it (l->fence). */
	if (l->fence)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&l->peer->wants_kick, memory_order_relaxed);
}

/* Wakes the peer if it sleeps. tx_lock or rx_lock is held. */
static inline void shm_kick(struct shm_link *l)
{
	if (unlikely(shm_wanted(l) != HCA_WAKE_NOTHING))
		shm_wake(l);
}

/* The same after a datagram, which a peer that waits for solicited messages only need not
 * be woken for; datagrams have no acknowledgement to wait for. */
static inline void shm_kick_datagram(struct shm_link *l, const struct hca_swqe *e)
{
	uint32_t wanted = shm_wanted(l);

	if (unlikely(wanted != HCA_WAKE_NOTHING) &&
	    (wanted != HCA_WAKE_SOLICITED || e->flags & HCA_SWQE_SOLICITED))
		shm_wake(l);
}

/* After a request that the target has to carry out: wakes the peer's progress thread if
 * our program sleeps and so does not wake it by polling. */
void shm_wake_target(struct shm_link *l);

#endif
