/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hierarchical timing wheel (Varghese and Lauck, 1987): arming and cancelling
 * take the same time however many timers there are. Pure: the caller says what
 * time it is, and guards the wheel.
 *
 * A timer expires at the first call of wheel_expire() whose time has reached its
 * deadline rounded up to WHEEL_TICK_NS; never before its deadline. Timers expire in
 * the order of their rounded deadlines, those of one tick in the order of arming as
 * far as none was moved between levels.
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
/* All of a 64-bit time. */
#define WHEEL_LEVELS ((64 - WHEEL_TICK_BITS) / WHEEL_SLOT_BITS)

struct wheel_timer {
	struct list entry;    /* an empty list: not armed */
	uint64_t deadline_ns; /* as it was given */
	uint16_t place;       /* its slot, counted over all levels */
};

struct wheel {
	uint64_t tick; /* all before it have been worked off */
	uint64_t used[WHEEL_LEVELS]; /* a bit for each slot that holds timers */
	struct list due;             /* expired, not yet given out */
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

/* Arms, or moves one that is armed. A deadline in the past is due at once. O(1). */
void wheel_arm(struct wheel *w, struct wheel_timer *t, uint64_t deadline_ns);

/* False: it was not armed, or wheel_expire() has given it out. O(1). */
bool wheel_cancel(struct wheel *w, struct wheel_timer *t);

/* A timer whose deadline has come; it is not armed any more. NULL: there is none.
 * `now_ns` never goes back. */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns);

/* When wheel_expire() has something to do: not later than the first deadline rounded
 * up; it may be earlier. 0: now. UINT64_MAX: nothing is armed. */
uint64_t wheel_next_ns(const struct wheel *w);

#endif
