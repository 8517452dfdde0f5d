/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the spans of a pool lie.
 *
 * Who fetches a long message within a host has the kernel look up each page of both sides,
 * and that takes longer than to copy 4 KiB. So long buffers lie in huge pages, several
 * to a page where they are shorter; each is registered by itself all the same. Kernels give
 * huge pages to private memory on request, to shared memory only where the administrator
 * has said so.
 *
 * Slabs of short buffers stay in small pages: an instance that sends short messages only
 * takes some KiB.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ripc/memory/pool.h"
#include "ripc/memory/pool_private.h"

#define HUGE_BYTES (2ul << 20)
#define UNIT_BYTES (HUGE_BYTES / 64)

/* A huge page that long buffers share. */
struct pool_page {
	struct list entry;
	uint8_t *memory;
	uint64_t used; /* a bit for each unit */
};

/* From the beginning of a huge page on; Linux before 6.7 does not align by itself. */
static void *map_huge(size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (memory == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)memory & (HUGE_BYTES - 1);
	if (before)
		munmap(memory, before);
	munmap(memory + before + bytes, HUGE_BYTES - before);
	/* Without huge pages it works all the same. */
	madvise(memory + before, bytes, MADV_HUGEPAGE);
	return memory + before;
}

static uint64_t mask_of(size_t bytes)
{
	return (UINT64_C(1) << (bytes + UNIT_BYTES - 1) / UNIT_BYTES) - 1;
}

/* The lock is held. NULL: it has no such place. */
static void *take(struct pool_page *page, uint64_t mask)
{
	for (unsigned at = 0; at < 64 && mask << at >> at == mask; at++) {
		if (page->used & mask << at)
			continue;
		page->used |= mask << at;
		return page->memory + at * UNIT_BYTES;
	}
	return NULL;
}

static void *take_from_pages(struct pool *p, uint64_t mask, struct pool_page **out)
{
	void *memory = NULL;

	spin_lock(&p->lock);
	list_for_each(page, &p->pages, struct pool_page, entry) {
		memory = page->used == UINT64_MAX ? NULL : take(page, mask);
		if (memory) {
			*out = page;
			break;
		}
	}
	spin_unlock(&p->lock);
	return memory;
}

static void *map_page(struct pool *p, uint64_t mask, struct pool_page **out)
{
	struct pool_page *page = malloc(sizeof(*page));

	if (!page)
		return NULL;
	*page = (struct pool_page){ .memory = map_huge(HUGE_BYTES), .used = mask };
	if (!page->memory) {
		free(page);
		return NULL;
	}
	spin_lock(&p->lock);
	list_push(&p->pages, &page->entry);
	spin_unlock(&p->lock);
	*out = page;
	return page->memory;
}

void *pool_map_slab(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void *pool_map_long(struct pool *p, size_t bytes, struct pool_page **page)
{
	void *memory;

	*page = NULL;
	if (bytes >= HUGE_BYTES)
		return map_huge(bytes);
	memory = take_from_pages(p, mask_of(bytes), page);
	return memory ? memory : map_page(p, mask_of(bytes), page);
}

void pool_unmap(struct pool *p, void *memory, size_t bytes, struct pool_page *page)
{
	bool last;

	if (!page) {
		munmap(memory, bytes);
		return;
	}
	spin_lock(&p->lock);
	page->used &= ~(mask_of(bytes) << (size_t)((uint8_t *)memory - page->memory) / UNIT_BYTES);
	last = !page->used;
	if (last)
		list_remove(&page->entry);
	spin_unlock(&p->lock);
	if (!last)
		return;
	munmap(page->memory, HUGE_BYTES);
	free(page);
}

void pool_pages_forget(struct pool *p)
{
	struct list *entry;

	while ((entry = list_pop(&p->pages)))
		free(list_entry(entry, struct pool_page, entry));
}
