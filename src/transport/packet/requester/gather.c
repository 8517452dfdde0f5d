/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of packets, in the buffers of posted entries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/queue/hold.h"
#include "hca/queue/scatter.h"
#include "hca/run/touch.h"
#include "transport/packet/requester/requester.h"

static uint8_t *whole_of(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		      uint32_t length)
{
	struct hca_walk w = { e->sge, e->sge + e->num_sge, at, length };
	struct hca_piece p;
	uint8_t *base;

	if (e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD))
		return (uint8_t *)(uintptr_t)(hca_swqe_data(e) + at);
	if (!hca_walk_next(&w, &p) || p.length < length)
		return NULL;
	base = hca_sge_resolve(qp->pd, p.sge, 0);
	return base && hca_touch_read(base + p.at, length) ? base + p.at : NULL;
}

static uint8_t *room_of(struct packet_qp *pq)
{
	if (!pq->room)
		pq->room = malloc(PACKET_TRAIN_BYTES);
	return pq->room;
}

int packet_add_run(struct packet_qp *pq, struct packet_train *train, const struct hca_swqe *e,
		   struct rc_tx *tx)
{
	const struct rc_packet *p = &tx->packet;
	const uint8_t *whole;
	uint32_t stride;
	uint8_t *to;

	if (!train->room && !(train->room = room_of(pq)))
		return 0;
	whole = whole_of(pq->qp, e, tx->at, p->bytes * (1 + p->more));
	to = packet_train_place(train, p->bytes, &stride);
	for (uint32_t i = 0; i <= p->more; i++, to += stride) {
		uint32_t at = i * p->bytes;

		if (likely(whole))
			memcpy(to, whole + at, p->bytes);
		else if (hca_swqe_read(pq->qp, e, tx->at + at, to, p->bytes))
			return i ? (int)i : -EFAULT;
		packet_train_placed(train, p, i);
	}
	return 1 + (int)p->more;
}
