/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables from a 64-bit key to indexes, for the identities of nodes and ports. A key may stand several
 * times: names, whose key is a hash, are compared by the caller. Private to the room.
 */
#ifndef FABRIC_TOPOLOGY_LOOKUP_H
#define FABRIC_TOPOLOGY_LOOKUP_H

#include <stdint.h>

struct topology_entry {
	uint64_t key;
	uint32_t value; /* TOPOLOGY_NONE: the place is free */
};

struct topology_table {
	struct topology_entry *entries;
	uint32_t capacity, count; /* capacity: 0 or a power of two */
};

struct topology_index {
	struct topology_table ids, names, guids;
	struct topology_table port_guids; /* node * 256 + port */
	uint64_t next_guid;               /* for nodes without one */
};

/* Makes room for `more` entries. -ENOMEM: nothing has changed. */
int topology_table_reserve(struct topology_table *table, uint32_t more);
/* Adds an entry, for which there is room. */
void topology_table_add(struct topology_table *table, uint64_t key, uint32_t value);
/* The next value of the key; *at is 0 before the first call. TOPOLOGY_NONE: no further one. */
uint32_t topology_table_next(const struct topology_table *table, uint64_t key, uint32_t *at);
/* The first value of the key. */
uint32_t topology_table_find(const struct topology_table *table, uint64_t key);
void topology_table_free(struct topology_table *table);

/* The key of a name. */
uint64_t topology_name_key(const char *name);

#endif
