/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hierarchical timing wheel (Varghese and Lauck, 1987): arming and cancelling take the
 * same time, however many timers there are. Pure: the caller passes in the time and
 * guards the wheel by a lock.
 *
 * A timer expires at the first call of wheel_expire() at or after its deadline rounded up
 * to WHEEL_TICK_NS, never before its deadline. Timers expire in the order of their
 * rounded deadlines; those of one tick in the order of arming, unless one of them was
 * moved between levels.
 */
#ifndef UTIL_WHEEL_H
#define UTIL_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

#define WHEEL_TICK_BITS 10 /* 1,024 ns */
#define WHEEL_TICK_NS (UINT64_C(1) << WHEEL_TICK_BITS)
#define WHEEL_SLOT_BITS 6
#define WHEEL_SLOTS (1u << WHEEL_SLOT_BITS)
/* Enough levels for all 64-bit times. */
#define WHEEL_LEVELS ((64 - WHEEL_TICK_BITS) / WHEEL_SLOT_BITS)

struct wheel_timer {
	struct list entry;    /* an empty list: not armed */
	uint64_t deadline_ns; /* as the caller gave it */
	uint16_t place;       /* number of its slot, over all levels */
};

struct wheel {
	uint64_t tick; /* all earlier ticks are done */
	uint64_t used[WHEEL_LEVELS]; /* a bit for each slot that holds timers */
	struct list due;             /* expired, not yet returned by wheel_expire() */
	struct list slots[WHEEL_LEVELS * WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, uint64_t now_ns);

static inline void wheel_timer_init(struct wheel_timer *t)
{
	list_init(&t->entry);
	t->deadline_ns = 0;
}

static inline bool wheel_is_armed(const struct wheel_timer *t)
{
	return !list_empty(&t->entry);
}

/* Arms a timer, or moves an armed one. A deadline in the past is due at once. O(1). */
void wheel_arm(struct wheel *w, struct wheel_timer *t, uint64_t deadline_ns);

/* False: it was not armed, or wheel_expire() has returned it. O(1). */
bool wheel_cancel(struct wheel *w, struct wheel_timer *t);

/* A timer whose deadline has come, which is disarmed; NULL: there is none. `now_ns` must
 * never go back. */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns);

/* When to call wheel_expire() next: at the first rounded deadline, or earlier. 0: now;
 * UINT64_MAX: no timer is armed. */
uint64_t wheel_next_ns(const struct wheel *w);

#endif
