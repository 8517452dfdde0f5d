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
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/object/live.h"
#include "hca/run/elide.h"
#include "hca/share/arrival.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/interrupt.h"
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
	int users, sleeper;

	if (!hca_live(ibch, HCA_CHANNEL))
		return -EINVAL;
	spin_lock(&ch->lock);
	users = ibch->refcnt;
	spin_unlock(&ch->lock);
	if (users)
		return -EBUSY;
	hca_live_end(ibch, HCA_CHANNEL);
	sleeper = atomic_load(&ch->sleeper);
	if (sleeper > 0 && !hca_context_inherited(ibch->context))
		hca_sleeper_close(sleeper - 1);
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
	/* This thread takes it without the detour over the descriptor. */
	bool mine = hca_self.waits_for == ch;

	spin_lock(&ch->lock);
	if (cq->events_queued++ == 0)
		list_push(&ch->ready, &cq->event_entry);
	ch->uncounted += mine;
	spin_unlock(&ch->lock);
	HCA_COUNT_PROCESS(CQ_EVENTS, 1);
	PROBE(cq_event, (uintptr_t)hca_cq_public(cq), ch->ibv.fd);
	if (!mine)
		hca_event_count(ch->ibv.fd);
}

uint32_t hca_channel_forget(struct hca_cq *cq)
{
	struct hca_channel *ch = hca_channel(cq->ex.channel);
	unsigned unread, uncounted;
	uint32_t taken;

	spin_lock(&ch->lock);
	unread = cq->events_queued;
	uncounted = MIN(unread, ch->uncounted);
	ch->uncounted -= uncounted;
	unread -= uncounted;
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

/* ---- reading ---- */

/* lock is held, and there is an event. */
static struct hca_cq *pop(struct hca_channel *ch, void **cq_context)
{
	struct hca_cq *cq = list_entry(ch->ready.next, struct hca_cq, event_entry);

	list_remove(&cq->event_entry);
	if (--cq->events_queued > 0)
		list_push(&ch->ready, &cq->event_entry);
	/* Counted under the lock: a destruction that finds no event queued waits for this one. */
	cq->events_taken++;
	*cq_context = cq->ex.cq_context;
	return cq;
}

/* NULL: another reader has it, or its queue is gone. */
static struct hca_cq *take_counted(struct hca_channel *ch, void **cq_context)
{
	struct hca_cq *cq = NULL;

	spin_lock(&ch->lock);
	if (!list_empty(&ch->ready))
		cq = pop(ch, cq_context);
	spin_unlock(&ch->lock);
	return cq;
}

/* An event if there is one, or NULL. What this thread has raised and does not take becomes visible
 * to others. */
static struct hca_cq *take(struct hca_channel *ch, void **cq_context)
{
	struct hca_cq *cq = NULL;
	unsigned uncounted;
	bool any;

	spin_lock(&ch->lock);
	any = !list_empty(&ch->ready);
	if (ch->uncounted) {
		cq = pop(ch, cq_context);
		ch->uncounted--;
	}
	uncounted = ch->uncounted;
	ch->uncounted = 0;
	spin_unlock(&ch->lock);
	while (uncounted--)
		hca_event_count(ch->ibv.fd);
	if (cq || !any || !wakeup_take(ch->ibv.fd))
		return cq;
	return take_counted(ch, cq_context);
}

/* ---- sleeping ---- */

enum { NO_SLEEPER = -1 };

/* What signals do to a sleep in read(), from time to time. */
#define SLEEPS_PER_ASKING 4096u

static enum interrupt interrupts(bool now)
{
	static atomic_uint sleeps;
	static _Atomic enum interrupt known;

	if (now || atomic_fetch_add_explicit(&sleeps, 1, memory_order_relaxed) %
				   SLEEPS_PER_ASKING == 0)
		atomic_store(&known, interrupt_ask());
	return atomic_load(&known);
}

/* Not positive in a channel whose threads sleep in read(). */
static int sleeper_of(struct hca_channel *ch)
{
	int sleeper = atomic_load(&ch->sleeper), mine;

	if (likely(sleeper))
		return sleeper;
	/* The kernel must be able to take an event of a descriptor that blocks. */
	mine = wakeup_takes() ? hca_sleeper_open(ch->ibv.fd) : NO_SLEEPER;
	mine = mine < 0 ? NO_SLEEPER : mine + 1;
	if (atomic_compare_exchange_strong(&ch->sleeper, &sleeper, mine))
		return mine;
	if (mine > 0)
		hca_sleeper_close(mine - 1);
	return sleeper;
}

/*
 * May the caller serve messages while it sleeps? Otherwise it sleeps in read(), and the progress
 * thread serves them. epoll_wait() differs from read() where signals interrupt it: that can be
 * made up for, unless the program has handlers of both kinds. A thread inside of the adapter
 * (between ibv_wr_start() and ibv_wr_complete()) holds locks.
 */
static bool may_serve(struct hca_channel *ch)
{
	return !hca_self.depth && !hca_context_inherited(ch->ibv.context) &&
	       interrupts(false) != INTERRUPT_DEPENDS &&
	       !(fcntl(ch->ibv.fd, F_GETFL) & O_NONBLOCK) && sleeper_of(ch) > 0;
}

/* 0 or -EINTR. */
static int serve(struct hca_channel *ch)
{
	int ret = hca_sleeper_wait(
		atomic_load_explicit(&ch->sleeper, memory_order_relaxed) - 1, ch);

	return ret == -EINTR && interrupts(true) == INTERRUPT_NEVER ? 0 : ret;
}

int hca_channel_get_event(struct ibv_comp_channel *ibch, struct ibv_cq **cq_out,
			  void **cq_context)
{
	struct hca_channel *ch = hca_channel(ibch);
	struct hca_cq *cq = take(ch, cq_context);

	if (cq && atomic_load_explicit(&ch->sleeper, memory_order_relaxed) > 0)
		hca_sleeper_visit();
	while (!cq) {
		bool serves = may_serve(ch);
		int ret = serves ? serve(ch) : wakeup_wait(ibch->fd);

		if (ret)
			return ret;
		cq = serves ? take(ch, cq_context) : take_counted(ch, cq_context);
	}
	*cq_out = hca_cq_public(cq);
	return 0;
}
