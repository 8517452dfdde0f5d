/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Return buffers: ours, which peers write long messages into (offers, by service), and the
 * peers', which ours are written into (targets, by peer).
 *
 * An offer is for the messages of one service of one instance, and is used up by one item.
 * What a peer says about where it has written is believed only if there is such an offer.
 * Those of a connection that has ended are not for the next one, and stay with the library
 * until they are revoked.
 */
#include <errno.h>
#include <stdlib.h>

#include "ripc/instance/instance.h"

/* What one peer may make us remember. */
#define TARGETS_MAX 1024

struct offer {
	struct list entry;
	uint64_t instance;
	uint32_t epoch;
	uint32_t to;
	bool withdrawn;
	void *data;
	size_t bytes;
	struct pool_ref ref;
};

/* ---- ours ---- */

/* `p` NULL: to a service of this instance, which never writes into it. */
static int make_one(struct ripc_service *s, const struct peer *p, uint32_t to,
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
	o->instance = p ? p->instance : s->r->number;
	o->epoch = p ? p->epoch : 0;
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

int offers_make(struct ripc_service *s, const struct peer *p, uint32_t to,
		const struct ripc_item *returns, unsigned count, struct packet_memory *out)
{
	for (unsigned i = 0; i < count; i++) {
		int ret = make_one(s, p, to, &returns[i], &out[i]);

		if (!ret)
			continue;
		offers_undo(s, p, p ? p->epoch : 0, to, out, i);
		return ret == -ENOENT ?
			ripc_fail(-EINVAL, "return buffer %u is not of ripc_alloc() and not "
				  "registered", i) :
			ripc_fail(-ENOBUFS, "return buffer %u cannot be registered", i);
	}
	return 0;
}

static void offer_free(struct ripc *r, struct offer *o)
{
	pool_put(r->pool, &o->ref);
	free(o);
}

/* Of the connection behind which `epoch` others have ended; NULL: there is none like that. */
static struct offer *take_out(struct ripc_service *s, uint64_t instance, uint32_t epoch,
			      uint32_t to, uint64_t address, uint64_t bytes)
{
	struct offer *found = NULL;

	spin_lock(&s->lock);
	for (struct list *e = s->offers.next; e != &s->offers && !found; e = e->next) {
		struct offer *o = list_entry(e, struct offer, entry);

		if (o->instance == instance && o->epoch == epoch && o->to == to &&
		    (uintptr_t)o->data == address && o->bytes >= bytes)
			found = o;
	}
	if (found)
		list_remove(&found->entry);
	spin_unlock(&s->lock);
	return found;
}

void offers_undo(struct ripc_service *s, const struct peer *p, uint32_t epoch, uint32_t to,
		 const struct packet_memory *made, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct offer *o = take_out(s, p ? p->instance : s->r->number, epoch, to,
					   made[i].address,
					   made[i].bytes);

		if (o)
			offer_free(s->r, o);
	}
}

bool offers_take(struct ripc_service *s, const struct peer *p, uint32_t from,
		 const struct packet_memory *m, struct fetch *f)
{
	struct offer *found = take_out(s, p->instance, p->epoch, from, m->address,
				       m->bytes);

	if (found)
		list_push(&f->offers, &found->entry);
	return found;
}

void offers_done(struct fetch *f)
{
	struct list *e;

	while ((e = list_pop(&f->offers)))
		offer_free(f->r, list_entry(e, struct offer, entry));
}

void offers_restore(struct fetch *f)
{
	struct ripc_service *s = list_empty(&f->offers) ? NULL : service_get(f->r, f->to);

	if (s) {
		spin_lock(&s->lock);
		list_splice(&s->offers, &f->offers);
		spin_unlock(&s->lock);
		service_put(s);
	}
	offers_done(f);
}

void offers_forget(struct ripc_service *s)
{
	struct list *e;

	while ((e = list_pop(&s->offers)))
		offer_free(s->r, list_entry(e, struct offer, entry));
}

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

/* Until the peer writes into none any more. */
static void take_back(struct ripc_service *s, uint32_t to, struct peer *p)
{
	struct packet_message m = { .type = PACKET_REVOKE, .from = s->id, .to = to };
	uint64_t until = now_ns() + s->r->config.c.connect_timeout_ms * UINT64_C(1000000);
	struct revocation v = { .peer = p };
	struct conn *c;

	pthread_mutex_lock(&p->lock);
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

/* One that was not withdrawn yet; all like it are from now on. */
static bool to_withdraw(struct ripc_service *s, uint64_t *instance, uint32_t *to)
{
	bool found = false;

	spin_lock(&s->lock);
	for (struct list *e = s->offers.next; e != &s->offers; e = e->next) {
		struct offer *o = list_entry(e, struct offer, entry);

		if (o->withdrawn || (found && (o->instance != *instance || o->to != *to)))
			continue;
		*instance = o->instance;
		*to = o->to;
		o->withdrawn = found = true;
	}
	spin_unlock(&s->lock);
	return found;
}

void offers_withdraw(struct ripc_service *s)
{
	uint64_t instance = 0;
	uint32_t to = 0;

	while (to_withdraw(s, &instance, &to)) {
		struct peer *p = peer_get(s->r, instance, false);

		if (!p)
			continue;
		take_back(s, to, p);
		peer_put(p);
	}
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
		offer_free(s->r, found);
	}
	service_put(s);
	return n;
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
	/* Of a connection that has ended: void. */
	for (unsigned i = 0; p->conn == c && i < m->returns_count &&
			     p->targets_count < TARGETS_MAX; i++) {
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
