/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of messages that came over a link, and of links that ended. On the progress
 * thread. */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "rdmacm/cm/cm.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"
#include "verbs/private.h"
#include "wire/cm_answer.h"

/* A request that comes behind its listener waits for the next one as long as one for a service that
 * nobody serves (transport/roce/dispatch.h). */
#define HOLD_NS UINT64_C(500000000)
#define LOOK_NS UINT64_C(5000000)
#define HELD_MAX 64

struct held {
	struct list entry;
	struct cma_link *link;
	struct cm_mad mad;
	uint64_t until_ns;
};

/* Of the progress thread. */
static struct {
	struct list list; /* struct held */
	unsigned count;
	struct progress_timer timer;
	bool ready;
} held = { .list = { &held.list, &held.list } };

static void answer(struct cma_link *link, const struct cm_mad *mad)
{
	struct cm_mad reply;

	if (wire_cm_stray_answer(mad, &reply))
		log_debug("%s for no connection of ours dropped",
			  wire_cm_name(mad->type));
	else
		link_send(link, &reply);
}

static void refuse(struct cma_link *link, const struct cm_mad *mad, int reason)
{
	struct cm_mad reply;

	if (!wire_cm_refusal(mad, reason, &reply))
		link_send(link, &reply);
}

/* An input of the identifier that route.c has found; releases it. */
static int input_give(struct cma_side *s, enum cm_input input, const struct cm_mad *mad)
{
	int ret;

	pthread_mutex_lock(&s->id->lock);
	ret = cma_conn_input(s->id, input, mad);
	pthread_mutex_unlock(&s->id->lock);
	route_release();
	return ret;
}

/* If the peer's QP has a connection already, ends that one and rejects the request. */
static bool make_stale(struct cma_link *link, const struct cm_mad *mad)
{
	struct cma_side *s = mad->type == CM_REQ ? route_lookup(link, mad, true) : NULL;
	static struct log_limit limit;

	if (!s || input_give(s, CM_GOT_STALE, NULL))
		return false;
	log_limited(LOG_INFO, &limit, clock_monotonic_ns_slow(),
		    "peer's qp 0x%06x requests another connection: its old one is ended",
		    mad->req.local_qpn);
	refuse(link, mad, CM_REASON_STALE_CONNECTION);
	return true;
}

/* 0; or enum cm_reason, of which CM_REASON_INVALID_SERVICE_ID: nobody listens. */
static int give(struct cma_link *link, const struct cm_mad *mad)
{
	int reason = CM_REASON_INVALID_SERVICE_ID;
	struct cma_side *listener = route_lookup_listener(mad, cma_conn_matches);

	if (!listener)
		return reason;
	pthread_mutex_lock(&listener->id->lock);
	if (listener->cm.state == CM_LISTEN)
		reason = cma_conn_request(listener->id, mad, link);
	pthread_mutex_unlock(&listener->id->lock);
	route_release();
	return reason;
}

static uint32_t number_of(const struct cm_mad *mad)
{
	return mad->type == CM_SIDR_REQ ? mad->sidr_req.request_id : mad->req.local_comm_id;
}

static struct held *held_find(const struct cma_link *link, uint8_t type, uint32_t number)
{
	list_for_each(h, &held.list, struct held, entry)
		if (h->link->peer == link->peer && h->mad.type == type &&
		    number_of(&h->mad) == number)
			return h;
	return NULL;
}

static void held_free(struct held *h)
{
	list_remove(&h->entry);
	held.count--;
	link_put(h->link);
	free(h);
}

static void look_again(struct progress_timer *t)
{
	const uint64_t now = clock_monotonic_ns_slow();
	struct list turn, *entry;

	list_init(&turn);
	list_splice(&turn, &held.list);
	while ((entry = list_pop(&turn))) {
		struct held *h = list_entry(entry, struct held, entry);
		int reason = h->link->gone ? 0 : give(h->link, &h->mad);

		list_push(&held.list, &h->entry);
		if (reason == CM_REASON_INVALID_SERVICE_ID && now < h->until_ns)
			continue;
		if (reason)
			refuse(h->link, &h->mad, reason);
		held_free(h);
	}
	if (held.count)
		busbar_progress_timer_arm(t, now + LOOK_NS);
}

/* False: it cannot wait. */
static bool hold(struct cma_link *link, const struct cm_mad *mad)
{
	const uint64_t now = clock_monotonic_ns_slow();
	struct held *h;

	if (held_find(link, mad->type, number_of(mad)))
		return true;
	h = held.count < HELD_MAX ? calloc(1, sizeof(*h)) : NULL;
	if (!h)
		return false;
	if (!held.ready)
		busbar_progress_timer_init(&held.timer, look_again);
	held.ready = true;
	link_hold(link);
	h->link = link;
	h->mad = *mad;
	h->until_ns = now + HOLD_NS;
	if (!held.count++)
		busbar_progress_timer_arm(&held.timer, now + LOOK_NS);
	list_push(&held.list, &h->entry);
	return true;
}

/* The caller has given up. */
static void held_drop(const struct cma_link *link, uint32_t number)
{
	struct held *h = held_find(link, CM_REQ, number);

	if (h)
		held_free(h);
}

static void request(struct cma_link *link, const struct cm_mad *mad)
{
	int reason;

	if (make_stale(link, mad))
		return;
	reason = give(link, mad);
	/* Its listener was there a moment ago: programs that call twice meet one that is opened again. */
	if (reason == CM_REASON_INVALID_SERVICE_ID && hold(link, mad))
		return;
	if (reason)
		refuse(link, mad, reason);
}

static void refused(struct cma_link *link, const struct cm_mad *mad)
{
	refuse(link, mad, CM_REASON_CONSUMER);
}

static void message(struct cma_link *link, const struct cm_mad *mad)
{
	struct cma_side *s = route_lookup(link, mad, false);
	int ret;

	if (s) {
		ret = input_give(s, cm_state_input_of(mad), mad);
		/* A DREQ is confirmed in every state. */
		if (ret == -EPROTO && mad->type == CM_DREQ)
			answer(link, mad);
		if (ret != -ENOENT)
			return;
	}
	if (link->is_network && orphan_message(link, mad))
		return;
	if (mad->type == CM_REJ)
		held_drop(link, mad->rej.local_comm_id);
	if (s) {
		answer(link, mad);
	} else if (mad->type == CM_REQ || mad->type == CM_SIDR_REQ) {
		request(link, mad);
	} else {
		answer(link, mad);
	}
}

static void gone(struct cma_link *link)
{
	struct cma_side *s;

	route_end(link);
	while ((s = route_pop(link))) {
		pthread_mutex_lock(&s->id->lock);
		s->link = NULL;
		cma_conn_input(s->id, CM_PEER_GONE, NULL);
		pthread_mutex_unlock(&s->id->lock);
		route_release();
		link_put(link);
	}
}

/* The links are those of the parent. */
static void receive_forked(void)
{
	list_init(&held.list);
	held.count = 0;
	held.ready = false;
}

__attribute__((constructor)) static void receive_load(void)
{
	static const struct link_reader reader = { message, refused, gone };

	pthread_atfork(NULL, NULL, receive_forked);
	link_reader = &reader;
}
