/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and connections: rbind, rlisten, raccept, rconnect, and the connection
 * manager's events, which change the socket's state. Any call on the socket may take
 * an event out of the channel.
 */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <infiniband/ib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/log.h"

#define RESOLVE_MS 2000
#define RETRY_MAX 7 /* the largest 3-bit value; as RNR count it means unlimited */
#define REASON_INVALID_SERVICE 8 /* value of enum cm_reason, as in events */

static void hello_params(struct rs *rs, struct rs_hello *hello,
			 struct rdma_conn_param *param)
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
			  rdma_resolve_route(rs->id, RESOLVE_MS);

	return ret ? -errno : 0;
}

static int call(struct rs *rs)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret = rs_stream_qp_create(rs);

	if (ret)
		return ret;
	hello_params(rs, &hello, &param);
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

void rs_cm_progress(struct rs *rs)
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
	if (rs->over) {
		rs->over = false;
		rs->lost = true;
		/* First the messages that came before the disconnect. */
		rs_progress(rs);
	}
}

/* ---- calls ---- */

static int id_make(struct rs *rs)
{
	if (rs->id)
		return 0;
	if (rdma_create_id(rs->channel, &rs->id, NULL, RDMA_PS_TCP))
		return -errno;
	rs_id_options(rs);
	return 0;
}

static int stream_bind(struct rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	int ret;

	if (rs->state != RS_OPEN)
		return -EINVAL;
	ret = id_make(rs);
	if (ret)
		return ret;
	rs_addr_copy(&copy, addr);
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&copy))
		return -errno;
	rs->state = RS_BOUND;
	return 0;
}

static int any_bind(struct rs *rs)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_ib ib = { .sib_family = AF_IB };

	return stream_bind(rs, rs->domain == AF_INET ? (struct sockaddr *)&v4 :
			       rs->domain == AF_IB   ? (struct sockaddr *)&ib :
						       (struct sockaddr *)&v6);
}

RS_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = rs_addr_check(rs, addr, addrlen);
	if (!ret)
		ret = rs_is_stream(rs) ? stream_bind(rs, addr) :
					 rs_dgram_bind(rs, addr, addrlen);
	return (int)rs_leave(rs, ret);
}

static int stream_listen(struct rs *rs, int backlog)
{
	int ret = 0;

	if (!rs_is_stream(rs))
		return -EOPNOTSUPP;
	if (rs->state == RS_LISTENING)
		return 0;
	if (rs->state == RS_OPEN)
		ret = any_bind(rs);
	if (ret || rs->state != RS_BOUND)
		return ret ? ret : -EINVAL;
	if (rdma_listen(rs->id, backlog))
		return -errno;
	rs->state = RS_LISTENING;
	return 0;
}

RS_EXPORT int rlisten(int socket, int backlog)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = stream_listen(rs, backlog);
	return (int)rs_leave(rs, ret);
}

/* Makes a connected socket of a request; on failure the request is destroyed. */
static int request_accept(struct rdma_cm_id *id, const struct rs_hello *peer,
			  const struct rs *listener, struct rs **out)
{
	CANCEL_OFF;
	struct rdma_conn_param param;
	struct rs_hello hello;
	struct rs *rs = rs_new(listener->domain, SOCK_STREAM);
	int ret = -ENOMEM;

	if (!rs)
		goto err_id;
	rs->opt = listener->opt;
	rs->opt.route = NULL;
	ret = rs_open_channel(rs);
	if (!ret && rdma_migrate_id(id, rs->channel))
		ret = -errno;
	if (ret)
		goto err_rs;
	rs->id = id;
	id = NULL;
	ret = rs_stream_qp_create(rs);
	if (ret)
		goto err_rs;
	rs_stream_meet(rs, peer);
	rs->theirs_count = rs->opt.map_count;
	hello_params(rs, &hello, &param);
	rs->state = RS_ACCEPTING;
	ret = rs_publish(rs);
	/* The caller may have ended its attempt meanwhile. */
	if (!ret && rdma_accept(rs->id, &param)) {
		rs_withdraw(rs);
		ret = -ECONNABORTED;
	}
	if (ret)
		goto err_rs;
	*out = rs;
	return 0;

err_rs:
	atomic_store(&rs->dead, true);
	rs_put(rs);
err_id:
	if (id)
		rdma_destroy_id(id);
	return ret;
}

static int request_ready(struct rs *rs, uint32_t arg)
{
	(void)arg;
	if (rs->closing || rs->state != RS_LISTENING)
		return -EINVAL;
	return rs->pending != NULL;
}

static int stream_accept(struct rs *rs, struct rs **out)
{
	struct rdma_cm_id *id;
	struct rs_hello peer;
	int ret;

	if (!rs_is_stream(rs))
		return -EOPNOTSUPP;
	rs_progress(rs);
	ret = request_ready(rs, 0);
	if (!ret)
		ret = rs->flags & O_NONBLOCK ?
			      -EAGAIN :
			      rs_wait(rs, request_ready, 0,
				      rs->opt.recv_timeout_ms);
	if (ret < 0)
		return ret;
	id = rs->pending;
	peer = rs->pending_hello;
	rs->pending = NULL;
		/* Unlocked, so that other threads can accept or close meanwhile. */
	pthread_mutex_unlock(&rs->lock);
	ret = request_accept(id, &peer, rs, out);
	pthread_mutex_lock(&rs->lock);
	return ret;
}

RS_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_enter(socket), *made = NULL;
	int ret;

	if (!rs)
		return -1;
	ret = stream_accept(rs, &made);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	if (ret < 0)
		return (int)rs_result(ret);
	rs_addr_give(made->domain, rdma_get_peer_addr(made->id), addr, addrlen);
	return made->fd;
}

static int connect_ready(struct rs *rs, uint32_t arg)
{
	(void)arg;
	if (rs->closing)
		return -EBADF;
	if (rs->state == RS_CONNECTED)
		return 1;
	if (rs->state == RS_GONE) {
		int error = rs->error;

		rs->error = 0;
		return error ? -error : -ENOTCONN;
	}
	return rs->state < RS_RESOLVING_ADDR ? -ENOTCONN : 0;
}

int rs_connected(struct rs *rs, int flags)
{
	int ret = connect_ready(rs, 0);

	if (ret)
		return ret < 0 ? ret : 0;
	rs_progress(rs);
	ret = connect_ready(rs, 0);
	if (!ret)
		ret = (rs->flags & O_NONBLOCK) || (flags & MSG_DONTWAIT) ?
			      -EAGAIN : rs_wait(rs, connect_ready, 0, 0);
	return ret < 0 ? ret : 0;
}

static int stream_connect(struct rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage to;
	int ret;

	switch (rs->state) {
	case RS_OPEN:
	case RS_BOUND:
		break;
	case RS_CONNECTED:
	case RS_ACCEPTING:
		return -EISCONN;
	case RS_LISTENING:
		return -EOPNOTSUPP;
	case RS_GONE:
		return rs->error ? connect_ready(rs, 0) : -EINVAL;
	default:
		ret = rs_connected(rs, 0);
		return ret == -EAGAIN ? -EALREADY : ret;
	}
	ret = id_make(rs);
	if (ret)
		return ret;
	rs_addr_copy(&to, addr);
	rs->theirs_count = rs->opt.map_count;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&to, RESOLVE_MS))
		return -errno;
	rs->state = RS_RESOLVING_ADDR;
	ret = rs_connected(rs, 0);
	if (ret == -EINTR) /* the attempt continues, as with connect(2) */
		return ret;
	return ret == -EAGAIN ? -EINPROGRESS : ret;
}

RS_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	if (!rs_is_stream(rs)) {
		ret = rs_dgram_connect(rs, addr, addrlen);
	} else {
		ret = rs_addr_check(rs, addr, addrlen);
		if (!ret)
			ret = stream_connect(rs, addr);
	}
	return (int)rs_leave(rs, ret);
}
