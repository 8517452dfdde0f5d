/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two memory types of the gateway itself: heap and huge pages.
 *
 * Huge pages are taken where the machine has them reserved; nothing here
 * reserves any (that would take memory from everybody and needs privilege).
 * Without reserved pages the block is aligned so that the kernel can back it
 * by transparent ones.
 */
#define LOG_ROOM "gateway/memory"
#include "gateway/base/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/container_of.h"
#include "util/log.h"

#define HUGE_SIZE ((size_t)2 << 20)
/* Up to here a huge page would be more than half empty, and a few hundred entries
 * for ordinary ones do no harm. */
#define SMALL_SIZE ((size_t)1 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct memory_block *memory_alloc(struct memory_type *t, size_t size)
{
	return t->alloc(t, size);
}

void memory_free(struct memory_block *b)
{
	if (b)
		b->type->free(b->type, b);
}

struct memory_block *memory_block_of(struct memory_block *b,
				     const struct memory_type *t)
{
	while (b && b->type != t)
		b = b->parent;
	return b;
}

static struct memory_block *block_new(struct memory_type *t, void *addr,
				      size_t size)
{
	struct memory_block *b = calloc(1, sizeof(*b));

	if (b) {
		b->addr = addr;
		b->size_bytes = size;
		b->type = t;
	}
	return b;
}

static struct memory_block *heap_alloc(struct memory_type *t, size_t size)
{
	size_t bytes = (size + t->alignment - 1) & ~(t->alignment - 1);
	void *addr = bytes >= size ? aligned_alloc(t->alignment, bytes) : NULL;
	struct memory_block *b;

	if (!addr) {
		errno = ENOMEM;
		return NULL;
	}
	memset(addr, 0, bytes);
	b = block_new(t, addr, bytes);
	if (!b)
		free(addr);
	return b;
}

static void heap_free(struct memory_type *t, struct memory_block *b)
{
	free(b->addr);
	free(b);
}

struct memory_type memory_heap = {
	.name = "heap",
	.alignment = CACHE_LINE,
	.alloc = heap_alloc,
	.free = heap_free,
};

/* Reserved huge pages, or NULL. */
static void *map_reserved(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (addr == MAP_FAILED)
		return NULL;
	/* A control group may forbid pages that the machine has: that shows
	 * only on first touch, as SIGBUS, unless asked for like this. */
	if (madvise(addr, bytes, MADV_POPULATE_WRITE) && errno != EINVAL) {
		munmap(addr, bytes);
		return NULL;
	}
	return addr;
}

/* Ordinary pages on a huge page boundary, so that they can become huge. */
static void *map_transparent(size_t bytes)
{
	char *addr = mmap(NULL, bytes + HUGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start;

	if (addr == MAP_FAILED)
		return NULL;
	start = (char *)(((uintptr_t)addr + HUGE_SIZE - 1) &
			 ~(uintptr_t)(HUGE_SIZE - 1));
	if (start > addr)
		munmap(addr, (size_t)(start - addr));
	if (addr + HUGE_SIZE > start)
		munmap(start + bytes, (size_t)(addr + HUGE_SIZE - start));
	madvise(start, bytes, MADV_HUGEPAGE);
	/* First touch now, not on the data path. */
	for (size_t i = 0; i < bytes; i += 4096)
		*(volatile char *)(start + i) = 0;
	return start;
}

/* Just as many ordinary pages as it takes, touched now. */
static void *map_small(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

static struct memory_block *hugepage_alloc(struct memory_type *t, size_t size)
{
	static atomic_bool said_unlocked, said_kind;
	size_t page = size <= SMALL_SIZE ? 4096 : HUGE_SIZE;
	size_t bytes = (size + page - 1) & ~(page - 1);
	bool reserved = page == HUGE_SIZE;
	struct memory_block *b;
	void *addr;

	if (bytes < size || !bytes) {
		errno = ENOMEM;
		return NULL;
	}
	addr = reserved ? map_reserved(bytes) : map_small(bytes);
	if (!addr) {
		reserved = false;
		addr = map_transparent(bytes);
	}
	if (!addr) {
		errno = ENOMEM;
		return NULL;
	}
	if (page == HUGE_SIZE && !atomic_exchange(&said_kind, true))
		log_debug("samples live in %s huge pages",
			  reserved ? "reserved" : "transparent");
	if (mlock(addr, bytes) && !atomic_exchange(&said_unlocked, true))
		log_info("samples are not locked in memory (%s); raise the limit with `ulimit -l unlimited` to rule out page faults",
			 strerror(errno));
	b = block_new(t, addr, bytes);
	if (!b)
		munmap(addr, bytes);
	return b;
}

static void hugepage_free(struct memory_type *t, struct memory_block *b)
{
	munmap(b->addr, b->size_bytes);
	free(b);
}

struct memory_type memory_hugepage = {
	.name = "hugepage",
	.alignment = 4096,
	.alloc = hugepage_alloc,
	.free = hugepage_free,
};
