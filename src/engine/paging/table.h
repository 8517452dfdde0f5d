/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table from two numbers to a small one; for paging.c. */
#ifndef ENGINE_PAGING_TABLE_H
#define ENGINE_PAGING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct paging_slot {
	uint64_t a, b;
	uint32_t value; /* 0: the slot is free */
};

/* All zero: empty. */
struct paging_table {
	struct paging_slot *slots;
	size_t count, room; /* `room` is 0 or a power of two */
};

/* 0: there is no entry. */
uint32_t paging_table_get(const struct paging_table *t, uint64_t a, uint64_t b);
/* `value` is not 0. False: no memory. */
bool paging_table_set(struct paging_table *t, uint64_t a, uint64_t b, uint32_t value);
/* True: there was an entry. */
bool paging_table_remove(struct paging_table *t, uint64_t a, uint64_t b);
/* Removes all entries with a & mask == a_masked; returns how many. */
size_t paging_table_remove_all(struct paging_table *t, uint64_t mask, uint64_t a_masked);
void paging_table_free(struct paging_table *t);

#endif
