/* SPDX-License-Identifier: BSD-2-Clause */
/* Spans of the pool; see pool_span.h. */
#include "ripc/memory/pool_span.h"

#include <stdlib.h>

#define LEAST_LOG 6 /* 64 bytes */
#define LEAST (1u << LEAST_LOG)
#define PAGE 4096u

size_t pool_class_bytes(unsigned size_class)
{
	return (size_t)(size_class & 1 ? LEAST + LEAST / 2 : LEAST) << (size_class / 2);
}

static bool aligned(size_t bytes)
{
	return bytes % (bytes < PAGE ? LEAST : PAGE) == 0;
}

unsigned pool_class_of(size_t bytes)
{
	unsigned log, size_class;

	if (bytes <= LEAST)
		return 0;
	log = 63 - (unsigned)__builtin_clzll(bytes - 1); /* 1 << log is less than bytes */
	size_class = 2 * (log - LEAST_LOG) + 1;
	if (bytes > pool_class_bytes(size_class) || !aligned(pool_class_bytes(size_class)))
		size_class++;
	return size_class;
}

/* Spreads addresses, so that the tree is as balanced as one of random numbers. */
static uint64_t weight_of(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

struct pool_span *pool_span_new(void *memory, size_t bytes, uint32_t count)
{
	struct pool_span *s = calloc(1, sizeof(*s) + count * sizeof(s->slots[0]));

	if (!s)
		return NULL;
	s->start = (uintptr_t)memory;
	s->end = s->start + bytes;
	s->weight = weight_of(s->start);
	s->count = count;
	s->place.fd = -1;
	for (uint32_t i = 0; i < count; i++) {
		s->slots[i].span = s;
		s->slots[i].next_free = i + 1 < count ? i + 1 : POOL_NO_SLOT;
	}
	list_init(&s->entry);
	list_init(&s->idle);
	return s;
}

struct pool_region *pool_span_take(struct pool_span *s)
{
	struct pool_region *slot = &s->slots[s->first_free];

	s->first_free = slot->next_free;
	slot->state = POOL_USED;
	s->used++;
	return slot;
}

/* The latest first: its memory is the likeliest to be in a cache. */
void pool_span_give(struct pool_span *s, struct pool_region *slot)
{
	slot->state = POOL_FREE;
	slot->next_free = s->first_free;
	s->first_free = (uint32_t)(slot - s->slots);
	s->used--;
}

struct pool_region *pool_span_slot(struct pool_span *s, uintptr_t at, uintptr_t *start,
				   uintptr_t *end)
{
	uint32_t index;

	if (s->count == 1) {
		*start = s->start;
		*end = s->end;
		return &s->slots[0];
	}
	/* Spans of several buffers are short: a division of 32 bits is the quick one. */
	index = (uint32_t)(at - s->start) / s->slot_bytes;
	if (index >= s->count)
		return NULL;
	*start = s->start + (uintptr_t)index * s->slot_bytes;
	*end = *start + s->slot_bytes;
	return &s->slots[index];
}

/*
 * A treap: ordered by address, and every parent outweighs its children. Its depth is
 * that of a tree whose keys came in random order, whatever the order they did come in.
 */
struct pool_span *pool_tree_find(struct pool_span *root, uintptr_t start, uintptr_t end)
{
	while (root) {
		if (end <= root->start)
			root = root->left;
		else if (start >= root->end)
			root = root->right;
		else
			break;
	}
	return root;
}

void pool_tree_insert(struct pool_span **root, struct pool_span *s)
{
	struct pool_span *below, **left = &s->left, **right = &s->right;

	while (*root && (*root)->weight >= s->weight)
		root = s->start < (*root)->start ? &(*root)->left : &(*root)->right;
	/* What is below its place becomes its children, split at its address. */
	below = *root;
	*root = s;
	while (below) {
		if (below->start < s->start) {
			*left = below;
			left = &below->right;
			below = below->right;
		} else {
			*right = below;
			right = &below->left;
			below = below->left;
		}
	}
	*left = *right = NULL;
}

void pool_tree_remove(struct pool_span **root, struct pool_span *s)
{
	struct pool_span *left = s->left, *right = s->right;

	while (*root != s)
		root = s->start < (*root)->start ? &(*root)->left : &(*root)->right;
	while (left && right) {
		if (left->weight >= right->weight) {
			*root = left;
			root = &left->right;
			left = left->right;
		} else {
			*root = right;
			root = &right->left;
			right = right->left;
		}
	}
	*root = left ? left : right;
}
