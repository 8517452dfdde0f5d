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
#include <sys/epoll.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/object/live.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/arrival.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/clock.h"
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

/* 0 or a negative errno. */
static int open_descriptors(struct hca_channel *ch)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = HCA_SLEEPER_OWN };
	int ret;

	ch->event_fd = wakeup_open_counter();
	if (ch->event_fd < 0)
		return ch->event_fd;
	ch->ibv.fd = epoll_create1(EPOLL_CLOEXEC);
	if (ch->ibv.fd >= 0 && !epoll_ctl(ch->ibv.fd, EPOLL_CTL_ADD, ch->event_fd, &ev))
		return 0;
	ret = -errno;
	if (ch->ibv.fd >= 0)
		close(ch->ibv.fd);
	close(ch->event_fd);
	return ret;
}

int hca_channel_create(struct ibv_context *ctx, struct ibv_comp_channel **out)
{
	struct hca_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	ch->ibv.context = ctx;
	ret = open_descriptors(ch);
	if (ret) {
		free(ch);
		return ret;
	}
	list_init(&ch->ready);
	list_init(&ch->armed);
	hca_context_get(hca_context(ctx));
	hca_live_begin(&ch->ibv, HCA_CHANNEL);
	*out = &ch->ibv;
	return 0;
}

int hca_channel_destroy(struct ibv_comp_channel *ibch)
{
	struct hca_channel *ch = hca_channel(ibch);
	int users, sleeper, outside;

	if (!hca_live(ibch, HCA_CHANNEL))
		return -EINVAL;
	spin_lock(&ch->lock);
	users = ibch->refcnt;
	spin_unlock(&ch->lock);
	if (users)
		return -EBUSY;
	hca_live_end(ibch, HCA_CHANNEL);
	sleeper = atomic_load(&ch->sleeper);
	outside = atomic_load(&ch->outside);
	if (sleeper > 0 && !hca_context_inherited(ibch->context))
		hca_sleeper_close(sleeper - 1);
	if (outside > 0 && !hca_context_inherited(ibch->context))
		hca_sleeper_close(outside - 1);
	else
		close(ibch->fd);
	hca_context_put(hca_context(ibch->context));
	close(ch->event_fd);
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
	list_remove(&cq->armed_entry);
	ch->uncounted += mine;
	spin_unlock(&ch->lock);
	HCA_COUNT_PROCESS(CQ_EVENTS, 1);
	PROBE(cq_event, (uintptr_t)hca_cq_public(cq), ch->ibv.fd);
	if (!mine)
		hca_event_count(ch->event_fd);
}

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

void hca_channel_armed(struct hca_cq *cq)
{
	struct hca_channel *ch = hca_channel(cq->ex.channel);

	spin_lock(&ch->lock);
	list_remove(&cq->armed_entry);
	list_push(&ch->armed, &cq->armed_entry);
	spin_unlock(&ch->lock);
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
	list_remove(&cq->armed_entry);
	ch->ibv.refcnt--;
	spin_unlock(&ch->lock);
	/* A reader that took one of these counts finds no CQ in the list and reads again. */
	while (unread-- && wakeup_take(ch->event_fd))
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
		hca_event_count(ch->event_fd);
	if (cq || !any || !wakeup_take(ch->event_fd))
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
	mine = wakeup_takes() ? hca_sleeper_open(ch->event_fd) : NO_SLEEPER;
	mine = mine < 0 ? NO_SLEEPER : mine + 1;
	if (atomic_compare_exchange_strong(&ch->sleeper, &sleeper, mine))
		return mine;
	if (mine > 0)
		hca_sleeper_close(mine - 1);
	return sleeper;
}

/* Does the descriptor block? One that counts events does then, too: wakeup_wait() reads it. */
static bool blocks(struct hca_channel *ch)
{
	int wanted = fcntl(ch->ibv.fd, F_GETFL) & O_NONBLOCK;
	int flags = fcntl(ch->event_fd, F_GETFL);

	if ((flags & O_NONBLOCK) != wanted)
		fcntl(ch->event_fd, F_SETFL, flags ^ O_NONBLOCK);
	return !wanted;
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
	       interrupts(false) != INTERRUPT_DEPENDS && sleeper_of(ch) > 0;
}

/* 0 or -EINTR. */
static int serve(struct hca_channel *ch)
{
	int ret = hca_sleeper_wait(
		atomic_load_explicit(&ch->sleeper, memory_order_relaxed) - 1, ch);

	return ret == -EINTR && interrupts(true) == INTERRUPT_NEVER ? 0 : ret;
}

/* ---- programs that sleep in a call of the kernel ---- */

/* So many events in a row were there when the program asked. */
#define FOUND_TO_BE_OUTSIDE 4
/* So many more arrivals without an event than with one end that for a while. */
#define VAIN_MOST 64
#define VAIN_REST_NS NSEC_PER_SEC

static bool is_outside(struct hca_channel *ch)
{
	return atomic_load_explicit(&ch->outside, memory_order_acquire) > 0 &&
	       !hca_self.depth && !hca_context_inherited(ch->ibv.context);
}

/* The descriptor is readable for events alone again. */
static void end_outside(struct hca_channel *ch)
{
	int outside = atomic_exchange(&ch->outside, 0);

	if (outside > 0)
		hca_sleeper_release(outside - 1);
	atomic_store(&ch->found, 0);
	atomic_store(&ch->vain, 0);
}

/* An event was there that another thread had raised: perhaps it has woken the program, which then
 * was woken by the second of two threads in a row. So messages are to wake it at once. */
static void consider_outside(struct hca_channel *ch)
{
	int number, none = 0;

	if (atomic_fetch_add_explicit(&ch->found, 1, memory_order_relaxed) + 1 <
		    FOUND_TO_BE_OUTSIDE ||
	    hca_context_inherited(ch->ibv.context) ||
	    progress_now_ns() < atomic_load(&ch->not_outside_before_ns))
		return;
	atomic_store_explicit(&ch->found, 0, memory_order_relaxed);
	number = wakeup_takes() ? hca_sleeper_adopt(ch->ibv.fd) : -ENOSYS;
	if (number >= 0 && !atomic_compare_exchange_strong(&ch->outside, &none, number + 1))
		hca_sleeper_release(number);
}

/* Disarms the first of the armed queues. NULL: it has raised its event just now. lock is held. */
static struct hca_cq *take_arming(struct hca_channel *ch)
{
	struct hca_cq *cq = list_entry(ch->armed.next, struct hca_cq, armed_entry);
	bool armed;

	list_remove(&cq->armed_entry);
	hca_lock(&cq->lock);
	armed = cq->special & HCA_CQ_ARMED_NEXT;
	if (armed)
		hca_cq_set_armed(cq, 0);
	hca_unlock(&cq->lock);
	return armed ? cq : NULL;
}

/* Messages that complete nothing have made the descriptor readable. That promises an event, so the
 * program gets one of a queue that it has armed, as if it had taken the completion by a poll. NULL:
 * there is no such queue. */
static struct hca_cq *vain_event(struct hca_channel *ch, void **cq_context)
{
	struct hca_cq *cq = NULL;

	if (atomic_fetch_add_explicit(&ch->vain, 1, memory_order_relaxed) >= VAIN_MOST) {
		atomic_store(&ch->not_outside_before_ns, progress_now_ns() + VAIN_REST_NS);
		end_outside(ch);
	}
	hca_enter();
	spin_lock(&ch->lock);
	while (!cq && !list_empty(&ch->armed))
		cq = take_arming(ch);
	if (cq) {
		cq->events_taken++;
		*cq_context = cq->ex.cq_context;
	}
	spin_unlock(&ch->lock);
	hca_leave();
	return cq;
}

/* Moves what has woken the program. An event if there is one, or NULL. */
static struct hca_cq *look(struct hca_channel *ch, void **cq_context)
{
	bool arrived = hca_sleeper_look(ch->ibv.fd, ch);
	struct hca_cq *cq = take(ch, cq_context);
	unsigned vain = atomic_load_explicit(&ch->vain, memory_order_relaxed);
	unsigned turns = progress_turns();

	/* The progress thread may have moved what made the descriptor readable. */
	arrived |= turns % 2 || atomic_load(&ch->turns) != turns;
	atomic_store(&ch->turns, turns);
	if (cq && vain)
		atomic_store_explicit(&ch->vain, vain - 1, memory_order_relaxed);
	if (!cq && arrived)
		cq = vain_event(ch, cq_context);
	return cq ? cq : take(ch, cq_context);
}

static struct hca_cq *first(struct hca_channel *ch, void **cq_context)
{
	struct hca_cq *cq;

	if (is_outside(ch))
		return look(ch, cq_context);
	cq = take(ch, cq_context);
	if (cq && atomic_load_explicit(&ch->sleeper, memory_order_relaxed) > 0)
		hca_sleeper_visit();
	else if (cq)
		consider_outside(ch);
	return cq;
}

int hca_channel_get_event(struct ibv_comp_channel *ibch, struct ibv_cq **cq_out,
			  void **cq_context)
{
	struct hca_channel *ch = hca_channel(ibch);
	struct hca_cq *cq = first(ch, cq_context);

	while (!cq) {
		bool blocking = blocks(ch), serves = blocking && may_serve(ch);
		int ret;

		if (blocking && is_outside(ch))
			end_outside(ch);
		ret = serves ? serve(ch) : wakeup_wait(ch->event_fd);
		if (ret)
			return ret;
		cq = serves ? take(ch, cq_context) : take_counted(ch, cq_context);
	}
	*cq_out = hca_cq_public(cq);
	return 0;
}
