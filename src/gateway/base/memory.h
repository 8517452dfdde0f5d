/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory types: the kinds of memory in which pools allocate samples.
 *
 * A node-type may wrap a memory type in one of its own, which allocates with its
 * parent and then registers the memory with an adapter. Wrappers can be stacked, so
 * that one pool serves several nodes of which each needs the memory registered.
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
 * Pages of 2 MiB. Uses reserved huge pages if there are any, otherwise asks the kernel
 * for transparent ones. It never reserves pages machine-wide, and works without huge
 * pages too. Small blocks use ordinary pages. Locks the memory if the limit allows it;
 * logs once if not.
 */
extern struct memory_type memory_hugepage;

struct memory_block *memory_alloc(struct memory_type *t, size_t size);
void memory_free(struct memory_block *b); /* NULL allowed */

/* The block of type `t` in the chain from `b` to its parents; NULL when there is none. */
struct memory_block *memory_block_of(struct memory_block *b,
				     const struct memory_type *t);

#endif
