/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timing wheel; see wheel.h.
 *
 * A timer is at the level of the highest digit (of WHEEL_SLOT_BITS bits) in which its tick
 * differs from the wheel's, in the slot with the number of its own digit. So all timers
 * of a level are earlier than all of higher levels, a level's slots are in the future,
 * and the first timer is in the first used slot of the lowest used level. When the
 * wheel reaches a slot above level 0, its timers are moved to lower levels.
 */
#include "util/wheel.h"

#include <stddef.h>

#define PLACE_DUE UINT16_MAX
#define LAST_TICK (UINT64_MAX >> WHEEL_TICK_BITS)

void wheel_init(struct wheel *w, uint64_t now_ns)
{
	w->tick = now_ns >> WHEEL_TICK_BITS;
	list_init(&w->due);
	for (unsigned i = 0; i < WHEEL_LEVELS; i++)
		w->used[i] = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(w->slots); i++)
		list_init(&w->slots[i]);
}

static uint64_t tick_of(uint64_t deadline_ns)
{
	uint64_t tick = deadline_ns >> WHEEL_TICK_BITS;

	return (deadline_ns & (WHEEL_TICK_NS - 1)) && tick < LAST_TICK ? tick + 1 :
									 tick;
}

static void take_out(struct wheel *w, struct wheel_timer *t)
{
	list_remove(&t->entry);
	if (t->place != PLACE_DUE && list_empty(&w->slots[t->place]))
		w->used[t->place / WHEEL_SLOTS] &=
			~(UINT64_C(1) << t->place % WHEEL_SLOTS);
}

static void put_in(struct wheel *w, struct wheel_timer *t)
{
	uint64_t tick = tick_of(t->deadline_ns);
	unsigned level, slot;

	if (tick <= w->tick) {
		t->place = PLACE_DUE;
		list_push(&w->due, &t->entry);
		return;
	}
	level = (63u - (unsigned)__builtin_clzll(tick ^ w->tick)) / WHEEL_SLOT_BITS;
	slot = (tick >> level * WHEEL_SLOT_BITS) & (WHEEL_SLOTS - 1);
	t->place = (uint16_t)(level * WHEEL_SLOTS + slot);
	list_push(&w->slots[t->place], &t->entry);
	w->used[level] |= UINT64_C(1) << slot;
}

void wheel_arm(struct wheel *w, struct wheel_timer *t, uint64_t deadline_ns)
{
	if (wheel_is_armed(t))
		take_out(w, t);
	t->deadline_ns = deadline_ns;
	put_in(w, t);
}

bool wheel_cancel(struct wheel *w, struct wheel_timer *t)
{
	if (!wheel_is_armed(t))
		return false;
	take_out(w, t);
	return true;
}

/* The tick at which the first used slot begins; its level and slot. */
static uint64_t next_tick(const struct wheel *w, unsigned *level, unsigned *slot)
{
	for (unsigned l = 0; l < WHEEL_LEVELS; l++) {
		unsigned shift = l * WHEEL_SLOT_BITS;

		if (!w->used[l])
			continue;
		*level = l;
		*slot = (unsigned)__builtin_ctzll(w->used[l]);
		return (((w->tick >> shift) & ~(uint64_t)(WHEEL_SLOTS - 1)) | *slot)
		       << shift;
	}
	return UINT64_MAX;
}

uint64_t wheel_next_ns(const struct wheel *w)
{
	unsigned level, slot;
	uint64_t tick;

	if (!list_empty(&w->due))
		return 0;
	tick = next_tick(w, &level, &slot);
	return tick == UINT64_MAX ? UINT64_MAX : tick << WHEEL_TICK_BITS;
}

struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now_ns)
{
	uint64_t now = now_ns >> WHEEL_TICK_BITS;
	struct list *first;

	while (list_empty(&w->due) && w->tick < now) {
		struct list moved;
		unsigned level, slot;
		uint64_t tick = next_tick(w, &level, &slot);

		if (tick > now) {
			w->tick = now;
			break;
		}
		w->tick = tick;
		w->used[level] &= ~(UINT64_C(1) << slot);
		list_init(&moved);
		list_splice(&moved, &w->slots[level * WHEEL_SLOTS + slot]);
		while ((first = list_pop(&moved)))
			put_in(w, list_entry(first, struct wheel_timer, entry));
	}
	first = list_pop(&w->due);
	return first ? list_entry(first, struct wheel_timer, entry) : NULL;
}
