/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where somebody gets the time from who must not care: the clock of the host, or the one
 * of a simulation. Nanoseconds of a clock that never goes back.
 */
#ifndef UTIL_CLOCK_SOURCE_H
#define UTIL_CLOCK_SOURCE_H

#include <stdint.h>

#include "util/clock.h"

struct clock_source {
	uint64_t (*now_ns)(void *arg); /* any thread; does not block */
	void *arg;
};

static inline uint64_t clock_source_now_ns(const struct clock_source *c)
{
	return c->now_ns(c->arg);
}

static inline uint64_t clock_source_host_now_ns(void *arg)
{
	(void)arg;
	return clock_now_ns();
}

/* The host's; clock_init() was called. */
static inline struct clock_source clock_source_host(void)
{
	return (struct clock_source){ clock_source_host_now_ns, 0 };
}

#endif
