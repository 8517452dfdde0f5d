/* SPDX-License-Identifier: BSD-2-Clause */
/* See cm_answer.h. */
#include "wire/cm_answer.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

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

void wire_cm_parties(const struct cm_mad *mad, uint32_t *to, uint32_t *from)
{
	bool has = has_parties(mad->type);

	*from = has ? mad->mra.local_comm_id : 0;
	*to = has ? mad->mra.remote_comm_id : 0;
}

void wire_cm_parties_set(struct cm_mad *mad, uint32_t to, uint32_t from)
{
	if (!has_parties(mad->type))
		return;
	mad->mra.local_comm_id = from;
	mad->mra.remote_comm_id = to;
}

int wire_cm_stray_answer(const struct cm_mad *mad, struct cm_mad *answer)
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
	wire_cm_parties(mad, &to, &from);
	wire_cm_parties_set(&a, from, to);
	*answer = a;
	return 0;
}

int wire_cm_refusal(const struct cm_mad *request, int reason, struct cm_mad *answer)
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
