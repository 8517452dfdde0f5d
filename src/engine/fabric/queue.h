/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of a fabric in the order of their times: a monotone radix queue (after Ahuja, Mehlhorn,
 * Orlin and Tarjan, 1990). An event lies in the level of the highest digit in which its time
 * differs from the queue's, in the slot of that digit, and moves to a lower level when its slot is
 * reached, at most once per level. So the cost of an event depends on how far ahead it is, and not on
 * the number of events. Events of the same time are always in one slot, so they come in the order of
 * arming.
 *
 * An event has an entry in an array of the queue while it is armed, and the lists of the slots link
 * entries. So events wait and move in memory that is small enough for a cache, and the structure that an
 * event is a member of is not touched before its time. fabric_queue_reserve() makes room for the
 * entries; arming allocates nothing.
 */
#ifndef ENGINE_FABRIC_QUEUE_H
#define ENGINE_FABRIC_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define FABRIC_QUEUE_BITS 11
#define FABRIC_QUEUE_SLOTS (1u << FABRIC_QUEUE_BITS)
#define FABRIC_QUEUE_LEVELS ((64 + FABRIC_QUEUE_BITS - 1) / FABRIC_QUEUE_BITS)
#define FABRIC_QUEUE_WORDS (FABRIC_QUEUE_SLOTS / 64)
#define FABRIC_QUEUE_SOON 64

struct fabric_due {
	uint32_t entry; /* of the queue; 0: not armed */
	uint8_t kind;   /* the owner's */
	uint8_t index;  /* the owner's */
};

struct fabric_queue_entry {
	uint64_t at_ps;
	struct fabric_due *due;
	uint32_t next, prev; /* of its slot, or of those that are free; 0: none */
};

struct fabric_queue_slot {
	uint32_t first, last; /* entries; 0: none */
};

struct fabric_queue {
	uint64_t at_ps; /* of the last event that was taken; all events are at this time or later */
	struct fabric_queue_entry *entries; /* [0] is not used */
	uint32_t capacity, used, free;      /* `used`: entries that have been in use */
	uint64_t reserved;
	/* Is told of up to FABRIC_QUEUE_SOON events at a time that moved to the lowest level; NULL: not
	 * called. */
	void (*soon)(struct fabric_due *const *due, unsigned count);
	uint32_t words[FABRIC_QUEUE_LEVELS]; /* a bit for each of `slots_used` that is not 0 */
	uint64_t slots_used[FABRIC_QUEUE_LEVELS][FABRIC_QUEUE_WORDS]; /* a bit for each slot with events */
	struct fabric_queue_slot slots[FABRIC_QUEUE_LEVELS][FABRIC_QUEUE_SLOTS];
};

/* All members zero are an empty queue, too. */
void fabric_queue_init(struct fabric_queue *q);
/* Frees the entries. */
void fabric_queue_free(struct fabric_queue *q);
/* Makes room for `events` more that may be armed at the same time. -ENOMEM: nothing is changed. */
int fabric_queue_reserve(struct fabric_queue *q, uint64_t events);

static inline void fabric_due_init(struct fabric_due *d, uint8_t kind)
{
	d->entry = 0;
	d->kind = kind;
}

static inline bool fabric_due_is_armed(const struct fabric_due *d)
{
	return d->entry != 0;
}

/* `d` is not armed, and there is room for it; `at_ps` is not before the time of the last event that was
 * taken. */
void fabric_queue_arm(struct fabric_queue *q, struct fabric_due *d, uint64_t at_ps);
/* Nothing happens if `d` is not armed. */
void fabric_queue_cancel(struct fabric_queue *q, struct fabric_due *d);
/* The first event if it is not later than `until_ps`, disarmed; else NULL. Its time is `at_ps` of the queue. */
struct fabric_due *fabric_queue_take(struct fabric_queue *q, uint64_t until_ps);
/* The time of the first event; UINT64_MAX: there is none. */
uint64_t fabric_queue_next_ps(const struct fabric_queue *q);

#endif
