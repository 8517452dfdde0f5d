/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that wake; see wakeup.h. */
#include "util/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "util/cancel.h"

static int open_with(int flags)
{
	int fd = eventfd(0, EFD_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

int wakeup_open_signal(void)
{
	return open_with(EFD_NONBLOCK);
}

int wakeup_open_counter(void)
{
	return open_with(EFD_SEMAPHORE);
}

int wakeup_post(int fd)
{
	const uint64_t one = 1;

	if (cancel_free_write(fd, &one, sizeof(one)) == sizeof(one))
		return 0;
	/* Only a full one makes a post wait, or be interrupted in waiting. */
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

uint64_t wakeup_drain(int fd)
{
	uint64_t count;

	if (cancel_free_read(fd, &count, sizeof(count), RWF_NOWAIT) >= 0)
		return count;
	/* Only its owner reads a signal, and does so when it is readable. */
	if (errno == EOPNOTSUPP && cancel_free_read(fd, &count, sizeof(count), 0) >= 0)
		return count;
	return 0;
}

bool wakeup_take(int fd)
{
	uint64_t one;

	if (cancel_free_read(fd, &one, sizeof(one), RWF_NOWAIT) == sizeof(one))
		return true;
	/* Another reader may be faster than any look at whether there is one. */
	return errno == EOPNOTSUPP && fcntl(fd, F_GETFL) & O_NONBLOCK &&
	       cancel_free_read(fd, &one, sizeof(one), 0) == sizeof(one);
}

bool wakeup_takes(void)
{
	int fd = wakeup_open_counter();
	bool takes;
	uint64_t one;

	if (fd < 0)
		return false;
	takes = cancel_free_read(fd, &one, sizeof(one), RWF_NOWAIT) >= 0 || errno == EAGAIN;
	close(fd);
	return takes;
}

int wakeup_wait(int fd)
{
	uint64_t one;

	/* The C library's call, which is a cancellation point. */
	return read(fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}
