/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledgements, promises, and queue pairs that wait for room. */
#ifndef TRANSPORT_SHM_ACK_H
#define TRANSPORT_SHM_ACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/elide.h"
#include "hca/qp.h"
#include "transport/shm/state.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

/* After posting: keeps a ring from filling up while nobody polls. */
void shm_posted(struct hca_qp *qp);

/* Works off acknowledgements; true if there were any. `look`: in the peer's
 * line too, which costs a cache miss when the peer has just written it.
 * ack_lock is held. */
bool shm_harvest(struct shm_link *l, bool look);

/* Completes what the peer will receive for certain; true if there was any.
 * ack_lock is held. */
bool shm_take_promises(struct shm_link *l);

/* Works off what a peer that has ended acknowledged. */
void shm_harvest_rest(struct shm_link *l);

/* Lets the QPs of a list that was taken from a link try again. The caller sees
 * to it that none of them is forgotten meanwhile. */
void shm_backlog_run(struct list *waiting);

/* The same for a link that has come up. shm.lock is held. */
void shm_backlog_open(struct shm_link *l);

/* Is a lock of a link that may be in use by who moves messages already to be
 * waited for? See hca_transport_ops.poll. */
static inline bool shm_lock_for(struct spin *lock, bool wait)
{
	if (likely(hca_trylock(lock)))
		return true;
	if (wait)
		hca_lock(lock);
	return wait;
}

/* An application that only polls for receives still has sends that must go on:
 * one whose receiver was not ready, one with an event owed. */
#define SHM_IDLE_POLLS_TO_LOOK 256

/* Where acknowledgements come with messages, the peer's line is left alone for
 * so long: whoever reads it takes it from the peer, which then has to fetch it
 * before its next message becomes visible. */
#define SHM_IDLE_POLLS_WHEN_CARRIED 64

/* Is there news of our slots, or is it time to look in the peer's line?
 * `acks`: somebody waits for them. Sets *look. ack_lock is held. */
static inline bool shm_harvest_due(struct shm_link *l, bool acks, bool *look)
{
	uint32_t idle = ++l->idle_polls;

	*look = (acks &&
		 (!l->carried || idle > SHM_IDLE_POLLS_WHEN_CARRIED)) ||
		unlikely(idle % SHM_IDLE_POLLS_TO_LOOK == 0) ||
		unlikely(atomic_load_explicit(&l->backlog,
					      memory_order_relaxed));
	return *look || atomic_load_explicit(&l->acked_hint,
					     memory_order_relaxed) !=
				l->hint_seen;
}

/* Is it time to look what is promised? Once behind the last message, when few are
 * on the way and no acknowledgement has come at once: where there are many they come
 * by themselves, keep the sender from running ahead in the ring (a third of the rate),
 * and the fence would hold up the next. And when nothing comes for long: the peer may be
 * slow. */
#define SHM_PROMISES_WHEN_BELOW 4
#define SHM_IDLE_POLLS_BEFORE_PROMISES 2
#define SHM_IDLE_POLLS_TO_PROMISES 2048

static inline bool shm_promises_due(struct shm_link *l)
{
	uint32_t pos = atomic_load_explicit(&l->tx_pos, memory_order_relaxed);

	return (l->idle_polls >= SHM_IDLE_POLLS_BEFORE_PROMISES &&
		pos != l->promises_pos &&
		pos - atomic_load_explicit(&l->harvested, memory_order_relaxed) <=
			SHM_PROMISES_WHEN_BELOW) ||
	       unlikely(l->idle_polls % SHM_IDLE_POLLS_TO_PROMISES == 0);
}

/* Is anything to be acknowledged or waiting? */
static inline bool shm_outstanding(struct shm_link *l)
{
	return atomic_load_explicit(&l->tx_pos, memory_order_relaxed) !=
		       atomic_load_explicit(&l->harvested,
					    memory_order_relaxed) ||
	       atomic_load_explicit(&l->backlog, memory_order_relaxed);
}

#endif
