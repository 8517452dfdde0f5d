/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a fabric in the order of their times; see queue.h. */
#include "engine/fabric/queue.h"

#include <assert.h>
#include <string.h>

#define DIGIT (FABRIC_QUEUE_SLOTS - 1)

void fabric_queue_init(struct fabric_queue *q)
{
	memset(q, 0, sizeof(*q));
	for (unsigned i = 0; i < FABRIC_QUEUE_LEVELS; i++)
		for (unsigned k = 0; k < FABRIC_QUEUE_SLOTS; k++)
			list_init(&q->slots[i][k]);
}

static void place(struct fabric_queue *q, struct fabric_due *d)
{
	uint64_t differs = d->at_ps ^ q->at_ps;
	unsigned level = differs ? (unsigned)(63 - __builtin_clzll(differs)) / FABRIC_QUEUE_BITS : 0;
	unsigned slot = (unsigned)(d->at_ps >> (level * FABRIC_QUEUE_BITS)) & DIGIT;

	d->place = (uint16_t)(level * FABRIC_QUEUE_SLOTS + slot);
	q->used[level][slot / 64] |= UINT64_C(1) << (slot % 64);
	list_push(&q->slots[level][slot], &d->entry);
}

void fabric_queue_arm(struct fabric_queue *q, struct fabric_due *d, uint64_t at_ps)
{
	assert(!fabric_due_is_armed(d) && at_ps >= q->at_ps);
	d->at_ps = at_ps;
	place(q, d);
}

static void clear_if_empty(struct fabric_queue *q, unsigned level, unsigned slot)
{
	if (list_empty(&q->slots[level][slot]))
		q->used[level][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

void fabric_queue_cancel(struct fabric_queue *q, struct fabric_due *d)
{
	if (!fabric_due_is_armed(d))
		return;
	list_remove(&d->entry);
	clear_if_empty(q, d->place / FABRIC_QUEUE_SLOTS, d->place % FABRIC_QUEUE_SLOTS);
}

/* The first slot with events at `level`, which is where the first event is if the lower levels are
 * empty; -1: none. */
static int first_slot(const struct fabric_queue *q, unsigned level)
{
	for (unsigned i = 0; i < FABRIC_QUEUE_WORDS; i++)
		if (q->used[level][i])
			return (int)(i * 64) + __builtin_ctzll(q->used[level][i]);
	return -1;
}

/* The lowest level with events, and its first slot; FABRIC_QUEUE_LEVELS: no events. */
static unsigned first_level(const struct fabric_queue *q, int *slot)
{
	unsigned level = 0;

	while (level < FABRIC_QUEUE_LEVELS && (*slot = first_slot(q, level)) < 0)
		level++;
	return level;
}

/* Moves the events of a slot to lower levels; false: the slot begins after `until_ps`. */
static bool lower(struct fabric_queue *q, unsigned level, unsigned slot, uint64_t until_ps)
{
	unsigned shift = level * FABRIC_QUEUE_BITS;
	/* Times of this slot: higher digits as the queue's, lower ones from zero on. */
	uint64_t above = shift + FABRIC_QUEUE_BITS < 64 ?
		q->at_ps >> (shift + FABRIC_QUEUE_BITS) << (shift + FABRIC_QUEUE_BITS) : 0;
	uint64_t begin = above | (uint64_t)slot << shift;
	struct list *item;

	if (begin > until_ps)
		return false;
	q->at_ps = begin;
	q->used[level][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	while ((item = list_pop(&q->slots[level][slot])))
		place(q, list_entry(item, struct fabric_due, entry));
	return true;
}

struct fabric_due *fabric_queue_take(struct fabric_queue *q, uint64_t until_ps)
{
	struct fabric_due *d;
	unsigned level;
	int slot;

	while ((level = first_level(q, &slot)) > 0)
		if (level == FABRIC_QUEUE_LEVELS || !lower(q, level, (unsigned)slot, until_ps))
			return NULL;
	d = list_entry(q->slots[0][slot].next, struct fabric_due, entry);
	if (d->at_ps > until_ps)
		return NULL;
	q->at_ps = d->at_ps;
	list_remove(&d->entry);
	clear_if_empty(q, 0, (unsigned)slot);
	return d;
}

uint64_t fabric_queue_next_ps(const struct fabric_queue *q)
{
	uint64_t first = UINT64_MAX;
	int slot;
	unsigned level = first_level(q, &slot);

	if (level == FABRIC_QUEUE_LEVELS)
		return UINT64_MAX;
	list_for_each(d, &q->slots[level][slot], struct fabric_due, entry)
		if (d->at_ps < first)
			first = d->at_ps;
	return first;
}
