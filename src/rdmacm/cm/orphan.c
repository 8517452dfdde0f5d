/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines whose identifier is destroyed, and the end of the process. Over a network the peer
 * may not have got the last message: a DREQ or REJ is repeated until it is answered or nobody
 * can wait for it any more, and late messages of the connection are answered, so that they
 * begin no new one (IBA volume 1, 12.9.8.4, time-wait).
 *
 * One lock guards all orphans; nothing but sending happens under it. Programs add orphans, and
 * the progress thread removes them.
 */
#define LOG_ROOM "rdmacm"

#include <stdlib.h>
#include <time.h>

#include "rdmacm/cm/cm.h"
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
		link_send(o->link, &out->mad);
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

void orphan_adopt(struct cma_side *s)
{
	struct orphan *o;

	if (!s->link || !s->link->is_network || s->cm.state <= CM_LISTEN ||
	    s->cm.state == CM_DONE)
		return;
	o = calloc(1, sizeof(*o));
	if (!o) {
		log_warn("out of memory: a peer is not told again that its connection ended");
		return;
	}
	o->cm = s->cm;
	o->link = s->link;
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
	s->cm.state = CM_DONE;
	s->cm.deadline_ns = 0;
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

/* ---- end of the process ---- */

/*
 * At the exit of a program that has not called rdma_disconnect(), or called it just before, the
 * peers get a DREQ, which is repeated until they have confirmed it, for END_LOOKS * END_LOOK_NS
 * at most: no process is left afterwards that could repeat it.
 */
#define END_LOOKS 25
#define END_LOOK_NS 4000000
#define END_REPEAT_LOOKS 5

static struct {
	unsigned unconfirmed;
	bool repeats;
} ending;

static void tell_end(struct cma_side *s)
{
	struct cm_output out;
	uint8_t bytes[CM_MAD_SIZE];

	if (pthread_mutex_trylock(&s->id->lock))
		return;
	if (s->link && s->link->is_network &&
	    !cm_machine_ask(&s->cm, CM_DO_DESTROY, NULL, clock_monotonic_ns_slow(), &out) &&
	    out.send && !wire_cm_encode(&out.mad, bytes))
		link_network_send(s->link, bytes);
	pthread_mutex_unlock(&s->id->lock);
}

/* Has the peer not confirmed a DREQ? With `ending.repeats` it is sent again. */
static bool is_unconfirmed(struct cma_link *link, const struct cm_machine *m)
{
	uint8_t bytes[CM_MAD_SIZE];

	if (m->state != CM_DREQ_SENT)
		return false;
	if (ending.repeats && !wire_cm_encode(&m->sent, bytes))
		link_network_send(link, bytes);
	return true;
}

static void remind(struct cma_side *s)
{
	if (pthread_mutex_trylock(&s->id->lock))
		return;
	if (s->link && s->link->is_network)
		ending.unconfirmed += is_unconfirmed(s->link, &s->cm);
	pthread_mutex_unlock(&s->id->lock);
}

/* 0 if another thread is in the way. */
static unsigned orphans_remind(void)
{
	unsigned waiting = 0;

	if (pthread_mutex_trylock(&orphans.lock))
		return 0;
	list_for_each(o, &orphans.all, struct orphan, entry)
		waiting += is_unconfirmed(o->link, &o->cm);
	pthread_mutex_unlock(&orphans.lock);
	return waiting;
}

__attribute__((destructor)) static void orphans_end(void)
{
	const struct timespec look = { .tv_nsec = END_LOOK_NS };

	if (!link_network_is_open())
		return;
	route_each(tell_end);
	for (unsigned i = 0; i < END_LOOKS; i++) {
		ending.repeats = i && i % END_REPEAT_LOOKS == 0;
		ending.unconfirmed = orphans_remind();
		route_each(remind);
		if (!ending.unconfirmed)
			return;
		nanosleep(&look, NULL);
	}
}

static void orphans_forked(void)
{
	pthread_mutex_init(&orphans.lock, NULL);
	list_init(&orphans.all);
	orphans.rejected = 0;
	orphans.ready = false;
}

__attribute__((constructor)) static void orphans_load(void)
{
	pthread_atfork(NULL, NULL, orphans_forked);
}
