/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of pages that were missing, on their way to the queue pairs that wait for them. */
#include "transport/packet/packet.h"

/* Carries out the READ that waits, unless it was carried out meanwhile. */
static void answer(struct packet_qp *pq)
{
	struct packet_frame f = {
		.rc = pq->demand.read,
		.service = pq->service,
		.dst_qpn = pq->qp->ibv.qp_num,
		.src_qpn = pq->qp->attr.dest_qp_num,
	};

	if (f.rc.op == RC_READ && f.rc.psn == pq->responder.expected_psn)
		packet_request(pq, &f, NULL);
}

static void tell_responder(struct packet_qp *pq, const struct paging_event *event)
{
	const struct rc_packet *read = &pq->demand.read;
	bool moved;

	if (!event->reminder) {
		if (!hca_demand_profile(pq->port->demand)->late_response || pq->demand.nak_due)
			return;
		/* This response comes at once; it is the first use. */
		hca_demand_first_use(pq->port->demand, read->rkey, read->remote_addr,
				     read->length);
		answer(pq);
		return;
	}
	pq->demand.nak_due = false;
	if (pq->demand.answers) {
		answer(pq);
		return;
	}
	HCA_COUNT_RARE(pq->qp, RX_RNR_SENT, 1);
	HCA_COUNT_RARE(pq->qp, PAGE_FAULTS, 1);
	rc_rnr(&pq->responder, pq->port->now_ns);
	if (packet_respond(pq, 1, &moved))
		packet_owes(pq);
}

static void tell(struct packet_port *port, const struct paging_event *event)
{
	struct hca_qp *qp = hca_qp_find(event->qpn);
	struct packet_qp *pq = qp && hca_path_ops(&qp->path) == port->ops ?
				       packet_part(qp)->state : NULL;

	if (!pq || !pq->connected || pq->port != port)
		return;
	if (event->side == PAGING_REQUESTER)
		packet_source_event(pq);
	else if (packet_receives(qp))
		tell_responder(pq, event);
}

void packet_on_demand(void *arg)
{
	struct packet_port *port = arg;
	struct paging_event event;

	hca_lock(&port->receive_lock);
	port->now_ns = packet_now_ns();
	while (port->demand && hca_demand_take(port->demand, &event))
		tell(port, &event);
	hca_unlock(&port->receive_lock);
}
