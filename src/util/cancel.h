/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation of threads (pthread_cancel(3)). A thread that ended at a cancellation
 * point inside of a library would leave the library's locks held for ever. So public
 * calls disable cancellation, except while they sleep with no lock held.
 *
 * Functions of the data path need not do so: they have no cancellation point.
 */
#ifndef UTIL_CANCEL_H
#define UTIL_CANCEL_H

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline int cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_restore(const int *before)
{
	int now;

	pthread_setcancelstate(*before, &now);
}

/* A declaration: disables cancellation until the end of the block. */
#define CANCEL_OFF                                                            \
	int cancel_before_ __attribute__((unused, cleanup(cancel_restore))) = \
		cancel_off()
/* Restores the state before CANCEL_OFF, for a sleep with no lock held. */
#define CANCEL_BACK cancel_restore(&cancel_before_)

/* A system call, because write(2) of the C library is a cancellation point. */
static inline ssize_t cancel_free_write(int fd, const void *from, size_t size)
{
	return syscall(SYS_write, (long)fd, from, size);
}

/* Offset -1: the current one. */
static inline ssize_t cancel_free_read(int fd, void *to, size_t size, int flags)
{
	struct iovec iov = { to, size };

	return syscall(SYS_preadv2, (long)fd, &iov, 1L, -1L, -1L, (long)flags);
}

#endif
