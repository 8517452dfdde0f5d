/* SPDX-License-Identifier: BSD-2-Clause */
/* Processing of acknowledgements and promises. */
#ifndef TRANSPORT_SHM_MOVE_ACK_H
#define TRANSPORT_SHM_MOVE_ACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/spin.h"

/* After posting: processes acknowledgements if the ring is a quarter full, so that it
 * does not fill up while the program does not poll. */
void shm_posted(struct hca_qp *qp);

/* Processes acknowledgements; true if there were any. `look`: reads the peer's
 * struct shm_ack, too, which costs a cache miss if the peer has just written it.
 * ack_lock is held. */
bool shm_harvest(struct shm_link *l, bool look);

/* Processes the acknowledgement that came with a message, before the message is received: the
 * message may answer one that it acknowledges. rx_lock is held; takes ack_lock and tx_lock. */
void shm_harvest_before(struct shm_link *l);

/* The same on a link of the process with itself. There the answer may come in the direction of
 * the message that it answers, and then brings no acknowledgement of it. Nothing is done if the
 * program cannot notice the order. */
void shm_harvest_twin(struct shm_link *l, const struct hca_qp *qp);

/* Completes the sends that the peer has promised to receive (hca/memory/promise.h); true if
 * there was any. ack_lock is held. */
bool shm_take_promises(struct shm_link *l);

/* Processes the last acknowledgements of a peer that has ended. Takes ack_lock. */
void shm_harvest_rest(struct shm_link *l);

/* Takes a link's lock. If another poller has it: waits if `wait`, else returns false.
 * See hca_transport_ops.poll. */
static inline bool shm_lock_for(struct spin *lock, bool wait)
{
	if (likely(hca_trylock(lock)))
		return true;
	if (wait)
		hca_lock(lock);
	return wait;
}

/* Waits for a sender that has published a slot and not counted it yet. */
static inline void shm_wait_for_sender(struct shm_link *l)
{
	hca_lock(&l->tx_lock);
	hca_unlock(&l->tx_lock);
}

/* Polls without progress after which acknowledgements are read even if no send
 * completion is waited for: a send may have to be repeated (RNR), or an event be due. */
#define SHM_IDLE_POLLS_TO_LOOK 256

/* While acknowledgements come with messages, the peer's struct shm_ack is read only
 * after so many polls without progress: a read takes the cache line from the peer,
 * which has to fetch it again before its next message becomes visible. */
#define SHM_IDLE_POLLS_WHEN_CARRIED 64

/* True if shm_harvest() is to be called: a new piggybacked acknowledgement is there, or
 * it is time to read the peer's struct shm_ack (*look). `acks`: the poller waits for
 * send completions. ack_lock is held, and the link is up. */
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

/* True if promises are to be checked: once after the last message sent, if few messages
 * are outstanding and the first polls found no acknowledgement; later if the program waits
 * for none of them, because the reads take lines from the peer's cache. With many outstanding,
 * acknowledgements come anyway and keep the sender from filling the ring (which would
 * cost a third of the rate), and the fence would delay the next message. Also after many
 * polls without progress, as the peer may be slow. */
#define SHM_PROMISES_WHEN_BELOW 4
#define SHM_IDLE_POLLS_BEFORE_PROMISES 2
#define SHM_IDLE_POLLS_WHEN_UNWANTED 64
#define SHM_IDLE_POLLS_TO_PROMISES 2048

static inline bool shm_promises_due(struct shm_link *l)
{
	uint32_t pos = atomic_load_explicit(&l->tx_pos, memory_order_relaxed);
	uint32_t harvested = atomic_load_explicit(&l->harvested, memory_order_relaxed);
	uint32_t wanted = atomic_load_explicit(&l->wanted_pos, memory_order_relaxed);

	return (l->idle_polls >= SHM_IDLE_POLLS_BEFORE_PROMISES &&
		pos != l->promises_pos && pos - harvested <= SHM_PROMISES_WHEN_BELOW &&
		((int32_t)(wanted - harvested) > 0 ||
		 l->idle_polls >= SHM_IDLE_POLLS_WHEN_UNWANTED)) ||
	       unlikely(l->idle_polls % SHM_IDLE_POLLS_TO_PROMISES == 0);
}

/* May the acknowledgement complete something that the program waits for? */
static inline bool shm_is_awaited(const struct shm_link *l, uint32_t ack)
{
	uint32_t harvested = atomic_load_explicit(&l->harvested, memory_order_acquire);

	return ((ack - harvested) & SHM_ACK_POS_MASK) != 0 &&
	       (int32_t)(atomic_load_explicit(&l->wanted_pos, memory_order_relaxed) -
			 harvested) > 0;
}

/* Could the program see the message before the completions that its acknowledgement brings? It
 * could where both share a queue, by the order of events, or with several threads. A single thread
 * that polls a queue without sends finds the completions when it polls the other queue; leaving
 * them to that poll makes an answer 4 % cheaper. */
static inline bool shm_order_shows(const struct hca_qp *qp)
{
	return !hca_self.elided || !qp || !qp->recv_cq ||
	       atomic_load_explicit(&qp->recv_cq->sends, memory_order_relaxed) ||
	       atomic_load_explicit(&hca_process.armed, memory_order_relaxed);
}

/* Takes the acknowledgement `ack` that came with a message for `qp` (NULL: there is no such). To be
 * called before the message is received. rx_lock is held. */
static inline void shm_take_hint(struct shm_link *l, const struct hca_qp *qp, uint32_t ack)
{
	const struct shm_link *o = l->twin;

	atomic_store_explicit(&l->acked_hint, ack, memory_order_release);
	if (!hca_self.elided || shm_is_awaited(l, ack)) {
		if (unlikely(shm_order_shows(qp)))
			shm_harvest_before(l);
		else if (!atomic_load_explicit(&shm.put_off, memory_order_relaxed))
			atomic_store_explicit(&shm.put_off, true, memory_order_relaxed);
	}
	if (unlikely(l->rx_peer == &shm) &&
	    (!hca_self.elided || !o ||
	     shm_is_awaited(o, atomic_load_explicit(&l->rx_pos, memory_order_relaxed))))
		shm_harvest_twin(l, qp);
}

/* The slots before `pos` are received: from now on our messages carry their acknowledgement.
 * For a slot without a mark this is called before the program can know of the message, because
 * another of its threads may answer at once. rx_lock is held. */
static inline void shm_tell_received(struct shm_link *l, uint32_t pos)
{
	atomic_store_explicit(&l->rx_ack, shm_ack_word(pos, l->rx_marks), memory_order_release);
}

/* True if slots are unacknowledged or QPs wait in the backlog. */
static inline bool shm_outstanding(struct shm_link *l)
{
	return atomic_load_explicit(&l->tx_pos, memory_order_relaxed) !=
		       atomic_load_explicit(&l->harvested,
					    memory_order_relaxed) ||
	       atomic_load_explicit(&l->backlog, memory_order_relaxed);
}

#endif
