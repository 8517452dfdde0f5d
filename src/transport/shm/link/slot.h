/* SPDX-License-Identifier: BSD-2-Clause */
/* Filling the slots of a link's ring; tx_lock is held in all of it. */
#ifndef TRANSPORT_SHM_LINK_SLOT_H
#define TRANSPORT_SHM_LINK_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"
#include "util/cache.h"
#include "util/container_of.h"

/* A slot being written; slot_publish() makes it visible. */
struct slot_writer {
	struct shm_slot *slot;
	struct shm_header header;
	uint32_t pos;
	uint32_t data_end;
	bool unsignaled; /* the program does not wait for its completion */
};

#define SHM_FEW_OUTSTANDING 4

static inline uint32_t slot_lap(uint32_t pos)
{
	return pos / SHM_SLOTS + 1;
}

/* False: the ring is full. */
static inline bool slot_open(struct shm_link *l, struct slot_writer *w)
{
	w->pos = atomic_load_explicit(&l->tx_pos, memory_order_relaxed);
	if (unlikely(w->pos - atomic_load_explicit(&l->harvested,
						   memory_order_acquire) >=
		     SHM_SLOTS))
		return false;
	w->slot = &l->tx->slots[w->pos % SHM_SLOTS];
	w->data_end = l->data_head;
	w->unsignaled = false;
	return true;
}

/* Makes the slot visible first, as the peer waits for it. The inflight entry is written
 * before `tx_pos` counts the slot; acknowledgements are not processed earlier. */
static inline void slot_publish(struct shm_link *l, struct slot_writer *w,
				struct hca_qp *qp, uint32_t index, unsigned kind)
{
	uint32_t ack = atomic_load_explicit(&l->rx_ack, memory_order_acquire);

	shm_slot_write(w->slot, &w->header, ack, slot_lap(w->pos));
	l->inflight[w->pos % SHM_SLOTS] = (struct shm_inflight){
		.qp = qp,
		.index = index,
		.data_end = w->data_end,
		.psn = w->header.psn,
		.epoch = qp ? qp->tx_epoch : 0,
		.kind = (uint8_t)kind,
	};
	l->data_head = w->data_end;
	if (!w->unsignaled)
		atomic_store_explicit(&l->wanted_pos, w->pos + 1, memory_order_relaxed);
	atomic_store_explicit(&l->tx_pos, w->pos + 1, memory_order_release);
	/* With many slots in flight the receiver is behind anyway, and handing over the cache
	 * lines would cost a tenth of the rate. */
	if (w->pos - atomic_load_explicit(&l->harvested, memory_order_relaxed) >
	    SHM_FEW_OUTSTANDING)
		return;
	cache_hand_over(w->slot);
	if (w->header.length > SHM_FIRST_LINE)
		cache_hand_over(&w->slot->payload[SHM_FIRST_LINE]);
}

/* Reserves `bytes` contiguous bytes of the data area; false: no room. slot_publish() makes
 * the reservation final. */
bool shm_data_room(struct shm_link *l, struct slot_writer *w, uint32_t bytes, uint32_t *offset);

/* The next slot, if it is filled; rx_lock is held and the link is up. */
static inline struct shm_slot *shm_slot_ready(struct shm_link *l, uint32_t pos)
{
	struct shm_slot *s = &l->rx->slots[pos % SHM_SLOTS];

	return atomic_load_explicit(&s->tag, memory_order_acquire) ==
			       pos / SHM_SLOTS + 1 ?
		       s : NULL;
}

static inline uint8_t slot_flags(const struct hca_qp *qp, unsigned send_flags)
{
	_Static_assert((int)SHM_SOLICITED == (int)HCA_SWQE_SOLICITED &&
			       (int)SHM_KICK_ON_ACK == (int)HCA_SWQE_SIGNALED,
		       "the same bits");
	if (unlikely(!shm_is_reliable(qp)))
		return (uint8_t)((send_flags & SHM_SOLICITED) | SHM_UNRELIABLE);
	return (uint8_t)(send_flags & (shm_qp(qp)->event_sends ?
					       SHM_SOLICITED | SHM_KICK_ON_ACK :
					       SHM_SOLICITED));
}

#endif
