/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a fabric in the order of their times; see queue.h. */
#include "engine/fabric/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT (FABRIC_QUEUE_SLOTS - 1)
#define ENTRIES_FEW 64

void fabric_queue_init(struct fabric_queue *q)
{
	memset(q, 0, sizeof(*q));
}

void fabric_queue_free(struct fabric_queue *q)
{
	free(q->entries);
	q->entries = NULL;
	q->capacity = 0;
}

int fabric_queue_reserve(struct fabric_queue *q, uint64_t events)
{
	uint64_t need = q->reserved + events + 1, capacity = q->capacity ? q->capacity : ENTRIES_FEW;
	struct fabric_queue_entry *more;

	while (capacity < need)
		capacity += capacity / 2;
	if (capacity > UINT32_MAX)
		return -ENOMEM;
	if (capacity > q->capacity) {
		/* Not realloc(), which may copy, and so touch, entries that were never in use. */
		more = malloc(capacity * sizeof(*more));
		if (!more)
			return -ENOMEM;
		if (q->entries)
			memcpy(more, q->entries, (q->used + 1) * sizeof(*more));
		free(q->entries);
		q->entries = more;
		q->capacity = (uint32_t)capacity;
	}
	q->reserved += events;
	return 0;
}

static uint32_t new_entry(struct fabric_queue *q)
{
	uint32_t i = q->free;

	if (!i) {
		assert(q->used + 1 < q->capacity);
		return ++q->used;
	}
	q->free = q->entries[i].next;
	return i;
}

/* Level and slot of a time. */
static void find_slot(const struct fabric_queue *q, uint64_t at_ps, unsigned *level, unsigned *slot)
{
	uint64_t differs = at_ps ^ q->at_ps;

	*level = differs < FABRIC_QUEUE_SLOTS ? 0 : (unsigned)(63 - __builtin_clzll(differs)) / FABRIC_QUEUE_BITS;
	*slot = (unsigned)(at_ps >> (*level * FABRIC_QUEUE_BITS)) & DIGIT;
}

static void append(struct fabric_queue *q, uint32_t i, unsigned level, unsigned slot)
{
	struct fabric_queue_slot *s = &q->slots[level][slot];

	q->entries[i].next = 0;
	q->entries[i].prev = s->last;
	if (s->last) {
		q->entries[s->last].next = i;
	} else {
		s->first = i;
		q->slots_used[level][slot / 64] |= UINT64_C(1) << (slot % 64);
		q->words[level] |= 1u << (slot / 64);
	}
	s->last = i;
}

static void clear(struct fabric_queue *q, unsigned level, unsigned slot)
{
	uint64_t *word = &q->slots_used[level][slot / 64];

	*word &= ~(UINT64_C(1) << (slot % 64));
	if (!*word)
		q->words[level] &= ~(1u << (slot / 64));
}

void fabric_queue_arm(struct fabric_queue *q, struct fabric_due *d, uint64_t at_ps)
{
	unsigned level, slot;
	uint32_t i;

	assert(!fabric_due_is_armed(d) && at_ps >= q->at_ps);
	i = new_entry(q);
	d->entry = i;
	q->entries[i].at_ps = at_ps;
	q->entries[i].due = d;
	find_slot(q, at_ps, &level, &slot);
	append(q, i, level, slot);
}

/* Takes the entry out of its slot and disarms its event. */
static void take_out(struct fabric_queue *q, uint32_t i, unsigned level, unsigned slot)
{
	struct fabric_queue_entry *e = &q->entries[i];
	struct fabric_queue_slot *s = &q->slots[level][slot];

	if (e->prev)
		q->entries[e->prev].next = e->next;
	else
		s->first = e->next;
	if (e->next)
		q->entries[e->next].prev = e->prev;
	else
		s->last = e->prev;
	if (!s->first)
		clear(q, level, slot);
	e->due->entry = 0;
	e->next = q->free;
	q->free = i;
}

void fabric_queue_cancel(struct fabric_queue *q, struct fabric_due *d)
{
	unsigned level, slot;

	if (!fabric_due_is_armed(d))
		return;
	find_slot(q, q->entries[d->entry].at_ps, &level, &slot);
	take_out(q, d->entry, level, slot);
}

/* The first slot with events at `level`, which is where the first event is if the lower levels are
 * empty; there is one. */
static unsigned first_slot(const struct fabric_queue *q, unsigned level)
{
	unsigned word = (unsigned)__builtin_ctz(q->words[level]);

	return word * 64 + (unsigned)__builtin_ctzll(q->slots_used[level][word]);
}

/* The lowest level with events; FABRIC_QUEUE_LEVELS: no events. */
static unsigned first_level(const struct fabric_queue *q)
{
	unsigned level = 0;

	while (level < FABRIC_QUEUE_LEVELS && !q->words[level])
		level++;
	return level;
}

static void tell_soon(const struct fabric_queue *q, uint32_t i)
{
	struct fabric_due *due[FABRIC_QUEUE_SOON];
	unsigned count = 0;

	for (; i; i = q->entries[i].next) {
		due[count++] = q->entries[i].due;
		if (count == FABRIC_QUEUE_SOON) {
			q->soon(due, count);
			count = 0;
		}
	}
	q->soon(due, count);
}

/* Moves the events of the first slot of a level to lower levels; false: the slot begins after `until_ps`. */
static bool lower(struct fabric_queue *q, unsigned level, uint64_t until_ps)
{
	unsigned shift = level * FABRIC_QUEUE_BITS, slot = first_slot(q, level);
	/* Times of this slot: higher digits as the queue's, lower ones from zero on. */
	uint64_t above = shift + FABRIC_QUEUE_BITS < 64 ?
		q->at_ps >> (shift + FABRIC_QUEUE_BITS) << (shift + FABRIC_QUEUE_BITS) : 0;
	uint64_t begin = above | (uint64_t)slot << shift;
	struct fabric_queue_slot *s = &q->slots[level][slot];
	uint32_t i = s->first;

	if (begin > until_ps)
		return false;
	q->at_ps = begin;
	clear(q, level, slot);
	s->first = s->last = 0;
	if (level == 1 && q->soon)
		tell_soon(q, i);
	while (i) {
		uint32_t next = q->entries[i].next;
		unsigned to_level, to_slot;

		find_slot(q, q->entries[i].at_ps, &to_level, &to_slot);
		append(q, i, to_level, to_slot);
		i = next;
	}
	return true;
}

struct fabric_due *fabric_queue_take(struct fabric_queue *q, uint64_t until_ps)
{
	struct fabric_due *d;
	unsigned level, slot;
	uint32_t i;

	while ((level = first_level(q)) > 0)
		if (level == FABRIC_QUEUE_LEVELS || !lower(q, level, until_ps))
			return NULL;
	slot = first_slot(q, 0);
	i = q->slots[0][slot].first;
	if (q->entries[i].at_ps > until_ps)
		return NULL;
	q->at_ps = q->entries[i].at_ps;
	d = q->entries[i].due;
	take_out(q, i, 0, slot);
	return d;
}

uint64_t fabric_queue_next_ps(const struct fabric_queue *q)
{
	unsigned level = first_level(q);
	uint64_t first = UINT64_MAX;

	if (level == FABRIC_QUEUE_LEVELS)
		return UINT64_MAX;
	for (uint32_t i = q->slots[level][first_slot(q, level)].first; i; i = q->entries[i].next)
		if (q->entries[i].at_ps < first)
			first = q->entries[i].at_ps;
	return first;
}
