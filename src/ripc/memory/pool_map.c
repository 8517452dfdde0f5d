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
 * The longest buffers lie in memory files where the adapter registers these
 * (ibv_reg_dmabuf_mr(3)): peers that fetch from one map it and copy without the kernel, once
 * and a half to twice as fast for what no cache holds, and small pages matter less then. Only
 * what they read is registered so: who has mapped a file to write to it could go on.
 *
 * Slabs of short buffers stay in small pages: an instance that sends short messages only
 * takes some KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ripc/memory/pool.h"
#include "ripc/memory/pool_private.h"

#define HUGE_BYTES (2ul << 20)
#define UNIT_BYTES (HUGE_BYTES / 64)
/* From here on copying takes so long that a copy past the caches pays. */
#define FILE_BYTES_MIN (16ul << 20)
#define FILES_MAX 64

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

/* A memory file that cannot shrink: peers may map it. -1: there can be none. */
static int file_open(size_t bytes)
{
	int fd = memfd_create("ripc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct rlimit limit;

	if (fd < 0)
		return -1;
	/* A longer file would end the process (SIGXFSZ). */
	if ((!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	     bytes > limit.rlim_cur) ||
	    ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void *map_file(size_t bytes, int *fd)
{
	/* Files are not refused memory that the host does not have; this is. */
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	*fd = file_open(bytes);
	if (*fd < 0)
		goto err_memory;
	if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd, 0) ==
	    MAP_FAILED)
		goto err_file;
	/* Where the administrator has said so. */
	madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;

err_file:
	close(*fd);
	*fd = -1;
err_memory:
	munmap(memory, bytes);
	return NULL;
}

/* With strict accounting (vm.overcommit_memory = 2) a page of a file that is not to be had ends
 * the process (SIGBUS). */
static bool memory_is_strict(void)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	char mode = '2';

	if (fd < 0 || read(fd, &mode, 1) != 1)
		mode = '2';
	if (fd >= 0)
		close(fd);
	return mode == '2';
}

bool pool_files_are_taken(struct ibv_pd *pd)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memory_is_strict() ? -1 : file_open(bytes);
	struct ibv_mr *mr;

	if (fd < 0)
		return false;
	mr = ibv_reg_dmabuf_mr(pd, 0, bytes, 0, fd, IBV_ACCESS_REMOTE_READ);
	if (mr)
		ibv_dereg_mr(mr);
	close(fd);
	return mr;
}

/* Each has a descriptor, which the program may need for something else. */
static bool take_file(struct pool *p)
{
	bool taken;

	spin_lock(&p->lock);
	taken = p->files_count < FILES_MAX;
	p->files_count += taken;
	spin_unlock(&p->lock);
	return taken;
}

static void give_file(struct pool *p)
{
	spin_lock(&p->lock);
	p->files_count--;
	spin_unlock(&p->lock);
}

void *pool_map_long(struct pool *p, size_t bytes, struct pool_place *place)
{
	void *memory;

	*place = (struct pool_place){ .fd = -1 };
	if (p->files && bytes >= FILE_BYTES_MIN && take_file(p)) {
		memory = map_file(bytes, &place->fd);
		if (memory)
			return memory;
		give_file(p);
	}
	if (bytes >= HUGE_BYTES)
		return map_huge(bytes);
	memory = take_from_pages(p, mask_of(bytes), &place->page);
	return memory ? memory : map_page(p, mask_of(bytes), &place->page);
}

void pool_file_close(struct pool *p, const struct pool_place *place)
{
	if (place->fd < 0)
		return;
	close(place->fd);
	give_file(p);
}

void pool_unmap(struct pool *p, void *memory, size_t bytes, const struct pool_place *place)
{
	struct pool_page *page = place->page;
	bool last;

	pool_file_close(p, place);
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
