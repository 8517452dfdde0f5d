/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the identifier for a message that came over a link. One link of the host carries
 * the messages of all connections between two processes; one of the network leads to an
 * address.
 *
 * `route.lock` guards the lists and the table; no other lock is taken inside of it.
 * The identifier that is found is stored in `busy` under this lock, and is then
 * changed under its own lock; route_forget() waits until `busy` is another one.
 * Only the progress thread sets `busy`, so one variable is enough.
 */
#define LOG_ROOM "rdmacm"

#include <errno.h>

#include "rdmacm/cm/cm.h"
#include "rdmacm/id/port.h"
#include "verbs/private.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct cma_side *busy;
	bool ready;
	struct list listeners;
	struct cm_table table;
} route = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.listeners = { &route.listeners, &route.listeners },
};

/* route.lock is held. */
static void ready(void)
{
	if (!route.ready)
		cm_table_init(&route.table);
	route.ready = true;
}

void route_release(void)
{
	pthread_mutex_lock(&route.lock);
	route.busy = NULL;
	pthread_cond_broadcast(&route.idle);
	pthread_mutex_unlock(&route.lock);
}

void route_end(struct cma_link *link)
{
	pthread_mutex_lock(&route.lock);
	link->gone = true;
	pthread_mutex_unlock(&route.lock);
}

struct cma_side *route_pop(struct cma_link *link)
{
	struct list *entry;

	pthread_mutex_lock(&route.lock);
	entry = list_pop(&link->ids);
	route.busy = entry ? list_entry(entry, struct cma_side, link_entry) : NULL;
	if (route.busy)
		cm_table_remove(&route.busy->route);
	pthread_mutex_unlock(&route.lock);
	return route.busy;
}

int route_attach(struct cma_side *s, struct cma_link *link)
{
	int ret = 0;

	pthread_mutex_lock(&route.lock);
	ready();
	if (link->gone) {
		ret = -ECONNRESET;
	} else {
		if (link->is_network)
			s->cm.local_comm_id = busbar_gsi_comm_id(s->cm.local_comm_id);
		list_push(&link->ids, &s->link_entry);
		cm_table_update(&route.table, &s->route, link->peer, &s->cm);
	}
	pthread_mutex_unlock(&route.lock);
	if (ret)
		return ret;
	link_hold(link);
	s->link = link;
	return 0;
}

void route_update(struct cma_side *s)
{
	if (!s->link)
		return;
	pthread_mutex_lock(&route.lock);
	/* An identifier that was taken off an ended link is not in the table. */
	if (!list_empty(&s->link_entry))
		cm_table_update(&route.table, &s->route, s->link->peer, &s->cm);
	pthread_mutex_unlock(&route.lock);
}

void route_listen(struct cma_side *listener)
{
	pthread_mutex_lock(&route.lock);
	ready();
	list_push(&route.listeners, &listener->listen_entry);
	pthread_mutex_unlock(&route.lock);
}

void route_unlisten(struct cma_side *listener)
{
	pthread_mutex_lock(&route.lock);
	list_remove(&listener->listen_entry);
	pthread_mutex_unlock(&route.lock);
}

void route_forget(struct cma_side *s)
{
	pthread_mutex_lock(&route.lock);
	cm_table_remove(&s->route);
	list_remove(&s->link_entry);
	list_remove(&s->listen_entry);
	while (route.busy == s && !busbar_progress_is_self())
		pthread_cond_wait(&route.idle, &route.lock);
	pthread_mutex_unlock(&route.lock);
}

void route_each(void (*fn)(struct cma_side *s))
{
	if (pthread_mutex_trylock(&route.lock))
		return;
	for (unsigned i = 0; route.ready && i < CM_TABLE_BUCKETS; i++)
		list_for_each(e, &route.table.by_local[i], struct cm_entry, by_local)
			fn(container_of(e, struct cma_side, route));
	pthread_mutex_unlock(&route.lock);
}

struct cma_side *route_lookup(struct cma_link *link, const struct cm_mad *mad, bool stale)
{
	struct cm_entry *e;
	struct cma_side *s;

	pthread_mutex_lock(&route.lock);
	/* From a network a message may come before this process has any connection. */
	ready();
	e = stale ? cm_table_find_stale(&route.table, link->peer, mad) :
		    cm_table_find(&route.table, link->peer, mad);
	s = e ? container_of(e, struct cma_side, route) : NULL;
	route.busy = s;
	pthread_mutex_unlock(&route.lock);
	return s;
}

struct cma_side *route_lookup_listener(const struct cm_mad *mad,
				     unsigned (*match)(const struct cma_id *listener,
						       const struct cm_mad *mad))
{
	struct cma_side *best = NULL;
	unsigned how_well = 0;

	pthread_mutex_lock(&route.lock);
	list_for_each(l, &route.listeners, struct cma_side, listen_entry) {
		unsigned well = match(l->id, mad);

		if (well <= how_well)
			continue;
		how_well = well;
		best = l;
	}
	route.busy = best;
	pthread_mutex_unlock(&route.lock);
	return best;
}

static void route_forked(void)
{
	pthread_mutex_init(&route.lock, NULL);
	pthread_cond_init(&route.idle, NULL);
	route.busy = NULL;
	route.ready = false;
	/* Otherwise the child would hold the names of its parent's listeners: callers would reach
	 * them after the parent has closed them, and get no answer. */
	list_for_each(listener, &route.listeners, struct cma_side, listen_entry)
		cma_port_release(listener->id);
	list_init(&route.listeners);
}

__attribute__((constructor)) static void route_load(void)
{
	pthread_atfork(NULL, NULL, route_forked);
}
