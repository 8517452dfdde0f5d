/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for data; see socket_wait.h. */
#include "gateway/part/socket_wait.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "gateway/plugin/node.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/spin.h"
#include "util/wakeup.h"

/* A spinning reader must not starve its writer for a whole time slice where
 * both share a processor. */
#define YIELD_EVERY 64

int socket_wait_open(struct socket_wait *w)
{
	w->wake_fd = wakeup_open_signal();
	atomic_store(&w->polled, false);
	w->obeyed = atomic_load(&w->interrupts);
	return w->wake_fd < 0 ? w->wake_fd : 0;
}

void socket_wait_close(struct socket_wait *w)
{
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	w->wake_fd = -1;
}

void socket_wait_kick(struct socket_wait *w)
{
	wakeup_post(w->wake_fd);
}

void socket_wait_clear(struct socket_wait *w)
{
	wakeup_drain(w->wake_fd);
}

void socket_wait_interrupt(struct socket_wait *w)
{
	atomic_fetch_add_explicit(&w->interrupts, 1, memory_order_release);
	socket_wait_kick(w);
}

bool socket_wait_set_polled(struct socket_wait *w, bool possible)
{
	possible = possible && w->polling != POLLING_BUSY;
	/* Messages from before the wait must not be missed. */
	if (atomic_exchange(&w->polled, possible) != possible && possible)
		socket_wait_kick(w);
	return possible;
}

bool socket_wait_spin(struct socket_wait *w, struct socket_idle *idle)
{
	if (w->polling == POLLING_EVENT || w->polling == POLLING_AUTO)
		return false;
	if (w->polling == POLLING_ADAPTIVE) {
		uint64_t now = clock_now_ns();

		if (!idle->since_ns)
			idle->since_ns = now;
		if (now - idle->since_ns >= w->spin_ns)
			return false;
	}
	if (++idle->spins % YIELD_EVERY == 0)
		sched_yield();
	else
		cpu_relax();
	return true;
}

void socket_wait_sleep(struct socket_wait *w, int fd, uint64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = w->wake_fd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	wakeup_poll(fds, ARRAY_SIZE(fds), until_ns);
}

int socket_wait_read(struct socket_wait *w, struct node *n, struct sample *smps[], unsigned cnt,
		     int (*take)(struct node *n, struct sample *smps[], unsigned cnt))
{
	for (;;) {
		int ret = take(n, smps, cnt);

		if (ret > 0)
			return ret;
		if (socket_wait_interrupted(w))
			return -EINTR;
		if (ret && ret != -EAGAIN)
			return ret;
		if (n->in.awaited)
			return 0;
		if (ret)
			n->type->sleep(n, UINT64_MAX);
	}
}
