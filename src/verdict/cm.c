/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by librdmacm; see observe.h. */
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "preload/real.h"
#include "verdict/observe.h"

VERDICT_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				     struct rdma_cm_event **event);
VERDICT_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
VERDICT_EXPORT int rdma_disconnect(struct rdma_cm_id *id);

static struct verdict_qp *find(struct verdict_facts *f, const struct rdma_cm_id *id)
{
	return f && id && id->qp ? verdict_qp_of(f, id->qp) : NULL;
}

static bool is_error(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_ADDR_ERROR || type == RDMA_CM_EVENT_ROUTE_ERROR ||
	       type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_UNREACHABLE ||
	       type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

static void note_failure(struct verdict_facts *f, struct verdict_qp *q, uint32_t code, int detail)
{
	verdict_note(f, VERDICT_CONNECTION, q,
		     &(struct verdict_error){ .code = code, .detail = detail });
}

static void heard(struct verdict_facts *f, const struct rdma_cm_event *event)
{
	struct verdict_qp *q = find(f, event->id);

	atomic_fetch_add(&f->cm_events, 1);
	if (event->event == RDMA_CM_EVENT_ESTABLISHED && q) {
		verdict_qp_ask_peer(q, event->id->qp);
		/* Also where an earlier attempt had failed. */
		q->life_ns = verdict_now_ns();
	} else if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
		verdict_peer_left(f, q);
	} else if (is_error(event->event)) {
		note_failure(f, q, event->event, event->status);
	}
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int (*real)(struct rdma_event_channel *, struct rdma_cm_event **) =
		real_find("rdma_get_cm_event", "RDMACM_1.0");
	int ret = real(channel, event), error = errno;
	struct verdict_facts *f = ret ? NULL : verdict_facts_make();

	if (f)
		heard(f, *event);
	errno = error;
	return ret;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) =
		real_find("rdma_connect", "RDMACM_1.0");
	int ret = real(id, param), error = errno;
	struct verdict_facts *f = ret ? verdict_facts_make() : NULL;

	if (f)
		note_failure(f, find(f, id), VERDICT_NO_CM_EVENT, error);
	errno = error;
	return ret;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	int (*real)(struct rdma_cm_id *) = real_find("rdma_disconnect", "RDMACM_1.0");
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = find(f, id);

	if (q) {
		verdict_reacted(f, q, VERDICT_DISCONNECTED);
		q->ended_ns = verdict_now_ns();
	}
	return real(id);
}
