/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the messages of a machine, and answers to messages that belong to none. */
#include "rdmacm/cm_message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static enum cm_answered answered_of(enum cm_state state)
{
	switch (state) {
	case CM_REQ_RCVD:
		return CM_ANSWERED_REQ;
	case CM_REP_RCVD:
		return CM_ANSWERED_REP;
	default:
		return CM_ANSWERED_OTHER;
	}
}

/* Most types begin with the sender's and the receiver's identifier. */
#define BEGINS_WITH_PARTIES(type)                                             \
	_Static_assert(offsetof(struct cm_mad, type.local_comm_id) ==         \
			       offsetof(struct cm_mad, mra.local_comm_id) &&  \
		       offsetof(struct cm_mad, type.remote_comm_id) ==        \
			       offsetof(struct cm_mad, mra.remote_comm_id),   \
		       "parties")
BEGINS_WITH_PARTIES(rej);
BEGINS_WITH_PARTIES(rep);
BEGINS_WITH_PARTIES(rtu);
BEGINS_WITH_PARTIES(dreq);
BEGINS_WITH_PARTIES(drep);
BEGINS_WITH_PARTIES(lap);
BEGINS_WITH_PARTIES(apr);

static bool has_parties(enum cm_type type)
{
	return type != CM_REQ && type != CM_SIDR_REQ && type != CM_SIDR_REP;
}

void cm_message_parties(const struct cm_mad *mad, uint32_t *to, uint32_t *from)
{
	bool has = has_parties(mad->type);

	*from = has ? mad->mra.local_comm_id : 0;
	*to = has ? mad->mra.remote_comm_id : 0;
}

static void parties_set(struct cm_mad *mad, uint32_t to, uint32_t from)
{
	if (!has_parties(mad->type))
		return;
	mad->mra.local_comm_id = from;
	mad->mra.remote_comm_id = to;
}

static void sidr_rep_make(const struct cm_machine *m, const struct cm_mad *message,
			  struct cm_mad *mad)
{
	if (!message) {
		mad->sidr_rep.status = CM_SIDR_REJECTED;
		mad->sidr_rep.service_id = m->service_id;
	}
	mad->sidr_rep.request_id = m->remote_comm_id;
}

/* After the tables of IBA 12.6. Each request is a transaction of its own. */
static void type_make(const struct cm_machine *m, const struct cm_step *step,
		      unsigned service_code, const struct cm_mad *message,
		      struct cm_mad *mad)
{
	switch (mad->type) {
	case CM_REQ:
		mad->req.local_comm_id = m->local_comm_id;
		mad->tid = message->tid;
		break;
	case CM_SIDR_REQ:
		mad->sidr_req.request_id = m->local_comm_id;
		mad->tid = message->tid;
		break;
	case CM_SIDR_REP:
		sidr_rep_make(m, message, mad);
		break;
	case CM_REJ:
		mad->rej.answered = (uint8_t)answered_of(m->state);
		if (!mad->rej.reason)
			mad->rej.reason = (uint16_t)step->reason;
		break;
	case CM_MRA:
		mad->mra.answered = (uint8_t)answered_of(m->state);
		mad->mra.service_timeout = (uint8_t)service_code;
		break;
	case CM_DREQ:
		mad->tid = m->tid + 1;
		mad->dreq.remote_qpn = m->remote_qpn;
		break;
	case CM_LAP:
		mad->tid = m->tid + 2;
		mad->lap.remote_qpn = m->remote_qpn;
		break;
	case CM_APR:
		mad->apr.status = CM_PATH_UNSUPPORTED;
		break;
	default:
		break;
	}
}

void cm_message_make(const struct cm_machine *m, const struct cm_step *step,
		   unsigned service_code, const struct cm_mad *message,
		   const struct cm_mad *received, struct cm_mad *mad)
{
	if (message && message->type != step->send)
		message = NULL;
	if (message)
		*mad = *message;
	else
		memset(mad, 0, sizeof(*mad));
	mad->type = step->send;
	mad->tid = received && (step->send == CM_DREP || step->send == CM_APR) ?
			   received->tid : m->tid;
	parties_set(mad, m->remote_comm_id, m->local_comm_id);
	type_make(m, step, service_code, message, mad);
}

/* ---- without a machine ---- */

int cm_stray_answer(const struct cm_mad *mad, struct cm_mad *answer)
{
	struct cm_mad a = { .tid = mad->tid };
	uint32_t to, from;

	switch (mad->type) {
	case CM_DREQ:
		/* No connection is left that could be ended: the DREQ is confirmed. */
		a.type = CM_DREP;
		break;
	case CM_REP:
		a.type = CM_REJ;
		a.rej.answered = CM_ANSWERED_REP;
		a.rej.reason = CM_REASON_INVALID_COMM_ID;
		break;
	case CM_LAP:
		a.type = CM_APR;
		a.apr.status = CM_PATH_INVALID_COMM_ID;
		break;
	default:
		return -ENOENT;
	}
	cm_message_parties(mad, &to, &from);
	parties_set(&a, from, to);
	*answer = a;
	return 0;
}

int cm_refusal(const struct cm_mad *request, int reason, struct cm_mad *answer)
{
	struct cm_mad a = { .tid = request->tid };

	if (request->type == CM_REQ) {
		a.type = CM_REJ;
		a.rej.remote_comm_id = request->req.local_comm_id;
		a.rej.answered = CM_ANSWERED_REQ;
		a.rej.reason = (uint16_t)reason;
	} else if (request->type == CM_SIDR_REQ) {
		a.type = CM_SIDR_REP;
		a.sidr_rep.request_id = request->sidr_req.request_id;
		a.sidr_rep.service_id = request->sidr_req.service_id;
		a.sidr_rep.status = reason == CM_REASON_INVALID_SERVICE_ID ?
					    CM_SIDR_UNSUPPORTED :
					    CM_SIDR_REJECTED;
	} else {
		return -EPROTO;
	}
	*answer = a;
	return 0;
}
