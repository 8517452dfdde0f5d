/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the peer still there, where no acknowledgement tells? By the management
 * thread only.
 *
 * UD: datagrams have no connection that could break, and a peer that was started
 * anew has another queue pair number. So an active node looks its peer's address
 * up again every out.reconnect_interval, by an identifier of its own, and compares
 * what comes back.
 *
 * UC: who only receives is told when a peer ends, but not when its host goes down.
 * When somebody calls from the same address again and again, and nothing arrives
 * over the connection meanwhile, it is that peer, back.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>
#include <string.h>

#include "gateway/node/infiniband/infiniband.h"
#include "util/clock.h"
#include "util/log.h"

/* How long a lookup may go without any answer until the peer is given up: a host
 * that is there may be busy. That nobody listens is an answer. */
#define UNANSWERED_NS (5 * NSEC_PER_SEC)
/* Status of a refused one: somebody is there, with a peer of its own. */
#define SIDR_REJECTED 2

/* Between two calls without a sample. */
#define SILENCE_NS NSEC_PER_SEC

bool ib_peer_is_back(struct infiniband *ib, struct rdma_cm_id *caller)
{
	uint64_t received, now = clock_now_ns();
	struct caller_ip known, from = ib_peer_ip(caller);

	if (ib->mode != IB_UC || ib->phase != IB_CONNECTED || ib->node->is_destination)
		return false;
	known = ib_peer_ip(ib->conn);
	if (memcmp(&known, &from, sizeof(from)))
		return false;
	received = atomic_load(&ib->channel->counters.received);
	if (ib->doubt_since_ns && received == ib->doubt_received)
		return now - ib->doubt_since_ns >= SILENCE_NS;
	ib->doubt_since_ns = now;
	ib->doubt_received = received;
	return false;
}

void ib_lookup_schedule(struct infiniband *ib)
{
	uint64_t interval = (uint64_t)ib->out.reconnect_interval_ms * MS;

	ib->lookup_at_ns = ib->ah && interval ? clock_now_ns() + interval : 0;
}

void ib_lookup_drop(struct infiniband *ib)
{
	if (ib->lookup)
		rdma_destroy_id(ib->lookup);
	ib->lookup = NULL;
	ib->lookup_at_ns = 0;
}

const char *ib_lookup_check(struct infiniband *ib)
{
	uint64_t now = clock_now_ns();

	if (!ib->lookup_at_ns || now < ib->lookup_at_ns)
		return NULL;
	ib_lookup_schedule(ib);
	if (ib->lookup)
		return now - ib->lookup_since_ns > UNANSWERED_NS ?
			       "the peer does not answer any more" : NULL;
	ib->lookup_since_ns = now;
	return ib_call(ib, &ib->lookup) && ib->lookup ? strerror(errno) : NULL;
}

const char *ib_lookup_event(struct infiniband *ib, const struct rdma_cm_event *e)
{
	struct rdma_conn_param param = {
		.qp_num = ib->conn ? ib->conn->qp->qp_num : 0,
	};
	bool established = e->event == RDMA_CM_EVENT_ESTABLISHED;

	if (e->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		return ib_resolve_route(ib, ib->lookup);
	if (e->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		return rdma_connect(ib->lookup, &param) ? strerror(errno) : NULL;
	if (established && e->param.ud.qp_num != ib->remote_qpn)
		return "the peer was started anew";
	if (!established &&
	    (e->event != RDMA_CM_EVENT_UNREACHABLE || e->status != SIDR_REJECTED))
		return "nobody listens there any more";
	/* It is there: look again later. */
	ib_lookup_drop(ib);
	ib_lookup_schedule(ib);
	return NULL;
}
