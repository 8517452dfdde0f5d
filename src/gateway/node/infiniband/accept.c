/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers of an infiniband node to those who call it. All in the management thread, see cm.c.
 *
 * One connection at a time. A request that comes while there is one is
 * rejected. A call that the caller has not confirmed yet is no connection, as any host could
 * have sent its request: callers.h says when it gives way to a newer call. When two active
 * nodes call each other at the same moment, the one with the larger address gives way.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>
#include <string.h>

#include "gateway/node/infiniband/infiniband.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"

/* The time that a caller has to confirm, for a round trip and to make its queue pair. The times
 * in its request are not used, as any host could have written them. */
#define ACCEPT_NS (5 * NSEC_PER_SEC)

static struct log_limit calls; /* lines about callers */

/* Another UD sender for the queue pair that is there. */
static void accept_more(struct infiniband *ib, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = ib_conn_param();

	param.qp_num = ib->conn->qp->qp_num;
	if (rdma_accept(id, &param))
		log_limited(LOG_WARN, &calls, clock_now_ns(),
			    "%s: cannot answer another UD peer: %s", ib->node->name,
			    strerror(errno));
	rdma_destroy_id(id);
}

static void accept_first(struct infiniband *ib, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = ib_conn_param();

	ib->conn = id;
	ib->retry.at_ns = 0;
	if (ib_qp_create(ib)) {
		rdma_reject(id, NULL, 0);
		ib_lost(ib, "no queue pair");
		return;
	}
	ib_wait_filled(ib);
	if (rdma_accept(id, &param)) {
		ib_lost(ib, strerror(errno));
		return;
	}
	ib->phase = IB_ACCEPTING;
	ib->accepted_ns = clock_now_ns();
	/* In UD that was all, and who asked stays unknown: receive only. */
	if (ib->mode == IB_UD)
		ib_connected(ib);
}

static void refuse(struct infiniband *ib, struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
	node_figure_add(ib->node, IB_COUNT_REJECTED, 1);
}

/* Drops the call that was accepted and that the caller has not confirmed. */
static void drop_unconfirmed(struct infiniband *ib, const char *why)
{
	log_limited(LOG_WARN, &calls, clock_now_ns(),
		    "%s: the call of %s is dropped: it was not confirmed%s",
		    ib->node->name, ib_host_of(ib->conn).text, why);
	node_figure_add(ib->node, IB_COUNT_REJECTED, 1);
	ib_note_unconfirmed(ib);
	ib_connection_drop(ib);
}

uint64_t ib_accept_until_ns(const struct infiniband *ib)
{
	return ib->phase == IB_ACCEPTING ? ib->accepted_ns + ACCEPT_NS : 0;
}

const char *ib_accept_check(struct infiniband *ib)
{
	if (ib->phase != IB_ACCEPTING || clock_now_ns() < ib_accept_until_ns(ib))
		return NULL;
	drop_unconfirmed(ib, " in time");
	return "no answer";
}

/* May the call be accepted, in place of one that is not confirmed if there is one? */
static bool may_take_place(struct infiniband *ib, struct rdma_cm_id *id)
{
	bool taken = ib->phase == IB_ACCEPTING;
	struct caller_ip ip = ib_peer_ip(id), holder;

	if (taken)
		holder = ib_peer_ip(ib->conn);
	return callers_may_take(&ib->callers, &ip, taken ? &holder : NULL, ib->accepted_ns,
				clock_now_ns());
}

/* Of two nodes that call each other, the one with the larger address gives way. */
static bool gives_way(const struct infiniband *ib, const struct rdma_cm_id *caller)
{
	const struct socket_address *own = &ib->local, *peer = &ib->remotes[ib->remote_at];
	struct caller_ip called = ib_peer_ip(ib->conn), from = ib_peer_ip(caller);
	struct caller_ip own_ip = { 0 }, peer_ip = { 0 };

	if (memcmp(&called, &from, sizeof(from)))
		return false;
	socket_address_ip(&own->sa, own_ip.bytes);
	socket_address_ip(&peer->sa, peer_ip.bytes);
	/* The port stands at the same place in addresses of both families, in network order. */
	return (memcmp(&own_ip, &peer_ip, sizeof(own_ip)) ?:
		memcmp(&own->in4.sin_port, &peer->in4.sin_port, 2)) > 0;
}

void ib_request(struct infiniband *ib, struct rdma_cm_id *id)
{
	bool calling = ib->phase == IB_RESOLVING || ib->phase == IB_CONNECTING;

	if (!ib_peer_may_call(ib, id)) {
		log_limited(LOG_WARN, &calls, clock_now_ns(),
			    "%s: %s called and was rejected: in.peers does not list it",
			    ib->node->name, ib_host_of(id).text);
		refuse(ib, id);
		return;
	}
	if (ib->mode == IB_UD && ib->phase == IB_CONNECTED && !ib->ah) {
		accept_more(ib, id);
		return;
	}
	if ((ib->phase == IB_IDLE || ib->phase == IB_ACCEPTING) && !may_take_place(ib, id)) {
		log_debug("%s: rejected %s, another caller has precedence", ib->node->name,
			  ib_host_of(id).text);
		refuse(ib, id);
		return;
	}
	if (ib->phase == IB_ACCEPTING)
		drop_unconfirmed(ib, " before another one came");
	if (calling && gives_way(ib, id)) {
		ib_connection_drop(ib);
		calling = false;
	}
	if (ib_peer_is_back(ib, id))
		ib_lost(ib, "the peer calls anew and sends nothing");
	if (calling || ib->conn) {
		log_debug("%s: rejected a second peer", ib->node->name);
		refuse(ib, id);
		/*
		 * It may be the first one, back after its host went down: who
		 * only receives does not notice that. Who sends does.
		 */
		if (ib->phase == IB_CONNECTED && ib->mode == IB_RC &&
		    !ib->node->is_destination)
			ib->probing = true;
		return;
	}
	accept_first(ib, id);
}
