/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchanges pages that are in use: copies them and maps the copy in their place. A write
 * in between would be lost, so no thread may write meanwhile:
 *
 * - If the process has no threads but the caller and the progress thread, the progress
 *   thread does it, while the caller waits with its signals blocked.
 * - Otherwise userfaultfd(2) write-protects the pages: a writer waits in its page fault
 *   until the exchange is done.
 *
 * If neither is possible, the pages stay. Not covered are writes by the kernel through
 * page references that it took before (O_DIRECT, io_uring).
 */
#define LOG_ROOM "hca"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/memory/remap.h"
#include "hca/run/progress.h"
#include "util/container_of.h"
#include "util/log.h"

#define PAGE 4096u

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

struct move {
	uint8_t *at;
	size_t length;
	int fd;
	uint64_t offset;
	bool in;
	uint8_t *copy; /* mapping in which the new pages are prepared */
	int result;
};

/* ---- the exchange itself ---- */

/* Pages of zeros are skipped, because the copy is zero already and needs no memory for
 * them. Word by word, because other threads may write next to the protected range. */
__attribute__((no_sanitize("address", "thread"))) static void
copy_pages(uint8_t *to, const uint8_t *from, size_t length)
{
	for (size_t at = 0; at < length; at += PAGE) {
		const volatile uint64_t *f = (const void *)(from + at);
		uint64_t any = 0;

		for (size_t i = 0; i < PAGE / sizeof(*f); i++)
			any |= f[i];
		if (!any)
			continue;
		for (size_t i = 0; i < PAGE / sizeof(*f); i++)
			((volatile uint64_t *)(void *)(to + at))[i] = f[i];
	}
}

static int prepare(struct move *m)
{
	if (m->in) {
		/* The file may have bytes of an earlier region there. */
		if (fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)m->offset, (off_t)m->length))
			return -errno;
		m->copy = mmap(NULL, m->length, PROT_READ | PROT_WRITE,
			       MAP_SHARED, m->fd, (off_t)m->offset);
	} else {
		m->copy = mmap(NULL, m->length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return m->copy == MAP_FAILED ? -errno : 0;
}

/* Exchanges the pages; while it runs no thread writes to them, nor does this function. */
static void exchange(struct move *m)
{
	copy_pages(m->copy, m->at, m->length);
	if (mremap(m->copy, m->length, m->length,
		   MREMAP_MAYMOVE | MREMAP_FIXED, m->at) == MAP_FAILED)
		m->result = -errno;
	else
		m->copy = NULL;
}

static void clean_up(struct move *m)
{
	if (m->copy)
		munmap(m->copy, m->length);
	if (!m->in && m->result == 0 &&
	    fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)m->offset, (off_t)m->length))
		log_debug("pages of a region not given back: %m");
}

/* Are the stack or errno of this thread in the pages? It would write to them. */
static bool in_use_by_us(const struct move *m)
{
	const uint8_t *own[] = { (const uint8_t *)&m, (const uint8_t *)&errno,
				 (const uint8_t *)pthread_self() };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i] >= m->at && own[i] < m->at + m->length)
			return true;
	return false;
}

/* ---- with no other threads ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	struct progress_timer timer;
	struct move *move;
	bool done;
} request = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done_cond = PTHREAD_COND_INITIALIZER,
};

void hca_remap_move_forked(void)
{
	pthread_mutex_init(&request.lock, NULL);
	pthread_cond_init(&request.done_cond, NULL);
}

static unsigned thread_count(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 2 ? n - 2 : UINT32_MAX; /* "." and ".." */
}

static void request_run(struct progress_timer *t)
{
	if (in_use_by_us(request.move))
		request.move->result = -EBUSY;
	else
		exchange(request.move);
	pthread_mutex_lock(&request.lock);
	request.done = true;
	pthread_cond_signal(&request.done_cond);
	pthread_mutex_unlock(&request.lock);
}

/* Lets the progress thread do the exchange, so that it does nothing else meanwhile. */
static void exchange_alone(struct move *m)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&request.lock);
	request.move = m;
	request.done = false;
	progress_timer_init(&request.timer, request_run);
	progress_timer_arm(&request.timer, progress_now_ns());
	while (!request.done)
		pthread_cond_wait(&request.done_cond, &request.lock);
	pthread_mutex_unlock(&request.lock);
	progress_timer_cancel(&request.timer); /* it has returned */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- with other threads ---- */

static int guard_open(void)
{
	static const uint64_t features[] = {
		UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
			UFFD_FEATURE_WP_UNPOPULATED,
		UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
		UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};

	/* Not UFFD_USER_MODE_ONLY: faults in system calls of the program must be caught, too.
	 * That needs a privilege or vm.unprivileged_userfaultfd. */
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		struct uffdio_api api = { .api = UFFD_API,
					  .features = features[i] };
		int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

		if (fd < 0)
			return -EPERM;
		if (!ioctl(fd, UFFDIO_API, &api))
			return fd;
		close(fd);
	}
	return -EPERM;
}

static int protect(int guard, const struct move *m)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)m->at, m->length },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)m->at, m->length },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	/* Older kernels do not protect pages that are not populated yet. */
	if (m->in && madvise(m->at, m->length, MADV_POPULATE_READ))
		for (size_t at = 0; at < m->length; at += PAGE)
			(void)*(volatile uint8_t *)(m->at + at);
	if (ioctl(guard, UFFDIO_REGISTER, &reg) ||
	    ioctl(guard, UFFDIO_WRITEPROTECT, &wp))
		return -EPERM;
	return 0;
}

static int exchange_guarded(struct move *m)
{
	int guard = guard_open();
	int ret;

	if (guard < 0)
		return guard;
	ret = protect(guard, m);
	if (!ret)
		exchange(m);
	/* Wakes writers that wait in a page fault; they find the new pages. */
	close(guard);
	return ret;
}

/* ---- */

static int move(struct move *m)
{
	int ret;

	if (in_use_by_us(m) || progress_is_self())
		return -EBUSY;
	ret = prepare(m);
	if (ret) {
		m->copy = NULL;
		return ret;
	}
	if (thread_count() == 2)
		exchange_alone(m);
	else
		m->result = exchange_guarded(m) ?: m->result;
	clean_up(m);
	return m->result;
}

int hca_remap_move_in(uint8_t *at, size_t length, int fd, uint64_t offset)
{
	return move(&(struct move){ .at = at, .length = length, .fd = fd,
				    .offset = offset, .in = true });
}

int hca_remap_move_out(uint8_t *at, size_t length, int fd, uint64_t offset)
{
	return move(&(struct move){ .at = at, .length = length, .fd = fd,
				    .offset = offset });
}
