/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE and READ that the target carries out, if the initiator cannot access the
 * target's memory (access.c). They are messages of the ring like a SEND, in
 * its order, with its sequence numbers and acknowledgements, in parts of at most
 * SHM_FRAGMENT bytes. For a READ the initiator reserves room in its own data area (or in
 * the slot) and the target writes the data there before it acknowledges the slot. So the
 * target sends no message for the answer and never waits for room.
 */
#include "hca/memory/key.h"
#include "hca/memory/target.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/scatter.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/watch.h"
#include "util/container_of.h"

/* ---- the responder ---- */

static uint8_t *part_data(struct shm_link *l, struct shm_slot *slot, bool in_data,
			  const struct shm_extent *x, uint32_t length)
{
	if (x->at > length || x->length > length - x->at)
		return NULL;
	if (!in_data)
		return x->length <= SHM_REQUEST_PAYLOAD ?
			       slot->payload + sizeof(struct shm_request) : NULL;
	if (x->offset > SHM_DATA_BYTES || x->length > SHM_DATA_BYTES - x->offset)
		return NULL;
	return l->rx->data + x->offset;
}

/* For a key of a memory window or of on-demand memory: as for atomics (atomic.c). */
static enum ibv_wc_status execute_carefully(bool read, struct hca_key_use *use,
					    uint8_t *data,
					    const struct shm_extent *part)
{
	uint64_t tag = shm_uuid_tag(hca_process.uuid);
	int hazard = hca_hazard_enter(tag << 32 | use->rkey);
	enum ibv_wc_status status;

	status = hca_key_check_own(use);
	if (status == IBV_WC_SUCCESS &&
	    hca_target_copy(read, use->addr + part->at, data, part->length,
			    use->flags & HCA_KEY_ON_DEMAND))
		status = IBV_WC_REM_ACCESS_ERR;
	hca_hazard_leave(hazard);
	return status;
}

enum ibv_wc_status shm_request_execute(struct shm_link *l, struct hca_qp *qp,
				       struct shm_slot *slot, uint8_t op,
				       uint8_t flags, uint32_t length,
				       struct shm_extent *part)
{
	bool read = op == SHM_READ, in_data = flags & SHM_IN_DATA;
	struct hca_key_use use = {
		.pd_id = qp->pd->id,
		.qpn = qp->ibv.qp_num,
		.access = read ? IBV_ACCESS_REMOTE_READ :
				 IBV_ACCESS_REMOTE_WRITE,
		.length = length,
	};
	enum ibv_wc_status status;
	struct shm_request q;
	uint8_t *data;

	shm_copy_once(&q, slot->payload, sizeof(q));
	if (in_data)
		q.part = *part; /* the copy that take_extent() has checked */
	*part = q.part;
	data = part_data(l, slot, in_data, &q.part, length);
	if (!data || (!in_data && q.part.at) ||
	    (!(flags & SHM_MORE) && q.part.at + q.part.length != length))
		return IBV_WC_GENERAL_ERR;
	if (!(atomic_load_explicit(&qp->pub->access, memory_order_relaxed) & use.access))
		return IBV_WC_REM_INV_REQ_ERR;
	if (length == 0) /* no key is looked at (9.7.4.1.5) */
		return IBV_WC_SUCCESS;
	/* The key is checked for the whole message at each part, so that nothing is
	 * written of a message that is not allowed. */
	use.rkey = q.rkey;
	use.iova = q.remote_addr;
	status = hca_key_check_own(&use);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (unlikely(use.flags))
		return execute_carefully(read, &use, data, &q.part);
	return hca_target_copy(read, use.addr + q.part.at, data, q.part.length, false) ?
		       IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
}

/* ---- the initiator, when a READ is acknowledged ---- */

static enum shm_status place(struct shm_link *l, struct hca_qp *qp,
			     const struct hca_swqe *e,
			     const struct shm_slot *slot)
{
	bool in_data = e->length > SHM_REQUEST_PAYLOAD;
	struct shm_request q;
	const uint8_t *from;

	/* Checked again, as the peer can have changed the slot. */
	shm_copy_once(&q, slot->payload, sizeof(q));
	if (e->opcode != IBV_WR_RDMA_READ || q.part.at > e->length ||
	    q.part.length > e->length - q.part.at ||
	    (in_data ? q.part.offset > SHM_DATA_BYTES ||
			       q.part.length > SHM_DATA_BYTES - q.part.offset :
		       q.part.length > SHM_REQUEST_PAYLOAD)) {
		shm_link_violation(l, "malformed answer to a READ");
		return SHM_DROPPED;
	}
	from = in_data ? l->tx->data + q.part.offset : slot->payload + sizeof(q);
	return hca_sges_write(qp->pd, e->sge, e->num_sge, q.part.at, from, q.part.length) ?
		       SHM_LOCAL_FAULT : SHM_OK;
}

enum shm_status shm_read_arrived(struct shm_link *l,
				 const struct shm_inflight *f,
				 const struct shm_slot *slot,
				 enum shm_status status)
{
	struct hca_qp *qp = f->qp;

	if (f->kind & SHM_SHOWN)
		shm_watch_acknowledged(l, slot, status);
	if (!(f->kind & SHM_DATA) || !qp || status != SHM_OK)
		return status;
	hca_lock(&qp->sq_lock);
	if (f->epoch == qp->tx_epoch)
		status = place(l, qp, hca_sq_entry(&qp->sq, f->index), slot);
	hca_unlock(&qp->sq_lock);
	return status;
}
