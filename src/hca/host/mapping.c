/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that memory to be registered is mapped, and writable if that is required. So the
 * registration fails, as with an adapter that pins memory; otherwise a later access would
 * end the program by a signal.
 *
 * PROCMAP_QUERY (Linux 6.11) finds the mapping at an address, at a cost that does not depend
 * on the number of mappings. Without it a few pages are tested one by one, and for a longer
 * range the list of all mappings is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/host/mapping.h"
#include "hca/host/maps.h"
#include "util/container_of.h"

/* Up to this number testing each page costs less than reading the list. */
#define PAGES_TRIED 64

/* PROCMAP_QUERY of <linux/fs.h>, which older headers do not have. */
struct map_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr; /* of a byte in the mapping: -ENOENT if there is none */
	uint64_t start, end;
	uint64_t flags;
	uint64_t page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
_Static_assert(sizeof(struct map_query) == 104, "as the kernel knows it");
#define MAP_QUERY _IOWR('f', 17, struct map_query)
enum { MAP_READABLE = 1, MAP_WRITABLE = 2 };

enum answer { NO, YES, UNKNOWN };

/* /proc/self/maps; kept open, because opening is most of the cost. */
enum { NOT_OPEN = -1, NOT_ANSWERING = -2 };
static _Atomic int maps_fd = NOT_OPEN;

/* False, with errno: ENOENT where nothing is mapped. */
static bool query(int fd, uintptr_t at, struct map_query *q)
{
	*q = (struct map_query){ .size = sizeof(*q), .query_addr = at };
	return ioctl(fd, MAP_QUERY, q) == 0;
}

static int maps_open(void)
{
	int fd = atomic_load_explicit(&maps_fd, memory_order_acquire);
	int none = NOT_OPEN, opened;
	struct map_query q;

	if (likely(fd != NOT_OPEN))
		return fd;
	fd = opened = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (opened < 0)
		return NOT_OPEN; /* out of descriptors: perhaps the next time */
	/* An older kernel, or the query is not permitted? */
	if (!query(opened, (uintptr_t)&maps_fd, &q))
		fd = NOT_ANSWERING;
	if (!atomic_compare_exchange_strong(&maps_fd, &none, fd))
		fd = none; /* another thread was first */
	if (fd != opened)
		close(opened);
	return fd;
}

void hca_mapping_stop(void)
{
	int fd = atomic_exchange(&maps_fd, NOT_OPEN);

	if (fd >= 0)
		close(fd);
}

bool hca_page_usable(void *addr, bool write)
{
	uint32_t *word = (uint32_t *)((uintptr_t)addr & ~(uintptr_t)7);
	static uint32_t nobody_waits;

	/* The kernel reads the signal set and then fails with EINVAL because of the first
	 * argument; EFAULT: the word is not readable. */
	if (!write)
		return syscall(SYS_rt_sigprocmask, -1, word, NULL,
			       sizeof(uint64_t)) < 0 && errno == EINVAL;
	/* The kernel adds 0 to the word atomically and wakes no thread: the word must be
	 * writable and does not change. */
	return syscall(SYS_futex, &nobody_waits,
		       FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, word,
		       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

static enum answer ask(uintptr_t at, uintptr_t end, bool write)
{
	const unsigned needed = MAP_READABLE | (write ? MAP_WRITABLE : 0u);
	int fd = maps_open();

	if (fd < 0)
		return UNKNOWN;
	while (at < end) {
		struct map_query q;

		if (!query(fd, at, &q))
			return errno == ENOENT ? NO : UNKNOWN;
		if ((q.flags & needed) != needed)
			return NO;
		at = q.end;
	}
	return YES;
}

static bool try_pages(uintptr_t at, uintptr_t end, uintptr_t page, bool write)
{
	for (at &= ~(page - 1); at < end; at += page)
		if (!hca_page_usable((void *)at, write))
			return false;
	return true;
}

/* A walk of the list: the range is usable up to `at`. */
struct survey {
	uintptr_t at, end;
	bool write, failed;
};

static void survey_entry(const struct maps_entry *m, void *arg)
{
	struct survey *s = arg;

	if (s->failed || m->end <= s->at || m->start >= s->end)
		return;
	if (m->start > s->at || !m->readable || (s->write && !m->writable))
		s->failed = true;
	else
		s->at = m->end;
}

/* Without /proc: finds holes, but not the protection. */
static bool present(uintptr_t at, uintptr_t end, uintptr_t page)
{
	unsigned char vec[4096];

	for (at &= ~(page - 1); at < end; at += sizeof(vec) * page) {
		size_t bytes = end - at;

		if (bytes > sizeof(vec) * page)
			bytes = sizeof(vec) * page;
		if (mincore((void *)at, bytes, vec) && errno == ENOMEM)
			return false;
	}
	return true;
}

bool hca_range_mapped(const void *addr, size_t length, bool write)
{
	struct survey s = { .at = (uintptr_t)addr, .write = write };
	uintptr_t page;
	enum answer a;

	if (length == 0)
		return true;
	s.end = s.at + length;
	a = ask(s.at, s.end, write);
	if (likely(a != UNKNOWN))
		return a == YES;
	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	if ((s.end - (s.at & ~(page - 1))) / page < PAGES_TRIED)
		return try_pages(s.at, s.end, page, write);
	if (maps_walk(survey_entry, &s))
		return present((uintptr_t)addr, s.end, page);
	return !s.failed && s.at >= s.end;
}
