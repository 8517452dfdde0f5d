/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchanging pages that are in use: copy, then map the copy in their place. A
 * write between the two would be lost, so nobody may write meanwhile:
 *
 * - When the process has no thread but the caller and ours, ours does it, while
 *   the caller waits with its signals blocked.
 * - Otherwise the pages are write-protected by userfaultfd(2): a writer waits in
 *   its page fault until the exchange is done.
 *
 * Where neither can be had the pages stay. What neither sees is the kernel's own
 * writing by page references that it took before (O_DIRECT, io_uring).
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

#include "hca/progress.h"
#include "hca/remap.h"
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
	uint8_t *copy; /* where the new pages are prepared */
	int result;
};

/* ---- the exchange itself ---- */

/* Pages of zeros need no memory in the copy, which is zero. Word by word, since
 * others may be writing behind what is protected. */
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
		/* An earlier tenant's bytes. */
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

/* Nobody writes to the pages from here to its end, nor does this by the way. */
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

/* Whoever does it must not write to the pages itself. */
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
} errand = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done_cond = PTHREAD_COND_INITIALIZER,
};

void hca_remap_move_forked(void)
{
	pthread_mutex_init(&errand.lock, NULL);
	pthread_cond_init(&errand.done_cond, NULL);
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

static void run_errand(struct progress_timer *t)
{
	if (in_use_by_us(errand.move))
		errand.move->result = -EBUSY;
	else
		exchange(errand.move);
	pthread_mutex_lock(&errand.lock);
	errand.done = true;
	pthread_cond_signal(&errand.done_cond);
	pthread_mutex_unlock(&errand.lock);
}

/* On the progress thread, so that it does nothing else. */
static void exchange_alone(struct move *m)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&errand.lock);
	errand.move = m;
	errand.done = false;
	progress_timer_init(&errand.timer, run_errand);
	progress_timer_arm(&errand.timer, progress_now_ns());
	while (!errand.done)
		pthread_cond_wait(&errand.done_cond, &errand.lock);
	pthread_mutex_unlock(&errand.lock);
	progress_timer_cancel(&errand.timer); /* it has returned */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- with others ---- */

static int guard_open(void)
{
	static const uint64_t features[] = {
		UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
			UFFD_FEATURE_WP_UNPOPULATED,
		UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
		UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};

	/* Faults in system calls of the program count as well, which needs a
	 * privilege or vm.unprivileged_userfaultfd. */
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

	/* Older kernels do not protect a page that is not there yet. */
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
	/* Wakes those who wait in a fault; they find the new pages. */
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
