/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory file of a link, and its data areas; see area.h. */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "hca/host/memory_file.h"
#include "hca/run/aside.h"
#include "transport/shm/ring/area.h"
#include "transport/shm/ring/ring.h"

int shm_area_create(void)
{
	int fd = hca_memory_file("busbar-link", sizeof(struct shm_area),
				 MFD_ALLOW_SEALING);

	if (fd < 0)
		return fd;
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

struct shm_area *shm_area_map(int fd)
{
	struct shm_area *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (a == MAP_FAILED)
		return NULL;
	madvise(a, sizeof(*a), MADV_DONTFORK);
	return a;
}

bool shm_area_place(uint32_t head, uint32_t tail, uint32_t bytes, uint32_t *offset,
		    uint32_t *end)
{
	uint32_t need = (bytes + CACHE_LINE - 1) & ~(uint32_t)(CACHE_LINE - 1);

	if (head >= tail) {
		if (need > SHM_DATA_BYTES - head ||
		    (need == SHM_DATA_BYTES - head && tail == 0)) {
			if (need >= tail)
				return false;
			head = 0;
		}
	} else if (need >= tail - head) {
		return false;
	}
	*offset = head;
	*end = (head + need) % SHM_DATA_BYTES;
	return true;
}

/*
 * A file that shrinks under a mapping raises SIGBUS at the next access, and so do
 * missing huge pages. Neither can happen to a sealed memory file of ordinary pages.
 */
bool shm_memory_stays(int fd, size_t size)
{
	struct statfs fs;
	struct stat st;

	/* hca_fd_is_memory() does not ask the file system, which the peer may have
	 * chosen. The other calls come after it: on a memory file they cannot block. */
	return hca_fd_is_memory(fd) && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) &&
	       (size_t)st.st_size >= size;
}
