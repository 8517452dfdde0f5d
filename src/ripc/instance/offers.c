/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Return buffers: ours, which peers write long messages into (offers, by service), and the
 * peers', which ours are written into (targets, by peer).
 *
 * An offer is for the messages of one service of one instance, and is used up by one item.
 * What a peer says about where it has written is believed only if there is such an offer.
 */
#include <errno.h>
#include <stdlib.h>

#include "ripc/instance/instance.h"

/* What one peer may make us remember. */
#define TARGETS_MAX 1024

struct offer {
	struct list entry;
	uint64_t instance;
	uint32_t to;
	void *data;
	size_t bytes;
	struct pool_ref ref;
};

/* ---- ours ---- */

static int make_one(struct ripc_service *s, struct peer *p, uint32_t to,
		    const struct ripc_item *item, struct packet_memory *out)
{
	struct offer *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return -ENOBUFS;
	ret = pool_get(s->r->pool, item->data, item->bytes, POOL_SINK, &o->ref);
	if (ret) {
		free(o);
		return ret;
	}
	o->instance = p->instance;
	o->to = to;
	o->data = item->data;
	o->bytes = item->bytes;
	*out = (struct packet_memory){ .address = (uintptr_t)item->data,
				       .bytes = item->bytes, .key = o->ref.rkey };
	spin_lock(&s->lock);
	list_push(&s->offers, &o->entry);
	spin_unlock(&s->lock);
	return 0;
}

int offers_make(struct ripc_service *s, struct peer *p, uint32_t to,
		const struct ripc_item *returns, unsigned count, struct packet_memory *out)
{
	for (unsigned i = 0; i < count; i++) {
		int ret = make_one(s, p, to, &returns[i], &out[i]);

		if (!ret)
			continue;
		offers_undo(s, i);
		return ret == -ENOENT ?
			ripc_fail(-EINVAL, "return buffer %u is not of ripc_alloc() and not "
				  "registered", i) :
			ripc_fail(-ENOBUFS, "return buffer %u cannot be registered", i);
	}
	return 0;
}

static void offer_free(struct ripc_service *s, struct offer *o)
{
	pool_put(s->r->pool, &o->ref);
	free(o);
}

void offers_undo(struct ripc_service *s, unsigned count)
{
	while (count--) {
		struct list *e;

		spin_lock(&s->lock);
		e = s->offers.prev;
		list_remove(e);
		spin_unlock(&s->lock);
		offer_free(s, list_entry(e, struct offer, entry));
	}
}

bool offers_take(struct ripc_service *s, uint64_t instance, uint32_t from,
		 const struct packet_memory *m)
{
	struct offer *found = NULL;

	spin_lock(&s->lock);
	for (struct list *e = s->offers.next; e != &s->offers && !found; e = e->next) {
		struct offer *o = list_entry(e, struct offer, entry);

		if (o->instance == instance && o->to == from &&
		    (uintptr_t)o->data == m->address && o->bytes >= m->bytes)
			found = o;
	}
	if (found)
		list_remove(&found->entry);
	spin_unlock(&s->lock);
	if (!found)
		return false;
	offer_free(s, found);
	return true;
}

/* Those of one instance (0: all), to one service there (0: all), that are not marked as
 * revoked. */
static void drop(struct ripc_service *s, uint64_t instance, uint32_t to)
{
	struct list gone, *e;

	list_init(&gone);
	spin_lock(&s->lock);
	for (e = s->offers.next; e != &s->offers;) {
		struct offer *o = list_entry(e, struct offer, entry);

		e = e->next;
		if ((instance && o->instance != instance) || (to && o->to != to))
			continue;
		list_remove(&o->entry);
		list_push(&gone, &o->entry);
	}
	spin_unlock(&s->lock);
	while ((e = list_pop(&gone)))
		offer_free(s, list_entry(e, struct offer, entry));
}

void offers_forget(struct ripc_service *s)
{
	drop(s, 0, 0);
}

void offers_drop(struct ripc *r, uint64_t instance)
{
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		uint32_t after = 0;

		/* One service after the other, as none may be freed under table_lock. */
		for (;;) {
			struct ripc_service *s = service_next(r, i, after);

			if (!s)
				break;
			drop(s, instance, 0);
			after = s->id;
			service_put(s);
		}
	}
}

struct revocation {
	struct ripc_service *s;
	struct peer *peer;
	uint32_t to;
	unsigned answers;       /* when it was asked */
};

static bool is_revoked(void *arg)
{
	const struct revocation *v = arg;
	bool done;

	pthread_mutex_lock(&v->peer->lock);
	done = v->peer->state != PEER_UP || v->peer->revoked != v->answers;
	pthread_mutex_unlock(&v->peer->lock);
	return done;
}

/* Until the peer writes into none any more. */
static void take_back(struct ripc_service *s, uint32_t to, struct peer *p)
{
	struct packet_message m = { .type = PACKET_REVOKE, .from = s->id, .to = to };
	uint64_t until = now_ns() + s->r->config.c.connect_timeout_ms * UINT64_C(1000000);
	struct revocation v = { .s = s, .peer = p, .to = to };
	struct conn *c;

	pthread_mutex_lock(&p->lock);
	v.answers = p->revoked;
	m.number = (uint64_t)v.answers + 1;
	c = p->conn;
	if (c)
		conn_get(c);
	conn_control(p, &m);
	pthread_mutex_unlock(&p->lock);
	/* Without an answer the connection ends, and with it what the peer could write. */
	if (wait_until(s->r, &p->event, is_revoked, &v, until) && c)
		connect_broken(c);
	if (c)
		conn_put(c);
}

int ripc_returns_revoke(struct ripc_service *s, uint32_t to, struct ripc_item *back,
			unsigned max)
{
	struct peer *p;
	int n = 0;

	if (!s || (max && !back))
		return ripc_fail(-EINVAL, "no service, or no room for the buffers");
	atomic_fetch_add(&s->users, 1);
	p = route_find(s->r, to);
	if (p) {
		take_back(s, to, p);
		peer_put(p);
	}
	while ((unsigned)n < max) {
		struct offer *found = NULL;

		spin_lock(&s->lock);
		for (struct list *e = s->offers.next; e != &s->offers && !found; e = e->next)
			if (list_entry(e, struct offer, entry)->to == to)
				found = list_entry(e, struct offer, entry);
		if (found)
			list_remove(&found->entry);
		spin_unlock(&s->lock);
		if (!found)
			break;
		back[n++] = (struct ripc_item){ found->data, found->bytes };
		offer_free(s, found);
	}
	service_put(s);
	return n;
}

void offers_revoked(struct conn *c, const struct packet_message *m)
{
	(void)m;
	pthread_mutex_lock(&c->peer->lock);
	c->peer->revoked++;
	pthread_mutex_unlock(&c->peer->lock);
	event_signal(&c->peer->event);
}

/* ---- the peers' ---- */

/* peer->lock */
static void targets_of(struct peer *p, uint32_t of, uint32_t by, bool all)
{
	for (struct list *e = p->targets.next; e != &p->targets;) {
		struct target *t = list_entry(e, struct target, entry);

		e = e->next;
		if (all || (t->of == of && t->by == by)) {
			list_remove(&t->entry);
			p->targets_count--;
			free(t);
		}
	}
}

void targets_clear(struct peer *p)
{
	targets_of(p, 0, 0, true);
}

void targets_add(struct conn *c, const struct packet_message *m)
{
	struct peer *p = c->peer;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < m->returns_count && p->targets_count < TARGETS_MAX; i++) {
		struct target *t = malloc(sizeof(*t));

		if (!t)
			break; /* fetched instead of written */
		*t = (struct target){ .of = m->from, .by = m->to, .memory = m->returns[i] };
		list_push(&p->targets, &t->entry);
		p->targets_count++;
	}
	pthread_mutex_unlock(&p->lock);
}

bool target_take(struct peer *p, uint32_t of, uint32_t by, uint64_t bytes,
		 struct packet_memory *out)
{
	for (struct list *e = p->targets.next; e != &p->targets; e = e->next) {
		struct target *t = list_entry(e, struct target, entry);

		if (t->of != of || t->by != by || t->memory.bytes < bytes)
			continue;
		*out = t->memory;
		list_remove(&t->entry);
		p->targets_count--;
		free(t);
		return true;
	}
	return false;
}

void offers_revoke(struct conn *c, const struct packet_message *m)
{
	const struct packet_message answer = { .type = PACKET_REVOKED, .from = m->to,
					       .to = m->from, .number = m->number };

	pthread_mutex_lock(&c->peer->lock);
	targets_of(c->peer, m->from, m->to, false);
	/* Behind what was written into them. */
	if (c->peer->conn == c)
		conn_control(c->peer, &answer);
	pthread_mutex_unlock(&c->peer->lock);
}
