/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory types: where the samples of a pool live.
 *
 * A node-type may wrap the type it is given with one of its own (allocate with
 * the parent, then register with an adapter); wrappers stack, so that one pool
 * can serve several nodes that each need the memory registered.
 */
#ifndef GATEWAY_BASE_MEMORY_H
#define GATEWAY_BASE_MEMORY_H

#include <stddef.h>

struct memory_type;

struct memory_block {
	void *addr;
	size_t size_bytes;
	struct memory_type *type;     /* that allocated or wrapped this block */
	struct memory_block *parent;  /* block of the wrapped type, NULL at the bottom */
	void *private_data;           /* of the type, e.g. a memory region */
};

struct memory_type {
	const char *name;
	struct memory_type *parent;   /* NULL at the bottom */
	size_t alignment;             /* of every block */
	/* A block of at least `size` bytes, zeroed; NULL with errno set. */
	struct memory_block *(*alloc)(struct memory_type *t, size_t size);
	void (*free)(struct memory_type *t, struct memory_block *b);
	void *private_data;           /* of the node that made the type */
};

/* Cache-line aligned heap memory. */
extern struct memory_type memory_heap;

/*
 * 2 MiB pages. Uses reserved huge pages when there are any, else asks for
 * transparent ones; never reserves machine-wide and never fails for lack of
 * them. Small blocks take ordinary pages, as many as they need. Locked in memory
 * when the limit allows it; says once when not.
 */
extern struct memory_type memory_hugepage;

struct memory_block *memory_alloc(struct memory_type *t, size_t size);
void memory_free(struct memory_block *b); /* NULL allowed */

/* The block of type `t` in the chain from `b` downwards, NULL when none. */
struct memory_block *memory_block_of(struct memory_block *b,
				     const struct memory_type *t);

#endif
