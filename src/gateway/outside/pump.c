/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for the server, and doing what is due; see outside.h. */
#define LOG_ROOM "gateway/outside"
#include <errno.h>
#include <string.h>

#include "gateway/outside/outside_private.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/wakeup.h"

/* The longest sleep at a time. */
#define SLEEP_NS UINT64_C(100000000)

void outside_work(struct outside *o)
{
	int ret;

	outside_hold(o);
	if (o->opened && !atomic_load_explicit(&o->broken, memory_order_relaxed)) {
		o->why[0] = 0;
		o->taken = 0;
		o->taken_samples = 0;
		o->unconfirmed.looks = 0;
		ret = o->ops->turn ? o->ops->turn(o) : 0;
		if (!ret && atomic_load_explicit(&o->up, memory_order_relaxed))
			ret = outside_flush(o);
		if (unlikely(ret < 0)) {
			if (!o->why[0])
				outside_fail(o, ret, "%s", strerror(-ret));
			outside_break(o);
		}
		outside_tell_room(o);
	}
	pthread_mutex_unlock(&o->lock);
}

void outside_wait(struct pollfd fds[], unsigned count, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	struct timespec t = timespec_from_ns(until_ns > now ? MIN(until_ns - now, SLEEP_NS) : 0);

	ppoll(fds, count, &t, NULL);
}

void outside_pump(struct outside *o, uint64_t until_ns)
{
	struct pollfd fds[OUTSIDE_FDS + 1];
	uint64_t due_ns = UINT64_MAX;
	unsigned count = 0;

	outside_hold(o);
	if (o->opened && o->ops->wait && !atomic_load(&o->broken))
		count = o->ops->wait(o, fds, &due_ns);
	pthread_mutex_unlock(&o->lock);
	fds[count] = (struct pollfd){ .fd = o->pump_fd, .events = POLLIN };
	outside_wait(fds, count + 1, MIN(until_ns, due_ns));
	if (fds[count].revents)
		wakeup_drain(o->pump_fd);
	o->polled = count ? fds : NULL;
	outside_work(o);
	o->polled = NULL;
}
