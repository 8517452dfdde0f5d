/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of libibverbs away from the data path; see observe.h. */
#include <errno.h>

#include "preload/real.h"
#include "verdict/observe.h"

VERDICT_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
VERDICT_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
VERDICT_EXPORT int ibv_close_device(struct ibv_context *context);

/* It was moved to one of the states in which nothing is sent. */
static void left(struct verdict_facts *f, struct verdict_qp *q, enum ibv_qp_state state)
{
	verdict_reacted(f, q, VERDICT_MOVED);
	if (state == IBV_QPS_SQD)
		return;
	q->ended_ns = verdict_now_ns();
	if (state != IBV_QPS_RESET)
		return;
	verdict_emptied(f, q);
	q->received = q->receives = 0;
	q->life_ns = verdict_now_ns();
}

static void modified(struct verdict_facts *f, struct verdict_qp *q, const struct ibv_qp_attr *attr,
		     int mask)
{
	if (mask & IBV_QP_DEST_QPN)
		q->peer = attr->dest_qp_num;
	if (!(mask & IBV_QP_STATE))
		return;
	if (attr->qp_state == IBV_QPS_RTR)
		q->ended_ns = 0;
	else if (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR ||
		 attr->qp_state == IBV_QPS_SQD)
		left(f, q, attr->qp_state);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		real_find("ibv_modify_qp", "IBVERBS_1.1");
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = f ? verdict_qp_of(f, qp) : NULL;
	uint64_t ended_ns = q ? (uint64_t)q->ended_ns : 0;
	int ret;

	/* Before the call: another thread may fetch the flushes while it lasts. */
	if (q && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		q->ended_ns = verdict_now_ns();
	ret = real(qp, attr, mask);
	if (!ret && q)
		modified(f, q, attr, mask);
	else if (q)
		q->ended_ns = ended_ns;
	return ret;
}

static bool of_queue_pair(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_PATH_MIG_ERR;
}

static bool is_error(enum ibv_event_type type)
{
	return of_queue_pair(type) || type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_SRQ_ERR ||
	       type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_WQ_FATAL;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int (*real)(struct ibv_context *, struct ibv_async_event *) =
		real_find("ibv_get_async_event", "IBVERBS_1.1");
	int ret = real(context, event), error = errno;
	struct verdict_facts *f = ret ? NULL : verdict_facts_make();

	if (f) {
		struct verdict_qp *q = of_queue_pair(event->event_type) ?
					       verdict_qp_of(f, event->element.qp) :
					       NULL;

		atomic_fetch_add(&f->events, 1);
		if (is_error(event->event_type))
			verdict_note(f, VERDICT_EVENT, q,
				     &(struct verdict_error){ .code = event->event_type });
	}
	errno = error;
	return ret;
}

int ibv_close_device(struct ibv_context *context)
{
	int (*real)(struct ibv_context *) = real_find("ibv_close_device", "IBVERBS_1.1");

	verdict_qp_context_goes(context);
	return real(context);
}
