/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager's events, which change the socket's state. Any call on the socket may
 * take an event out of the channel.
 */
#define LOG_ROOM "rsocket"
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/log.h"

#define REASON_INVALID_SERVICE 8 /* value of enum cm_reason, as in events */
#define RETRY_MAX 7 /* the largest 3-bit value; as RNR count it means unlimited */

void rs_conn_params(struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param)
{
	rs_stream_hello(rs, hello);
	*param = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = sizeof(*hello),
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.retry_count = RETRY_MAX,
		.rnr_retry_count = RETRY_MAX,
	};
}

/* ---- the calling side ---- */

/* Sets the route of option RDMA_ROUTE, or resolves one. */
static int route_find(struct rs *rs)
{
	const struct rs_options *o = &rs->opt;
	int ret = o->route ?
			  rdma_set_option(rs->id, RDMA_OPTION_IB,
					  RDMA_OPTION_IB_PATH, o->route,
					  o->route_count * sizeof(*o->route)) :
			  rdma_resolve_route(rs->id, RS_RESOLVE_MS);

	return ret ? -errno : 0;
}

static int call(struct rs *rs)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret = rs_stream_qp_create(rs);

	if (ret)
		return ret;
	rs_conn_params(rs, &hello, &param);
	rs->state = RS_CONNECTING;
	return rdma_connect(rs->id, &param) ? -errno : 0;
}

/* The errno of connect() for an event that ends the attempt. */
static int event_error(const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return ev->status < 0 ? -ev->status : EHOSTUNREACH;
	case RDMA_CM_EVENT_REJECTED:
		/* A reject with private data was made by the peer's program or
		 * rsocket, not by its librdmacm: it does not know our hello. */
		return ev->status == REASON_INVALID_SERVICE ||
				       !ev->param.conn.private_data_len ?
			       ECONNREFUSED : EPROTONOSUPPORT;
	case RDMA_CM_EVENT_UNREACHABLE:
		return ev->status == -ETIMEDOUT ? ETIMEDOUT : ECONNREFUSED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENETDOWN;
	default:
		return ECONNABORTED;
	}
}

static bool hello_in(const struct rdma_cm_event *ev, struct rs_hello *peer)
{
	return rs_hello_decode(ev->param.conn.private_data,
			       ev->param.conn.private_data_len, RS_KIND_STREAM,
			       peer);
}

static int established(struct rs *rs, const struct rdma_cm_event *ev)
{
	struct rs_hello peer;

	if (rs->state == RS_ACCEPTING) {
		rs->state = RS_CONNECTED;
		rs->edges[RS_EDGE_OUT]++;
		return 0;
	}
	if (rs->state != RS_CONNECTING)
		return 0;
	if (!hello_in(ev, &peer)) {
		log_warn("socket %d: the peer is no rsocket of busbar, or of another version",
			 rs->fd);
		return -EPROTONOSUPPORT;
	}
	rs_stream_meet(rs, &peer);
	rs->state = RS_CONNECTED;
	rs->edges[RS_EDGE_STATE]++;
	return 0;
}

static int event_step(struct rs *rs, const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rs->state = RS_RESOLVING_ROUTE;
		return route_find(rs);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return call(rs);
	case RDMA_CM_EVENT_ESTABLISHED:
		return established(rs, ev);
	case RDMA_CM_EVENT_DISCONNECTED:
		/* Messages that came before are in the completion queue already. */
		rs->over = true;
		return 0;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		return -event_error(ev);
	}
}

/* ---- the answering side ---- */

/* True: the request is kept for raccept(). False: it was rejected. */
static bool request_take(struct rs *rs, const struct rdma_cm_event *ev)
{
	struct rs_hello ours;

	if (hello_in(ev, &rs->pending_hello)) {
		rs->pending = ev->id;
		rs->edges[RS_EDGE_IN]++;
		return true;
	}
	log_info("socket %d: refused a caller that is no rsocket of busbar",
		 rs->fd);
	rs_stream_hello(rs, &ours);
	rdma_reject(ev->id, &ours, sizeof(ours));
	return false;
}

bool rs_cm_progress(struct rs *rs)
{
	CANCEL_OFF;
	struct rdma_cm_event *ev;
	bool any = false;

	/* Takes one request; others stay in the channel, counted by the backlog. */
	while (rs->channel && !rs->pending &&
	       !rdma_get_cm_event(rs->channel, &ev)) {
		struct rdma_cm_id *refused = NULL;
		int ret = 0;

		any = true;
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (!request_take(rs, ev))
				refused = ev->id;
		} else if (ev->id == rs->id) {
			ret = event_step(rs, ev);
		}
		rdma_ack_cm_event(ev);
		if (refused)
			rdma_destroy_id(refused);
		if (ret)
			rs_fail(rs, -ret);
	}
	if (any)
		rs_wake(rs, -1);
	if (!rs->over)
		return false;
	rs->over = false;
	rs->lost = true;
	return true;
}
