/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See bounded_write.h. Made of system calls, not of the C library's functions: the log is
 * linked into a library (librspreload.so) that replaces functions of these names, and
 * lines are written while locks are held.
 */
#include "util/bounded_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/container_of.h"

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool wait_for_room(int fd, int timeout_ms)
{
	struct timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	/* After an error of ppoll(): true, write() then reports the error. */
	return syscall(SYS_ppoll, &p, 1, &t, NULL, 0) != 0;
}

bool bounded_write_has_room(int fd)
{
	return wait_for_room(fd, 0);
}

/*
 * Writes without blocking, although there may be too little room, or another process
 * may fill it first. A pipe or terminal is opened again for that, non-blocking, so the
 * flags of the descriptor that other processes share stay unchanged.
 */
static ssize_t write_now(int fd, const char *buf, size_t len)
{
	char path[32];
	struct stat st;
	ssize_t n;
	int own, err;

	if (fstat(fd, &st) || S_ISREG(st.st_mode))
		return syscall(SYS_write, fd, buf, len);
	len = MIN(len, (size_t)PIPE_BUF);
	if (S_ISSOCK(st.st_mode))
		return syscall(SYS_sendto, fd, buf, len, MSG_DONTWAIT, NULL, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = (int)syscall(SYS_openat, AT_FDCWD, path,
			   O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* If it cannot be opened: write all the same. ppoll() has found room, and a
	 * pipe then has room for PIPE_BUF bytes. */
	n = syscall(SYS_write, own >= 0 ? own : fd, buf, len);
	err = errno;
	if (own >= 0)
		syscall(SYS_close, own);
	errno = err;
	return n;
}

ssize_t bounded_write_once(int fd, const char *buf, size_t len, int timeout_ms)
{
	ssize_t n;

	if (!wait_for_room(fd, timeout_ms))
		return -EAGAIN;
	n = write_now(fd, buf, len);
	if (n >= 0)
		return n;
	if (errno == EAGAIN && timeout_ms)
		/* There was room, but too little. */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return errno == EINTR ? -EAGAIN : -errno;
}

size_t bounded_write(int fd, const char *buf, size_t len, unsigned patience_ms)
{
	long end = patience_ms ? now_ms() + (long)patience_ms : 0;
	size_t done = 0;

	while (done < len) {
		long left = patience_ms ? MAX(end - now_ms(), 0L) : 0;
		ssize_t n = bounded_write_once(fd, buf + done, len - done,
					       (int)left);

		if (n >= 0) {
			done += (size_t)n;
			end = patience_ms ? now_ms() + (long)patience_ms : 0;
		} else if (n != -EAGAIN) {
			return len;
		} else if (left == 0) {
			break;
		}
	}
	return done;
}
