/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rare cases of adding a completion: the queue is armed or full (cq_event.c describes events and
 * their moderation).
 */
#define LOG_ROOM "hca"
#include "hca/queue/push.h"

#include "hca/event/async.h"
#include "hca/event/channel.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/clock.h"
#include "util/log.h"

void hca_cq_set_armed(struct hca_cq *cq, unsigned arm)
{
	unsigned before = cq->special & HCA_CQ_ARMED;

	if (!before != !arm)
		atomic_fetch_add(&hca_process.armed, arm ? 1 : -1);
	if ((before ^ arm) & HCA_CQ_ARMED_NEXT)
		atomic_fetch_add(&hca_process.armed_next,
				 arm & HCA_CQ_ARMED_NEXT ? 1 : -1);
	cq->special = (uint8_t)((cq->special & ~(unsigned)HCA_CQ_ARMED) | arm);
	if (!arm)
		cq->events_held = 0;
}

static bool moderated(const struct hca_cq *cq)
{
	return cq->event_count || cq->event_period_us;
}

enum hca_cq_action hca_cq_pushed(struct hca_cq *cq, uint32_t head,
				 const struct ibv_wc *wc, bool solicited)
{
	bool error = wc->status != IBV_WC_SUCCESS;

	if (cq->stamps)
		cq->stamps[head & cq->mask] = clock_ticks();
	if (!(cq->special & HCA_CQ_ARMED_NEXT) &&
	    !((cq->special & HCA_CQ_ARMED_SOLICITED) && (solicited || error)))
		return HCA_CQ_NOTHING;
	if (unlikely(moderated(cq)) && !error) {
		cq->events_held++;
		if (!cq->event_count || cq->events_held < cq->event_count)
			return cq->events_held == 1 && cq->event_period_us ?
				       HCA_CQ_NOTIFY_LATER :
				       HCA_CQ_NOTHING;
	}
	hca_cq_set_armed(cq, 0);
	return HCA_CQ_NOTIFY;
}

void hca_cq_act(struct hca_cq *cq, enum hca_cq_action action)
{
	if (action == HCA_CQ_NOTIFY)
		hca_channel_notify(cq);
	else if (action == HCA_CQ_NOTIFY_LATER)
		progress_timer_arm(&cq->event_timer,
				   progress_now_ns() +
					   cq->event_period_us * UINT64_C(1000));
}

void hca_cq_overrun(struct hca_cq *cq)
{
	if (atomic_exchange(&cq->overrun, true))
		return;
	HCA_COUNT_PROCESS(CQ_OVERRUNS, 1);
	log_warn("completion queue of %u entries overrun", cq->limit);
	hca_async_cq_event(cq, IBV_EVENT_CQ_ERR);
	progress_timer_arm(&cq->overrun_timer, progress_now_ns());
}

bool hca_cq_full(struct hca_cq *cq)
{
	if (!cq->ignore_overrun) {
		hca_unlock(&cq->lock);
		hca_cq_overrun(cq);
		return false;
	}
	/* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: the oldest entry is overwritten. */
	atomic_store_explicit(&cq->tail,
			      atomic_load_explicit(&cq->tail,
						   memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return true;
}
