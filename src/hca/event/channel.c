/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels; see channel.h. */
#define LOG_ROOM "hca"
#include "hca/event/channel.h"
#include "hca/object/context.h"
#include "hca/object/cq.h"
#include "hca/share/counters.h"
#include "util/list.h"
#include "util/spin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/object/live.h"
#include "hca/share/process.h"
#include "util/log.h"
#include "util/probe.h"
#include "util/wakeup.h"

void hca_event_count(int fd)
{
	int ret = wakeup_post(fd);

	if (ret)
		log_error("event not delivered: %s", strerror(-ret));
}

int hca_channel_create(struct ibv_context *ctx, struct ibv_comp_channel **out)
{
	struct hca_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	ch->ibv.context = ctx;
	ch->ibv.fd = wakeup_open_counter();
	if (ch->ibv.fd < 0) {
		ret = ch->ibv.fd;
		free(ch);
		return ret;
	}
	list_init(&ch->ready);
	hca_context_get(hca_context(ctx));
	hca_live_begin(&ch->ibv, HCA_CHANNEL);
	*out = &ch->ibv;
	return 0;
}

int hca_channel_destroy(struct ibv_comp_channel *ibch)
{
	struct hca_channel *ch = hca_channel(ibch);
	int users;

	if (!hca_live(ibch, HCA_CHANNEL))
		return -EINVAL;
	spin_lock(&ch->lock);
	users = ibch->refcnt;
	spin_unlock(&ch->lock);
	if (users)
		return -EBUSY;
	hca_live_end(ibch, HCA_CHANNEL);
	hca_context_put(hca_context(ibch->context));
	close(ibch->fd);
	free(ch);
	return 0;
}

void hca_channel_ref(struct ibv_comp_channel *ibch)
{
	struct hca_channel *ch = hca_channel(ibch);

	spin_lock(&ch->lock);
	ibch->refcnt++;
	spin_unlock(&ch->lock);
}

void hca_channel_notify(struct hca_cq *cq)
{
	struct hca_channel *ch = hca_channel(cq->ex.channel);

	spin_lock(&ch->lock);
	if (cq->events_queued++ == 0)
		list_push(&ch->ready, &cq->event_entry);
	spin_unlock(&ch->lock);
	HCA_COUNT_PROCESS(CQ_EVENTS, 1);
	PROBE(cq_event, (uintptr_t)hca_cq_public(cq), ch->ibv.fd);
	hca_event_count(ch->ibv.fd);
}

uint32_t hca_channel_forget(struct hca_cq *cq)
{
	struct hca_channel *ch = hca_channel(cq->ex.channel);
	unsigned unread;
	uint32_t taken;

	spin_lock(&ch->lock);
	unread = cq->events_queued;
	taken = cq->events_taken;
	cq->events_queued = 0;
	list_remove(&cq->event_entry);
	ch->ibv.refcnt--;
	spin_unlock(&ch->lock);
	/* A reader that took one of these counts finds no CQ in the list and reads again. */
	while (unread-- && wakeup_take(ch->ibv.fd))
		;
	return taken;
}

int hca_channel_get_event(struct ibv_comp_channel *ibch, struct ibv_cq **cq_out,
			  void **cq_context)
{
	struct hca_channel *ch = hca_channel(ibch);
	struct hca_cq *cq = NULL;

	while (!cq) {
		int ret = wakeup_wait(ibch->fd);

		if (ret)
			return ret;
		spin_lock(&ch->lock);
		if (!list_empty(&ch->ready)) {
			cq = list_entry(ch->ready.next, struct hca_cq,
					event_entry);
			list_remove(&cq->event_entry);
			if (--cq->events_queued > 0)
				list_push(&ch->ready, &cq->event_entry);
			/* Counted under the lock: a destruction that finds
			 * no event queued waits for this one. */
			cq->events_taken++;
			*cq_context = cq->ex.cq_context;
		}
		spin_unlock(&ch->lock);
	}
	*cq_out = hca_cq_public(cq);
	return 0;
}
