/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out the steps of the machine: sends, reports events, changes the queue pair. The
 * identifier's lock is held in all functions but those that deliver events.
 */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <string.h>

#include "rdmacm/base/base.h"
#include "rdmacm/cm/cm.h"
#include "rdmacm/id/id.h"
#include "rdmacm/qp/qp.h"
#include "util/clock.h"
#include "util/log.h"

#define NSEC_PER_MSEC UINT64_C(1000000)
/* The longest round trip of messages inside of a host: 67 ms. */
#define CMA_TRIP_LOCAL 14

/* ---- events that the program takes ---- */

/*
 * The peer sent a REP. If the identifier has the QP, its state is changed here, in the
 * application's thread, and the RTU is sent; otherwise the application does so
 * (rdma_establish()).
 */
static bool response_deliver(struct cma_event *ev)
{
	struct cma_id *id = ev->owner;
	struct cma_side *s = cma_side_of(id);
	int ret = 0;

	if (!id->pub.qp)
		return true;
	ret = cma_qp_connect(id);
	pthread_mutex_lock(&id->lock);
	if (s->cm.state != CM_REP_RCVD) {
		/* The connection has ended meanwhile; that event is queued. */
		pthread_mutex_unlock(&id->lock);
		return false;
	}
	if (ret) {
		cma_conn_input(id, CM_DO_REJECT, NULL);
		s->connect_failed = true;
		ev->pub.event = RDMA_CM_EVENT_CONNECT_ERROR;
		ev->pub.status = ret;
	} else {
		cma_conn_input(id, CM_DO_ESTABLISH, NULL);
		ev->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	}
	pthread_mutex_unlock(&id->lock);
	if (ret)
		cma_qp_fail(id);
	return true;
}

static bool deliver(struct cma_event *ev)
{
	switch (ev->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return cma_request_deliver(ev);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return response_deliver(ev);
	case RDMA_CM_EVENT_REJECTED:
		if (cma_side_of(ev->owner)->connect_failed)
			return false;
		cma_qp_fail(ev->owner);
		return true;
	case RDMA_CM_EVENT_DISCONNECTED:
		return !cma_side_of(ev->owner)->connect_failed;
	default:
		return true;
	}
}

/* ---- steps ---- */

static int output_report(struct cma_id *id, const struct cm_output *out,
			 const struct cm_mad *mad)
{
	bool request = out->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct cma_event *ev = cma_event_new(request ? id->listener : id, &id->pub,
					     (enum rdma_cm_event_type)out->event,
					     out->status);

	if (!ev)
		return -ENOMEM;
	if (request)
		ev->pub.listen_id = &id->listener->pub;
	if (mad)
		cma_message_tell(ev, id, mad);
	ev->deliver = deliver;
	cma_event_post(ev);
	return 0;
}

static int output_take(struct cma_id *id, const struct cm_output *out,
		       const struct cm_mad *mad)
{
	struct cma_side *s = cma_side_of(id);

	if (out->send)
		link_send(s->link, &out->mad);
	cma_side_update(s);
	if (out->qp_error)
		cma_qp_fail_soon(id);
	return out->report ? output_report(id, out, mad) : 0;
}

int cma_conn_input(struct cma_id *id, enum cm_input input,
		   const struct cm_mad *mad)
{
	uint64_t now = clock_monotonic_ns_slow();
	struct cm_machine *m = &cma_side_of(id)->cm;
	enum cm_state before = m->state;
	struct cm_output out;
	struct cm_mad message;
	int ret;

	if (id->removed && !mad && input < CM_DO_DESTROY)
		return -ENODEV;
	/* SIDR messages carry no times; connections have them in the REQ. */
	if (before == CM_IDLE) {
		m->trip_code_max = id->network ? 0 : CMA_TRIP_LOCAL;
		cm_machine_pace(m, cma_response_code(), CM_RETRIES,
				CMA_PACKET_LIFETIME + 1);
		m->limit_ns = cma_settings.timeout_ms * NSEC_PER_MSEC;
	}
	if (mad)
		ret = cm_machine_receive(m, mad, now, &out);
	else
		ret = cm_machine_ask(m, input,
				     cma_message_make(id, input, &message) ? &message : NULL,
				     now, &out);
	if (ret) {
		log_debug("comm %08x %s in state %s: %s", m->local_comm_id,
			  cm_input_name(input), cm_state_name(before),
			  strerror(-ret));
		return ret;
	}
	log_debug("comm %08x %s: %s -> %s", m->local_comm_id,
		  cm_input_name(input), cm_state_name(before),
		  cm_state_name(m->state));
	if (!mad && out.send)
		id->conn.private_len = 0;
	/* Only a message that is reported has new values; repetitions have none. */
	if (mad && out.report)
		cma_message_learn(id, mad);
	return output_take(id, &out, mad);
}

void cma_conn_tick(struct cma_id *id, uint64_t now_ns)
{
	struct cm_machine *m = &cma_side_of(id)->cm;
	enum cm_state before = m->state;
	struct cm_output out;

	if (cm_machine_tick(m, now_ns, &out))
		return;
	log_debug("comm %08x timer: %s -> %s, sends %s", m->local_comm_id,
		  cm_state_name(before), cm_state_name(m->state),
		  out.send ? wire_cm_name(out.mad.type) : "nothing");
	output_take(id, &out, NULL);
}
