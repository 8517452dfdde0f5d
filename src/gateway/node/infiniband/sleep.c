/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a reader waits that does not poll for ever: by completion events, and by
 * wake_fd for all that is no completion; and what wakes it. See in.polling.
 *
 * Arming looks at new completions only, so the order is: an empty poll, arm, a
 * second empty poll, sleep. A completion that comes before the arming is found
 * by the second poll, one that comes after it gives an event, and the event
 * stays until it is taken. That the second poll finds something does no harm:
 * the queue stays armed, and at worst a later sleep ends for nothing. It is armed
 * anew for every sleep all the same, because arming also tells an adapter in
 * software that nobody will poll for a while.
 *
 * Events are counted and acknowledged many at a time, since that takes a lock,
 * and the rest before the completion queue is destroyed.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "gateway/node/infiniband/channel.h"
#include "util/clock.h"
#include "util/wakeup.h"

#define ACKNOWLEDGE_EVERY 256

void ib_channel_interrupt(struct ib_channel *ch)
{
	atomic_fetch_or(&ch->control, IB_INTERRUPT);
	wakeup_post(ch->wake_fd);
}

void ib_channel_break(struct ib_channel *ch, unsigned bits, int error)
{
	int none = 0;

	atomic_fetch_and(&ch->control, ~bits);
	if (bits & IB_RX_OPEN)
		wakeup_post(ch->wake_fd);
	/* Only the first one tells a cause, and only once. */
	if (atomic_compare_exchange_strong(&ch->error, &none, error))
		wakeup_post(ch->notify_fd);
}

void ib_rx_acknowledge(struct ib_channel *ch)
{
	if (ch->rx.unacked)
		ibv_ack_cq_events(ch->q.recv_cq, ch->rx.unacked);
	ch->rx.unacked = 0;
}

/* Non-blocking: when there is none, nothing has changed. */
static void take_event(struct ib_channel *ch)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(ch->cfg.events, &cq, &context)) {
		if (errno != EAGAIN && errno != EINTR)
			ib_channel_break(ch, IB_RX_OPEN, -errno);
		return;
	}
	if (++ch->rx.unacked == ACKNOWLEDGE_EVERY)
		ib_rx_acknowledge(ch);
}

static void arm(struct ib_channel *ch)
{
	int err = ibv_req_notify_cq(ch->q.recv_cq, 0);

	if (unlikely(err))
		ib_channel_break(ch, IB_RX_OPEN, -abs(err));
	ch->rx.armed = true;
}

/* Arms; or sleeps, if a poll behind the arming has found nothing. */
static void arm_or_sleep(struct ib_channel *ch, uint64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = ch->wake_fd, .events = POLLIN },
		{ .fd = ch->cfg.events->fd, .events = POLLIN },
	};

	if (!ch->rx.armed) {
		arm(ch);
		return;
	}
	ch->rx.armed = false;
	pthread_cleanup_push(ib_leave_cancelled, &ch->reading);
	/* A thread that wants the reader to leave posts wake_fd. */
	wakeup_poll(fds, ARRAY_SIZE(fds), until_ns);
	if (fds[1].revents)
		take_event(ch);
	pthread_cleanup_pop(0);
}

void ib_rx_rest(struct ib_channel *ch, struct ib_idle *idle)
{
	if (ch->cfg.spin_ns) {
		uint64_t now = clock_now_ns();

		if (!idle->since_ns)
			idle->since_ns = now;
		if (now - idle->since_ns < ch->cfg.spin_ns)
			return;
	}
	arm_or_sleep(ch, UINT64_MAX);
}

void ib_channel_sleep(struct ib_channel *ch, uint64_t until_ns)
{
	if (until_ns <= clock_now_ns() || !ib_enter(&ch->reading, &ch->control, IB_RX_OPEN))
		return;
	/* Otherwise the next read has work to do. */
	if (!ch->rx.pending_count && ib_table_used(&ch->rx.table) >= ch->rx.threshold)
		arm_or_sleep(ch, until_ns);
	ib_leave(&ch->reading);
}

void ib_rx_arm(struct ib_channel *ch)
{
	/* Both before the poll, so that neither hides what comes after it. */
	wakeup_drain(ch->wake_fd);
	take_event(ch);
	arm(ch);
}

int ib_channel_poll_fds(struct ib_channel *ch, int fds[], int max)
{
	bool possible = ch->cfg.events && max >= 2;

	/* Completions from before the wait must not be missed. */
	if (atomic_exchange(&ch->polled, possible) != possible && possible)
		wakeup_post(ch->wake_fd);
	if (!possible)
		return 0;
	fds[0] = ch->cfg.events->fd;
	fds[1] = ch->wake_fd;
	return 2;
}
