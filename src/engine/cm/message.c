/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the messages of a machine. */
#include "engine/cm/message.h"

#include <endian.h>
#include <string.h>

#include "wire/cm_answer.h"

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
		/* By it the peer finds its connection; it may know no identifier. */
		if (mad->rej.reason == CM_REASON_TIMEOUT) {
			uint64_t guid = htobe64(m->local_guid);

			memcpy(mad->rej.info, &guid, sizeof(guid));
			mad->rej.info_len = sizeof(guid);
		}
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
	wire_cm_parties_set(mad, m->remote_comm_id, m->local_comm_id);
	type_make(m, step, service_code, message, mad);
}
