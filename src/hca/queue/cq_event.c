/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion events of an armed queue, their moderation, and the event of an overrun
 * (ibv_req_notify_cq(3), ibv_modify_cq(3); InfiniBand specification volume 1, 11.6.3).
 *
 * Arming is for one event, and only completions that are added later raise it. Moderation
 * delays the event until `count` completions were added after arming, or until `period` has
 * passed since the first of them; zero switches either of the two off. Completions with an
 * error are not delayed.
 */
#include <errno.h>

#include "hca/event/channel.h"
#include "hca/hca.h"
#include "hca/queue/flush.h"
#include "hca/queue/push.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"

/* Limit of polls of the transports while arming; the progress thread moves the rest. */
#define MOVES_WHEN_ARMED 64

/* Raises the delayed event, if there is one. */
static void release_event(struct hca_cq *cq)
{
	bool held;

	hca_lock(&cq->lock);
	held = cq->events_held > 0;
	if (held)
		hca_cq_set_armed(cq, 0);
	hca_unlock(&cq->lock);
	if (held)
		hca_channel_notify(cq);
}

static void period_over(struct progress_timer *t)
{
	release_event(container_of(t, struct hca_cq, event_timer));
}

/* On the progress thread, because the thread that lost a completion holds locks of its QP. */
static void fail_queue_pairs(struct progress_timer *t)
{
	hca_qps_fail_on(container_of(t, struct hca_cq, overrun_timer));
}

void hca_cq_event_init(struct hca_cq *cq)
{
	progress_timer_init(&cq->event_timer, period_over);
	progress_timer_init(&cq->overrun_timer, fail_queue_pairs);
}

void hca_cq_event_fini(struct hca_cq *cq)
{
	progress_timer_cancel(&cq->event_timer);
	progress_timer_cancel(&cq->overrun_timer);
	hca_lock(&cq->lock);
	hca_cq_set_armed(cq, 0);
	hca_unlock(&cq->lock);
}

/* Calls `poll` until it finds no messages. True: there may be more. */
static bool move_all(bool (*poll)(void))
{
	for (int i = 0; i < MOVES_WHEN_ARMED && !hca_builds(); i++)
		if (!poll())
			return false;
	return true;
}

int hca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct hca_cq *cq = hca_cq(ibcq);

	/* Permitted without a channel, but has no effect. */
	if (!ibcq->channel)
		return 0;
	hca_enter();
	/* A program that arms a queue with completions in it polls next: messages that have
	 * arrived are moved before the queue is armed, so that they raise no event; sockets, where
	 * that takes a system call, are not looked at twice in a row. A program
	 * whose queue is empty may have polled for the last time: a message that the poll did not
	 * find raises the event, as with adapters, although it may have arrived before this
	 * call. */
	if (!hca_cq_empty(cq))
		move_all(hca_self.looked ? hca_transports_poll_local :
					   hca_poll_transports_surely);
	hca_self.looked = false;
	hca_lock(&cq->lock);
	if (!solicited_only)
		hca_cq_set_armed(cq, HCA_CQ_ARMED_NEXT);
	else if (!(cq->special & HCA_CQ_ARMED))
		hca_cq_set_armed(cq, HCA_CQ_ARMED_SOLICITED);
	hca_unlock(&cq->lock);
	/* From here on peers wake this process. Messages that have arrived meanwhile are moved
	 * now, after arming, so that their completions raise the event; messages that wake a
	 * thread are left to that thread. */
	hca_attention_release();
	if (move_all(hca_transports_poll_unannounced))
		hca_attention_hand_over();
	hca_leave();
	return 0;
}

int hca_cq_modify(struct ibv_cq *ibcq, const struct ibv_modify_cq_attr *attr)
{
	struct hca_cq *cq = hca_cq(ibcq);

	if (!attr->attr_mask)
		return -EINVAL;
	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return -EOPNOTSUPP;
	hca_lock(&cq->lock);
	cq->event_count = attr->moderate.cq_count;
	cq->event_period_us = attr->moderate.cq_period;
	hca_unlock(&cq->lock);
	/* A delayed event was delayed by the previous values. */
	release_event(cq);
	return 0;
}
