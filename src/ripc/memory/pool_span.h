/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the pool: spans, which are pieces of memory with registrations of their own,
 * and the tree that finds them by address. A span has one buffer or, if its buffers are
 * small, many of the same size. What describes it lies outside of it, where neither peers
 * nor a program that writes past a buffer can reach it.
 *
 * Nothing here locks.
 */
#ifndef RIPC_POOL_SPAN_H
#define RIPC_POOL_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ripc/memory/pool.h"
#include "util/list.h"

#define POOL_ACCESSES 4 /* enum pool_access */
#define POOL_NO_SLOT UINT32_MAX

enum pool_state {
	POOL_FREE,
	POOL_USED,
	POOL_LEAVING, /* freed or being unregistered, while somebody still uses the keys */
};

/* A buffer. */
struct pool_region {
	struct pool_span *span;
	uint32_t references;
	uint32_t next_free; /* index, POOL_NO_SLOT at the end */
	enum pool_state state;
};

/* Where a span lies. */
struct pool_place {
	struct pool_page *page; /* with others; NULL: by itself */
	int fd;                 /* of the memory file; -1: in none */
};

struct pool_span {
	struct pool_span *left, *right; /* tree, by address */
	uint64_t weight;                /* no child's is more */
	uintptr_t start, end;
	struct ibv_mr *mr[POOL_ACCESSES]; /* NULL: not needed yet */
	bool foreign;                   /* memory of the program's own */
	struct pool_place place;
	unsigned size_class;
	uint32_t slot_bytes;            /* only where there are several */
	uint32_t count, used;           /* buffers */
	uint32_t first_free;
	struct list entry;              /* of its class, while it has a free buffer */
	struct list idle;               /* of all that are wholly free, longest first */
	struct pool_region slots[];
};

/* ---- sizes ---- */

/* Two classes for each power of two, up to 64 TiB. */
#define POOL_CLASSES 81
#define POOL_BYTES_MAX (UINT64_C(1) << 46)

/* The class of the least size that holds `bytes` (at most POOL_BYTES_MAX) and whose
 * multiples are aligned: to 64 bytes, from 4 KiB on to 4 KiB. */
unsigned pool_class_of(size_t bytes);
size_t pool_class_bytes(unsigned size_class);

/* ---- spans ---- */

/* NULL: no memory. Its buffers are free. */
struct pool_span *pool_span_new(void *memory, size_t bytes, uint32_t count);
/* There has to be a free one. */
struct pool_region *pool_span_take(struct pool_span *s);
void pool_span_give(struct pool_span *s, struct pool_region *slot);
/* The buffer in which `at` lies, which lies in the span, and where that begins and ends;
 * NULL: behind the last one. */
struct pool_region *pool_span_slot(struct pool_span *s, uintptr_t at, uintptr_t *start,
				   uintptr_t *end);

/* ---- tree ---- */

/* One that shares a byte with [start, end), or NULL; of several, any. start < end. */
struct pool_span *pool_tree_find(struct pool_span *root, uintptr_t start, uintptr_t end);
/* It must not share a byte with any that is there. */
void pool_tree_insert(struct pool_span **root, struct pool_span *s);
void pool_tree_remove(struct pool_span **root, struct pool_span *s);

#endif
