/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections end: broken, idle, late, or not made at all. */
#include <errno.h>
#include <stdlib.h>

#include "ripc/instance/connect.h"

#define TICK_NS UINT64_C(1000000)
/* A queue pair that has not completed what it had by then does not: Linux' siw flushes what was
 * posted before the error, and never completes what a program posts behind it. */
#define DRAIN_NS UINT64_C(1000000000)
/* After REJECT_CROSSING: how long the other one is waited for, and how often: for longer
 * than the peer may take each for one that crossed. */
#define CROSSED_NS UINT64_C(100000000)
#define CROSSINGS_MAX (CROSSING_NS / CROSSED_NS + 10)

/* ---- ends ---- */

/* The queue pair completes nothing behind these, if it completes them. */
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

void conn_detach(struct peer *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct list *e;

	ibv_modify_qp(p->conn->qp, &a, IBV_QP_STATE);
	windows_end(p->conn);
	p->conn = NULL;
	p->epoch = atomic_fetch_add(&p->r->epochs, 1);
	p->revoked = p->revokes;
	targets_clear(p);
	held_clear(p);
	while ((e = list_pop(&p->controls)))
		free(list_entry(e, struct control, entry));
	p->controls_count = 0;
	fetch_abort(p);
	long_again(p);
}

/* peer->lock. Calls wait for a connection to it. */
static bool is_wanted(const struct peer *p)
{
	return p->waiting || !list_empty(&p->outstanding);
}

/* What was connected by it. */
static void leave_peer(struct conn *c)
{
	struct peer *p = c->peer;
	bool again = false, was_up;

	pthread_mutex_lock(&p->lock);
	was_up = p->conn == c;
	if (was_up) {
		conn_detach(p);
		p->state = PEER_DOWN;
		p->failure = 0;
		/* Some may not have seen yet that it was there. */
		again = is_wanted(p);
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

void conn_end(struct conn *c)
{
	if (c->ending)
		return;
	c->ending = true;
	c->until_ns = now_ns() + DRAIN_NS;
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
	if (atomic_load(&c->drained) != 2)
		pump_past(c->r);
	pump_pass(c->r); /* a thread may have what came before in hand */
	rdma_destroy_id(c->id);
	if (c->reserved)
		device_unreserve(c->r, CONN_CQ_ENTRIES);
	list_remove(&c->entry);
	conn_close(c);
}

void connect_failed(struct conn *c, int err)
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

/* A connection of the peer's that was accepted has not come about: calls may wait for one. */
static void accepted_in_vain(struct conn *c)
{
	struct peer *p = c->peer;
	bool again;

	conn_end(c);
	pthread_mutex_lock(&p->lock);
	again = p->state == PEER_DOWN && is_wanted(p);
	pthread_mutex_unlock(&p->lock);
	if (again && !atomic_load(&c->r->closing))
		peer_wish(p);
}

void conn_failed(struct conn *c, int err)
{
	if (c->crossed)
		crossed_over(c);
	else if (c->established)
		conn_end(c);
	else if (c->active)
		connect_failed(c, err);
	else
		accepted_in_vain(c);
}

/* ---- times ---- */

static bool is_idle(struct ripc *r, struct conn *c, uint64_t now)
{
	struct peer *p = c->peer;
	bool idle;

	pthread_mutex_lock(&p->lock);
	if (atomic_exchange_explicit(&c->used, false, memory_order_relaxed))
		p->used_ns = now;
	idle = p->conn == c && !p->waiting && !p->stuck && list_empty(&p->outstanding) &&
	       list_empty(&p->fetching) && !p->holds && list_empty(&p->held) &&
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
			if (atomic_load(&c->drained) == 2 || c->until_ns <= now)
				conn_destroy(c);
			else
				next = now + TICK_NS;
		} else if (atomic_load(&c->dead)) {
			conn_failed(c, -ECONNRESET);
			next = now + TICK_NS;
		} else if (c->until_ns) {
			if (c->until_ns <= now) {
				conn_failed(c, -ETIMEDOUT);
				next = now + TICK_NS;
			} else if (c->until_ns < next) {
				next = c->until_ns;
			}
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
