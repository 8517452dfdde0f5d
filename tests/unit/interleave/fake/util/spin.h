/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks of the checker, one step each, in place of src/util/spin.h. */
#ifndef UTIL_SPIN_H
#define UTIL_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "util/container_of.h"

#include "check.h"

struct spin {
	atomic_uint held;
};

static inline void cpu_relax(void)
{
	check_wait();
}

static inline void spin_lock(struct spin *s)
{
	check_lock(s);
}

static inline bool spin_trylock(struct spin *s)
{
	return check_trylock(s);
}

static inline bool spin_is_held(const struct spin *s)
{
	return atomic_load_explicit(&s->held, memory_order_acquire);
}

static inline void spin_unlock(struct spin *s)
{
	check_unlock(s);
}

#endif
