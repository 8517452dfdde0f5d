/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that processes share: the segment (process.h) and the table of keys, of this
 * process and of peers.
 *
 * A file has its full size from the start and is mapped whole, without access. The parts
 * that are used are made accessible, so that mlockall() allocates only these. What a peer
 * states as used need not be right: the size of its file was checked (shm/ring/area.c), so no access
 * to the mapping can fault.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/host/memory_file.h"
#include "hca/object/promise.h"
#include "hca/object/public.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/log.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define HEAD_BYTES offsetof(struct hca_segment, qps)

_Static_assert(HEAD_BYTES == HCA_PART_BYTES, "whole pages");
_Static_assert(HCA_QPN_BLOCK_SIZE * sizeof(struct hca_qp_public) %
			       HCA_PART_BYTES == 0 &&
	       HCA_QPN_BLOCK_SIZE * sizeof(struct hca_promise) %
			       HCA_PART_BYTES == 0 &&
	       HCA_QPN_BLOCK_SIZE * sizeof(struct hca_qp_counters) %
			       HCA_PART_BYTES == 0, "parts of a block, too");

/* MADV_DONTFORK: a forked child cannot use what the parent opened. */
static void *map_whole(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTFORK);
	return at;
}

void *hca_shared_file(const char *name, size_t bytes, int *fd_out)
{
	char path[64];
	void *at;
	int error, fd, ro;

	fd = hca_memory_file(name, bytes, MFD_ALLOW_SEALING);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	at = map_whole(fd, bytes);
	if (!at)
		goto err_fd;
	/* Peers refuse a file that can shrink. F_SEAL_FUTURE_WRITE, which keeps peers from
	 * writing, needs Linux 5.1. */
	if (fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE) &&
	    fcntl(fd, F_ADD_SEALS, SEALS))
		goto err_map;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		ro = fd; /* no /proc: only the seal keeps peers from writing */
	else
		close(fd);
	*fd_out = ro;
	return at;

err_map:
	error = errno;
	munmap(at, bytes);
	errno = error;
err_fd:
	error = errno;
	close(fd);
	errno = error;
	return NULL;
}

/* ---- ours ---- */

int hca_segment_create(void)
{
	struct hca_segment *s = hca_shared_file("busbar-process", sizeof(*s),
						&hca_process.segment_fd);

	if (!s)
		return -errno;
	if (mprotect(s, HEAD_BYTES, PROT_READ | PROT_WRITE)) {
		munmap(s, sizeof(*s));
		close(hca_process.segment_fd);
		return -ENOMEM;
	}
	s->magic = HCA_SEGMENT_MAGIC;
	s->pid = (uint32_t)getpid();
	s->version = HCA_SEGMENT_VERSION;
	s->bytes = sizeof(*s);
	memcpy(s->uuid, hca_process.uuid, sizeof(s->uuid));
	atomic_store(&s->wants_kick, 1);
	atomic_store(&s->membarrier, hca_process.membarrier);
	/* librdmacm may have started the progress thread already. */
	pthread_mutex_lock(&hca_process.tick_lock);
	hca_process.segment = s;
	pthread_mutex_unlock(&hca_process.tick_lock);
	return 0;
}

void hca_segment_destroy(void)
{
	munmap(hca_process.segment, sizeof(*hca_process.segment));
	close(hca_process.segment_fd);
	hca_process.segment = NULL;
	hca_process.segment_fd = -1;
}

/* Sets the access to one block's part of an array of all blocks. */
#define OPEN_PART(array, place, prot)                                    \
	mprotect((void *)(uintptr_t)&(array)[(place) * HCA_QPN_BLOCK_SIZE], \
		 HCA_QPN_BLOCK_SIZE * sizeof(*(array)), (prot))

int hca_segment_add_block(unsigned place)
{
	struct hca_segment *s = hca_process.segment;
	const int prot = PROT_READ | PROT_WRITE;

	return OPEN_PART(s->qps, place, prot) ||
			       OPEN_PART(s->promises, place, prot) ||
			       OPEN_PART(s->qp_counters, place, prot) ?
		       -ENOMEM : 0;
}

/* ---- a peer's ---- */

const struct hca_segment *hca_segment_map(int fd)
{
	struct hca_segment *s = map_whole(fd, sizeof(*s));

	if (s && mprotect(s, HEAD_BYTES, PROT_READ)) {
		munmap(s, sizeof(*s));
		return NULL;
	}
	return s;
}

int hca_segment_open_block(const struct hca_segment *s, unsigned place)
{
	return OPEN_PART(s->qps, place, PROT_READ) ||
			       OPEN_PART(s->promises, place, PROT_READ) ?
		       -ENOMEM : 0;
}

const struct hca_key *hca_keys_map(int fd)
{
	return map_whole(fd, HCA_KEY_TABLE_BYTES);
}

int hca_keys_open(const struct hca_key *keys, uint32_t count)
{
	return mprotect((void *)(uintptr_t)keys, count * sizeof(*keys),
			PROT_READ) ? -ENOMEM : 0;
}
