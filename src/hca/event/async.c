/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a context, read through its async_fd. */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>

#include "hca/event/async.h"
#include "hca/event/channel.h"
#include "hca/hca.h"
#include "hca/object/context.h"
#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/object/srq.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"
#include "util/spin.h"
#include "util/wakeup.h"

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
	HCA_COUNT_PROCESS(PROCESS_ASYNC_EVENTS, 1);
	hca_event_count(ctx->verbs.context.async_fd);
}

static void qp_event(struct hca_qp *qp, enum ibv_event_type type)
{
	async_post(hca_context(qp->ibv.context),
		   (struct ibv_async_event){ .element.qp = &qp->ibv,
					     .event_type = type });
}

void hca_async_qp_event(struct hca_qp *qp, enum ibv_event_type type)
{
	HCA_COUNT_RARE(qp, ASYNC_EVENTS, 1);
	if (likely(qp->ibv.qp_type != IBV_QPT_XRC_RECV)) {
		qp_event(qp, type);
		return;
	}
	/* An event of an XRC target is raised for each of its handles. */
	spin_lock(&qp->handles_lock);
	list_for_each(h, &qp->handles, struct hca_qp, handle_entry)
		qp_event(h, type);
	spin_unlock(&qp->handles_lock);
}

void hca_qp_established(struct hca_qp *qp)
{
	if (qp->established || qp->ibv.qp_type == IBV_QPT_UD)
		return;
	qp->established = true;
	hca_async_qp_event(qp, IBV_EVENT_COMM_EST);
}

void hca_async_cq_event(struct hca_cq *cq, enum ibv_event_type type)
{
	async_post(cq->ctx,
		   (struct ibv_async_event){ .element.cq = hca_cq_public(cq),
					     .event_type = type });
}

void hca_async_srq_event(struct hca_srq *srq, enum ibv_event_type type)
{
	async_post(hca_context(srq->ibv.context),
		   (struct ibv_async_event){ .element.srq = &srq->ibv,
					     .event_type = type });
}

void hca_async_device_event(struct hca_context *ctx, enum ibv_event_type type)
{
	async_post(ctx, (struct ibv_async_event){ .event_type = type });
}

void hca_async_port_event(struct hca_context *ctx, enum ibv_event_type type)
{
	spin_lock(&ctx->async_lock);
	list_for_each_safe(e, &ctx->async_events, struct hca_async_event, entry) {
		if (e->event.event_type == type) {
			list_remove(&e->entry);
			free(e);
			wakeup_take(ctx->verbs.context.async_fd);
		}
	}
	spin_unlock(&ctx->async_lock);
	async_post(ctx, (struct ibv_async_event){ .element.port_num = 1,
						  .event_type = type });
}

static bool event_is_of(const struct ibv_async_event *e, const void *object)
{
	if (hca_event_of_qp(e))
		return e->element.qp == object;
	if (hca_event_of_srq(e))
		return e->element.srq == object;
	return e->event_type == IBV_EVENT_CQ_ERR && e->element.cq == object;
}

/* The program has read the event: counts it, so that destroying the object waits until it is
 * acknowledged. async_lock is held. */
static void event_taken(const struct ibv_async_event *e)
{
	if (hca_event_of_qp(e))
		hca_qp(e->element.qp)->async_taken++;
	else if (hca_event_of_srq(e))
		hca_srq(e->element.srq)->async_taken++;
	else if (e->event_type == IBV_EVENT_CQ_ERR)
		hca_cq(e->element.cq)->async_taken++;
}

int hca_async_event_get(struct ibv_context *ibctx, struct ibv_async_event *event)
{
	struct hca_context *ctx = hca_context(ibctx);
	struct list *first = NULL;
	struct hca_async_event *e;

	while (!first) {
		int ret = wakeup_wait(ibctx->async_fd);

		if (ret)
			return ret;
		spin_lock(&ctx->async_lock);
		first = list_pop(&ctx->async_events);
		if (first) {
			/* Counted under the lock, so that a destruction that
			 * finds no event queued waits for this one. */
			e = list_entry(first, struct hca_async_event, entry);
			*event = e->event;
			event_taken(event);
		}
		spin_unlock(&ctx->async_lock);
	}
	free(list_entry(first, struct hca_async_event, entry));
	return 0;
}

void hca_async_event_ack(struct ibv_async_event *event)
{
	if (hca_event_of_qp(event)) {
		struct ibv_qp *qp = event->element.qp;

		pthread_mutex_lock(&qp->mutex);
		qp->events_completed++;
		pthread_cond_signal(&qp->cond);
		pthread_mutex_unlock(&qp->mutex);
	} else if (hca_event_of_srq(event)) {
		struct ibv_srq *srq = event->element.srq;

		pthread_mutex_lock(&srq->mutex);
		srq->events_completed++;
		pthread_cond_signal(&srq->cond);
		pthread_mutex_unlock(&srq->mutex);
	} else if (event->event_type == IBV_EVENT_CQ_ERR) {
		struct ibv_cq *cq = event->element.cq;

		pthread_mutex_lock(&cq->mutex);
		cq->async_events_completed++;
		pthread_cond_signal(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
	}
}

/* Removes the unread events of an object; returns `*counter`, the number of events read. */
static uint32_t forget_unread(struct hca_context *ctx, const void *object,
			      const uint32_t *counter)
{
	uint32_t taken;

	spin_lock(&ctx->async_lock);
	list_for_each_safe(e, &ctx->async_events, struct hca_async_event, entry) {
		if (event_is_of(&e->event, object)) {
			list_remove(&e->entry);
			free(e);
			wakeup_take(ctx->verbs.context.async_fd);
		}
	}
	taken = *counter;
	spin_unlock(&ctx->async_lock);
	return taken;
}

void hca_async_qp_forget(struct hca_qp *qp)
{
	uint32_t taken = forget_unread(hca_context(qp->ibv.context), &qp->ibv,
				       &qp->async_taken);

	pthread_mutex_lock(&qp->ibv.mutex);
	while (qp->ibv.events_completed != taken)
		pthread_cond_wait(&qp->ibv.cond, &qp->ibv.mutex);
	pthread_mutex_unlock(&qp->ibv.mutex);
}

void hca_async_srq_forget(struct hca_srq *srq)
{
	uint32_t taken = forget_unread(hca_context(srq->ibv.context), &srq->ibv,
				       &srq->async_taken);

	pthread_mutex_lock(&srq->ibv.mutex);
	while (srq->ibv.events_completed != taken)
		pthread_cond_wait(&srq->ibv.cond, &srq->ibv.mutex);
	pthread_mutex_unlock(&srq->ibv.mutex);
}

void hca_async_cq_forget(struct hca_cq *cq)
{
	struct ibv_cq *ibcq = hca_cq_public(cq);
	uint32_t taken = forget_unread(cq->ctx, ibcq, &cq->async_taken);

	pthread_mutex_lock(&ibcq->mutex);
	while (ibcq->async_events_completed != taken)
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
}

void hca_async_fini(struct hca_context *ctx)
{
	struct list *first;

	while ((first = list_pop(&ctx->async_events)))
		free(list_entry(first, struct hca_async_event, entry));
}
