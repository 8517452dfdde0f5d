/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting in a call: the thread looks after messages itself for poll_us, then it sleeps, and
 * the instance's own thread does.
 */
#include <errno.h>

#include "ripc/instance/instance.h"

/* Looks between two looks at the clock. */
#define LOOKS 16

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t deadline_of(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : now_ns() + (uint64_t)timeout_ms * 1000000u;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int wait_until(struct ripc *r, struct event *e, bool (*done)(void *), void *arg,
	       uint64_t until_ns)
{
	uint64_t poll_ns = r->config.c.poll_us == UINT32_MAX ?
				   UINT64_MAX : (uint64_t)r->config.c.poll_us * 1000u;
	uint64_t start = now_ns(), now = start;

	for (unsigned looks = 0;; looks++) {
		if (done(arg))
			return 0;
		atomic_store_explicit(&r->hot, true, memory_order_relaxed);
		pump(r);
		if (looks % LOOKS)
			continue;
		now = now_ns();
		if (now - start >= poll_ns || now >= until_ns)
			break;
	}
	while (now < until_ns) {
		unsigned number = event_prepare(e);

		pump_cool(r);
		if (done(arg)) {
			event_cancel(e);
			return 0;
		}
		event_sleep(e, number, min_u64(until_ns - now, 1000000000u));
		now = now_ns();
	}
	return done(arg) ? 0 : -EAGAIN;
}
