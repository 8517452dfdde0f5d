/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of regions that peers may map; see region.h. */
#define LOG_ROOM "hca"
#include "hca/memory/region.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/host/memory_file.h"
#include "hca/run/aside.h"
#include "hca/share/process.h"
#include "util/log.h"

static struct {
	pthread_mutex_t lock;
	struct hca_region *at[HCA_REGIONS];
	uint32_t generation;
} regions = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int file_create(uint64_t length)
{
	int fd = hca_memory_file("busbar-region", length, MFD_ALLOW_SEALING);
	int ret;

	if (fd < 0)
		return fd;
	/* Peers do not map a file without these seals: if it shrank, their accesses would
	 * raise SIGBUS. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto err_fd;
	return fd;

err_fd:
	ret = -errno;
	close(fd);
	return ret;
}

/* regions.lock is held. */
static int enter(struct hca_region *r)
{
	for (uint32_t i = 0; i < HCA_REGIONS; i++) {
		if (regions.at[i])
			continue;
		/* An id is used again only after 4 million regions in the same place. */
		if (++regions.generation >= UINT32_MAX / HCA_REGIONS)
			regions.generation = 1;
		r->id = regions.generation * HCA_REGIONS + i;
		regions.at[i] = r;
		return 0;
	}
	return -ENOSPC;
}

/* Takes `fd`, also where it fails. */
static int region_of(int fd, uint64_t length, struct hca_region **out)
{
	struct hca_region *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	if (!r)
		goto err_file;
	r->fd = fd;
	r->length = length;
	pthread_mutex_lock(&regions.lock);
	ret = enter(r);
	pthread_mutex_unlock(&regions.lock);
	if (ret)
		goto err_file;
	*out = r;
	return 0;

err_file:
	free(r);
	close(fd);
	return ret;
}

int hca_region_create(uint64_t length, struct hca_region **out)
{
	int fd = file_create(length);

	return fd < 0 ? fd : region_of(fd, length, out);
}

static int file_check(int fd, uint64_t *length)
{
	struct stat st;

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	if (!hca_fd_is_memory(fd))
		return -EOPNOTSUPP;
	if (fstat(fd, &st))
		return -errno;
	*length = (uint64_t)st.st_size;
	return *length ? 0 : -EINVAL;
}

int hca_region_adopt(int fd, bool writable, struct hca_region **out)
{
	uint64_t length = 0;
	void *memory;
	int own, ret = file_check(fd, &length);

	if (ret)
		return ret;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	memory = mmap(NULL, length, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, own, 0);
	if (memory == MAP_FAILED) {
		ret = errno == EPERM ? -EACCES : -errno;
		close(own);
		return ret;
	}
	madvise(memory, length, MADV_DONTFORK);
	/* Where the administrator lets shared memory have them. */
	madvise(memory, length, MADV_HUGEPAGE);
	ret = region_of(own, length, out);
	if (ret)
		munmap(memory, length);
	else
		(*out)->addr = memory;
	return ret;
}

void hca_region_destroy(struct hca_region *r)
{
	bool ours;

	pthread_mutex_lock(&regions.lock);
	ours = regions.at[r->id % HCA_REGIONS] == r; /* else of a parent process */
	if (ours)
		regions.at[r->id % HCA_REGIONS] = NULL;
	pthread_mutex_unlock(&regions.lock);
	if (ours && atomic_load(&r->lent))
		hca_local_region_gone(r->id);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

static int reopen_read_only(int fd)
{
	char path[64];
	int ro;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? -errno : ro;
}

int hca_region_lend(uint32_t id, bool writable, uint64_t *length)
{
	struct hca_region *r;
	int fd = -ENOENT;

	pthread_mutex_lock(&regions.lock);
	r = regions.at[id % HCA_REGIONS];
	if (r && r->id == id) {
		fd = writable ? fcntl(r->fd, F_DUPFD_CLOEXEC, 0) :
				reopen_read_only(r->fd);
		if (fd == -1)
			fd = -errno;
		if (fd >= 0) {
			*length = r->length;
			atomic_store(&r->lent, true);
		}
	}
	pthread_mutex_unlock(&regions.lock);
	return fd;
}

void hca_regions_forked(void)
{
	pthread_mutex_init(&regions.lock, NULL);
	for (uint32_t i = 0; i < HCA_REGIONS; i++) {
		struct hca_region *r = regions.at[i];

		if (!r)
			continue;
		close(r->fd);
		r->fd = -1;
		/* Its owner may still hold it, in memory that is the child's
		 * copy. */
		regions.at[i] = NULL;
	}
}
