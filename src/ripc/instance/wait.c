/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting in a call: the thread looks after messages itself for poll_us, then it sleeps, and
 * the instance's own thread does.
 *
 * It takes longer to be woken than to get an answer. Two sides that have gone to sleep once,
 * because one of them lost its processor for a moment, would each be asleep again before the
 * other one was woken. So who is woken soon after it went to sleep looks for twice as long the
 * next time, up to PATIENCE_MAX doublings, until it has slept for long.
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

/* What is longer between two looks at the clock does not count: the thread was kept from looking. */
#define AWAY_NS 20000u
#define PATIENCE_MAX 3

static uint64_t poll_time(const struct ripc *r, unsigned patience)
{
	return r->config.c.poll_us == UINT32_MAX ?
		       UINT64_MAX : (uint64_t)r->config.c.poll_us * 1000u << patience;
}

/* True: it is done. False: the time is over, of polling or of the wait. */
static bool look_for(struct ripc *r, uint64_t poll_ns, bool (*done)(void *), void *arg,
		     uint64_t until_ns, uint64_t *now)
{
	uint64_t start = *now, last = start;

	for (unsigned looks = 0;; looks++) {
		if (done(arg))
			return true;
		atomic_store_explicit(&r->hot, true, memory_order_relaxed);
		pump(r);
		if (looks % LOOKS)
			continue;
		*now = now_ns();
		if (*now - last > AWAY_NS)
			start += *now - last - AWAY_NS;
		last = *now;
		if (*now - start >= poll_ns || *now >= until_ns)
			return false;
	}
}

/* After a sleep of `slept_ns`, before which the patience was `before`. `woken`: what the thread
 * waited for has come. */
static void set_patience(struct ripc *r, struct event *e, unsigned before, bool woken,
			 uint64_t slept_ns)
{
	unsigned patience = before;

	if (slept_ns > poll_time(r, PATIENCE_MAX))
		patience = 0;
	else if (woken && patience < PATIENCE_MAX)
		patience++;
	atomic_store_explicit(&e->patience, patience, memory_order_relaxed);
}

int wait_until(struct ripc *r, struct event *e, bool (*done)(void *), void *arg,
	       uint64_t until_ns)
{
	unsigned patience = atomic_load_explicit(&e->patience, memory_order_relaxed);
	uint64_t now = now_ns(), from;
	bool is_done;

	if (look_for(r, poll_time(r, patience), done, arg, until_ns, &now))
		return 0;
	from = now;
	while (!(is_done = done(arg)) && now < until_ns) {
		unsigned number = event_prepare(e);

		pump_cool(r);
		if (done(arg))
			event_cancel(e);
		else
			event_sleep(e, number, min_u64(until_ns - now, 1000000000u));
		now = now_ns();
	}
	set_patience(r, e, patience, is_done && now > from, now - from);
	return is_done ? 0 : -EAGAIN;
}
