/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits with a limit on CLOCK_MONOTONIC, which cannot be set. The thread sanitizer of gcc
 * 12 does not know the C library's functions for this and would not see which thread
 * holds the lock; with it these functions try again every millisecond.
 */
#ifndef UTIL_TIMED_H
#define UTIL_TIMED_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#ifdef __SANITIZE_THREAD__
static inline bool timed_rest(const struct timespec *until)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct timespec now;

	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < until->tv_sec ||
	       (now.tv_sec == until->tv_sec && now.tv_nsec < until->tv_nsec);
}
#endif

/* As pthread_mutex_clocklock(3): 0 or an error (ETIMEDOUT). */
static inline int timed_lock(pthread_mutex_t *lock, const struct timespec *until)
{
#ifdef __SANITIZE_THREAD__
	int ret;

	while ((ret = pthread_mutex_trylock(lock)) == EBUSY && timed_rest(until))
		;
	return ret == EBUSY ? ETIMEDOUT : ret;
#else
	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, until);
#endif
}

/* As pthread_clockjoin_np(3): 0 or an error (ETIMEDOUT). */
static inline int timed_join(pthread_t thread, const struct timespec *until)
{
#ifdef __SANITIZE_THREAD__
	int ret;

	while ((ret = pthread_tryjoin_np(thread, NULL)) == EBUSY && timed_rest(until))
		;
	return ret == EBUSY ? ETIMEDOUT : ret;
#else
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, until);
#endif
}

/* As sem_clockwait(3): 0, or -1 with errno. */
static inline int timed_sem_wait(sem_t *sem, const struct timespec *until)
{
#ifdef __SANITIZE_THREAD__
	int ret;

	while ((ret = sem_trywait(sem)) && errno == EAGAIN && timed_rest(until))
		;
	if (ret && errno == EAGAIN)
		errno = ETIMEDOUT;
	return ret;
#else
	return sem_clockwait(sem, CLOCK_MONOTONIC, until);
#endif
}

#endif
