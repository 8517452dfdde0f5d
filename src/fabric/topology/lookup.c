/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of identities with open addressing, at most half full. See lookup.h. */
#include "fabric/topology/lookup.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric/topology/topology.h"

/* GUIDs differ in few bits; the multiplication spreads them over the upper ones. */
static uint32_t place_of(uint64_t key, uint32_t capacity)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
}

static void put(struct topology_entry *entries, uint32_t capacity, uint64_t key, uint32_t value)
{
	uint32_t at = place_of(key, capacity);

	while (entries[at].value != TOPOLOGY_NONE)
		at = (at + 1) & (capacity - 1);
	entries[at] = (struct topology_entry){ key, value };
}

int topology_table_reserve(struct topology_table *table, uint32_t more)
{
	uint32_t capacity = table->capacity ? table->capacity : 64;
	struct topology_entry *entries;

	while (capacity / 2 < table->count + more)
		capacity *= 2;
	if (capacity == table->capacity)
		return 0;
	entries = malloc(capacity * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < capacity; i++)
		entries[i] = (struct topology_entry){ 0, TOPOLOGY_NONE };
	for (uint32_t i = 0; i < table->capacity; i++)
		if (table->entries[i].value != TOPOLOGY_NONE)
			put(entries, capacity, table->entries[i].key, table->entries[i].value);
	free(table->entries);
	table->entries = entries;
	table->capacity = capacity;
	return 0;
}

void topology_table_add(struct topology_table *table, uint64_t key, uint32_t value)
{
	put(table->entries, table->capacity, key, value);
	table->count++;
}

uint32_t topology_table_next(const struct topology_table *table, uint64_t key, uint32_t *at)
{
	uint32_t start;

	if (!table->capacity)
		return TOPOLOGY_NONE;
	start = place_of(key, table->capacity);
	/* Half of the places are free, so the search ends. */
	for (;;) {
		const struct topology_entry *e = &table->entries[(start + *at) & (table->capacity - 1)];

		if (e->value == TOPOLOGY_NONE)
			return TOPOLOGY_NONE;
		++*at;
		if (e->key == key)
			return e->value;
	}
}

uint32_t topology_table_find(const struct topology_table *table, uint64_t key)
{
	uint32_t at = 0;

	return topology_table_next(table, key, &at);
}

void topology_table_free(struct topology_table *table)
{
	free(table->entries);
}

/* FNV-1a. */
uint64_t topology_name_key(const char *name)
{
	uint64_t key = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return key;
}
