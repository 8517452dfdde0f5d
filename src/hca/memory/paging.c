/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to memory whose pages may be missing at any time (regions on demand), and the null
 * region.
 *
 * A missing page must cause a completion with an error, not a signal that ends the program.
 * So only the kernel accesses such memory: process_vm_readv() on this process faults pages
 * in, and returns EFAULT where there is none. Ordinary regions do not use this file.
 */
#define LOG_ROOM "hca"
#include "hca/limits.h"
#include "hca/memory/paging.h"
#include "hca/memory/sge.h"
#include "hca/object/pd.h"
#include "hca/object/public.h"
#include "hca/share/process.h"
#include "util/container_of.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hca/host/memory_file.h"
#include "hca/host/settings.h"
#include "hca/memory/key.h"
#include "hca/run/dma.h"
#include "hca/run/touch.h"
#include "util/cancel.h"
#include "util/log.h"

/* Size of the memory that is mapped repeatedly for messages received into the null region. */
#define SINK_PIECE (8u << 20)
/* Size of both mappings: that of the longest message. */
#define NULL_BYTES HCA_MAX_MSG_BYTES

static struct {
	unsigned users; /* under process.lock */
	void *zeros;
	uint8_t *sink;
} null_memory;

/* ---- copies that return an error for a missing page ---- */

/* Where process_vm_readv() is forbidden: copies by write() and read() of a memory file. Slow and
 * rarely used. Calls the kernel by system call number, so that a thread sanitizer does not see
 * the accesses (dma.h). */
static int copy_through_file(uint8_t *to, const uint8_t *from, size_t length)
{
	CANCEL_OFF;
	const size_t most = (size_t)1 << 20;
	int fd = hca_memory_file("busbar-copy", MIN(length, most), 0);
	int ret = MIN(fd, 0);

	for (size_t done = 0; !ret && done < length;) {
		size_t part = MIN(length - done, most);
		long in = syscall(SYS_pwrite64, fd, from + done, part, 0L);
		long out = in > 0 ? syscall(SYS_pread64, fd, to + done, in, 0L) :
				    -1;

		/* The system call stops before a missing page. */
		if (out <= 0)
			ret = -EFAULT;
		else
			done += (size_t)out;
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

/* The C library asks the kernel each time. 0: not asked yet. */
static atomic_int known_pid;

static pid_t own_pid(void)
{
	pid_t pid = atomic_load_explicit(&known_pid, memory_order_relaxed);

	if (unlikely(!pid)) {
		pid = getpid();
		atomic_store_explicit(&known_pid, pid, memory_order_relaxed);
	}
	return pid;
}

int hca_copy_careful(void *to, const void *from, size_t length)
{
	struct iovec local = { to, length };
	struct iovec remote = { (void *)(uintptr_t)from, length };
	pid_t self = own_pid();

	if (hca_settings.copy_access != HCA_ACCESS_AUTO &&
	    hca_settings.copy_access != HCA_ACCESS_PROCESS_VM)
		return copy_through_file(to, from, length);
	while (local.iov_len > 0) {
		ssize_t n = syscall(SYS_process_vm_readv, (long)self, &local,
				    1UL, &remote, 1UL, 0UL);

		if (n < 0 && errno != EFAULT)
			return copy_through_file(local.iov_base, remote.iov_base,
						 local.iov_len);
		if (n <= 0)
			return -EFAULT;
		local.iov_base = (uint8_t *)local.iov_base + n;
		remote.iov_base = (uint8_t *)remote.iov_base + n;
		local.iov_len = remote.iov_len = local.iov_len - (size_t)n;
	}
	return 0;
}

/* ---- the null region ---- */

static int sink_map(void)
{
	int fd = hca_memory_file("busbar-sink", SINK_PIECE, 0);
	int ret = 0;

	if (fd < 0)
		return fd;
	for (size_t at = 0; !ret && at < NULL_BYTES; at += SINK_PIECE)
		if (mmap(null_memory.sink + at, SINK_PIECE,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			ret = -errno;
	close(fd);
	return ret;
}

static int null_map(void)
{
	int ret;

	null_memory.zeros = mmap(NULL, NULL_BYTES, PROT_READ,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);
	if (null_memory.zeros == MAP_FAILED)
		return -errno;
	null_memory.sink = mmap(NULL, NULL_BYTES, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
	if (null_memory.sink == MAP_FAILED) {
		ret = -errno;
		goto err_zeros;
	}
	ret = sink_map();
	if (ret)
		goto err_sink;
	madvise(null_memory.zeros, NULL_BYTES, MADV_DONTFORK);
	madvise(null_memory.sink, NULL_BYTES, MADV_DONTFORK);
	return 0;

err_sink:
	munmap(null_memory.sink, NULL_BYTES);
err_zeros:
	munmap(null_memory.zeros, NULL_BYTES);
	return ret;
}

int hca_null_hold(void)
{
	int ret = 0;

	pthread_mutex_lock(&hca_process.lock);
	if (null_memory.users == 0)
		ret = null_map();
	if (!ret)
		null_memory.users++;
	pthread_mutex_unlock(&hca_process.lock);
	return ret;
}

void hca_null_release(void)
{
	pthread_mutex_lock(&hca_process.lock);
	if (--null_memory.users == 0) {
		munmap(null_memory.sink, NULL_BYTES);
		munmap(null_memory.zeros, NULL_BYTES);
	}
	pthread_mutex_unlock(&hca_process.lock);
}

void hca_paging_forked(void)
{
	atomic_store(&known_pid, 0);
	null_memory.users = 0;
}

/* ---- scatter/gather entries ---- */

static bool sge_look(const struct hca_pd *pd, const struct ibv_sge *sge,
		     unsigned access, struct hca_key *k)
{
	return hca_key_look_own(sge->lkey, k) &&
	       k->pd_id == pd->id && !(k->flags & HCA_KEY_WINDOW) &&
	       (k->access & access) == access && sge->addr >= k->iova &&
	       sge->length <= k->length &&
	       sge->addr - k->iova <= k->length - sge->length;
}

int hca_sge_read(const struct hca_pd *pd, const struct ibv_sge *sge, uint32_t at,
		 void *to, uint32_t length)
{
	const uint8_t *from;
	struct hca_key k;

	if (!sge_look(pd, sge, 0, &k))
		return -EFAULT;
	if (k.flags & HCA_KEY_NULL) {
		memset(to, 0, length);
		return 0;
	}
	from = (const uint8_t *)(uintptr_t)(k.addr + (sge->addr - k.iova)) + at;
	if (k.flags & HCA_KEY_ON_DEMAND)
		return hca_copy_careful(to, from, length);
	if (!hca_touch_read(from, length))
		return -EFAULT;
	memcpy(to, from, length);
	return 0;
}

int hca_sge_write(const struct hca_pd *pd, const struct ibv_sge *sge,
		  uint32_t at, const void *from, uint32_t length)
{
	struct hca_key k;
	uint8_t *to;

	if (!sge_look(pd, sge, IBV_ACCESS_LOCAL_WRITE, &k))
		return -EFAULT;
	if (k.flags & HCA_KEY_NULL)
		return 0;
	to = (uint8_t *)(uintptr_t)(k.addr + (sge->addr - k.iova)) + at;
	if (k.flags & HCA_KEY_ON_DEMAND)
		return hca_copy_careful(to, from, length);
	if (!hca_touch_write(to, length))
		return -EFAULT;
	memcpy(to, from, length);
	return 0;
}

void *hca_sge_for_kernel(const struct hca_pd *pd, const struct ibv_sge *sge,
			 unsigned access)
{
	struct hca_key k;

	if (!sge_look(pd, sge, access, &k))
		return NULL;
	if (k.flags & HCA_KEY_NULL)
		return access & IBV_ACCESS_LOCAL_WRITE ?
			       (void *)null_memory.sink : null_memory.zeros;
	return (void *)(uintptr_t)(k.addr + (sge->addr - k.iova));
}
