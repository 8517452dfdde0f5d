/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines and repetitions of the connection machine; see machine.h. message.c
 * builds the messages, state.h has the table of states and events.
 */
#include "engine/cm/machine.h"

#include <errno.h>
#include <string.h>

#include "engine/cm/message.h"
#include "util/container_of.h"
#include "wire/cm_answer.h"

/* Times are 4.096 us * 2^code. Codes are cut to this one, 137 s. */
#define CODE_MAX 25
/* Limit of the ACK timeout from which the round trip is estimated: 1 s. */
#define TRIP_CODE_MAX 18
#define TRIP_CODE_UNSAID 13
/* After an MRA the application may take 2^4 times the expected time. */
#define SERVICE_FACTOR_CODE 4

static uint64_t code_ns(unsigned code)
{
	return UINT64_C(4096) << MIN(code, CODE_MAX);
}

static uint64_t trip_of(const struct cm_machine *m, unsigned ack_code)
{
	unsigned most = m->trip_code_max ? m->trip_code_max : TRIP_CODE_MAX;

	return code_ns(ack_code ? MIN(ack_code, most) : TRIP_CODE_UNSAID);
}

void cm_machine_init(struct cm_machine *m, uint32_t local_comm_id)
{
	*m = (struct cm_machine){ .local_comm_id = local_comm_id ? local_comm_id :
								   1 };
}

void cm_machine_pace(struct cm_machine *m, uint8_t response_code,
		     uint8_t retries, uint8_t ack_code)
{
	m->trip_ns = m->rest_ns = trip_of(m, ack_code);
	m->answer_code = (uint8_t)MIN(response_code, CODE_MAX);
	m->answer_ns = code_ns(response_code);
	m->ask_ns = m->answer_ns + m->trip_ns;
	m->repeats_max = retries;
}

static uint64_t cut(const struct cm_machine *m, uint64_t ns, unsigned times)
{
	return m->limit_ns ? MIN(ns, m->limit_ns / times) : ns;
}

/* Takes both sides' response times from a REQ that was sent or received. */
static void pace_learn(struct cm_machine *m, const struct cm_req *req)
{
	uint8_t ours = req->remote_response_timeout;
	uint8_t peers = req->local_response_timeout;

	if (m->active) {
		ours = req->local_response_timeout;
		peers = req->remote_response_timeout;
	}
	cm_machine_pace(m, ours, req->max_cm_retries,
			req->primary.local_ack_timeout);
	m->ask_ns = code_ns(peers) + m->trip_ns;
	if (m->active)
		return;
	m->ask_ns = cut(m, m->ask_ns, m->repeats_max + 1u);
	m->answer_ns = cut(m, m->answer_ns, m->repeats_max + 1u);
}

/* Time within which the peer repeats a request, if it repeats it at all. */
static uint64_t retries_ns(const struct cm_machine *m)
{
	return (m->answer_ns + m->trip_ns) * (m->repeats_max + UINT64_C(1));
}

static unsigned service_code(const struct cm_machine *m)
{
	return MIN(m->answer_code + SERVICE_FACTOR_CODE, CODE_MAX);
}

static void timer_set(struct cm_machine *m, enum cm_timer timer, uint64_t now,
		      const struct cm_mad *mad)
{
	if (timer == CM_TIMER_KEEP)
		return;
	m->mra_due = timer == CM_TIMER_MRA;
	if (timer != CM_TIMER_SERVICE)
		m->repeats = timer == CM_TIMER_ASK || timer == CM_TIMER_REPEAT ?
				     m->repeats_max : 0;
	switch (timer) {
	case CM_TIMER_ASK:
	case CM_TIMER_REPEAT:
		m->deadline_ns = now + m->ask_ns;
		m->until_ns = !m->limit_ns ? UINT64_MAX :
			now + (m->active ? code_ns(CODE_MAX) : m->limit_ns) +
			m->ask_ns * (m->repeats_max + UINT64_C(1));
		break;
	case CM_TIMER_SERVICE:
		m->deadline_ns = MIN(now + code_ns(mad->mra.service_timeout) +
					     m->trip_ns, m->until_ns);
		break;
	case CM_TIMER_MRA:
		m->deadline_ns = now + m->answer_ns / 2;
		break;
	case CM_TIMER_WAIT:
		m->deadline_ns = now + code_ns(service_code(m)) + retries_ns(m);
		break;
	case CM_TIMER_LINGER:
		m->deadline_ns = now + retries_ns(m);
		break;
	case CM_TIMER_TIMEWAIT:
		m->deadline_ns = now + m->rest_ns;
		break;
	default:
		m->deadline_ns = 0;
		break;
	}
}

/* ---- messages to the peer ---- */

static bool is_kept(enum cm_type type)
{
	return type != CM_RTU && type != CM_DREP && type != CM_MRA &&
	       type != CM_APR;
}

/* Keeps the values of our own message. */
static void sent_learn(struct cm_machine *m)
{
	switch (m->sent.type) {
	case CM_REQ:
		m->active = true;
		m->tid = m->sent.tid;
		m->local_qpn = m->sent.req.local_qpn;
		m->local_guid = m->sent.req.local_ca_guid;
		m->service_id = m->sent.req.service_id;
		pace_learn(m, &m->sent.req);
		break;
	case CM_SIDR_REQ:
		m->active = true;
		m->tid = m->sent.tid;
		m->service_id = m->sent.sidr_req.service_id;
		break;
	case CM_REP:
		m->local_qpn = m->sent.rep.local_qpn;
		m->local_guid = m->sent.rep.local_ca_guid;
		break;
	case CM_LAP:
		m->ask_ns = code_ns(m->sent.lap.remote_response_timeout) +
			    m->trip_ns;
		break;
	default:
		break;
	}
}

static void send_message(struct cm_machine *m, const struct cm_step *step,
			 const struct cm_mad *message,
			 const struct cm_mad *received, struct cm_output *out)
{
	out->send = true;
	if (step->again) {
		out->mad = m->sent;
		return;
	}
	cm_message_make(m, step, service_code(m), message, received, &out->mad);
	if (!is_kept(out->mad.type))
		return;
	m->sent = out->mad;
	sent_learn(m);
}

/* ---- messages from the peer ---- */

static void received_learn(struct cm_machine *m, const struct cm_mad *mad)
{
	switch (mad->type) {
	case CM_REQ:
		/* In peer-to-peer mode the side that becomes passive drops its REQ. */
		m->active = false;
		m->tid = mad->tid;
		m->remote_comm_id = mad->req.local_comm_id;
		m->remote_qpn = mad->req.local_qpn;
		m->service_id = mad->req.service_id;
		pace_learn(m, &mad->req);
		break;
	case CM_SIDR_REQ:
		m->tid = mad->tid;
		m->remote_comm_id = mad->sidr_req.request_id;
		m->service_id = mad->sidr_req.service_id;
		break;
	case CM_REP:
		m->remote_comm_id = mad->rep.local_comm_id;
		m->remote_qpn = mad->rep.local_qpn;
		m->rest_ns = cut(m, m->trip_ns + code_ns(mad->rep.target_ack_delay), 1);
		break;
	default:
		break;
	}
}

static int message_status(const struct cm_mad *mad)
{
	return mad->type == CM_REJ ? mad->rej.reason : mad->sidr_rep.status;
}

static int step_take(struct cm_machine *m, enum cm_input input,
		     const struct cm_mad *message, const struct cm_mad *received,
		     uint64_t now, struct cm_output *out)
{
	struct cm_step step;
	int ret = cm_state_step(m->state, input, &step);

	if (ret)
		return ret;
	memset(out, 0, sizeof(*out));
	/* A repeated message has no new values. */
	if (received && step.next != m->state)
		received_learn(m, received);
	if (step.send || step.again)
		send_message(m, &step, message, received, out);
	m->state = step.next;
	timer_set(m, step.timer, now, received);
	if (input == CM_DO_DESTROY)
		m->orphan = true;
	out->report = step.report && !m->orphan;
	out->event = step.event;
	out->status = step.status == CM_STATUS_OF_MESSAGE && received ?
			      message_status(received) : step.status;
	out->qp_error = step.qp_error;
	return 0;
}

int cm_machine_ask(struct cm_machine *m, enum cm_input what,
		   const struct cm_mad *message, uint64_t now,
		   struct cm_output *out)
{
	bool loads = what == CM_DO_LOAD_PATH;
	int ret;

	if ((what == CM_DO_CONNECT || what == CM_DO_LOOKUP ||
	     what == CM_DO_ACCEPT || loads) && !message)
		return -EINVAL;
	if (loads && m->path_waits)
		return -EBUSY;
	ret = step_take(m, what, message, NULL, now, out);
	if (!ret)
		m->path_waits = (m->path_waits || loads) &&
				m->state == CM_ESTABLISHED;
	return ret;
}

bool cm_machine_accepts(const struct cm_machine *m, const struct cm_mad *mad)
{
	uint32_t to, from;

	switch (mad->type) {
	case CM_REQ:
		if (m->state == CM_IDLE)
			return true;
		if (m->remote_comm_id)
			return mad->req.local_comm_id == m->remote_comm_id;
		return m->state == CM_REQ_SENT && m->peer_to_peer &&
		       mad->req.service_id == m->service_id;
	case CM_SIDR_REQ:
		return m->state == CM_IDLE ||
		       mad->sidr_req.request_id == m->remote_comm_id;
	case CM_SIDR_REP:
		return mad->sidr_rep.request_id == m->local_comm_id;
	default:
		wire_cm_parties(mad, &to, &from);
		break;
	}
	/* A caller that sends REJ before it has a REP does not know our identifier. */
	if (mad->type == CM_REJ && !to)
		return from == m->remote_comm_id;
	/* A peer that rejects our REQ without a machine for it has no identifier. */
	return to == m->local_comm_id &&
	       (from == m->remote_comm_id || !m->remote_comm_id ||
		(mad->type == CM_REJ && !from));
}

/* Peer to peer: the side with the lower GUID, then the lower QPN, becomes passive. */
static bool becomes_passive(const struct cm_machine *m, const struct cm_req *req)
{
	if (m->local_guid != req->local_ca_guid)
		return m->local_guid < req->local_ca_guid;
	return m->local_qpn < req->local_qpn;
}

/* Does the message belong to the state, beyond what the table can tell by type? */
static bool is_expected(const struct cm_machine *m, const struct cm_mad *mad)
{
	bool established = m->state == CM_ESTABLISHED;

	switch (mad->type) {
	case CM_REQ:
		if (established)
			return m->sent.type == CM_REP;
		return m->state != CM_REQ_SENT || becomes_passive(m, &mad->req);
	case CM_REP:
		return !established || m->active;
	case CM_REJ:
		/* A REJ of our REQ counts only while the REQ is open: it may be
		 * late. When connected, only the active side takes a REJ, of
		 * a peer that did not receive the RTU in time. */
		if (mad->rej.answered == CM_ANSWERED_REQ)
			return m->state == CM_REQ_SENT;
		return !established ||
		       (m->active && mad->rej.answered == CM_ANSWERED_OTHER);
	case CM_MRA:
		return mad->mra.answered ==
		       (established ? CM_ANSWERED_OTHER :
			m->state == CM_REP_SENT ? CM_ANSWERED_REP :
						  CM_ANSWERED_REQ) &&
		       (!established || m->path_waits);
	case CM_APR:
		return m->path_waits;
	default:
		return true;
	}
}

int cm_machine_receive(struct cm_machine *m, const struct cm_mad *mad, uint64_t now,
		    struct cm_output *out)
{
	int ret;

	if (m->state == CM_DONE || !cm_machine_accepts(m, mad))
		return -ENOENT;
	if (!is_expected(m, mad))
		return -EPROTO;
	ret = step_take(m, cm_state_input_of(mad), NULL, mad, now, out);
	if (!ret && mad->type == CM_APR) {
		out->path_answered = true;
		out->path_status = mad->apr.status;
	}
	if (!ret && (mad->type == CM_APR || m->state != CM_ESTABLISHED))
		m->path_waits = false;
	return ret;
}

int cm_machine_tick(struct cm_machine *m, uint64_t now, struct cm_output *out)
{
	struct cm_step step = { .again = true };
	int ret;

	if (!m->deadline_ns || now < m->deadline_ns)
		return -EAGAIN;
	if (m->repeats && now < m->until_ns) {
		m->repeats--;
		m->deadline_ns = now + m->ask_ns;
	} else if (m->mra_due) {
		step = (struct cm_step){ .send = CM_MRA };
		timer_set(m, CM_TIMER_WAIT, now, NULL);
	} else {
		m->deadline_ns = 0;
		ret = step_take(m, CM_TIMEOUT, NULL, NULL, now, out);
		if (!ret && m->path_waits) {
			out->path_answered = true;
			out->path_status = -ETIMEDOUT;
			m->path_waits = false;
		}
		return ret;
	}
	memset(out, 0, sizeof(*out));
	send_message(m, &step, NULL, NULL, out);
	return 0;
}

bool cm_machine_holds_qp(const struct cm_machine *m)
{
	struct cm_step step;

	return m->remote_qpn && !cm_state_step(m->state, CM_GOT_STALE, &step);
}
