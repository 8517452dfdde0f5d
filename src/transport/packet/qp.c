/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a queue pair here: its state, the route to its peer, the responder from RTR and the
 * requester from RTS on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/host/gid.h"
#include "hca/qp/address.h"
#include "transport/packet/frame/show.h"
#include "transport/packet/packet.h"

_Static_assert(RC_RESOURCES_MAX >= HCA_MAX_RD_ATOM, "what queue pairs may be given");

static uint8_t service_of(const struct hca_qp *qp)
{
	switch (qp->ibv.qp_type) {
	case IBV_QPT_UC: return PACKET_UC;
	case IBV_QPT_UD: return PACKET_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV: return PACKET_XRC;
	default: return PACKET_RC;
	}
}

static bool sends(const struct hca_qp *qp)
{
	return qp->ibv.qp_type != IBV_QPT_UD && qp->ibv.qp_type != IBV_QPT_XRC_RECV;
}

static void state_free(struct packet_qp *pq)
{
	free(pq->entries);
	free(pq->room);
	free(pq);
}

int packet_open(struct packet_port *port, struct hca_qp *qp)
{
	struct packet_qp *pq = calloc(1, sizeof(*pq));
	int ret;

	if (!pq)
		return -ENOMEM;
	/* The queue pair accepts nothing yet. A former peer had ended its connection before the
	 * programs agreed on this one, so on a port inside of the process all packets of that
	 * peer are with the carrier by now. */
	packet_take_in(port);
	pq->qp = pq->as = qp;
	pq->port = port;
	pq->generation = port->generation;
	pq->service = service_of(qp);
	list_init(&pq->wait_entry);
	list_init(&pq->answer_entry);
	if (sends(qp)) {
		pq->entries = calloc(qp->sq.mask + 1u, sizeof(*pq->entries));
		if (!pq->entries)
			goto err_state;
	}
	ret = qp->ibv.qp_type == IBV_QPT_XRC_RECV ? packet_xrc_new(pq) : 0;
	if (ret)
		goto err_state;
	hca_lock(&port->receive_lock);
	packet_xrc_open(pq);
	packet_part(qp)->port = port;
	packet_part(qp)->state = pq;
	hca_unlock(&port->receive_lock);
	return 0;

err_state:
	state_free(pq);
	return -ENOMEM;
}

int packet_connect(struct hca_qp *qp)
{
	struct packet_port *port = packet_part(qp)->port;
	const struct ibv_qp_attr *a = &qp->attr;
	struct packet_qp *pq;
	struct rc_responder_params params = {
		.psn = a->rq_psn,
		.max_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.ack_delay_ns = port->medium->ack_delay_ns,
		.line_bps = port->medium->line_bps,
	};
	struct ibv_ah_attr to;
	union ibv_gid source;
	int ret;

	hca_address_complete(&a->ah_attr, &to, &source);
	hca_lock(&port->receive_lock);
	pq = packet_part(qp)->state;
	/* NULL: another thread has reset the queue pair meanwhile. */
	if (!pq || pq->service == PACKET_UD)
		goto out;
	pq->request_series = pq->answer_series = (struct icrc_series){ 0 };
	ret = port->medium->address(&to, &source, &pq->route);
	/* Without a route packets are lost, as those to a host that does not exist. */
	if (ret)
		pq->route = (struct packet_route){ 0 };
	pq->route.any_here = !a->ah_attr.is_global;
	/* Switches may mark its packets instead of dropping them (RFC 3168, ECT(0)): the engine
	 * responds to marks (engine/rc/pace.h). */
	if (pq->route.known & CARRIER_TOS)
		pq->route.tos = (uint8_t)((pq->route.tos & ~3u) | 2);
	params.reliable = pq->service != PACKET_UC;
	params.mtu = packet_mtu(pq);
	packet_faults_connected(port, qp->ibv.qp_num);
	rc_responder_open(&pq->responder, &params);
	pq->connected = true;
out:
	hca_unlock(&port->receive_lock);
	if (packet_show_wanted())
		packet_show_connected(qp);
	return 0;
}

void packet_ready(struct hca_qp *qp)
{
	struct packet_qp *pq = packet_part(qp)->state;

	if (!pq || !sends(qp))
		return;
	packet_requester_open(pq, qp->attr.sq_psn);
	pq->ready = true;
}

void packet_close(struct packet_port *port, struct hca_qp *qp)
{
	struct packet_qp *pq;

	hca_lock(&port->receive_lock);
	pq = packet_part(qp)->state;
	/* A forked child's port has other lists. */
	if (pq && pq->generation == port->generation) {
		if (pq->connected && pq->answering)
			packet_acknowledge(pq);
		packet_forget(pq);
		packet_xrc_close(pq);
	}
	/* The timer may be looking at the state. */
	hca_lock(&qp->sq_lock);
	packet_part(qp)->state = NULL;
	if (port->demand)
		hca_demand_forget_qp(port->demand, qp->ibv.qp_num);
	atomic_store(&packet_part(qp)->unfinished, 0);
	hca_unlock(&qp->sq_lock);
	hca_unlock(&port->receive_lock);
	if (pq) {
		free(pq->xrc);
		state_free(pq);
	}
	if (packet_show_wanted())
		packet_show_closed(qp);
}
