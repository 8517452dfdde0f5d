/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared memory by memfd_create(2). Files in /dev/shm are no alternative: peers map only
 * files that are sealed against shrinking, and only memory files can be sealed.
 */
#define LOG_ROOM "hca"
#include "hca/host/memory_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/log.h"

static void tell_denied(void)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	const char *remedy =
		errno == EMFILE || errno == ENFILE ?
			"there are no descriptors left (ulimit -n)" :
		errno == EPERM || errno == EACCES || errno == ENOSYS ?
			"a seccomp filter or the profile of a container forbids it, and has to allow memfd_create" :
			"there may be no memory left";

	if (!atomic_flag_test_and_set(&told))
		log_error("no memory can be shared with peers: memfd_create: %m; %s",
			  remedy);
}

static void tell_limit(uint64_t size, uint64_t limit)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		log_error("no memory can be shared with peers: the limit on the size of files is %llu bytes, and %llu are needed; raise it (ulimit -f, RLIMIT_FSIZE)",
			  (unsigned long long)limit, (unsigned long long)size);
}

int hca_memory_file(const char *name, uint64_t size, unsigned flags)
{
	struct rlimit limit;
	int fd, ret;

	/* A larger file would end the process (SIGXFSZ). */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    size > limit.rlim_cur) {
		tell_limit(size, limit.rlim_cur);
		return -EFBIG;
	}
	fd = memfd_create(name, flags | MFD_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		tell_denied();
		return ret;
	}
	if (!ftruncate(fd, (off_t)size))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}
