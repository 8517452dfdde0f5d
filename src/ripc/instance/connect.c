/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and ending connections, on the instance's thread. There is one connection between
 * two instances, for all their services.
 *
 * Both may begin at the same time: the attempt of the instance with the higher number wins,
 * the other is rejected with REJECT_CROSSING, and its side waits for the one that comes. The
 * side that began sends first (iWARP demands it); only then the other one uses it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"
#include "util/wakeup.h"

enum { REJECT_CROSSING = 1, REJECT_OTHER_INSTANCE, REJECT_FULL, REJECT_STRANGER };

/* A request of a connected peer is one that crossed, not a new one, for so long. */
#define CROSSING_NS UINT64_C(3000000000)
#define TICK_NS UINT64_C(1000000)
/* After that rejection: how long the other one is waited for, and how often. */
#define CROSSED_NS UINT64_C(100000000)
#define CROSSINGS_MAX 20

void thread_wake(struct ripc *r)
{
	wakeup_post(r->wake_fd);
}

void connect_broken(struct conn *c)
{
	if (atomic_exchange(&c->dead, true))
		return;
	atomic_store(&c->r->broken, true);
	thread_wake(c->r);
}

/* ---- private data ---- */

static struct rdma_conn_param param_of(struct conn *c, uint8_t data[PACKET_CONNECT_BYTES])
{
	const struct packet_connect p = {
		.instance = c->r->number, .to = c->peer->instance,
		.credits = CONN_CREDITS, .message_bytes = SLOT_BYTES,
	};

	packet_connect_encode(&p, &c->r->key, data);
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = PACKET_CONNECT_BYTES,
		.responder_resources = c->r->device.reads_max,
		.initiator_depth = c->r->device.reads_max,
		.retry_count = 7, .rnr_retry_count = 7,
	};
}

/* There is room for a message at the other side. */
static bool may_speak(const struct packet_connect *p)
{
	return p->credits && p->message_bytes >= SLOT_BYTES;
}

/* What the other side said of itself. */
static void take_param(struct conn *c, const struct packet_connect *p)
{
	c->credits = p->credits < CONN_CREDITS ? p->credits : CONN_CREDITS;
}

/* ---- ends ---- */

/* The queue pair completes nothing behind these. */
static void drain(struct conn *c)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr send = { .wr_id = work_id(c, WORK_DRAIN), .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_recv_wr receive = { .wr_id = work_id(c, WORK_DRAIN) }, *bad_receive;

	ibv_modify_qp(c->qp, &a, IBV_QP_STATE);
	if (ibv_post_send(c->qp, &send, &bad_send))
		atomic_fetch_add(&c->drained, 1);
	if (ibv_post_recv(c->qp, &receive, &bad_receive))
		atomic_fetch_add(&c->drained, 1);
}

/* peer->lock. All that goes with p->conn, which is dead; after that the peer reaches no
 * memory of ours. */
static void detach(struct peer *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct list *e;

	ibv_modify_qp(p->conn->qp, &a, IBV_QP_STATE);
	p->conn = NULL;
	p->epoch++;
	p->revoked = p->revokes;
	targets_clear(p);
	while ((e = list_pop(&p->controls)))
		free(list_entry(e, struct control, entry));
	p->controls_count = 0;
	fetch_abort(p);
	long_again(p);
}

/* What was connected by it. */
static void leave_peer(struct conn *c)
{
	struct peer *p = c->peer;
	bool again = false, was_up;

	pthread_mutex_lock(&p->lock);
	was_up = p->conn == c;
	if (was_up) {
		detach(p);
		p->state = PEER_DOWN;
		p->failure = 0;
		again = !list_empty(&p->outstanding);
	}
	pthread_mutex_unlock(&p->lock);
	if (!was_up)
		return;
	/* They would keep what is known of the peer for ever. */
	if (!again)
		routes_forget(c->r, 0, p);
	atomic_fetch_sub(&c->r->live_conns, 1);
	event_signal(&p->event);
	if (again && !atomic_load(&c->r->closing))
		peer_wish(p);
}

static void conn_end(struct conn *c)
{
	if (c->ending)
		return;
	c->ending = true;
	c->until_ns = 0;
	spin_lock(&c->receive_lock);
	atomic_store(&c->dead, true);
	spin_unlock(&c->receive_lock);
	leave_peer(c);
	if (c->established)
		rdma_disconnect(c->id);
	if (c->qp)
		drain(c);
	else
		atomic_store(&c->drained, 2);
}

static void conn_destroy(struct conn *c)
{
	if (c->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	if (c->reserved)
		device_unreserve(c->r, CONN_CQ_ENTRIES);
	list_remove(&c->entry);
	conn_put(c);
}

/* An attempt of ours, which has come to `err`; 0: another connection is on its way. */
static void attempt_failed(struct conn *c, int err)
{
	struct peer *p = c->peer;
	bool mine;

	pthread_mutex_lock(&p->lock);
	mine = p->attempt == c;
	if (mine)
		p->attempt = NULL;
	/* The peer's own attempt may have come through meanwhile. */
	mine &= p->state == PEER_CONNECTING;
	if (mine && !err) {
		/* Unless the peer's own comes soon: connect_timers(). */
		c->crossed = true;
		c->until_ns = now_ns() + CROSSED_NS;
	}
	if (mine) {
		p->state = PEER_DOWN;
		p->failure = err;
		if (err)
			long_fail(p, -ECONNRESET);
	}
	pthread_mutex_unlock(&p->lock);
	if (mine && err) {
		COUNT(c->r, connect_failures, 1);
		routes_forget(c->r, 0, p);
		resolver_forget(c->r->resolver, p->instance);
	}
	event_signal(&p->event);
	if (!c->crossed)
		conn_end(c);
}

/* The time for the peer's own to come is over. If it has not, the peer has not known yet
 * that the connection before was closed: tried again, some times. */
static void crossed_over(struct conn *c)
{
	struct peer *p = c->peer;
	bool again;

	pthread_mutex_lock(&p->lock);
	again = p->state == PEER_DOWN;
	if (again && ++p->crossings == CROSSINGS_MAX) {
		again = false;
		p->crossings = 0;
		p->failure = -ETIMEDOUT;
		long_fail(p, -ECONNRESET);
	}
	pthread_mutex_unlock(&p->lock);
	event_signal(&p->event);
	conn_end(c);
	if (again && !atomic_load(&c->r->closing))
		peer_wish(p);
}

/* Not established, or broken later. */
static void conn_failed(struct conn *c, int err)
{
	if (c->crossed)
		crossed_over(c);
	else if (c->active && !c->established)
		attempt_failed(c, err);
	else
		conn_end(c);
}

/* ---- beginnings ---- */

/* Takes the id, also where there is no memory. */
static struct conn *conn_make(struct ripc *r, struct peer *p, struct rdma_cm_id *id,
			      bool active)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		rdma_destroy_id(id);
		return NULL;
	}
	c->r = r;
	c->peer = p;
	atomic_fetch_add(&p->users, 1);
	c->id = id;
	id->context = c;
	c->active = active;
	atomic_init(&c->users, 1);
	c->until_ns = now_ns() + r->config.c.connect_timeout_ms * UINT64_C(1000000);
	list_push(&r->conns, &c->entry);
	return c;
}

static union sockaddr_any sockaddr_of(const struct packet_where *w)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	union sockaddr_any a = { .any.sa_family = AF_UNSPEC };

	if (!memcmp(w->address, mapped, sizeof(mapped))) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(w->port);
		memcpy(&a.v4.sin_addr, w->address + 12, 4);
	} else {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(w->port);
		memcpy(&a.v6.sin6_addr, w->address, 16);
	}
	return a;
}

static void begin(struct ripc *r, struct peer *p)
{
	struct rdma_cm_id *id = NULL;
	struct conn *c = NULL;
	union sockaddr_any to;
	int err = 0;

	pthread_mutex_lock(&p->lock);
	if (p->state != PEER_DOWN) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	if (!p->where.port)
		err = -EHOSTUNREACH;
	else if (rdma_create_id(r->cm, &id, NULL, RDMA_PS_TCP))
		err = -errno;
	else if (!(c = conn_make(r, p, id, true)))
		err = -ENOBUFS;
	if (err) {
		p->failure = err;
		long_fail(p, -ECONNRESET);
	} else {
		p->state = PEER_CONNECTING;
		p->attempt = c;
	}
	to = sockaddr_of(&p->where);
	pthread_mutex_unlock(&p->lock);
	if (err)
		event_signal(&p->event);
	else if (rdma_resolve_addr(id, NULL, &to.any, (int)r->config.c.connect_timeout_ms))
		attempt_failed(c, -EHOSTUNREACH);
}

void connect_wishes(struct ripc *r)
{
	for (;;) {
		struct peer *p = NULL;
		struct list *e;

		spin_lock(&r->table_lock);
		e = list_pop(&r->wishes);
		if (e) {
			p = list_entry(e, struct peer, wish_entry);
			p->wished = false;
		}
		spin_unlock(&r->table_lock);
		if (!p)
			return;
		begin(r, p);
		peer_put(p);
	}
}

static void connect_now(struct conn *c)
{
	uint8_t data[PACKET_CONNECT_BYTES];
	struct rdma_conn_param param = param_of(c, data);
	int ret = c->id->verbs == c->r->device.verbs ? conn_open(c) : -EHOSTUNREACH;

	if (!ret && rdma_connect(c->id, &param))
		ret = -errno;
	if (ret)
		attempt_failed(c, ret);
}

/* It may be used from now on; the thread, or the pump. */
void connect_established(struct conn *c)
{
	struct peer *p = c->peer;
	struct conn *old;

	pthread_mutex_lock(&p->lock);
	if (c->established || atomic_load(&c->dead)) {
		pthread_mutex_unlock(&p->lock);
		return;
	}
	c->established = true;
	c->since_ns = now_ns();
	c->until_ns = 0;
	old = p->conn;
	if (old) {
		/* The peer has given it up already. */
		connect_broken(old);
		detach(p);
	} else {
		atomic_fetch_add(&c->r->live_conns, 1);
	}
	p->conn = c;
	if (p->attempt == c)
		p->attempt = NULL;
	p->state = PEER_UP;
	p->failure = 0;
	p->crossings = 0;
	p->used_ns = c->since_ns;
	COUNT(c->r, connects, 1);
	if (c->active)
		conn_hello(c);
	conn_flush(p);
	pthread_mutex_unlock(&p->lock);
	event_signal(&p->event);
}

/* ---- requests of others ---- */

/* Requests that were granted and not used yet. */
static unsigned half_open(const struct ripc *r)
{
	unsigned n = 0;

	for (const struct list *e = r->conns.next; e != &r->conns; e = e->next) {
		const struct conn *c = list_entry(e, struct conn, entry);

		n += !c->active && !c->ending && !atomic_load(&c->established);
	}
	return n;
}

/* 0, or why it is rejected. */
static int judge(struct ripc *r, struct peer *p)
{
	int reason = 0;

	pthread_mutex_lock(&p->lock);
	/* Where the peer had begun the one that is up, it has given that up. */
	if (p->state == PEER_UP && p->conn->active && !atomic_load(&p->conn->dead) &&
	    now_ns() - p->conn->since_ns < CROSSING_NS)
		reason = REJECT_CROSSING;
	else if (p->state == PEER_CONNECTING && r->number > p->instance)
		reason = REJECT_CROSSING;
	pthread_mutex_unlock(&p->lock);
	if (!reason && atomic_load(&r->live_conns) + half_open(r) >=
			       r->config.c.connections_max)
		reason = REJECT_FULL;
	return reason;
}

static void reject(struct ripc *r, struct rdma_cm_id *id, int reason)
{
	uint8_t why = (uint8_t)reason;

	if (reason != REJECT_CROSSING)
		COUNT(r, refused, 1);
	rdma_reject(id, &why, 1);
	rdma_destroy_id(id);
}

static void accept_now(struct ripc *r, struct rdma_cm_id *id, struct peer *p,
		       const struct packet_connect *request)
{
	uint8_t data[PACKET_CONNECT_BYTES];
	struct conn *c = conn_make(r, p, id, false);
	struct rdma_conn_param param;

	if (!c)
		return;
	param = param_of(c, data);
	take_param(c, request);
	if (conn_open(c) || rdma_accept(id, &param))
		conn_end(c);
}

static void requested(struct ripc *r, struct rdma_cm_id *id, const uint8_t *data,
		      size_t length)
{
	struct packet_connect request;
	struct peer *p;
	int ret = id->verbs == r->device.verbs ?
			  packet_connect_decode(&request, &r->key, data, length) : -EBADMSG;
	int reason = 0;

	if (ret == -EKEYREJECTED)
		COUNT(r, unauthentic, 1);
	else if (ret || !may_speak(&request))
		COUNT(r, bad_packets, 1);
	if (ret || !may_speak(&request))
		reason = REJECT_STRANGER;
	else if (request.to != r->number || !request.instance ||
		 request.instance == r->number)
		reason = REJECT_OTHER_INSTANCE;
	else if (atomic_load(&r->closing))
		reason = REJECT_FULL;
	if (reason) {
		reject(r, id, reason);
		return;
	}
	p = peer_get(r, request.instance, true);
	reason = p ? judge(r, p) : REJECT_FULL;
	if (reason)
		reject(r, id, reason);
	else
		accept_now(r, id, p, &request);
	if (p)
		peer_put(p);
}

/* ---- events ---- */

static void accepted(struct conn *c, const uint8_t *data, size_t length)
{
	struct packet_connect p;
	int ret;

	if (!c->active)
		return; /* its first message tells */
	ret = packet_connect_decode(&p, &c->r->key, data, length);
	if (ret == -EKEYREJECTED)
		COUNT(c->r, unauthentic, 1);
	if (ret || p.instance != c->peer->instance || p.to != c->r->number || !may_speak(&p)) {
		attempt_failed(c, -ECONNREFUSED);
		return;
	}
	take_param(c, &p);
	connect_established(c);
}

static int error_of(const uint8_t *data, size_t length)
{
	if (!length)
		return -ECONNREFUSED;
	switch (data[0]) {
	case REJECT_CROSSING: return 0;
	case REJECT_FULL:
	case REJECT_STRANGER: return -ECONNREFUSED;
	default: return -EHOSTUNREACH;
	}
}

struct seen {
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	size_t length;
	uint8_t data[256];
};

static void handle(struct ripc *r, const struct seen *e)
{
	struct conn *c = e->id == r->listener ? NULL : e->id->context;

	if (e->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		requested(r, e->id, e->data, e->length);
		return;
	}
	if (!c || c->ending)
		return;
	switch (e->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(e->id, (int)r->config.c.connect_timeout_ms))
			attempt_failed(c, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_now(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		accepted(c, e->data, e->length);
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn_failed(c, error_of(e->data, e->length));
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		conn_failed(c, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		conn_failed(c, -ECONNRESET);
		break;
	default:
		break;
	}
}

void connect_events(struct ripc *r)
{
	struct pollfd p = { .fd = r->cm->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	while (poll(&p, 1, 0) == 1 && !rdma_get_cm_event(r->cm, &event)) {
		struct seen e = { .type = event->event, .id = event->id };

		/* The private data goes with the acknowledgement. */
		if (event->param.conn.private_data) {
			e.length = event->param.conn.private_data_len;
			if (e.length > sizeof(e.data))
				e.length = sizeof(e.data);
			memcpy(e.data, event->param.conn.private_data, e.length);
		}
		rdma_ack_cm_event(event);
		handle(r, &e);
	}
}

/* ---- times ---- */

static bool is_idle(struct ripc *r, struct conn *c, uint64_t now)
{
	struct peer *p = c->peer;
	bool idle;

	pthread_mutex_lock(&p->lock);
	if (atomic_exchange_explicit(&c->used, false, memory_order_relaxed))
		p->used_ns = now;
	idle = p->conn == c && list_empty(&p->outstanding) && list_empty(&p->fetching) &&
	       now - p->used_ns > r->config.c.idle_close_ms * UINT64_C(1000000);
	pthread_mutex_unlock(&p->lock);
	return idle;
}

uint64_t connect_timers(struct ripc *r, uint64_t now)
{
	uint64_t next = now + UINT64_C(1000000000);
	uint64_t idle_at = now + r->config.c.idle_close_ms * UINT64_C(1000000);

	if (idle_at < next && !list_empty(&r->conns))
		next = idle_at;
	for (struct list *e = r->conns.next; e != &r->conns;) {
		struct conn *c = list_entry(e, struct conn, entry);

		e = e->next;
		if (c->ending) {
			if (atomic_load(&c->drained) == 2)
				conn_destroy(c);
			else
				next = now + TICK_NS;
		} else if (atomic_load(&c->dead)) {
			conn_failed(c, -ECONNRESET);
			next = now + TICK_NS;
		} else if (c->until_ns) {
			if (c->until_ns <= now)
				conn_failed(c, -ETIMEDOUT);
			else if (c->until_ns < next)
				next = c->until_ns;
		} else if (is_idle(r, c, now)) {
			conn_end(c);
			next = now + TICK_NS;
		}
	}
	return next;
}

void connect_close_all(struct ripc *r)
{
	for (struct list *e = r->conns.next; e != &r->conns; e = e->next)
		conn_end(list_entry(e, struct conn, entry));
}
