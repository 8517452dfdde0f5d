/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of packets, in the buffers of posted entries. */
#include <stdlib.h>

#include "hca/queue/hold.h"
#include "hca/queue/scatter.h"
#include "hca/run/touch.h"
#include "transport/packet/requester/requester.h"

uint8_t *packet_whole(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
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

uint8_t *packet_whole_copy(struct packet_qp *pq, const struct hca_swqe *e, struct rc_tx *tx)
{
	const uint32_t bytes = tx->packet.bytes;
	const uint32_t more = MIN(tx->packet.more, PACKET_TRAIN_BYTES / bytes - 1);
	struct iovec iov[HCA_MAX_SGE];

	if (e->num_sge != 1 || !more)
		return NULL;
	if (!pq->copy && !(pq->copy = malloc(PACKET_TRAIN_BYTES)))
		return NULL;
	if (hca_swqe_gather(pq->qp, e, tx->at, bytes * (1 + more), iov, pq->copy) != 1)
		return NULL;
	tx->packet.more = more;
	return iov->iov_base;
}
