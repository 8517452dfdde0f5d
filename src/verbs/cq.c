/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues and channels, completion events and asynchronous events. Polling
 * and arming go through the context's table of functions.
 */
#include <infiniband/verbs.h>

#include <errno.h>

#include "hca/hca.h"
#include "verbs/abi.h"
#include "verbs/system.h"

EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	VERBS_FORWARD(context, verbs_null, ibv_create_comp_channel, context);

	struct ibv_comp_channel *channel;
	int ret = context ? hca_channel_create(context, &channel) : -EINVAL;

	return ret ? verbs_null(ret) : channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	VERBS_FORWARD(OWNER(channel), verbs_errno, ibv_destroy_comp_channel,
		      channel);
	return verbs_errno(channel ? hca_channel_destroy(channel) : -EINVAL);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector)
{
	VERBS_FORWARD(context, verbs_null, ibv_create_cq, context, cqe,
		      cq_context, channel, comp_vector);

	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_cq *cq;
	int ret;

	if (!context || cqe < 1 || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors)
		return verbs_null(-EINVAL);
	ret = hca_cq_create(context, &attr, &cq);
	return ret ? verbs_null(ret) : cq;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	VERBS_FORWARD(OWNER(cq), verbs_errno, ibv_resize_cq, cq, cqe);
	return verbs_errno(cq && cqe > 0 ? hca_cq_resize(cq, cqe) : -EINVAL);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	VERBS_FORWARD(OWNER(cq), verbs_errno, ibv_destroy_cq, cq);
	return verbs_errno(cq ? hca_cq_destroy(cq) : -EINVAL);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
			    struct ibv_cq **cq, void **cq_context)
{
	VERBS_FORWARD_WAITING(OWNER(channel), verbs_minus1, ibv_get_cq_event,
			      channel, cq, cq_context);
	if (!channel || !cq || !cq_context)
		return verbs_minus1(-EINVAL);
	return verbs_minus1(hca_channel_get_event(channel, cq, cq_context));
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	VERBS_FORWARD_VOID(OWNER(cq), ibv_ack_cq_events, cq, nevents);
	if (cq && nevents)
		hca_cq_ack_events(cq, nevents);
}

EXPORT int ibv_get_async_event(struct ibv_context *context,
			       struct ibv_async_event *event)
{
	VERBS_FORWARD_WAITING(context, verbs_minus1, ibv_get_async_event,
			      context, event);
	if (!context || !event)
		return verbs_minus1(-EINVAL);
	return verbs_minus1(hca_async_event_get(context, event));
}

/* The context of the object that the event names; NULL for events of ports and devices,
 * which have no object and need no acknowledgement. */
static struct ibv_context *event_context(const struct ibv_async_event *event)
{
	if (hca_event_of_qp(event))
		return event->element.qp->context;
	if (hca_event_of_srq(event))
		return event->element.srq->context;
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_WQ_FATAL:
		return event->element.wq->context;
	default:
		return NULL;
	}
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (!event)
		return;
	VERBS_FORWARD_VOID(event_context(event), ibv_ack_async_event, event);
	hca_async_event_ack(event);
}
