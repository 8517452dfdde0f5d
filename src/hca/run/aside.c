/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing descriptors that may block; see aside.h. */
#define LOG_ROOM "hca"
#include "hca/run/aside.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/library_thread.h"
#include "util/log.h"

#define WAITING_MAX 64
#define SETTLE_LIMIT_S 5

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct hca_aside waiting[WAITING_MAX];
	unsigned first, count;
	bool running;
} aside = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .idle = PTHREAD_COND_INITIALIZER };

static bool take(struct hca_aside *a)
{
	bool any;

	pthread_mutex_lock(&aside.lock);
	any = aside.running = aside.count > 0;
	if (any) {
		*a = aside.waiting[aside.first];
		aside.first = (aside.first + 1) % WAITING_MAX;
		aside.count--;
	} else {
		pthread_cond_broadcast(&aside.idle);
	}
	pthread_mutex_unlock(&aside.lock);
	return any;
}

static void *work(void *arg)
{
	struct hca_aside a;

	while (take(&a))
		a.fn(&a);
	return NULL;
}

/* Starts the thread. The lock is held. */
static void start(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* If there can be no thread, the next call tries again. */
	aside.running = !library_thread_start(&thread, &attr, work, NULL);
	pthread_attr_destroy(&attr);
}

bool hca_aside_run(const struct hca_aside *a)
{
	bool taken;

	pthread_mutex_lock(&aside.lock);
	taken = aside.count < WAITING_MAX;
	if (taken)
		aside.waiting[(aside.first + aside.count++) % WAITING_MAX] = *a;
	if (!aside.running)
		start();
	pthread_mutex_unlock(&aside.lock);
	if (!taken)
		log_error("%d descriptors of peers wait to be closed, so one more stays open",
			  WAITING_MAX);
	return taken;
}

bool hca_aside_is_full(void)
{
	bool full;

	pthread_mutex_lock(&aside.lock);
	full = aside.count == WAITING_MAX;
	pthread_mutex_unlock(&aside.lock);
	return full;
}

/* Does the kernel's name of the descriptor begin with `kind`? The name of a file would
 * begin with its path. */
static bool is_named(int fd, const char *kind)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strncmp(target, kind, strlen(kind));
}

bool hca_fd_is_memory(int fd)
{
	/* For other files this fails without a call of their file system. */
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

bool hca_fd_is_eventfd(int fd)
{
	return is_named(fd, "anon_inode:[eventfd]");
}

static void close_it(struct hca_aside *a)
{
	close(a->fd);
}

void hca_fd_drop(int fd)
{
	/* For other files close(), and dup2() onto them, may wait for the file system. */
	if (fcntl(fd, F_GET_SEALS) >= 0 || hca_fd_is_eventfd(fd) ||
	    is_named(fd, "pipe:["))
		close(fd);
	else
		hca_aside_run(&(struct hca_aside){ .fn = close_it, .fd = fd });
}

void hca_aside_settle(void)
{
	struct timespec until;
	int ret = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SETTLE_LIMIT_S;
	pthread_mutex_lock(&aside.lock);
	while (aside.running && !ret)
		ret = pthread_cond_clockwait(&aside.idle, &aside.lock,
					     CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&aside.lock);
}

void hca_aside_forked(void)
{
	pthread_cond_init(&aside.idle, NULL);
	pthread_mutex_init(&aside.lock, NULL);
	aside.first = aside.count = 0;
	aside.running = false;
}
