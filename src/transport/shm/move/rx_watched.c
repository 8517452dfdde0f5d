/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving with a capture or faults (watch/watch.h, watch/faults.h); see receive.h. */
#include "hca/run/elide.h"
#include "transport/shm/link/shown.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/faults.h"
#include "transport/shm/watch/watch.h"
#include "util/probe.h"

/* One slot; true if it was marked, so that the sender has to act. */
static bool take(struct shm_link *l, struct shm_slot *s, const struct shm_header *h,
		 enum shm_fate fate)
{
	struct shm_part_shown shown;
	bool marked;

	if (fate == SHM_LOSE) {
		atomic_store_explicit(&s->status, SHM_DROPPED, memory_order_relaxed);
		return true;
	}
	shm_watch_received(l, s, h, &shown);
	marked = shm_receive_other(l, s, *h);
	shm_watch_answered(s, &shown, marked);
	return marked;
}

/* The steps of shm_receive(), for slots of all kinds. */
bool shm_receive_watched(struct shm_link *l, bool at_once)
{
	uint32_t start = atomic_load_explicit(&l->rx_pos, memory_order_relaxed);
	uint32_t pos = start, ack;
	struct shm_header h;
	struct shm_slot *s;
	bool kick = false;

	if (atomic_load_explicit(&l->state, memory_order_acquire) != SHM_LINK_UP ||
	    atomic_load_explicit(&l->broken, memory_order_relaxed))
		return false;
	while (pos - start < SHM_RECEIVE_BUDGET && (s = shm_slot_ready(l, pos))) {
		enum shm_fate fate = shm_faults_receive(l, pos);

		if (fate == SHM_WAIT && !at_once)
			break;
		shm_slot_read(s, &h, &ack);
		shm_take_hint(l, hca_qp_find(h.dst_qpn), ack);
		PROBE(receive, h.dst_qpn, h.src_qpn, h.psn, h.length, h.op);
		if (take(l, s, &h, fate)) {
			l->rx_marks++;
			kick = true;
		}
		kick |= !!(h.flags & SHM_KICK_ON_ACK);
		atomic_store_explicit(&l->rx_pos, ++pos, memory_order_relaxed);
		shm_tell_received(l, pos);
	}
	if (pos == start)
		return false;
	atomic_store_explicit(&l->rx->ack.word, shm_ack_word(pos, l->rx_marks),
			      memory_order_release);
	if (kick)
		shm_kick(l);
	return true;
}

void shm_receive_rest(struct shm_link *l)
{
	/* At most SHM_SLOTS messages are there now; a peer that runs may go on sending.
	 * Waits for a polling thread that holds the lock, even if it is preempted. */
	hca_lock(&l->rx_lock);
	for (unsigned i = 0; i < SHM_SLOTS / SHM_RECEIVE_BUDGET &&
			     (shm_watches ? shm_receive_watched(l, true) : shm_receive(l)); i++)
		;
	hca_unlock(&l->rx_lock);
}
