/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that programs cancel (pthread_cancel(3)). One that ended at a cancellation
 * point inside of a library would leave the library's locks held for ever, so calls
 * wait for their own end first, except where they sleep with nothing held.
 *
 * Functions of the data path do without this: they use no cancellation point.
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

/* A declaration: from here to the end of the block nobody is cancelled. */
#define CANCEL_OFF                                                            \
	int cancel_before_ __attribute__((unused, cleanup(cancel_restore))) = \
		cancel_off()
/* As it was before CANCEL_OFF, for a call that sleeps with nothing held. */
#define CANCEL_BACK cancel_restore(&cancel_before_)

/* By number: the C library's are cancellation points. */
static inline ssize_t cancel_free_write(int fd, const void *from, size_t size)
{
	return syscall(SYS_write, (long)fd, from, size);
}

/* At no offset. */
static inline ssize_t cancel_free_read(int fd, void *to, size_t size, int flags)
{
	struct iovec iov = { to, size };

	return syscall(SYS_preadv2, (long)fd, &iov, 1L, -1L, -1L, (long)flags);
}

#endif
