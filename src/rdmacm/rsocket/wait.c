/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for one socket: spinning for the polling time, then sleeping. poll.c does the
 * same for several sockets. rs.h says why no wake-up is lost.
 */
#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/spin.h"
#include "util/wakeup.h"

/* Spins for the polling time. The last result of `ready`. */
static int spin(struct rs *rs, int (*ready)(struct rs *rs, uint32_t arg),
		uint32_t arg)
{
	uint64_t limit_ns = rs_config_get()->polling_us * UINT64_C(1000);
	uint64_t start_ns = clock_now_ns();
	int ret;

	for (;;) {
		rs_progress(rs);
		ret = ready(rs, arg);
		if (ret || clock_now_ns() - start_ns >= limit_ns)
			return ret;
		pthread_mutex_unlock(&rs->lock);
		cpu_relax();
		pthread_mutex_lock(&rs->lock);
	}
}

static int left_ms(uint64_t end_ns)
{
	int limit_ms = (int)rs_config_get()->wake_up_ms;
	uint64_t now_ns, left;

	if (!end_ns)
		return limit_ms;
	now_ns = clock_monotonic_ns_slow();
	if (now_ns >= end_ns)
		return 0;
	left = (end_ns - now_ns + RS_NSEC_PER_MSEC - 1) / RS_NSEC_PER_MSEC;
	return (int)MIN(left, (uint64_t)limit_ms);
}

struct sleeper {
	struct rs *rs;
	struct rs_waiter waiter;
};

/* Cleanup handler of a cancelled call: releases what it holds. */
static void sleeper_cancelled(void *arg)
{
	struct sleeper *s = arg;

	pthread_mutex_lock(&s->rs->lock);
	list_remove(&s->waiter.entry);
	pthread_mutex_unlock(&s->rs->lock);
	rs_put(s->rs);
}

/* Sleeps without the lock, with the caller's cancellation state `before`: the only
 * point where a waiting call can be cancelled. */
static int sleep_in(struct sleeper *s, struct pollfd *fds, nfds_t count,
		    int timeout_ms, int before)
{
	int ret, now;

	pthread_cleanup_push(sleeper_cancelled, s);
	pthread_setcancelstate(before, &now);
	ret = poll(fds, count, timeout_ms) < 0 ? -errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &now);
	pthread_cleanup_pop(0);
	return ret;
}

/* Sleeps once, without the lock, which is held again at the return. 0 or -errno. */
static int rest(struct sleeper *s, int timeout_ms, int before)
{
	struct rs *rs = s->rs;
	int wake_fd = s->waiter.wake_fd;
	struct pollfd fds[] = {
		{ .fd = wake_fd, .events = POLLIN },
		{ .fd = rs->channel->fd, .events = POLLIN },
		{ .fd = rs->comp ? rs->comp->fd : -1, .events = POLLIN },
	};
	int ret;

	/* The channel of a datagram socket is read by the thread of dgram_serve.c. */
	if (rs->served)
		fds[1].fd = -1;
	pthread_mutex_unlock(&rs->lock);
	ret = sleep_in(s, fds, ARRAY_SIZE(fds), timeout_ms, before);
	if (fds[0].revents)
		wakeup_drain(wake_fd);
	pthread_mutex_lock(&rs->lock);
	if (fds[2].revents)
		rs_drain(rs, wake_fd);
	return ret;
}

int rs_wait(struct rs *rs, int (*ready)(struct rs *rs, uint32_t arg),
	    uint32_t arg, int timeout_ms)
{
	uint64_t end_ns = timeout_ms ? clock_monotonic_ns_slow() +
				       (uint64_t)timeout_ms * RS_NSEC_PER_MSEC : 0;
	struct sleeper self = { .rs = rs };
	CANCEL_OFF;
	int ret = spin(rs, ready, arg);

	if (ret)
		return ret < 0 ? ret : 0;
	self.waiter.wake_fd = rs_wake_fd();
	if (self.waiter.wake_fd < 0)
		return self.waiter.wake_fd;
	wakeup_drain(self.waiter.wake_fd);
	list_push(&rs->waiters, &self.waiter.entry);
	for (;;) {
		int rest_ms;

		rs_arm(rs);
		rs_progress_all(rs);
		ret = ready(rs, arg);
		if (ret)
			break;
		rest_ms = left_ms(end_ns);
		ret = rest_ms ? rest(&self, rest_ms, cancel_before_) : -EAGAIN;
		if (ret)
			break;
	}
	list_remove(&self.waiter.entry);
	return ret < 0 ? ret : 0;
}
