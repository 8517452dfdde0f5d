/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a context, behind its async_fd. */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>

#include "hca/channel.h"
#include "hca/hca.h"
#include "hca/objects.h"
#include "util/log.h"

void hca_async_init(struct hca_context *ctx)
{
	list_init(&ctx->async_events);
}

static void async_post(struct hca_context *ctx, struct ibv_async_event event)
{
	struct hca_async_event *e = calloc(1, sizeof(*e));

	if (!e) {
		log_error("asynchronous event %d lost: no memory",
			  (int)event.event_type);
		return;
	}
	e->event = event;
	spin_lock(&ctx->async_lock);
	list_push(&ctx->async_events, &e->entry);
	spin_unlock(&ctx->async_lock);
	hca_eventfd_post(ctx->verbs.context.async_fd);
}

void hca_async_qp_event(struct hca_qp *qp, enum ibv_event_type type)
{
	async_post(hca_context(qp->ibv.context),
		   (struct ibv_async_event){ .element.qp = &qp->ibv,
					     .event_type = type });
}

void hca_async_cq_event(struct hca_cq *cq, enum ibv_event_type type)
{
	async_post(cq->ctx,
		   (struct ibv_async_event){ .element.cq = hca_cq_public(cq),
					     .event_type = type });
}

static bool event_of_qp(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

int hca_async_event_get(struct ibv_context *ibctx, struct ibv_async_event *event)
{
	struct hca_context *ctx = hca_context(ibctx);
	struct list *first = NULL;
	struct hca_async_event *e;

	while (!first) {
		int ret = hca_eventfd_wait(ibctx->async_fd);

		if (ret)
			return ret;
		spin_lock(&ctx->async_lock);
		first = list_pop(&ctx->async_events);
		if (first) {
			/* Counted under the lock, so that a destruction that
			 * finds no event queued waits for this one. */
			e = list_entry(first, struct hca_async_event, entry);
			*event = e->event;
			if (event_of_qp(event))
				hca_qp(event->element.qp)->async_taken++;
		}
		spin_unlock(&ctx->async_lock);
	}
	free(list_entry(first, struct hca_async_event, entry));
	return 0;
}

void hca_async_event_ack(struct ibv_async_event *event)
{
	if (event_of_qp(event)) {
		struct ibv_qp *qp = event->element.qp;

		pthread_mutex_lock(&qp->mutex);
		qp->events_completed++;
		pthread_cond_signal(&qp->cond);
		pthread_mutex_unlock(&qp->mutex);
	} else if (event->event_type == IBV_EVENT_CQ_ERR) {
		struct ibv_cq *cq = event->element.cq;

		pthread_mutex_lock(&cq->mutex);
		cq->async_events_completed++;
		pthread_cond_signal(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
	}
}

void hca_async_qp_forget(struct hca_qp *qp)
{
	struct hca_context *ctx = hca_context(qp->ibv.context);
	uint32_t taken;

	spin_lock(&ctx->async_lock);
	list_for_each_safe(e, &ctx->async_events, struct hca_async_event, entry) {
		if (event_of_qp(&e->event) && e->event.element.qp == &qp->ibv) {
			list_remove(&e->entry);
			free(e);
			hca_eventfd_try(ctx->verbs.context.async_fd);
		}
	}
	taken = qp->async_taken;
	spin_unlock(&ctx->async_lock);
	pthread_mutex_lock(&qp->ibv.mutex);
	while (qp->ibv.events_completed != taken)
		pthread_cond_wait(&qp->ibv.cond, &qp->ibv.mutex);
	pthread_mutex_unlock(&qp->ibv.mutex);
}

void hca_async_fini(struct hca_context *ctx)
{
	struct list *first;

	while ((first = list_pop(&ctx->async_events)))
		free(list_entry(first, struct hca_async_event, entry));
}
