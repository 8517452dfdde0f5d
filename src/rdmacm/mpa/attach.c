/* SPDX-License-Identifier: BSD-2-Clause */
/* From the set-up to the queue pair, and what the program is told about the connection. */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/path/stream.h"
#include "rdmacm/base/base.h"
#include "rdmacm/mpa/mpa.h"
#include "rdmacm/qp/qp.h"
#include "util/log.h"
#include "verbs/private.h"

/* How long a responder waits for the first message of the initiator. */
#define BEGIN_NS (10 * UINT64_C(1000000000))

/* ---- the stream ---- */

/* On the progress thread. */
static void on_stream(void *arg, enum hca_stream_event event)
{
	struct mpa_side *s = arg;
	struct cma_id *id = s->id;

	pthread_mutex_lock(&id->lock);
	if (s->state == MPA_ATTACHED && event == HCA_STREAM_BEGUN && !s->reported) {
		s->reported = true;
		cma_event_report(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	} else if (s->state == MPA_ATTACHED && event == HCA_STREAM_ENDED) {
		s->state = MPA_ENDED;
		if (s->reported)
			cma_event_report(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		else
			cma_event_report(id, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	}
	pthread_mutex_unlock(&id->lock);
}

int mpa_attach(struct mpa_side *s)
{
	const struct iwarp_setup *setup = &s->call.setup;
	const struct cma_id *id = s->id;
	const uint32_t qpn = id->pub.qp ? id->pub.qp->qp_num : id->conn.local_qpn;
	const int fd = s->call.fd;
	const struct hca_stream stream = {
		.fd = fd,
		.terms = &setup->terms,
		.inbound_reads = setup->terms.ird, .outbound_reads = setup->terms.ord,
		.refused = (int)setup->terminate,
		.sent = setup->out, .sent_bytes = setup->out_bytes,
		.received = setup->in, .received_bytes = setup->in_bytes,
		.begin_ns = BEGIN_NS,
		.tell = on_stream, .arg = s,
	};
	int ret;

	/* Before it: the peer's first message may have come. */
	s->qpn = qpn;
	s->state = MPA_ATTACHED;
	s->reported = setup->terms.initiator;
	/* From here on the stream closes it, whose number another file may get at once. */
	s->call.fd = -1;
	ret = busbar_stream_attach(qpn, &stream);
	if (ret) {
		log_error("qp 0x%06x: no connection by iWARP: %s", qpn, strerror(-ret));
		s->state = MPA_ENDED;
		close(fd);
	}
	return ret;
}

/* ---- the initiator ---- */

static void tell_reply(struct cma_event *ev, const struct iwarp_setup *setup)
{
	const struct iwarp_mpa *mpa = &setup->peer;
	struct rdma_conn_param *p = &ev->pub.param.conn;

	p->private_data_len = (uint8_t)MIN(mpa->private_bytes, sizeof(ev->private_data));
	if (p->private_data_len)
		memcpy(ev->private_data, mpa->private_data, p->private_data_len);
	p->private_data = ev->private_data;
	p->responder_resources = (uint8_t)MIN(setup->terms.ird, UINT8_MAX);
	p->initiator_depth = (uint8_t)MIN(setup->terms.ord, UINT8_MAX);
}

/* The program takes the event of the reply: its queue pair gets the stream. */
static bool answer_deliver(struct cma_event *ev)
{
	struct cma_id *id = ev->owner;
	struct mpa_side *s = mpa_side_of(id);
	bool still;
	int ret = 0;

	cma_qp_enter(id);
	pthread_mutex_lock(&id->lock);
	still = s->state == MPA_ANSWERED;
	if (still)
		ret = mpa_attach(s);
	pthread_mutex_unlock(&id->lock);
	cma_qp_leave(id);
	if (!still)
		return false;
	ev->pub.event = ret ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	ev->pub.status = ret;
	if (ret)
		cma_qp_fail(id);
	return true;
}

static bool refusal_deliver(struct cma_event *ev)
{
	cma_qp_fail(ev->owner);
	return true;
}

static enum rdma_cm_event_type failure_of(int result)
{
	switch (result) {
	case -ECONNREFUSED:
	case -ECONNRESET:
		return RDMA_CM_EVENT_REJECTED;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return RDMA_CM_EVENT_UNREACHABLE;
	default:
		return RDMA_CM_EVENT_CONNECT_ERROR;
	}
}

void mpa_called_back(struct mpa_side *s)
{
	const struct iwarp_setup *setup = &s->call.setup;
	/* It ends with a TERMINATE, which the queue pair sends. */
	const bool attaches = setup->state == IWARP_SETUP_DONE || setup->terminate != IWARP_OK;
	struct cma_event *ev;

	if (!attaches && !s->call.result)
		return;
	mpa_side_unwatch(s);
	s->state = attaches ? MPA_ANSWERED : MPA_ENDED;
	ev = cma_event_new(s->id, &s->id->pub,
			   attaches ? RDMA_CM_EVENT_CONNECT_RESPONSE :
				      failure_of(s->call.result),
			   attaches ? 0 : s->call.result);
	if (!attaches) {
		log_debug("call failed: %s (%s)", strerror(-s->call.result),
			  setup->broken ? iwarp_error_text(setup->broken) : "no rule broken");
		mpa_call_close(&s->call);
	}
	if (!ev)
		return;
	if (attaches || setup->peer.reject)
		tell_reply(ev, setup);
	ev->deliver = attaches ? answer_deliver : refusal_deliver;
	cma_event_post(ev);
}

static void step(struct mpa_side *s, bool expired)
{
	bool moved;

	pthread_mutex_lock(&s->id->lock);
	if (s->state == MPA_CALLING) {
		moved = expired ? mpa_call_expire(&s->call) : mpa_call_step(&s->call);
		if (moved)
			mpa_called_back(s);
		mpa_side_update(s);
	} else if (s->state == MPA_LISTENING && expired) {
		mpa_listen_on(s);
	}
	pthread_mutex_unlock(&s->id->lock);
}

static void on_events(void *arg, uint32_t events)
{
	(void)events;
	step(arg, false);
}

static void on_timer(struct progress_timer *t)
{
	step(container_of(t, struct mpa_side, timer), true);
}

int mpa_side_open(struct cma_id *id)
{
	struct mpa_side *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->id = id;
	s->call.fd = s->listen_fd = -1;
	list_init(&s->entry);
	list_init(&s->callers);
	s->on_events = on_events;
	busbar_progress_timer_init(&s->timer, on_timer);
	id->sides[CMA_CONNECTOR_MPA] = s;
	return 0;
}
