/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One service that does not receive, and the others beside it. Messages for it are copied where
 * they would keep many of the receives that all services share (short.c). When queue_max wait,
 * those who send them over connections are asked to hold (PACKET_HOLD), and send it
 * nothing until they may go on (PACKET_GO), when half of them were received. What is on its way
 * meanwhile is taken: a peer that goes on beyond that, over one connection or several, loses it.
 * So that nobody goes on because it was idle, such connections are not closed for that.
 * Datagrams are lost.
 */
#include <stdlib.h>

#include "ripc/instance/instance.h"

/* What may be on its way when the peer hears of it: it gets credits meanwhile. */
#define OVERRUN_MAX (8 * CONN_CREDITS)
/* Services of one peer that are remembered. */
#define HELD_MAX 1024

/* ---- here: a service whose queue is full ---- */

/* A peer that was asked to hold. */
struct hold {
	struct list entry;      /* service->holds; service->lock */
	struct peer *peer;      /* with a reference; has one at most */
	uint64_t epoch;         /* of the connection that it was asked on */
	unsigned overrun;       /* messages since then, over all connections */
};

/* service->lock */
static struct hold *find(struct ripc_service *s, const struct peer *p)
{
	list_for_each(h, &s->holds, struct hold, entry)
		if (h->peer == p)
			return h;
	return NULL;
}

/* peer->lock. True: it has to be asked, on this connection. Uses `fresh`, or leaves it.
 * *overrun: of a peer that was asked. */
static bool enter(struct ripc_service *s, struct peer *p, struct hold **fresh,
		  unsigned *overrun)
{
	bool entered = false;
	struct hold *h;

	spin_lock(&s->lock);
	h = find(s, p);
	if (h) {
		*overrun = ++h->overrun;
		entered = h->epoch != p->epoch;
		h->epoch = p->epoch;
	} else if (*fresh && s->queued >= s->r->config.c.queue_max) {
		h = *fresh;
		*fresh = NULL;
		h->peer = p;
		h->epoch = p->epoch;
		atomic_fetch_add(&p->users, 1);
		list_push(&s->holds, &h->entry);
		p->holds++;
		entered = true;
	}
	spin_unlock(&s->lock);
	return entered;
}

void hold_ask(struct conn *c, struct ripc_service *s, uint32_t from)
{
	const struct packet_message m = { .type = PACKET_HOLD, .from = s->id, .to = from };
	struct hold *fresh = calloc(1, sizeof(*fresh));
	struct peer *p = c->peer;
	unsigned overrun = 0;

	pthread_mutex_lock(&p->lock);
	if (p->conn == c && enter(s, p, &fresh, &overrun))
		conn_control(p, &m);
	pthread_mutex_unlock(&p->lock);
	free(fresh);
	if (overrun >= OVERRUN_MAX && !atomic_load(&c->dead)) {
		COUNT(c->r, bad_packets, 1);
		connect_broken(c);
	}
}

/* service->lock. So few messages wait that those who were asked may go on. */
static bool may_end(const struct ripc_service *s)
{
	return !list_empty(&s->holds) && s->queued <= s->r->config.c.queue_max / 2;
}

/* With a reference. NULL: there is none that may go on. */
static struct peer *next_held(struct ripc_service *s)
{
	struct peer *p = NULL;

	spin_lock(&s->lock);
	if (may_end(s)) {
		p = list_entry(s->holds.next, struct hold, entry)->peer;
		atomic_fetch_add(&p->users, 1);
	}
	spin_unlock(&s->lock);
	return p;
}

/* peer->lock, so that what is said to the peer is in the order of what is remembered here. */
static void end_one(struct ripc_service *s, struct peer *p)
{
	const struct packet_message m = { .type = PACKET_GO, .from = s->id };
	struct hold *h;

	spin_lock(&s->lock);
	/* Another thread may have, or it is full again. */
	h = may_end(s) ? find(s, p) : NULL;
	if (h)
		list_remove(&h->entry);
	spin_unlock(&s->lock);
	if (!h)
		return;
	p->holds--;
	if (h->epoch == p->epoch)
		conn_control(p, &m);
	peer_put(p);
	free(h);
}

void hold_end(struct ripc_service *s)
{
	struct peer *p;

	while ((p = next_held(s))) {
		pthread_mutex_lock(&p->lock);
		end_one(s, p);
		pthread_mutex_unlock(&p->lock);
		peer_put(p);
	}
}

/* ---- there: services that we were asked not to send to ---- */

struct held {
	struct list entry;      /* peer->held; peer->lock */
	uint32_t id;
};

static struct held *held_find(const struct peer *p, uint32_t id)
{
	list_for_each(h, &p->held, struct held, entry)
		if (h->id == id)
			return h;
	return NULL;
}

bool held_has(const struct peer *p, uint32_t id)
{
	return !list_empty(&p->held) && held_find(p, id);
}

static void held_add(struct peer *p, uint32_t id)
{
	struct held *h = p->held_count < HELD_MAX ? malloc(sizeof(*h)) : NULL;

	if (!h)
		return; /* the peer may end the connection */
	h->id = id;
	list_push(&p->held, &h->entry);
	p->held_count++;
}

static void held_remove(struct peer *p, struct held *h)
{
	list_remove(&h->entry);
	p->held_count--;
	free(h);
}

void held_take(struct conn *c, const struct packet_message *m)
{
	struct peer *p = c->peer;
	struct held *h;

	pthread_mutex_lock(&p->lock);
	h = held_find(p, m->from);
	if (p->conn == c && m->type == PACKET_HOLD && !h)
		held_add(p, m->from);
	else if (p->conn == c && m->type == PACKET_GO && h)
		held_remove(p, h);
	pthread_mutex_unlock(&p->lock);
	event_signal(&p->event);
}

void held_clear(struct peer *p)
{
	while (!list_empty(&p->held))
		held_remove(p, list_entry(p->held.next, struct held, entry));
}
