/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection: its queue pair, receives, and what is sent on it.
 *
 * Credits: a message may only be sent when the peer has a receive for it, because iWARP ends a
 * connection where there is none. A message tells how many receives were posted again since the
 * last one that did, when that is a quarter of them; when half of them were and nothing is sent,
 * a packet of its own does.
 *
 * A count that two sides change is kept as two, each written by one side with its own lock
 * (credits granted and spent, receives reposted and told of), so that no message needs a locked
 * instruction for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"

#define SIGNAL_EVERY 8
#define RECEIVES (CONN_CREDITS + CONN_SPARE)
#define INLINE_BYTES 256
#define DRAIN_WRS 1
#define TELL_WITH (CONN_CREDITS / 4)  /* credits that go with a message */
#define TELL_ALONE (CONN_CREDITS / 2) /* for which a packet is sent */
#define CONTROLS_MAX 4096

/* `slot` and those behind it, at most CONN_TOGETHER. */
static int post_receives(struct conn *c, struct slot *slot)
{
	struct ibv_recv_wr wr[CONN_TOGETHER], *bad;
	struct ibv_sge sge[CONN_TOGETHER];

	for (unsigned i = 0; slot; i++, slot = slot->next) {
		sge[i] = (struct ibv_sge){ (uintptr_t)slot->bytes, SLOT_BYTES, c->ref.lkey };
		wr[i] = (struct ibv_recv_wr){
			.wr_id = work_id(slot, WORK_RECEIVE), .sg_list = &sge[i], .num_sge = 1,
			.next = slot->next ? &wr[i + 1] : NULL,
		};
	}
	return ibv_post_recv(c->qp, wr, &bad) ? -EIO : 0;
}

static int qp_create(struct conn *c)
{
	static const uint32_t inlines[] = { INLINE_BYTES, 64, 0 };
	struct device *d = &c->r->device;

	for (unsigned i = 0; i < sizeof(inlines) / sizeof(inlines[0]); i++) {
		struct ibv_qp_init_attr a = {
			.send_cq = d->cq, .recv_cq = d->cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = CONN_SEND_DEPTH,
				 .max_recv_wr = RECEIVES + DRAIN_WRS,
				 .max_send_sge = 1, .max_recv_sge = 1,
				 .max_inline_data = inlines[i] },
		};

		if (!rdma_create_qp(c->id, d->pd, &a)) {
			c->qp = c->id->qp;
			c->max_inline = a.cap.max_inline_data < INLINE_BYTES ?
						a.cap.max_inline_data : INLINE_BYTES;
			return 0;
		}
	}
	return -errno;
}

int conn_open(struct conn *c)
{
	struct ripc *r = c->r;
	int ret = device_reserve(r, CONN_CQ_ENTRIES);

	if (ret)
		return ret;
	c->reserved = true;
	c->bytes = pool_alloc(r->pool, (RECEIVES + CONN_SEND_SLOTS) * (size_t)SLOT_BYTES);
	c->slots = calloc(RECEIVES, sizeof(*c->slots));
	if (!c->bytes || !c->slots)
		return -ENOBUFS;
	c->send_bytes = c->bytes + RECEIVES * (size_t)SLOT_BYTES;
	ret = pool_get(r->pool, c->bytes, (RECEIVES + CONN_SEND_SLOTS) * (size_t)SLOT_BYTES,
		       POOL_LOCAL, &c->ref);
	if (ret)
		return ret;
	ret = qp_create(c);
	for (unsigned i = 0; !ret && i < RECEIVES; i++) {
		c->slots[i].conn = c;
		c->slots[i].r = r;
		c->slots[i].bytes = c->bytes + i * (size_t)SLOT_BYTES;
		c->slots[i].message.slot = &c->slots[i];
		ret = post_receives(c, &c->slots[i]);
	}
	return ret;
}

void conn_get(struct conn *c)
{
	atomic_fetch_add_explicit(&c->users, 1, memory_order_relaxed);
}

void conn_close(struct conn *c)
{
	bool last;

	spin_lock(&c->receive_lock);
	c->closed = true;
	last = c->reposted == c->received;
	spin_unlock(&c->receive_lock);
	if (last)
		conn_put(c);
}

void conn_put(struct conn *c)
{
	if (atomic_fetch_sub(&c->users, 1) != 1)
		return;
	if (c->ref.region)
		pool_put(c->r->pool, &c->ref);
	if (c->bytes)
		pool_free(c->r->pool, c->bytes);
	free(c->slots);
	if (c->peer)
		peer_put(c->peer);
	free(c);
}

/* ---- sending; peer->lock ---- */

bool conn_has_room(const struct conn *c, unsigned wrs)
{
	return c->posted + wrs + DRAIN_WRS <= CONN_SEND_DEPTH;
}

int conn_post(struct conn *c, struct ibv_send_wr *wr, unsigned slots, bool signal)
{
	struct ibv_send_wr *bad;

	c->unsignaled++;
	c->unsignaled_slots += slots;
	if (signal || c->unsignaled >= SIGNAL_EVERY ||
	    c->unsignaled_slots >= CONN_SEND_SLOTS / 4) {
		unsigned at = c->signals_end++ % CONN_SEND_DEPTH;

		c->signals[at].wrs = (uint16_t)c->unsignaled;
		c->signals[at].slots = (uint16_t)c->unsignaled_slots;
		c->unsignaled = c->unsignaled_slots = 0;
		wr->send_flags |= IBV_SEND_SIGNALED;
	}
	c->posted++;
	c->slots_used += slots;
	if (!atomic_load_explicit(&c->dead, memory_order_relaxed) &&
	    !ibv_post_send(c->qp, wr, &bad))
		return 0;
	connect_broken(c);
	return -EIO;
}

void conn_retire(struct conn *c)
{
	unsigned at = c->signals_first++ % CONN_SEND_DEPTH;

	c->posted -= c->signals[at].wrs;
	c->slots_used -= c->signals[at].slots;
}

bool conn_can_send(const struct conn *c)
{
	return (int32_t)(atomic_load_explicit(&c->granted, memory_order_relaxed) -
			 atomic_load_explicit(&c->spent, memory_order_relaxed)) > 0 &&
	       conn_has_room(c, 1) && c->slots_used < CONN_SEND_SLOTS;
}

/* Only the holder of one lock changes it. */
static void add(_Atomic uint32_t *to, uint32_t n)
{
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
			      memory_order_release);
}

void conn_spend(struct conn *c)
{
	add(&c->spent, 1);
}

static uint32_t owed(const struct conn *c)
{
	return atomic_load_explicit(&c->owing, memory_order_acquire) -
	       atomic_load_explicit(&c->told, memory_order_relaxed);
}

uint16_t conn_credits_owed(struct conn *c)
{
	uint32_t n = owed(c);

	if (n < TELL_WITH)
		return 0;
	add(&c->told, n);
	return (uint16_t)n;
}

/* Posts `bytes`: from the caller's memory where they fit inline, else from a slot, which the
 * caller has filled (conn_send_slot()). */
int conn_send(struct conn *c, const uint8_t *from, size_t bytes)
{
	bool fits = bytes <= c->max_inline;
	struct ibv_sge sge = { (uintptr_t)from, (uint32_t)bytes, fits ? 0 : c->ref.lkey };
	struct ibv_send_wr wr = {
		.wr_id = work_id(c, WORK_SEND), .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = fits ? IBV_SEND_INLINE : 0,
	};

	if (!fits)
		c->slot_next++;
	atomic_store_explicit(&c->used, true, memory_order_relaxed);
	return conn_post(c, &wr, !fits, false);
}

uint8_t *conn_send_slot(struct conn *c)
{
	return c->send_bytes + c->slot_next % CONN_SEND_SLOTS * (size_t)SLOT_BYTES;
}

/* ---- control messages ---- */

static void send_control(struct conn *c, struct packet_message *m)
{
	uint8_t *at = conn_send_slot(c);

	m->credits = conn_credits_owed(c);
	conn_send(c, at, packet_message_encode(m, false, at));
}

static void flush_out(struct peer *p);

void conn_control(struct peer *p, const struct packet_message *m)
{
	struct conn *c = p->conn;
	struct control *w;

	if (!c)
		return; /* what it is about has ended with the connection */
	if (conn_can_send(c) && list_empty(&p->controls)) {
		struct packet_message now = { .type = m->type };

		now.from = m->from;
		now.to = m->to;
		now.number = m->number;
		now.error = m->error;
		conn_spend(c);
		send_control(c, &now);
		return;
	}
	/* A peer that asks and does not take answers, or no memory: it would wait for ever. */
	w = p->controls_count < CONTROLS_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		connect_broken(c);
		return;
	}
	w->type = m->type;
	w->from = m->from;
	w->to = m->to;
	w->number = m->number;
	w->error = m->error;
	list_push(&p->controls, &w->entry);
	p->controls_count++;
	flush_out(p);
}

/* When half of all are owed, if there is room; else the next completion comes here. */
static void credits_flush(struct conn *c)
{
	struct packet_message m = { .type = PACKET_CREDIT };

	if (owed(c) >= TELL_ALONE && !atomic_load(&c->dead) && conn_has_room(c, 1) &&
	    c->slots_used < CONN_SEND_SLOTS)
		send_control(c, &m);
}

static bool flush_controls(struct peer *p)
{
	while (p->conn && !list_empty(&p->controls)) {
		struct packet_message m = { .type = 0 };
		struct control *w;

		if (!conn_can_send(p->conn))
			return false;
		w = list_entry(list_pop(&p->controls), struct control, entry);
		m.type = w->type;
		m.from = w->from;
		m.to = w->to;
		m.number = w->number;
		m.error = w->error;
		free(w);
		p->controls_count--;
		conn_spend(p->conn);
		send_control(p->conn, &m);
	}
	return true;
}

static void flush_out(struct peer *p)
{
	do {
		atomic_store(&p->pending, false);
		if (flush_controls(p) && long_flush(p))
			break;
		/* In this order: who brings credits does the reverse. */
		atomic_store(&p->pending, true);
		atomic_thread_fence(memory_order_seq_cst);
	} while (p->conn && conn_can_send(p->conn) && !atomic_load(&p->conn->dead));
}

void conn_flush(struct peer *p)
{
	flush_out(p);
	fetch_go_on(p);
	if (p->conn)
		credits_flush(p->conn);
}

static uint64_t proof_of(const struct conn *c)
{
	const struct packet_connect own = { .instance = c->r->number, .nonce = c->nonce },
				    other = { .instance = c->peer->instance,
					      .nonce = c->peer_nonce };

	return c->active ? packet_connect_proof(&own, &other, &c->r->key) :
			   packet_connect_proof(&other, &own, &c->r->key);
}

void conn_hello(struct conn *c)
{
	struct packet_message m = { .type = PACKET_HELLO };

	m.number = proof_of(c);
	send_control(c, &m);
}

bool conn_is_hello(const struct conn *c, const struct packet_message *m)
{
	if (c->active || m->type != PACKET_HELLO) {
		COUNT(c->r, bad_packets, 1);
		return false;
	}
	if (m->number == proof_of(c))
		return true;
	COUNT(c->r, unauthentic, 1);
	return false;
}

/* ---- receiving ---- */

static void tell_credits(struct conn *c)
{
	struct peer *p = c->peer;

	pthread_mutex_lock(&p->lock);
	if (p->conn == c)
		credits_flush(c);
	pthread_mutex_unlock(&p->lock);
}

/* Posts what was released, once it is CONN_TOGETHER. True: the peer is to be told of its credits.
 * receive_lock */
static bool post_back(struct conn *c, int *ret)
{
	if (c->back_count < CONN_TOGETHER)
		return false;
	*ret = post_receives(c, c->back);
	if (!*ret)
		add(&c->owing, c->back_credits);
	c->back = NULL;
	c->back_count = c->back_credits = 0;
	/* The other side writes `told`: perhaps too often, but not too late. */
	return !*ret && owed(c) >= TELL_ALONE;
}

void conn_repost(struct slot *slot, bool counted)
{
	struct conn *c = slot->conn;
	bool dead, tell = false, last;
	int ret = 0;

	spin_lock(&c->receive_lock);
	dead = atomic_load_explicit(&c->dead, memory_order_relaxed);
	if (!dead) {
		slot->next = c->back;
		c->back = slot;
		c->back_count++;
		c->back_credits += counted;
		tell = post_back(c, &ret);
	}
	if (ret || tell)
		conn_get(c);
	add(&c->reposted, 1);
	last = c->closed && c->reposted == c->received;
	spin_unlock(&c->receive_lock);
	/* From here on it may be no more, unless it was taken above. */
	if (ret)
		connect_broken(c);
	if (tell)
		tell_credits(c);
	if (ret || tell)
		conn_put(c);
	if (last)
		conn_put(c);
}
