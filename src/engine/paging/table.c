/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table with open addressing; see table.h. */
#include "engine/paging/table.h"

#include <stdlib.h>

#define ROOM_FIRST 64

static size_t place_of(const struct paging_table *t, uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(h ^ h >> 29) & (t->room - 1);
}

/* The entry, or the free slot where it would be. */
static struct paging_slot *find(const struct paging_table *t, uint64_t a, uint64_t b)
{
	size_t i = place_of(t, a, b);

	while (t->slots[i].value && (t->slots[i].a != a || t->slots[i].b != b))
		i = (i + 1) & (t->room - 1);
	return &t->slots[i];
}

uint32_t paging_table_get(const struct paging_table *t, uint64_t a, uint64_t b)
{
	return t->room ? find(t, a, b)->value : 0;
}

static bool grow(struct paging_table *t)
{
	struct paging_table to = { .room = t->room ? 2 * t->room : ROOM_FIRST };

	to.slots = calloc(to.room, sizeof(*to.slots));
	if (!to.slots)
		return false;
	for (size_t i = 0; i < t->room; i++)
		if (t->slots[i].value)
			*find(&to, t->slots[i].a, t->slots[i].b) = t->slots[i];
	to.count = t->count;
	free(t->slots);
	*t = to;
	return true;
}

bool paging_table_set(struct paging_table *t, uint64_t a, uint64_t b, uint32_t value)
{
	struct paging_slot *s;

	if (2 * (t->count + 1) > t->room && !grow(t))
		return false;
	s = find(t, a, b);
	t->count += !s->value;
	*s = (struct paging_slot){ a, b, value };
	return true;
}

/* Frees a slot, and moves those behind it that would not be found any more. */
static void remove_at(struct paging_table *t, size_t hole)
{
	size_t mask = t->room - 1;

	for (size_t i = (hole + 1) & mask; t->slots[i].value; i = (i + 1) & mask) {
		size_t at = place_of(t, t->slots[i].a, t->slots[i].b);

		if (((i - at) & mask) < ((i - hole) & mask))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole].value = 0;
	t->count--;
}

bool paging_table_remove(struct paging_table *t, uint64_t a, uint64_t b)
{
	struct paging_slot *s = t->room ? find(t, a, b) : NULL;

	if (!s || !s->value)
		return false;
	remove_at(t, (size_t)(s - t->slots));
	return true;
}

size_t paging_table_remove_all(struct paging_table *t, uint64_t mask, uint64_t a_masked)
{
	size_t removed = 0;

	for (size_t i = 0; i < t->room; i++)
		while (t->slots[i].value && (t->slots[i].a & mask) == a_masked) {
			remove_at(t, i);
			removed++;
		}
	return removed;
}

void paging_table_free(struct paging_table *t)
{
	free(t->slots);
	*t = (struct paging_table){ 0 };
}
