/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Return buffers of ours, which peers write long messages into: by service.
 *
 * An offer is for the messages of one service of one instance, and is used up by one item.
 * What a peer says about where it has written is believed only if there is such an offer.
 * Those of a connection that has ended are not for the next one, and stay with the library
 * until they are revoked (revoke.c). What the peer can write is window.c's.
 */
#include <errno.h>
#include <stdlib.h>

#include "ripc/instance/offers.h"

void offer_free(struct ripc *r, struct offer *o)
{
	pool_put(r->pool, &o->ref);
	free(o);
}

void offer_void(struct offer *o, struct peer *p)
{
	if (o->window && p && p->conn && p->epoch == o->epoch)
		window_end(p->conn, o->window);
	o->window = NULL;
}

/* p->lock */
static void free_all(struct ripc *r, struct peer *p, struct list *offers)
{
	struct list *e;

	while ((e = list_pop(offers))) {
		struct offer *o = list_entry(e, struct offer, entry);

		offer_void(o, p);
		offer_free(r, o);
	}
}

/* `p` NULL: to a service of this instance, which never writes into it. */
static int make_one(struct ripc_service *s, struct peer *p, uint32_t to,
		    const struct ripc_item *item, struct offer **out)
{
	struct offer *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return -ENOBUFS;
	ret = pool_get(s->r->pool, item->data, item->bytes,
		       s->r->device.windows ? POOL_WINDOW : POOL_LOCAL, &o->ref);
	if (ret) {
		free(o);
		return ret;
	}
	o->instance = p ? p->instance : s->r->number;
	o->epoch = p ? p->epoch : 0;
	o->to = to;
	o->data = item->data;
	o->bytes = item->bytes;
	if (p)
		ret = window_bind(p->conn, &o->ref, o->data, o->bytes, &o->window, &o->key);
	if (ret) {
		offer_free(s->r, o);
		return ret;
	}
	*out = o;
	return 0;
}

int offers_make(struct ripc_service *s, struct peer *p, uint32_t to,
		const struct ripc_item *returns, unsigned count, struct packet_memory *out,
		uint64_t *number)
{
	struct list made;

	list_init(&made);
	for (unsigned i = 0; i < count; i++) {
		struct offer *o;
		int ret = make_one(s, p, to, &returns[i], &o);

		if (ret) {
			free_all(s->r, p, &made);
			return ret == -ENOENT ?
				ripc_fail(-EINVAL, "return buffer %u is not of ripc_alloc() "
					  "and not registered", i) :
				ripc_fail(-ENOBUFS, "return buffer %u cannot be registered", i);
		}
		out[i] = (struct packet_memory){ .address = (uintptr_t)o->data,
						 .bytes = o->bytes, .key = o->key };
		list_push(&made, &o->entry);
	}
	spin_lock(&s->lock);
	*number = s->next_offer++;
	for (struct list *e = made.next; e != &made; e = e->next)
		list_entry(e, struct offer, entry)->number = *number;
	list_splice(&s->offers, &made);
	spin_unlock(&s->lock);
	return 0;
}

void offers_undo(struct ripc_service *s, struct peer *p, uint64_t number)
{
	struct list undone;

	list_init(&undone);
	spin_lock(&s->lock);
	list_for_each_safe(o, &s->offers, struct offer, entry) {
		if (o->number != number)
			continue;
		list_remove(&o->entry);
		list_push(&undone, &o->entry);
	}
	spin_unlock(&s->lock);
	free_all(s->r, p, &undone);
}

/* Of the connection that the peer has now. */
static bool is_written(const struct offer *o, const struct peer *p, uint32_t from,
		       const struct packet_memory *m)
{
	return o->instance == p->instance && o->epoch == p->epoch && o->to == from &&
	       (uintptr_t)o->data == m->address && o->bytes >= m->bytes;
}

bool offers_take(struct ripc_service *s, const struct peer *p, uint32_t from,
		 const struct packet_memory *m, struct fetch *f)
{
	bool found = false;

	spin_lock(&s->lock);
	list_for_each(o, &s->offers, struct offer, entry) {
		if (!is_written(o, p, from, m))
			continue;
		list_remove(&o->entry);
		list_push(&f->offers, &o->entry);
		found = true;
		break;
	}
	spin_unlock(&s->lock);
	return found;
}

bool offers_close(struct fetch *f)
{
	struct conn *c = f->conn;

	if (f->closed)
		return true;
	for (struct list *e = f->offers.next; e != &f->offers; e = e->next) {
		struct offer *o = list_entry(e, struct offer, entry);
		int ret;

		if (o->closing)
			continue;
		if (!conn_has_room(c, FETCH_ROOM))
			return false;
		ret = window_invalidate(c, o->window, work_id(f, WORK_FETCH));
		if (ret < 0) {
			f->failed = true;
			return false;
		}
		o->closing = true;
		f->reads += (unsigned)ret;
	}
	f->closed = true;
	return true;
}

void offers_done(struct fetch *f, struct conn *c)
{
	free_all(f->r, c ? c->peer : NULL, &f->offers);
}

void offers_restore(struct fetch *f, struct conn *c)
{
	struct ripc_service *s = list_empty(&f->offers) ? NULL : service_get(f->r, f->to);

	if (s) {
		spin_lock(&s->lock);
		list_splice(&s->offers, &f->offers);
		spin_unlock(&s->lock);
		service_put(s);
	}
	offers_done(f, c);
}

void offers_forget(struct ripc_service *s)
{
	struct list *e;

	while ((e = list_pop(&s->offers))) {
		struct offer *o = list_entry(e, struct offer, entry);
		struct peer *p = peer_get(s->r, o->instance, false);

		if (p) {
			pthread_mutex_lock(&p->lock);
			offer_void(o, p);
			pthread_mutex_unlock(&p->lock);
			peer_put(p);
		}
		offer_free(s->r, o);
	}
}
