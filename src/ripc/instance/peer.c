/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other instances, and which of them has a service. A peer is remembered while something
 * refers to it: a route, a call, a connection, a long message on its way; and a while
 * longer, so that a message that is announced again after a break is known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"

#define FORGET_NS UINT64_C(60000000000)
/* Peers that nobody uses and that are remembered; with more the time is halved, often enough for
 * one connection after the other, each of another instance. */
#define KEPT_MAX 4096
#define HALVES 12

static struct list *head_of(struct list *table, uint64_t key)
{
	return &table[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (TABLE_SIZE - 1)];
}

/* ---- peers ---- */

static struct peer *find(struct ripc *r, uint64_t instance)
{
	struct list *head = head_of(r->peers, instance);

	for (struct list *e = head->next; e != head; e = e->next) {
		struct peer *p = list_entry(e, struct peer, entry);

		if (p->instance == instance)
			return p;
	}
	return NULL;
}

static struct peer *make_peer(struct ripc *r, uint64_t instance)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->r = r;
	p->instance = instance;
	p->used_ns = now_ns();
	p->epoch = atomic_fetch_add(&r->epochs, 1);
	/* The other side may remember more of us than we of it: never used before. */
	p->next_number = p->used_ns;
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->outstanding);
	list_init(&p->fetching);
	list_init(&p->targets);
	list_init(&p->controls);
	list_init(&p->held);
	list_init(&p->wish_entry);
	return p;
}

struct peer *peer_get(struct ripc *r, uint64_t instance, bool make)
{
	struct peer *fresh = NULL, *p;

	for (;;) {
		spin_lock(&r->table_lock);
		p = find(r, instance);
		if (!p && fresh) {
			p = fresh;
			fresh = NULL;
			list_push(head_of(r->peers, instance), &p->entry);
		}
		if (p)
			atomic_fetch_add(&p->users, 1);
		spin_unlock(&r->table_lock);
		if (p || !make)
			break;
		fresh = make_peer(r, instance);
		if (!fresh)
			break;
	}
	if (fresh) {
		pthread_mutex_destroy(&fresh->lock);
		free(fresh);
	}
	return p;
}

void peer_put(struct peer *p)
{
	atomic_fetch_sub(&p->users, 1);
}

static void peer_free(struct peer *p)
{
	struct list *e;

	targets_clear(p);
	held_clear(p);
	while ((e = list_pop(&p->controls)))
		free(list_entry(e, struct control, entry));
	if (p->ah)
		ibv_destroy_ah(p->ah);
	free(p->refused);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* After what time they are forgotten; table_lock. */
static uint64_t forget_after(struct ripc *r, uint64_t now)
{
	unsigned younger[HALVES] = { 0 }, half = 0;

	for (unsigned i = 0; i < TABLE_SIZE; i++)
		list_for_each(p, &r->peers[i], struct peer, entry)
			for (unsigned k = 0; k < HALVES && !atomic_load(&p->users); k++)
				younger[k] += now - p->used_ns <= FORGET_NS >> k;
	while (half < HALVES - 1 && younger[half] > KEPT_MAX)
		half++;
	return FORGET_NS >> half;
}

static uint64_t short_sent_to(const struct peer *p)
{
	return atomic_load_explicit(&p->short_sent, memory_order_relaxed);
}

uint64_t peers_short_sent(struct ripc *r)
{
	uint64_t n;

	spin_lock(&r->table_lock);
	/* Those that are not in the table any more are counted here. */
	n = atomic_load_explicit(&r->counters.short_sent, memory_order_relaxed);
	for (unsigned i = 0; i < TABLE_SIZE; i++)
		list_for_each(p, &r->peers[i], struct peer, entry)
			n += short_sent_to(p);
	spin_unlock(&r->table_lock);
	return n;
}

/* table_lock. Nobody uses it, peer_lock_known() included. */
static bool is_forgotten(struct peer *p, uint64_t now, uint64_t forget_ns)
{
	if (atomic_load(&p->users) || now - p->used_ns <= forget_ns ||
	    pthread_mutex_trylock(&p->lock))
		return false;
	pthread_mutex_unlock(&p->lock);
	return true;
}

void peers_sweep(struct ripc *r, bool all)
{
	uint64_t now = now_ns(), forget_ns;
	struct list gone, *e;

	list_init(&gone);
	spin_lock(&r->table_lock);
	forget_ns = forget_after(r, now);
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		for (e = r->peers[i].next; e != &r->peers[i];) {
			struct peer *p = list_entry(e, struct peer, entry);

			e = e->next;
			if (all || is_forgotten(p, now, forget_ns)) {
				COUNT(r, short_sent, short_sent_to(p));
				list_remove(&p->entry);
				list_push(&gone, &p->entry);
			}
		}
	}
	spin_unlock(&r->table_lock);
	while ((e = list_pop(&gone)))
		peer_free(list_entry(e, struct peer, entry));
}

/* ---- routes ---- */

/* table_lock */
static struct peer *known(struct ripc *r, uint32_t id)
{
	struct list *head = head_of(r->routes, id);

	for (struct list *e = head->next; e != head; e = e->next) {
		struct route *route = list_entry(e, struct route, entry);

		if (route->id == id)
			return route->peer;
	}
	return NULL;
}

struct peer *route_find(struct ripc *r, uint32_t id)
{
	struct peer *p;

	spin_lock(&r->table_lock);
	p = known(r, id);
	if (p)
		atomic_fetch_add(&p->users, 1);
	spin_unlock(&r->table_lock);
	return p;
}

/* table_lock. Looks it up where it was not the last one, or something has changed since. */
static struct peer *peer_of(struct ripc_service *s, uint32_t to, bool *closed)
{
	struct ripc *r = s->r;
	unsigned changes = atomic_load_explicit(&r->table_changes, memory_order_relaxed);

	*closed = false;
	if (likely(s->to_peer && s->to == to && s->to_changes == changes))
		return s->to_peer;
	*closed = service_here(r, s->id) != s;
	if (*closed)
		return NULL;
	s->to_peer = service_here(r, to) ? NULL : known(r, to);
	s->to = to;
	s->to_changes = changes;
	return s->to_peer;
}

int peer_lock_known(struct ripc_service *s, uint32_t to, struct peer **out)
{
	struct ripc *r = s->r;
	uint32_t from = s->id;
	struct peer *p;
	bool closed;

	spin_lock(&r->table_lock);
	p = peer_of(s, to, &closed);
	/* Not waited for: peers are locked before the table. */
	if (p && pthread_mutex_trylock(&p->lock))
		p = NULL;
	if (p && p->state != PEER_UP) {
		pthread_mutex_unlock(&p->lock);
		p = NULL;
	}
	if (!p && !closed)
		service_use(s);
	spin_unlock(&r->table_lock);
	*out = p;
	return closed ? ripc_fail(-EBADF, "service %#x was closed", from) : 0;
}

/* Each of the peers of one head of the table was unlocked at some time during the call. */
static bool head_passes(struct ripc *r, unsigned head)
{
	bool passes = true;

	spin_lock(&r->table_lock);
	list_for_each(p, &r->peers[head], struct peer, entry) {
		if (pthread_mutex_trylock(&p->lock))
			passes = false;
		else
			pthread_mutex_unlock(&p->lock);
	}
	spin_unlock(&r->table_lock);
	return passes;
}

void peers_pass(struct ripc *r)
{
	unsigned tries = 0;

	for (unsigned i = 0; i < TABLE_SIZE; i++)
		while (!head_passes(r, i))
			spin_wait(++tries);
}

void routes_forget(struct ripc *r, uint32_t id, const struct peer *p)
{
	unsigned first = p ? 0 : (unsigned)(head_of(r->routes, id) - r->routes);
	unsigned last = p ? TABLE_SIZE - 1 : first;
	struct list gone, *e;

	list_init(&gone);
	spin_lock(&r->table_lock);
	for (unsigned i = first; i <= last; i++) {
		for (e = r->routes[i].next; e != &r->routes[i];) {
			struct route *route = list_entry(e, struct route, entry);

			e = e->next;
			if (p ? route->peer == p : route->id == id) {
				list_remove(&route->entry);
				list_push(&gone, &route->entry);
				atomic_fetch_add(&r->table_changes, 1);
			}
		}
	}
	spin_unlock(&r->table_lock);
	while ((e = list_pop(&gone))) {
		struct route *route = list_entry(e, struct route, entry);

		peer_put(route->peer);
		free(route);
	}
}

void routes_forget_all(struct ripc *r)
{
	for (unsigned i = 0; i < TABLE_SIZE;) {
		struct list *head = &r->routes[i];
		bool more;
		uint32_t id = 0;

		spin_lock(&r->table_lock);
		more = !list_empty(head);
		if (more)
			id = list_entry(head->next, struct route, entry)->id;
		spin_unlock(&r->table_lock);
		if (more)
			routes_forget(r, id, NULL);
		else
			i++;
	}
}

static void route_add(struct ripc *r, uint32_t id, struct peer *p)
{
	struct route *route = malloc(sizeof(*route));

	routes_forget(r, id, NULL);
	if (!route)
		return; /* asked for again */
	*route = (struct route){ .id = id, .peer = p };
	atomic_fetch_add(&p->users, 1);
	spin_lock(&r->table_lock);
	list_push(head_of(r->routes, id), &route->entry);
	atomic_fetch_add(&r->table_changes, 1);
	spin_unlock(&r->table_lock);
}

int peer_of_service(struct ripc *r, uint32_t from, uint32_t to, struct peer **out)
{
	struct packet_where where;
	int ret;

	*out = route_find(r, to);
	if (*out)
		return 0;
	ret = resolver_find(r->resolver, from, to, r->config.c.resolve_timeout_ms, &where);
	if (ret)
		return ripc_fail(ret == -ESHUTDOWN ? -EBADF : ret,
				 "service %#x: nobody has answered for it within %u ms", to,
				 r->config.c.resolve_timeout_ms);
	*out = peer_get(r, where.instance, true);
	if (!*out)
		return ripc_fail(-ENOBUFS, "no memory for a peer");
	pthread_mutex_lock(&(*out)->lock);
	(*out)->where = where;
	pthread_mutex_unlock(&(*out)->lock);
	route_add(r, to, *out);
	return 0;
}

union sockaddr_any sockaddr_of(const struct packet_where *w)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	union sockaddr_any a = { .any.sa_family = AF_UNSPEC };

	if (!memcmp(w->address, mapped, sizeof(mapped))) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(w->port);
		memcpy(&a.v4.sin_addr, w->address + 12, 4);
	} else {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(w->port);
		memcpy(&a.v6.sin6_addr, w->address, 16);
	}
	return a;
}

/* ---- where a service is ---- */

int ripc_where(struct ripc *r, uint32_t id, int timeout_ms, struct ripc_where *out)
{
	struct packet_where where;
	union sockaddr_any at;
	int ret = r ? 0 : ripc_default(&r);

	if (ret)
		return ret;
	if (!id || !out)
		return ripc_fail(-EINVAL, "no service, or no place for the result");
	if (service_has(r, &id, NULL)) {
		memcpy(&at, rdma_get_local_addr(r->listener), sizeof(at));
		*out = (struct ripc_where){ .instance = r->number, .datagrams = r->device.ud };
	} else {
		ret = resolver_find(r->resolver, 0, id,
				    timeout_ms < 0 ? r->config.c.resolve_timeout_ms :
						     (unsigned)timeout_ms, &where);
		if (ret)
			return ripc_fail(ret, "nobody has answered for service %#x", id);
		at = sockaddr_of(&where);
		*out = (struct ripc_where){ .instance = where.instance,
					    .datagrams = where.ud_qpn };
	}
	address_text(&at, out->address, sizeof(out->address));
	return 0;
}

/* ---- connected ---- */

static bool is_decided(void *arg)
{
	struct peer *p = arg;
	bool decided;

	pthread_mutex_lock(&p->lock);
	decided = p->state == PEER_UP || p->failure;
	pthread_mutex_unlock(&p->lock);
	return decided;
}

void peer_wish(struct peer *p)
{
	struct ripc *r = p->r;
	bool fresh;

	spin_lock(&r->table_lock);
	fresh = !p->wished;
	if (fresh) {
		p->wished = true;
		list_push(&r->wishes, &p->wish_entry);
		atomic_fetch_add(&p->users, 1);
	}
	spin_unlock(&r->table_lock);
	if (fresh)
		thread_wake(r);
}

static int explain(const struct peer *p, int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return ripc_fail(err, "connecting took longer than %u ms",
				 p->r->config.c.connect_timeout_ms);
	case -ECONNREFUSED:
		return ripc_fail(err, "the peer refuses the connection");
	case -ENOBUFS:
		return ripc_fail(err, "no room for one more connection");
	default:
		return ripc_fail(err, "connecting failed: %s", strerror(-err));
	}
}

/* p->lock, which is given up while it waits. */
static int wait_connected(struct peer *p)
{
	uint64_t limit = now_ns() + p->r->config.c.connect_timeout_ms * UINT64_C(1000000);
	int ret = 0;

	p->waiting++;
	/* Again where the connection came and has gone before this thread saw it. */
	while (p->state != PEER_UP && !ret) {
		p->failure = 0;
		pthread_mutex_unlock(&p->lock);
		peer_wish(p);
		ret = wait_until(p->r, &p->event, is_decided, p, limit) ? -ETIMEDOUT : 0;
		pthread_mutex_lock(&p->lock);
		if (!ret)
			ret = p->failure;
	}
	p->waiting--;
	return p->state == PEER_UP ? 0 : ret;
}

int peer_lock_connected(struct peer *p)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = wait_connected(p);
	if (!ret)
		return 0;
	pthread_mutex_unlock(&p->lock);
	return explain(p, ret);
}
