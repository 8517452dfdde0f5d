/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side of the responder where pages are missing: it drops the request, sends an RNR NAK after
 * a while, and forgets it; a READ it may answer by itself when it has the pages (engine/paging).
 */
#include "transport/packet/responder/responder.h"

/* Memory that the peer names: true also if it may not have it, which is refused at once. */
static bool remote_there(struct packet_qp *pq, enum packet_access what, uint32_t rkey,
			 uint64_t addr, uint64_t length)
{
	return packet_access(pq, pq->as->pd->id, what, rkey, addr, length, 0, NULL) !=
		       IBV_WC_SUCCESS ||
	       hca_demand_use(pq->port->demand, pq->qp->ibv.qp_num, PAGING_RESPONDER, rkey, addr,
			      length);
}

/* The pages of the request; those of a receive by its buffers. */
static bool all_there(struct packet_qp *pq, const struct packet_frame *f,
		      const struct rc_look *look, const struct hca_rwqe *receive)
{
	struct hca_demand *d = pq->port->demand;
	const struct rc_packet *p = &f->rc;
	const uint32_t qpn = pq->qp->ibv.qp_num;
	const uint32_t bytes = p->bytes * (1 + look->more);

	switch (look->op) {
	case RC_SEND:
		return hca_demand_use_sges(d, qpn, PAGING_RESPONDER, receive->sge,
					   (unsigned)receive->num_sge, look->at, bytes);
	case RC_WRITE:
		return remote_there(pq, PACKET_WRITE, look->rkey, look->remote_addr, bytes);
	case RC_READ:
		return remote_there(pq, PACKET_READ, p->rkey, p->remote_addr, p->length);
	case RC_COMPARE_SWAP:
	case RC_FETCH_ADD:
		return remote_there(pq, PACKET_ATOMIC, p->rkey, p->remote_addr,
				    sizeof(uint64_t));
	default:
		return true;
	}
}

static void remind(struct packet_qp *pq, bool answers, uint64_t after_us)
{
	if (pq->demand.nak_due)
		return;
	pq->demand.nak_due = true;
	pq->demand.answers = answers;
	hca_demand_remind(pq->port->demand, pq->qp->ibv.qp_num, PAGING_RESPONDER,
			  after_us * 1000);
}

bool packet_target_there(struct packet_qp *pq, const struct packet_frame *f,
			 const struct rc_look *look, const struct hca_rwqe *receive)
{
	const struct paging_profile *profile = hca_demand_profile(pq->port->demand);
	bool read = look->op == RC_READ;

	if (pq->service != PACKET_RC)
		return true;
	pq->demand.read = read ? f->rc : (struct rc_packet){ .op = RC_ACK };
	if (!all_there(pq, f, look, receive)) {
		remind(pq, false, read ? profile->nak_read_us : profile->nak_us);
		return false;
	}
	if (read && profile->first_use_us &&
	    hca_demand_first_use(pq->port->demand, f->rc.rkey, f->rc.remote_addr,
				 f->rc.length)) {
		remind(pq, true, profile->first_use_us);
		return false;
	}
	pq->demand.read.op = RC_ACK;
	return true;
}
