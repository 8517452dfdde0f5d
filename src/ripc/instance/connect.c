/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making connections, on the instance's thread; their ends are connect_end.c. There is one
 * connection between two instances, for all their services.
 *
 * Both may begin at the same time: the attempt of the instance with the higher number wins,
 * the other is rejected with REJECT_CROSSING, and its side waits for the one that comes. Who
 * has accepted a request does not begin: the peer would accept that, and of two connections
 * each side might end the one that the other keeps. The side that began sends first (iWARP
 * demands it); only then the other one uses it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ripc/instance/connect.h"
#include "util/wakeup.h"

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

/* ---- beginnings ---- */

struct conn *conn_make(struct ripc *r, struct peer *p, struct rdma_cm_id *id, bool active)
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
	if (getrandom(&c->nonce, sizeof(c->nonce), 0) != sizeof(c->nonce))
		c->nonce = now_ns();
	atomic_init(&c->users, 1);
	list_init(&c->windows);
	list_init(&c->windows_kept);
	c->until_ns = now_ns() + r->config.c.connect_timeout_ms * UINT64_C(1000000);
	list_push(&r->conns, &c->entry);
	return c;
}

static void begin(struct ripc *r, struct peer *p)
{
	struct rdma_cm_id *id = NULL;
	struct conn *c = NULL;
	union sockaddr_any to;
	int err = 0;

	pthread_mutex_lock(&p->lock);
	/* Where the peer's own is on its way, conn_failed() wishes again. */
	if (p->state != PEER_DOWN || connect_half_open(r, p)) {
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
		connect_failed(c, -EHOSTUNREACH);
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
	struct rdma_conn_param param = connect_param(c, data);
	int ret = c->id->verbs == c->r->device.verbs ? conn_open(c) : -EHOSTUNREACH;

	if (!ret && rdma_connect(c->id, &param))
		ret = -errno;
	if (ret)
		connect_failed(c, ret);
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
		conn_detach(p);
	} else {
		atomic_fetch_add(&c->r->live_conns, 1);
	}
	p->conn = c;
	if (p->attempt == c)
		p->attempt = NULL;
	else if (p->attempt)
		connect_broken(p->attempt); /* this one is there */
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

/* ---- events ---- */

static void accepted(struct conn *c, const uint8_t *data, size_t length)
{
	struct packet_connect p;
	int ret;

	if (!c->active)
		return; /* its first message tells */
	ret = packet_connect_decode(&p, &c->r->key, c->nonce, data, length);
	if (ret == -EKEYREJECTED)
		COUNT(c->r, unauthentic, 1);
	if (ret || p.instance != c->peer->instance || p.to != c->r->number ||
	    !connect_may_speak(&p)) {
		connect_failed(c, -ECONNREFUSED);
		return;
	}
	connect_take_param(c, &p);
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
		connect_requested(r, e->id, e->data, e->length);
		return;
	}
	if (!c || c->ending)
		return;
	switch (e->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(e->id, (int)r->config.c.connect_timeout_ms))
			connect_failed(c, -EHOSTUNREACH);
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
