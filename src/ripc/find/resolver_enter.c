/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services of this instance. Others hear of them at once where the ways to find services
 * reach a group; a rendezvous is told until it answers, and again after a third of the
 * lifetime, so that two lost packets do no harm.
 */
#include "ripc/find/resolver_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIFETIME_S 30
#define FIRST_NS (50 * RESOLVER_MS)
#define INTERVAL_MAX_NS (5000 * RESOLVER_MS)

/* "Is open" or, with a lifetime of 0, "is closed". */
static struct packet_resolve notice(const struct resolver *r, uint32_t id, const char *name,
				    uint64_t nonce, uint16_t lifetime_s)
{
	struct packet_resolve p = { .type = PACKET_ENTER, .nonce = nonce, .id = id,
				    .lifetime_s = lifetime_s, .where = r->config.self };

	memcpy(p.name, name, strlen(name) + 1);
	return p;
}

static void send_groups(struct resolver *r, const struct packet_resolve *p)
{
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	const size_t length = packet_resolve_encode(p, &r->config.key, bytes);

	if (methods_have(r, METHOD_MULTICAST))
		net_send_group(&r->net, NET_MULTICAST, bytes, length);
	if (methods_have(r, METHOD_BROADCAST))
		net_send_group(&r->net, NET_BROADCAST, bytes, length);
}

static void send_rendezvous(struct resolver *r, unsigned method,
			    const struct packet_resolve *p)
{
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];

	net_send(&r->net, -1, &r->methods[method].rendezvous, bytes,
		 packet_resolve_encode(p, &r->config.key, bytes));
}

void resolver_enter(struct resolver *r, uint32_t id, const char *name)
{
	struct own_service *s = calloc(1, sizeof(*s));
	struct packet_resolve p;
	int listening;

	name = name ? name : "";
	if (!s || !id || strlen(name) > RIPC_NAME_MAX) {
		free(s);
		return;
	}
	listening = methods_listen(r, id, name);
	s->id = id;
	s->listening = !listening;
	memcpy(s->name, name, strlen(name) + 1);
	for (unsigned i = 0; i < METHODS_MAX; i++)
		s->at[i].interval_ns = FIRST_NS;
	pthread_mutex_lock(&r->lock);
	list_push(&r->own, &s->link);
	claim_entered(r, id);
	pthread_mutex_unlock(&r->lock);
	p = notice(r, id, name, resolver_draw(r), LIFETIME_S);
	send_groups(r, &p);
	resolver_wake_thread(r);
}

static void leave(struct resolver *r, const struct own_service *s)
{
	struct packet_resolve p = notice(r, s->id, s->name, resolver_draw(r), 0);

	for (unsigned i = 0; i < r->method_count; i++)
		if (r->methods[i].kind == METHOD_RENDEZVOUS)
			send_rendezvous(r, i, &p);
	send_groups(r, &p);
}

static struct own_service *own_find(struct resolver *r, uint32_t id)
{
	list_for_each(s, &r->own, struct own_service, link)
		if (s->id == id)
			return s;
	return NULL;
}

void resolver_leave(struct resolver *r, uint32_t id, const char *name)
{
	struct own_service *s;

	pthread_mutex_lock(&r->lock);
	s = own_find(r, id);
	if (s)
		list_remove(&s->link);
	pthread_mutex_unlock(&r->lock);
	if (s)
		leave(r, s);
	free(s);
}

void own_leave_all(struct resolver *r)
{
	struct own_service *s;

	do {
		struct list *first;

		pthread_mutex_lock(&r->lock);
		first = list_pop(&r->own);
		pthread_mutex_unlock(&r->lock);
		s = first ? list_entry(first, struct own_service, link) : NULL;
		if (s)
			leave(r, s);
		free(s);
	} while (s);
}

/* Sends what is due of one service. The lock is held: it does not wait. */
static uint64_t service_tick(struct resolver *r, struct own_service *s, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < r->method_count; i++) {
		if (r->methods[i].kind != METHOD_RENDEZVOUS)
			continue;
		if (now_ns >= s->at[i].due_ns) {
			struct packet_resolve p;

			if (!s->at[i].nonce)
				s->at[i].nonce = resolver_draw(r);
			p = notice(r, s->id, s->name, s->at[i].nonce, LIFETIME_S);
			send_rendezvous(r, i, &p);
			s->at[i].due_ns = now_ns + s->at[i].interval_ns;
			s->at[i].interval_ns *= 2;
			if (s->at[i].interval_ns > INTERVAL_MAX_NS)
				s->at[i].interval_ns = INTERVAL_MAX_NS;
		}
		if (s->at[i].due_ns < next_ns)
			next_ns = s->at[i].due_ns;
	}
	return next_ns;
}

/* At a place in a file of hosts where somebody else listens: he may go. Without the lock,
 * for the file is read. */
static bool listen_again(struct resolver *r)
{
	char name[RIPC_NAME_MAX + 1];
	struct own_service *s;
	uint32_t id = 0;
	int ret;

	pthread_mutex_lock(&r->lock);
	list_for_each(own, &r->own, struct own_service, link)
		if (!own->listening) {
			id = own->id;
			memcpy(name, own->name, sizeof(name));
			break;
		}
	pthread_mutex_unlock(&r->lock);
	if (!id)
		return false;
	ret = methods_listen(r, id, name);
	pthread_mutex_lock(&r->lock);
	s = own_find(r, id);
	if (s) {
		s->listening = !ret;
		/* The next one's turn. */
		list_remove(&s->link);
		list_push(&r->own, &s->link);
	}
	pthread_mutex_unlock(&r->lock);
	return true;
}

uint64_t own_tick(struct resolver *r, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (listen_again(r))
		next_ns = now_ns + 1000 * RESOLVER_MS;
	pthread_mutex_lock(&r->lock);
	list_for_each(s, &r->own, struct own_service, link) {
		const uint64_t due_ns = service_tick(r, s, now_ns);

		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	pthread_mutex_unlock(&r->lock);
	return next_ns;
}

/* Whose question this answers; NULL: nobody's. The lock is held. */
static struct own_service *waiting_for(struct resolver *r, const struct packet_resolve *p,
				       const union address *from, unsigned *method)
{
	struct own_service *s = own_find(r, p->id);

	for (unsigned i = 0; s && i < r->method_count; i++)
		if (r->methods[i].kind == METHOD_RENDEZVOUS && s->at[i].nonce == p->nonce &&
		    p->nonce && address_same(&r->methods[i].rendezvous, from, true)) {
			*method = i;
			return s;
		}
	return NULL;
}

void own_entered(struct resolver *r, const struct packet_resolve *p,
		 const union address *from)
{
	const bool entered = p->lifetime_s > 0;
	struct own_service *s;
	unsigned i;

	pthread_mutex_lock(&r->lock);
	s = waiting_for(r, p, from, &i);
	if (s) {
		s->at[i].nonce = 0;
		s->at[i].due_ns = resolver_now_ns() +
				  (entered ? p->lifetime_s * 1000 * RESOLVER_MS / 3 :
					     INTERVAL_MAX_NS);
		s->at[i].interval_ns = FIRST_NS;
	}
	pthread_mutex_unlock(&r->lock);
	/* The answer to a farewell is waited for by nobody. */
	if (!s && entered)
		count(&r->counters.unasked_replies);
	/* With one's own number: refused for want of room. */
	if (s && !entered && p->where.instance != r->config.self.instance &&
	    r->config.conflict)
		r->config.conflict(r->config.arg, p->id, &p->where);
}
