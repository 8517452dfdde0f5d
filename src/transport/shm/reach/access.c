/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to a peer's memory that is not mapped: by process_vm_readv/writev if the
 * kernel permits, else by the peer's /proc/self/mem, whose descriptor the peer
 * passes, else not at all: the peer then carries our operations out (target.c). The
 * peer says in the handshake which ways it allows (hca/share/peers.h). The first way that
 * works is chosen when the link is made; the peer's application takes no part in it.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hca/host/mapping.h"
#include "hca/host/settings.h"
#include "hca/limits.h"
#include "hca/run/aside.h"
#include "hca/share/process.h"
#include "transport/shm/link/control.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/log.h"

const char *shm_path_name(enum shm_path path)
{
	switch (path) {
	case SHM_PATH_PROCESS_VM: return "process_vm";
	case SHM_PATH_PROCMEM: return "procmem";
	default: return "target";
	}
}

/* Both our setting and the peer's permission have to allow the way. */
static bool may_use(const struct shm_link *l, enum hca_copy_access path,
		    enum hca_peer_lends need)
{
	return (l->borrows & need) &&
	       (hca_settings.copy_access == HCA_ACCESS_AUTO ||
		hca_settings.copy_access == (int)path);
}

uint32_t shm_access_flags(const struct shm_link *l)
{
	int path = atomic_load_explicit(&l->path, memory_order_relaxed);

	return (atomic_load_explicit(&l->tx->ack.pulls, memory_order_relaxed) ?
			HCA_LINK_PULLS : 0u) |
	       (path != SHM_PATH_TARGET ? HCA_LINK_ACCESSES : 0u) |
	       (path == SHM_PATH_PROCMEM ? HCA_LINK_PROCMEM : 0u);
}

static void set_pulls(struct shm_link *l, bool pulls)
{
	atomic_store_explicit(&l->rx->ack.pulls, pulls, memory_order_relaxed);
}

static void set_path(struct shm_link *l, enum shm_path path)
{
	atomic_store_explicit(&l->path, path, memory_order_release);
	set_pulls(l, path != SHM_PATH_TARGET);
	if (atomic_load(&l->state) == SHM_LINK_UP)
		hca_link_changed(l->place, shm_access_flags(l));
}

/* The address of the peer's uuid in the peer's address space. */
static uint64_t identity_at(const struct shm_link *l)
{
	return l->segment_addr + offsetof(struct hca_segment, uuid);
}

static bool probe_process_vm(const struct shm_link *l)
{
	uint8_t seen[16];
	struct iovec to = { .iov_base = seen, .iov_len = sizeof(seen) };
	struct iovec from = { (void *)(uintptr_t)identity_at(l), sizeof(seen) };

	return process_vm_readv(l->pid, &to, 1, &from, 1, 0) == sizeof(seen) &&
	       shm_uuid_is(l, seen);
}

/* True if the descriptor is the memory of the process with the link's uuid. Runs in the
 * helper thread (hca/run/aside.h), as the calls may block as long as the peer likes. */
static bool probe_memory(const struct hca_aside *a)
{
	uint8_t seen[16];
	struct statfs fs;

	return fstatfs(a->fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC &&
	       pread(a->fd, seen, sizeof(seen), (off_t)a->addr) ==
		       sizeof(seen) &&
	       !memcmp(seen, a->uuid, sizeof(seen));
}

void shm_access_choose(struct shm_link *l, bool keys_follow)
{
	bool works = may_use(l, HCA_ACCESS_PROCESS_VM, HCA_PEER_PTRACE) &&
		     l->pid > 0 && probe_process_vm(l);

	set_path(l, works && l->keys ? SHM_PATH_PROCESS_VM : SHM_PATH_TARGET);
	/* The keys come with READY, and nothing is received before READY; the peer may
	 * send messages to be pulled from WELCOME on. */
	if (works && keys_follow)
		set_pulls(l, true);
}

void shm_access_improve(struct shm_link *l)
{
	if (!l->keys || atomic_load(&l->path) != SHM_PATH_TARGET ||
	    !may_use(l, HCA_ACCESS_PROCMEM, HCA_PEER_PROCMEM))
		return;
	l->asked_memory = true;
	if (shm_control_tell(l->fd, SHM_ASK_MEMORY, NULL, 0))
		log_debug("pid %d not asked for its memory: %m", (int)l->pid);
}

static void give_memory(struct shm_link *l)
{
	int fd;

	/* With this descriptor all memory of this process can be read and written. */
	if (!(l->lends & HCA_PEER_PROCMEM)) {
		log_debug("pid %d is not given this process's memory", (int)l->pid);
		return;
	}
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (shm_control_tell(l->fd, SHM_MEMORY, &fd, 1))
		log_debug("memory not passed to pid %d", (int)l->pid);
	close(fd);
}

/* Gives the checked descriptor to the link; false: the link has ended meanwhile or does
 * not need it, and the descriptor is still the caller's. */
static bool memory_set(const struct hca_aside *a)
{
	struct shm_link *l = shm.links[a->place];
	bool use;

	pthread_mutex_lock(&shm.lock);
	use = atomic_load(&l->state) == SHM_LINK_UP && shm_uuid_is(l, a->uuid) &&
	      identity_at(l) == a->addr && l->mem_fd < 0 &&
	      (l->borrows & HCA_PEER_PROCMEM);
	if (use) {
		l->mem_fd = a->fd;
		set_path(l, SHM_PATH_PROCMEM);
		log_debug("memory of pid %d: by %s", (int)l->pid,
			  shm_path_name(SHM_PATH_PROCMEM));
	}
	pthread_mutex_unlock(&shm.lock);
	return use;
}

static void memory_look(struct hca_aside *a)
{
	if (!probe_memory(a) || !memory_set(a))
		close(a->fd);
}

static void take_memory(struct shm_link *l, int *fd)
{
	struct hca_aside look = { .fn = memory_look, .fd = *fd,
				  .place = l->place, .addr = identity_at(l) };

	if (!l->asked_memory || *fd < 0)
		return;
	l->asked_memory = false;
	memcpy(look.uuid, l->uuid, sizeof(look.uuid));
	if (l->mem_fd < 0 && hca_aside_run(&look))
		*fd = -1;
}

int shm_access_message(struct shm_link *l, const struct shm_control *msg, int fds[3])
{
	switch (msg->kind) {
	case SHM_ASK_MEMORY:
		give_memory(l);
		return 0;
	case SHM_MEMORY:
		take_memory(l, &fds[0]);
		return 0;
	default:
		return shm_map_message(l, msg, fds);
	}
}

/* This way of access does not work any more (SELinux, a change of user, a sandbox):
 * falls back to the target and asks for the peer's memory descriptor. */
static int path_lost(struct shm_link *l, int error)
{
	log_debug("pid %d is not reached by %s any more: %s", (int)l->pid,
		  shm_path_name((enum shm_path)atomic_load(&l->path)),
		  strerror(error));
	set_path(l, SHM_PATH_TARGET);
	shm_access_improve(l);
	return -EPERM;
}

/*
 * By syscall(): for the program it is the adapter that copies, not one of its threads.
 * A thread sanitizer intercepts the libc functions and would report a race (dma.h).
 */
static ssize_t copy_once(const struct shm_link *l, bool read,
			 const struct iovec *near, int near_count,
			 const struct iovec *far, int far_count)
{
	return syscall(read ? SYS_process_vm_readv : SYS_process_vm_writev,
		       (long)l->pid, near, (unsigned long)near_count, far,
		       (unsigned long)far_count, 0UL);
}

static int copy_process_vm(struct shm_link *l, bool read, struct iovec *near,
			   int near_count, struct iovec *far, int far_count,
			   uint64_t length)
{
	/* Usually one call; it may stop early at a missing page. */
	while (length > 0) {
		ssize_t n = copy_once(l, read, near, near_count, far, far_count);

		if (n < 0 && errno == ESRCH)
			return -ESRCH;
		if (n < 0 && (errno == EPERM || errno == ENOSYS))
			return path_lost(l, errno);
		if (n <= 0)
			return -EFAULT;
		length -= (uint64_t)n;
		near_count = shm_iov_advance(near, near_count, (size_t)n);
		far_count = shm_iov_advance(far, far_count, (size_t)n);
	}
	return 0;
}

/* Copies to `head` the leading elements of `iov`, cut to at most `bytes` in all. Returns
 * their number. */
static int iov_head(const struct iovec *iov, int count, uint64_t bytes, struct iovec *head)
{
	int n = 0;

	for (; n < count && bytes > 0; n++) {
		head[n] = iov[n];
		head[n].iov_len = MIN(head[n].iov_len, bytes);
		bytes -= head[n].iov_len;
	}
	return n;
}

/* The kernel does not say at which address it stopped. If one of our own pages is
 * missing, makes `near` begin there, so that the caller sees whose page it is. */
static void point_at_missing(struct iovec *near, int near_count, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < near_count; i++) {
		uintptr_t at = (uintptr_t)near[i].iov_base;
		uintptr_t end = at + near[i].iov_len;

		for (; at < end; at = (at & ~(page - 1)) + page) {
			if (hca_page_usable((void *)at, write))
				continue;
			near[0].iov_base = (void *)at;
			return;
		}
	}
}

static int copy_procmem(struct shm_link *l, bool read, struct iovec *near,
			int near_count, struct iovec *far, uint64_t length)
{
	while (length > 0) {
		struct iovec part[HCA_MAX_SGE];
		uint64_t left = far->iov_len;
		off_t at = (off_t)(uintptr_t)far->iov_base;
		ssize_t n;
		int count;

		if (left == 0) {
			far++;
			continue;
		}
		count = iov_head(near, near_count, left, part);
		n = syscall(read ? SYS_preadv : SYS_pwritev, (long)l->mem_fd,
			    part, (unsigned long)count, (unsigned long)at, 0UL);
		if (n == 0) /* the peer's address space no longer exists */
			return -ESRCH;
		if (n < 0 && (errno == EPERM || errno == EACCES))
			return path_lost(l, errno);
		if (n < 0) {
			point_at_missing(near, near_count, read);
			return -EFAULT;
		}
		length -= (uint64_t)n;
		near_count = shm_iov_advance(near, near_count, (size_t)n);
		shm_iov_advance(far, 1, (size_t)n);
		if ((uint64_t)n == left)
			far++;
	}
	return 0;
}

int shm_access_copy(struct shm_link *l, bool read, struct iovec *near,
		    int near_count, struct iovec *far, int far_count,
		    uint64_t length)
{
	int ret;

	switch ((enum shm_path)atomic_load_explicit(&l->path, memory_order_acquire)) {
	case SHM_PATH_PROCESS_VM:
		ret = copy_process_vm(l, read, near, near_count, far, far_count, length);
		break;
	case SHM_PATH_PROCMEM:
		ret = copy_procmem(l, read, near, near_count, far, length);
		break;
	default:
		return -EPERM;
	}
	if (ret == -EFAULT)
		log_debug("%s of pid %d failed: %m", read ? "read" : "write",
			  (int)l->pid);
	return ret;
}
