/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that move bytes. With _FORTIFY_SOURCE the compiler replaces some of them by
 * the names with _chk, which therefore must be here as well.
 */
#include <stdlib.h>
#include <unistd.h>

#include "rdmacm/preload/preload.h"

#define CHUNK 65536

/* Calls the rsocket's function if `fd` has an rsocket, else the C library's. */
#define EITHER(fd, by_rsocket, by_libc)      \
	do {                                 \
		int rs = preload_data(fd);   \
		ssize_t ret_;                \
		if (rs < 0)                  \
			return by_libc;      \
		preload_enter();             \
		ret_ = by_rsocket;           \
		preload_leave();             \
		return ret_;                 \
	} while (0)

PRELOAD_EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	EITHER(fd, rrecv(rs, buf, len, flags),
	       preload_real.recv(fd, buf, len, flags));
}

PRELOAD_EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags,
				struct sockaddr *from, socklen_t *from_len)
{
	EITHER(fd, rrecvfrom(rs, buf, len, flags, from, from_len),
	       preload_real.recvfrom(fd, buf, len, flags, from, from_len));
}

PRELOAD_EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	EITHER(fd, rrecvmsg(rs, msg, flags), preload_real.recvmsg(fd, msg, flags));
}

PRELOAD_EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	EITHER(fd, rread(rs, buf, len), preload_real.read(fd, buf, len));
}

PRELOAD_EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
	EITHER(fd, rreadv(rs, iov, count), preload_real.readv(fd, iov, count));
}

PRELOAD_EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	EITHER(fd, rsend(rs, buf, len, flags),
	       preload_real.send(fd, buf, len, flags));
}

PRELOAD_EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
			      const struct sockaddr *to, socklen_t to_len)
{
	EITHER(fd, rsendto(rs, buf, len, flags, to, to_len),
	       preload_real.sendto(fd, buf, len, flags, to, to_len));
}

PRELOAD_EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	EITHER(fd, rsendmsg(rs, msg, flags), preload_real.sendmsg(fd, msg, flags));
}

PRELOAD_EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	EITHER(fd, rwrite(rs, buf, len), preload_real.write(fd, buf, len));
}

PRELOAD_EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
	EITHER(fd, rwritev(rs, iov, count), preload_real.writev(fd, iov, count));
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
PRELOAD_EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t size)
{
	if (len > size)
		__builtin_trap();
	return read(fd, buf, len);
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags);
PRELOAD_EXPORT ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size,
				  int flags)
{
	if (len > size)
		__builtin_trap();
	return recv(fd, buf, len, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size, int flags,
		       struct sockaddr *from, socklen_t *from_len);
PRELOAD_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size,
				      int flags, struct sockaddr *from,
				      socklen_t *from_len)
{
	if (len > size)
		__builtin_trap();
	return recvfrom(fd, buf, len, flags, from, from_len);
}

/* ---- files ---- */

/* Sends one piece of the file `in`, from `at` or, if that is -1, its file offset. */
static ssize_t piece_send(int rs, int in, off_t at, char *buf, size_t len)
{
	ssize_t n = at < 0 ? preload_real.read(in, buf, len) :
			     pread(in, buf, len, at);
	ssize_t sent;

	if (n <= 0)
		return n;
	sent = rsend(rs, buf, (size_t)n, 0);
	/* Moves the file offset back over the bytes that were not sent. */
	if (at < 0 && sent < n)
		lseek(in, (sent > 0 ? sent : 0) - n, SEEK_CUR);
	return sent;
}

static ssize_t file_send(int rs, int in, off_t *offset, size_t count)
{
	/* Not thread-local: that would make the stack of each thread smaller. */
	char *buf = malloc(CHUNK);
	size_t done = 0;
	ssize_t n = buf ? 0 : -1;

	while (buf && done < count) {
		size_t len = count - done < CHUNK ? count - done : CHUNK;

		n = piece_send(rs, in, offset ? *offset : -1, buf, len);
		if (n <= 0)
			break;
		if (offset)
			*offset += n;
		done += (size_t)n;
		if ((size_t)n < len)
			break;
	}
	free(buf);
	return done ? (ssize_t)done : n;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count);
PRELOAD_EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	EITHER(out, file_send(rs, in, offset, count),
	       preload_real.sendfile(out, in, offset, count));
}

ssize_t sendfile64(int out, int in, off_t *offset, size_t count);
PRELOAD_EXPORT ssize_t sendfile64(int out, int in, off_t *offset, size_t count)
{
	return sendfile(out, in, offset, count);
}
