/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of messages that came over a link, and of links that ended. On the progress
 * thread. */
#define LOG_ROOM "rdmacm"
#include <errno.h>

#include "rdmacm/cm/cm.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"
#include "wire/cm_answer.h"

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

static void request(struct cma_link *link, const struct cm_mad *mad)
{
	int reason = CM_REASON_INVALID_SERVICE_ID;
	struct cma_side *listener;

	if (make_stale(link, mad))
		return;
	listener = route_lookup_listener(mad, cma_conn_matches);
	if (listener) {
		pthread_mutex_lock(&listener->id->lock);
		if (listener->cm.state == CM_LISTEN)
			reason = cma_conn_request(listener->id, mad, link);
		pthread_mutex_unlock(&listener->id->lock);
		route_release();
	}
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

__attribute__((constructor)) static void receive_load(void)
{
	static const struct link_reader reader = { message, refused, gone };

	link_reader = &reader;
}
