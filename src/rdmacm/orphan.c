/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines whose identifier is destroyed. Over a network the peer may not have got the last
 * message: a DREQ or REJ is repeated until it is answered or nobody can wait for it any
 * more, and late messages of the connection are answered, so that they begin no new one
 * (IBA volume 1, 12.9.8.4, time-wait).
 *
 * One lock guards all orphans; nothing but sending happens under it. Programs add orphans,
 * and the progress thread removes them.
 */
#define LOG_ROOM "rdmacm"
#include <stdlib.h>

#include "rdmacm/network.h"
#include "util/clock.h"
#include "util/log.h"
#include "verbs/private.h"

/* Rejected requests that are remembered. The limit is needed because strangers can send any
 * number of requests. */
#define REJECTED_MAX 1024

struct orphan {
	struct list entry;
	bool rejected;
	struct cm_machine cm;
	struct cm_entry route;
	struct cma_link *link;
	struct progress_timer timer;
};

static struct {
	pthread_mutex_t lock;
	bool ready;
	struct cm_table table;
	struct list all;
	unsigned rejected;
} orphans = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.all = { &orphans.all, &orphans.all },
};

/* The lock is held for this and the next two. Frees the orphan if it is done; then, if it is
 * in the list, on the progress thread. */
static void settle(struct orphan *o)
{
	if (o->cm.state != CM_DONE) {
		cm_table_update(&orphans.table, &o->route, o->link->peer, &o->cm);
		if (o->cm.deadline_ns)
			busbar_progress_timer_arm(&o->timer, o->cm.deadline_ns);
		else
			busbar_progress_timer_disarm(&o->timer);
		return;
	}
	busbar_progress_timer_disarm(&o->timer);
	cm_table_remove(&o->route);
	list_remove(&o->entry);
	orphans.rejected -= o->rejected;
	link_put(o->link);
	free(o);
}

static void take(struct orphan *o, const struct cm_output *out)
{
	if (out->send)
		cma_link_send(o->link, &out->mad);
	settle(o);
}

/* On the progress thread. */
static void expired(struct progress_timer *t)
{
	struct orphan *o = container_of(t, struct orphan, timer);
	struct cm_output out;

	pthread_mutex_lock(&orphans.lock);
	if (!cm_machine_tick(&o->cm, clock_monotonic_ns_slow(), &out))
		take(o, &out);
	else
		settle(o);
	pthread_mutex_unlock(&orphans.lock);
}

void orphan_adopt(struct cma_id *id)
{
	struct orphan *o;

	if (!id->link || !id->link->is_network || id->cm.state <= CM_LISTEN ||
	    id->cm.state == CM_DONE)
		return;
	o = calloc(1, sizeof(*o));
	if (!o) {
		log_warn("out of memory: a peer is not told again that its connection ended");
		return;
	}
	o->cm = id->cm;
	o->link = id->link;
	link_hold(o->link);
	list_init(&o->entry);
	cm_entry_init(&o->route);
	busbar_progress_timer_init(&o->timer, expired);
	o->rejected = o->cm.state == CM_ANSWERED;
	pthread_mutex_lock(&orphans.lock);
	if (!orphans.ready)
		cm_table_init(&orphans.table);
	orphans.ready = true;
	orphans.rejected += o->rejected;
	/* Beyond the limit the rejection is sent once and forgotten at once: if the caller
	 * repeats the request, that counts as a new one. */
	if (orphans.rejected > REJECTED_MAX && o->rejected)
		o->cm.state = CM_DONE;
	list_push(&orphans.all, &o->entry);
	settle(o);
	pthread_mutex_unlock(&orphans.lock);
	id->cm.state = CM_DONE;
	id->cm.deadline_ns = 0;
}

bool orphan_message(struct cma_link *link, const struct cm_mad *mad)
{
	struct cm_entry *e = NULL;
	struct cm_output out;
	struct orphan *o;
	int ret = -ENOENT;

	pthread_mutex_lock(&orphans.lock);
	if (orphans.ready)
		e = cm_table_find(&orphans.table, link->peer, mad);
	if (e) {
		o = container_of(e, struct orphan, route);
		ret = cm_machine_receive(&o->cm, mad, clock_monotonic_ns_slow(), &out);
		if (!ret)
			take(o, &out);
	}
	pthread_mutex_unlock(&orphans.lock);
	return ret != -ENOENT;
}

unsigned orphans_remind(bool repeats)
{
	unsigned waiting = 0;

	if (pthread_mutex_trylock(&orphans.lock))
		return 0;
	list_for_each(o, &orphans.all, struct orphan, entry)
		waiting += network_remind(o->link, &o->cm, repeats);
	pthread_mutex_unlock(&orphans.lock);
	return waiting;
}

void orphans_forked(void)
{
	pthread_mutex_init(&orphans.lock, NULL);
	list_init(&orphans.all);
	orphans.rejected = 0;
	orphans.ready = false;
}
