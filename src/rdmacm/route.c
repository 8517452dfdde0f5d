/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the identifier for a message that came over a link. One link of link.c carries
 * the messages of all connections between two processes; one of network.c leads to an
 * address.
 *
 * `route.lock` guards the lists and the table; no other lock is taken inside of it.
 * The identifier that is found is stored in `busy` under this lock, and is then
 * changed under its own lock; route_forget() waits until `busy` is another one.
 * Only the progress thread sets `busy`, so one variable is enough.
 */
#define LOG_ROOM "rdmacm"
#include <string.h>

#include "rdmacm/link.h"
#include "rdmacm/network.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"
#include "verbs/private.h"
#include "wire/cm_answer.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct cma_id *busy;
	bool ready;
	struct list links, listeners;
	struct cm_table table;
} route = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.links = { &route.links, &route.links },
	.listeners = { &route.listeners, &route.listeners },
};

/* route.lock is held. */
static void ready(void)
{
	if (!route.ready)
		cm_table_init(&route.table);
	route.ready = true;
}

/* Clears `busy` and wakes route_forget(). */
static void idle(void)
{
	pthread_mutex_lock(&route.lock);
	route.busy = NULL;
	pthread_cond_broadcast(&route.idle);
	pthread_mutex_unlock(&route.lock);
}

/* ---- links ---- */

void route_add(struct cma_link *link)
{
	pthread_mutex_lock(&route.lock);
	ready();
	list_push(&route.links, &link->entry);
	pthread_mutex_unlock(&route.lock);
}

unsigned route_links_of(uid_t uid)
{
	unsigned count = 0;

	pthread_mutex_lock(&route.lock);
	list_for_each(link, &route.links, struct cma_link, entry)
		count += link->uid == uid;
	pthread_mutex_unlock(&route.lock);
	return count;
}

struct cma_link *route_to_process(pid_t pid)
{
	struct cma_link *found = NULL;

	pthread_mutex_lock(&route.lock);
	list_for_each(link, &route.links, struct cma_link, entry) {
		if (!pid || link->pid != pid || !atomic_load(&link->in_use))
			continue;
		link_hold(link);
		found = link;
		break;
	}
	pthread_mutex_unlock(&route.lock);
	return found;
}

static struct cma_id *pop_user(struct cma_link *link)
{
	struct list *entry;

	pthread_mutex_lock(&route.lock);
	entry = list_pop(&link->ids);
	route.busy = entry ? list_entry(entry, struct cma_id, link_entry) : NULL;
	if (route.busy)
		cm_table_remove(&route.busy->route);
	pthread_mutex_unlock(&route.lock);
	return route.busy;
}

void route_gone(struct cma_link *link)
{
	struct cma_id *id;

	pthread_mutex_lock(&route.lock);
	link->gone = true;
	list_remove(&link->entry);
	pthread_mutex_unlock(&route.lock);
	while ((id = pop_user(link))) {
		pthread_mutex_lock(&id->lock);
		id->link = NULL;
		cma_conn_input(id, CM_PEER_GONE, NULL);
		pthread_mutex_unlock(&id->lock);
		idle();
		link_put(link);
	}
}

int cma_link_attach(struct cma_id *id, struct cma_link *link)
{
	int ret = 0;

	pthread_mutex_lock(&route.lock);
	ready();
	if (link->gone) {
		ret = -ECONNRESET;
	} else {
		if (link->is_network)
			id->cm.local_comm_id = network_comm_id(id->cm.local_comm_id);
		list_push(&link->ids, &id->link_entry);
		cm_table_update(&route.table, &id->route, link->peer, &id->cm);
	}
	pthread_mutex_unlock(&route.lock);
	if (ret)
		return ret;
	link_hold(link);
	id->link = link;
	return 0;
}

void route_update(struct cma_id *id)
{
	if (!id->link)
		return;
	pthread_mutex_lock(&route.lock);
	/* An identifier that was taken off an ended link is not in the table. */
	if (!list_empty(&id->link_entry))
		cm_table_update(&route.table, &id->route, id->link->peer,
				&id->cm);
	pthread_mutex_unlock(&route.lock);
}

void route_listen(struct cma_id *listener)
{
	pthread_mutex_lock(&route.lock);
	ready();
	list_push(&route.listeners, &listener->listen_entry);
	pthread_mutex_unlock(&route.lock);
}

void route_unlisten(struct cma_id *listener)
{
	pthread_mutex_lock(&route.lock);
	list_remove(&listener->listen_entry);
	pthread_mutex_unlock(&route.lock);
}

void route_forget(struct cma_id *id)
{
	pthread_mutex_lock(&route.lock);
	cm_table_remove(&id->route);
	list_remove(&id->link_entry);
	list_remove(&id->listen_entry);
	while (route.busy == id && !busbar_progress_is_self())
		pthread_cond_wait(&route.idle, &route.lock);
	pthread_mutex_unlock(&route.lock);
}

void route_each(void (*fn)(struct cma_id *id))
{
	if (pthread_mutex_trylock(&route.lock))
		return;
	for (unsigned i = 0; route.ready && i < CM_TABLE_BUCKETS; i++)
		list_for_each(e, &route.table.by_local[i], struct cm_entry, by_local)
			fn(container_of(e, struct cma_id, route));
	pthread_mutex_unlock(&route.lock);
}

void route_forked(void (*fn)(struct cma_link *link))
{
	pthread_mutex_init(&route.lock, NULL);
	pthread_cond_init(&route.idle, NULL);
	route.busy = NULL;
	route.ready = false;
	list_for_each(link, &route.links, struct cma_link, entry)
		fn(link);
	/* Otherwise the child would hold the names of its parent's listeners: callers would reach
	 * them after the parent has closed them, and get no answer. */
	list_for_each(listener, &route.listeners, struct cma_id, listen_entry)
		cma_port_release(listener);
	list_init(&route.links);
	list_init(&route.listeners);
}

/* ---- messages ---- */

static void answer(struct cma_link *link, const struct cm_mad *mad)
{
	struct cm_mad reply;

	if (wire_cm_stray_answer(mad, &reply))
		log_debug("%s for no connection of ours dropped",
			  wire_cm_name(mad->type));
	else
		cma_link_send(link, &reply);
}

static void refuse(struct cma_link *link, const struct cm_mad *mad, int reason)
{
	struct cm_mad reply;

	if (!wire_cm_refusal(mad, reason, &reply))
		cma_link_send(link, &reply);
}

/* Stores the identifier for the message in `busy` and returns it; or NULL. With
 * `stale`: the one whose connection a REQ makes stale. */
static struct cma_id *find(struct cma_link *link, const struct cm_mad *mad,
			   bool stale)
{
	struct cm_entry *e;
	struct cma_id *id;

	pthread_mutex_lock(&route.lock);
	/* From a network a message may come before this process has any connection. */
	ready();
	e = stale ? cm_table_find_stale(&route.table, link->peer, mad) :
		    cm_table_find(&route.table, link->peer, mad);
	id = e ? container_of(e, struct cma_id, route) : NULL;
	route.busy = id;
	pthread_mutex_unlock(&route.lock);
	return id;
}

/* The listener that matches the request best, also stored in `busy`; or NULL. */
static struct cma_id *find_listener(const struct cm_mad *mad)
{
	struct cma_id *best = NULL;
	unsigned how_well = 0;

	pthread_mutex_lock(&route.lock);
	list_for_each(l, &route.listeners, struct cma_id, listen_entry) {
		unsigned match = cma_conn_matches(l, mad);

		if (match <= how_well)
			continue;
		how_well = match;
		best = l;
	}
	route.busy = best;
	pthread_mutex_unlock(&route.lock);
	return best;
}

/* If the peer's QP has a connection already, ends that one and rejects the request. */
static bool make_stale(struct cma_link *link, const struct cm_mad *mad)
{
	struct cma_id *id = mad->type == CM_REQ ? find(link, mad, true) : NULL;
	static struct log_limit limit;
	int ret;

	if (!id)
		return false;
	pthread_mutex_lock(&id->lock);
	ret = cma_conn_input(id, CM_GOT_STALE, NULL);
	pthread_mutex_unlock(&id->lock);
	idle();
	if (ret)
		return false;
	log_limited(LOG_INFO, &limit, clock_monotonic_ns_slow(),
		    "peer's qp 0x%06x requests another connection: its old one is ended",
		    mad->req.local_qpn);
	refuse(link, mad, CM_REASON_STALE_CONNECTION);
	return true;
}

static void request(struct cma_link *link, const struct cm_mad *mad)
{
	int reason = CM_REASON_INVALID_SERVICE_ID;
	struct cma_id *listener;

	if (make_stale(link, mad))
		return;
	listener = find_listener(mad);
	if (listener) {
		pthread_mutex_lock(&listener->lock);
		if (listener->cm.state == CM_LISTEN)
			reason = cma_conn_request(listener, mad, link);
		pthread_mutex_unlock(&listener->lock);
		idle();
	}
	if (reason)
		refuse(link, mad, reason);
}

void route_refuse(struct cma_link *link, const struct cm_mad *mad)
{
	refuse(link, mad, CM_REASON_CONSUMER);
}

void route_message(struct cma_link *link, const struct cm_mad *mad)
{
	struct cma_id *id = find(link, mad, false);
	int ret;

	if (id) {
		pthread_mutex_lock(&id->lock);
		ret = cma_conn_input(id, cm_state_input_of(mad), mad);
		pthread_mutex_unlock(&id->lock);
		idle();
		/* A DREQ is confirmed in every state. */
		if (ret == -EPROTO && mad->type == CM_DREQ)
			answer(link, mad);
		if (ret != -ENOENT)
			return;
	}
	if (link->is_network && orphan_message(link, mad))
		return;
	if (id) {
		answer(link, mad);
	} else if (mad->type == CM_REQ || mad->type == CM_SIDR_REQ) {
		request(link, mad);
	} else {
		answer(link, mad);
	}
}
