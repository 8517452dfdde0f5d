/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of a fabric in the order of their times: a monotone radix queue (after Ahuja, Mehlhorn,
 * Orlin and Tarjan, 1990). An event lies in the level of the highest digit in which its time
 * differs from the queue's, in the slot of that digit, and moves to a lower level when its slot is
 * reached, at most once per level. So the cost of an event depends on how far ahead it is, and not on
 * the number of events. Events of the same time are always in one slot, so they come in the order of
 * arming. Events are members of their owners: nothing is allocated.
 */
#ifndef ENGINE_FABRIC_QUEUE_H
#define ENGINE_FABRIC_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

#define FABRIC_QUEUE_BITS 9
#define FABRIC_QUEUE_SLOTS (1u << FABRIC_QUEUE_BITS)
#define FABRIC_QUEUE_LEVELS ((64 + FABRIC_QUEUE_BITS - 1) / FABRIC_QUEUE_BITS)
#define FABRIC_QUEUE_WORDS (FABRIC_QUEUE_SLOTS / 64)

struct fabric_due {
	struct list entry; /* an empty list: not armed */
	uint64_t at_ps;
	uint16_t place;    /* level and slot */
	uint8_t kind;      /* the owner's */
	uint8_t index;     /* the owner's */
};

struct fabric_queue {
	uint64_t at_ps; /* all events are at this time or later */
	uint64_t used[FABRIC_QUEUE_LEVELS][FABRIC_QUEUE_WORDS]; /* a bit for each slot with events */
	struct list slots[FABRIC_QUEUE_LEVELS][FABRIC_QUEUE_SLOTS];
};

void fabric_queue_init(struct fabric_queue *q);

static inline void fabric_due_init(struct fabric_due *d, uint8_t kind)
{
	list_init(&d->entry);
	d->kind = kind;
}

static inline bool fabric_due_is_armed(const struct fabric_due *d)
{
	return !list_empty(&d->entry);
}

/* `d` is not armed; `at_ps` is not before the time of the last event that was taken. */
void fabric_queue_arm(struct fabric_queue *q, struct fabric_due *d, uint64_t at_ps);
/* Nothing happens if `d` is not armed. */
void fabric_queue_cancel(struct fabric_queue *q, struct fabric_due *d);
/* The first event if it is not later than `until_ps`, disarmed; else NULL. */
struct fabric_due *fabric_queue_take(struct fabric_queue *q, uint64_t until_ps);
/* The time of the first event; UINT64_MAX: there is none. */
uint64_t fabric_queue_next_ps(const struct fabric_queue *q);

#endif
