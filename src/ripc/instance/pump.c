/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of all queue pairs of an instance, and what each is about. */
#include <errno.h>

#include "ripc/instance/instance.h"

#define BATCH 16

static void *what(uint64_t wr_id)
{
	return (void *)(uintptr_t)(wr_id & ~(uint64_t)WORK_MASK);
}

/* In the usual case nothing waits for them, and no lock is taken. */
static void take_credits(struct conn *c, uint32_t n)
{
	struct peer *p = c->peer;
	uint32_t all = atomic_load_explicit(&c->granted, memory_order_relaxed) + n;
	uint32_t most = atomic_load_explicit(&c->spent, memory_order_acquire) + CONN_CREDITS;

	/* More than there can be are not believed. */
	if (unlikely((int32_t)(all - most) > 0))
		all = most;
	/* In this order: who finds no credit does the reverse. */
	atomic_store(&c->granted, all);
	if (unlikely(atomic_load(&p->pending))) {
		pthread_mutex_lock(&p->lock);
		conn_flush(p);
		pthread_mutex_unlock(&p->lock);
	}
	event_signal(&p->event);
}

/* What the peer has sent ends the connection. */
static void break_off(struct slot *slot)
{
	connect_broken(slot->conn);
	conn_repost(slot, false);
}

static void handle_message(struct slot *slot, const uint8_t *bytes, size_t length)
{
	struct conn *c = slot->conn;
	struct ripc *r = c->r;
	struct packet_message m;
	size_t header;

	c->received++;
	atomic_store_explicit(&c->used, true, memory_order_relaxed);
	if (packet_message_decode(&m, false, bytes, length, &header)) {
		COUNT(r, bad_packets, 1);
		break_off(slot);
		return;
	}
	/* On the side that has accepted: the other one sends first (iWARP). */
	if (unlikely(!c->established)) {
		if (!conn_is_hello(c, &m)) {
			break_off(slot);
			return;
		}
		connect_established(c);
	} else if (unlikely(m.type == PACKET_HELLO)) {
		COUNT(r, bad_packets, 1);
		break_off(slot);
		return;
	}
	if (m.credits)
		take_credits(c, m.credits);
	switch (m.type) {
	case PACKET_SHORT:
		short_received(slot, &m, header);
		return;
	case PACKET_CREDIT:
	case PACKET_HELLO:
		break;
	case PACKET_LONG:
		long_informed(c, &m);
		break;
	case PACKET_DONE:
	case PACKET_FAILED:
		long_ended(c, &m);
		break;
	case PACKET_REVOKE:
		offers_revoke(c, &m);
		break;
	case PACKET_HOLD:
	case PACKET_GO:
		held_take(c, &m);
		break;
	default:
		offers_revoked(c, &m);
		break;
	}
	conn_repost(slot, m.type != PACKET_CREDIT && m.type != PACKET_HELLO);
}

static void handle_datagram(struct ripc *r, struct slot *slot, const struct ibv_wc *wc)
{
	struct packet_message m;
	size_t header;

	if (wc->status != IBV_WC_SUCCESS)
		return; /* the queue pair goes */
	r->device.ud_received++;
	if (wc->byte_len < GRH_BYTES ||
	    packet_message_decode(&m, true, slot->bytes + GRH_BYTES,
				  wc->byte_len - GRH_BYTES, &header) ||
	    m.type != PACKET_SHORT || m.returns_count) {
		COUNT(r, bad_packets, 1);
		device_ud_repost(slot);
		return;
	}
	short_received(slot, &m, header);
}

static void handle_sent(struct conn *c, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		connect_broken(c);
		return;
	}
	pthread_mutex_lock(&c->peer->lock);
	conn_retire(c);
	conn_flush(c->peer);
	pthread_mutex_unlock(&c->peer->lock);
	event_signal(&c->peer->event);
}

static void handle(struct ripc *r, const struct ibv_wc *wc)
{
	void *p = what(wc->wr_id);

	switch ((enum work)(wc->wr_id & WORK_MASK)) {
	case WORK_RECEIVE: {
		struct slot *slot = p;

		if (wc->status != IBV_WC_SUCCESS)
			connect_broken(slot->conn);
		else
			handle_message(slot, slot->bytes, wc->byte_len);
		break;
	}
	case WORK_SEND:
		handle_sent(p, wc);
		break;
	case WORK_UD_RECEIVE:
		handle_datagram(r, p, wc);
		break;
	case WORK_UD_SEND:
		spin_lock(&r->device.ud_lock);
		r->device.ud_done += UD_SEND_SLOTS / 4;
		spin_unlock(&r->device.ud_lock);
		event_signal(&r->device.ud_event);
		break;
	case WORK_FETCH:
		fetch_done(p, wc->status == IBV_WC_SUCCESS);
		break;
	case WORK_DRAIN: {
		struct conn *c = p;

		atomic_fetch_add(&c->drained, 1);
		break;
	}
	}
}

bool pump_locked(struct ripc *r)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(r->device.cq, BATCH, wc);

	for (int i = 0; i < n; i++)
		handle(r, &wc[i]);
	return n > 0;
}

bool pump(struct ripc *r)
{
	bool any;

	if (!spin_trylock(&r->pump_lock))
		return false;
	any = pump_locked(r);
	spin_unlock(&r->pump_lock);
	return any;
}

void pump_past(struct ripc *r)
{
	int rounds = r->device.cq->cqe / BATCH + 1;
	bool any = true;

	for (int i = 0; i < rounds && any; i++) {
		spin_lock(&r->pump_lock);
		any = pump_locked(r);
		spin_unlock(&r->pump_lock);
	}
}

void pump_pass(struct ripc *r)
{
	spin_lock(&r->pump_lock);
	spin_unlock(&r->pump_lock);
}

void pump_cool(struct ripc *r)
{
	bool any;

	atomic_store(&r->hot, false);
	ibv_req_notify_cq(r->device.cq, 0);
	/* What came before that makes no event. Another thread that is at it may have looked
	 * before, or leave some behind. */
	do {
		spin_lock(&r->pump_lock);
		any = pump_locked(r);
		spin_unlock(&r->pump_lock);
	} while (any);
}
