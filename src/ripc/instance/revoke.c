/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Return buffers that are asked back. Every instance that the service was at when they were
 * offered is told, answers behind the last write, and a message that waits and would have told
 * of them does not any more. What another thread offers meanwhile, behind the question, is not
 * touched by it.
 */
#include <errno.h>

#include "ripc/instance/offers.h"

struct revocation {
	struct peer *peer;
	uint64_t number;
};

static bool is_revoked(void *arg)
{
	const struct revocation *v = arg;
	bool done;

	pthread_mutex_lock(&v->peer->lock);
	done = v->peer->revoked >= v->number;
	pthread_mutex_unlock(&v->peer->lock);
	return done;
}

/* Until the peer writes no more into what it was offered before; `end` is the number of the
 * first message behind that. */
static void ask_back(struct ripc_service *s, uint32_t to, struct peer *p, uint64_t *end)
{
	struct packet_message m = { .type = PACKET_REVOKE, .from = s->id, .to = to };
	uint64_t until = now_ns() + s->r->config.c.connect_timeout_ms * UINT64_C(1000000);
	struct revocation v = { .peer = p };
	struct conn *c;

	pthread_mutex_lock(&p->lock);
	/* Offers to this peer are made with its lock. */
	spin_lock(&s->lock);
	*end = s->next_offer;
	spin_unlock(&s->lock);
	long_offers_void(p, s, to);
	c = p->conn;
	if (c) {
		conn_get(c);
		m.number = v.number = ++p->revokes;
		conn_control(p, &m);
	}
	pthread_mutex_unlock(&p->lock);
	if (!c)
		return;
	/* Without an answer the connection ends, and with it what the peer could write. */
	if (wait_until(s->r, &p->event, is_revoked, &v, until)) {
		connect_broken(c);
		wait_until(s->r, &p->event, is_revoked, &v, UINT64_MAX);
	}
	conn_put(c);
}

/* Whom offers were made to: a service, at an instance. */
struct offered {
	uint32_t to;
	uint64_t instance;
};

/* Those for `at` that are older than `end` go over to `found`. */
static void collect(struct ripc_service *s, const struct offered *at, uint64_t end,
		    struct list *found)
{
	spin_lock(&s->lock);
	list_for_each_safe(o, &s->offers, struct offer, entry) {
		if (o->to != at->to || o->instance != at->instance || o->number >= end)
			continue;
		list_remove(&o->entry);
		list_push(found, &o->entry);
	}
	spin_unlock(&s->lock);
}

/* Also from a peer that says it does not write any more, and does. */
static void void_all(struct peer *p, struct list *found)
{
	pthread_mutex_lock(&p->lock);
	list_for_each(o, found, struct offer, entry)
		if (o->instance == p->instance)
			offer_void(o, p);
	pthread_mutex_unlock(&p->lock);
}

static void take_back(struct ripc_service *s, const struct offered *at, struct list *found)
{
	struct peer *p;
	uint64_t end;

	spin_lock(&s->lock);
	end = s->next_offer;
	spin_unlock(&s->lock);
	/* NULL: this instance, or one that was connected long ago. */
	p = peer_get(s->r, at->instance, false);
	if (p)
		ask_back(s, at->to, p, &end);
	collect(s, at, end, found);
	if (p) {
		void_all(p, found);
		peer_put(p);
	}
}

static bool is_behind(const struct offer *o, const struct offered *at)
{
	return o->to != at->to ? o->to > at->to : o->instance > at->instance;
}

/* The next one behind *at of those that were offered any. False: there is none. */
static bool next_offered(struct ripc_service *s, struct offered *at)
{
	struct offered next = { 0 };
	bool found = false;

	spin_lock(&s->lock);
	list_for_each(o, &s->offers, struct offer, entry) {
		if (!is_behind(o, at) || (found && is_behind(o, &next)))
			continue;
		next = (struct offered){ o->to, o->instance };
		found = true;
	}
	spin_unlock(&s->lock);
	if (found)
		*at = next;
	return found;
}

void offers_withdraw(struct ripc_service *s)
{
	struct offered at = { 0 };
	struct list found, *e;

	list_init(&found);
	while (next_offered(s, &at))
		take_back(s, &at, &found);
	while ((e = list_pop(&found)))
		offer_free(s->r, list_entry(e, struct offer, entry));
}

int ripc_returns_revoke(struct ripc_service *s, uint32_t to, struct ripc_item *back,
			unsigned max)
{
	struct offered at = { .to = to };
	struct list found, *e;
	int n = 0;

	if (!s || (max && !back))
		return ripc_fail(-EINVAL, "no service, or no room for the buffers");
	atomic_fetch_add(&s->users, 1);
	list_init(&found);
	/* The service may have been at several instances. */
	while (next_offered(s, &at) && at.to == to)
		take_back(s, &at, &found);
	while ((unsigned)n < max && (e = list_pop(&found))) {
		struct offer *o = list_entry(e, struct offer, entry);

		back[n++] = (struct ripc_item){ o->data, o->bytes };
		offer_free(s->r, o);
	}
	/* For the next call. */
	spin_lock(&s->lock);
	list_splice(&s->offers, &found);
	spin_unlock(&s->lock);
	service_put(s);
	return n;
}

void offers_revoke(struct conn *c, const struct packet_message *m)
{
	const struct packet_message answer = { .type = PACKET_REVOKED, .from = m->to,
					       .to = m->from, .number = m->number };

	pthread_mutex_lock(&c->peer->lock);
	targets_revoke(c->peer, m->from, m->to);
	/* Behind what was written into them. */
	if (c->peer->conn == c)
		conn_control(c->peer, &answer);
	pthread_mutex_unlock(&c->peer->lock);
}

void offers_revoked(struct conn *c, const struct packet_message *m)
{
	struct peer *p = c->peer;
	bool asked = true;

	pthread_mutex_lock(&p->lock);
	if (p->conn == c) {
		/* Each is answered, in order. */
		asked = m->number == p->revoked + 1 && m->number <= p->revokes;
		if (asked)
			p->revoked++;
	}
	pthread_mutex_unlock(&p->lock);
	event_signal(&p->event);
	if (!asked) {
		COUNT(c->r, bad_packets, 1);
		connect_broken(c);
	}
}
