/* SPDX-License-Identifier: BSD-2-Clause */
/* See stream.h. */
#include "gateway/stream/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/container_of.h"

#define FIRST_BYTES 512u

void stream_buffer_compact(struct stream_buffer *b)
{
	if (!b->start)
		return;
	memmove(b->at, b->at + b->start, b->end - b->start);
	b->end -= b->start;
	b->start = 0;
}

int stream_buffer_reserve(struct stream_buffer *b, size_t len)
{
	size_t filled = stream_buffer_filled(b), size = MAX(b->size, (size_t)FIRST_BYTES);
	char *at;

	if (len <= b->size - b->end)
		return 0;
	stream_buffer_compact(b);
	while (size - filled < len)
		size *= 2;
	if (size == b->size)
		return 0;
	at = realloc(b->at, size);
	if (!at)
		return -ENOMEM;
	b->at = at;
	b->size = size;
	return 0;
}

int stream_buffer_put(struct stream_buffer *b, const void *data, size_t len)
{
	if (stream_buffer_reserve(b, len))
		return -ENOMEM;
	memcpy(b->at + b->end, data, len);
	b->end += len;
	return 0;
}

void stream_buffer_free(struct stream_buffer *b)
{
	free(b->at);
	*b = (struct stream_buffer){ 0 };
}

void stream_init(struct stream *s, int fd)
{
	*s = (struct stream){ .fd = fd };
}

int stream_start_tls(struct stream *s, const struct tls_ops *ops, struct tls_context *ctx,
		     const char *host)
{
	s->tls_ops = ops;
	s->tls = ops->conn_new(ctx, s->fd, host);
	return s->tls ? 0 : -ENOMEM;
}

void stream_shut(struct stream *s)
{
	if (s->tls)
		s->tls_ops->shut(s->tls);
	shutdown(s->fd, SHUT_WR);
}

void stream_close(struct stream *s)
{
	if (s->tls)
		s->tls_ops->conn_free(s->tls);
	if (s->fd >= 0)
		close(s->fd);
	stream_buffer_free(&s->out);
	stream_init(s, -1);
}

static ssize_t result(ssize_t n)
{
	return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

ssize_t stream_recv(struct stream *s, void *to, size_t size)
{
	if (s->tls)
		return s->tls_ops->read(s->tls, to, size, &s->tls_want_write);
	return result(recv(s->fd, to, size, MSG_DONTWAIT));
}

ssize_t stream_send(struct stream *s, const void *data, size_t len)
{
	if (s->tls)
		return s->tls_ops->write(s->tls, data, len, &s->tls_want_read);
	return result(send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL));
}

ssize_t stream_send_parts(struct stream *s, const struct iovec *parts, int count)
{
	struct msghdr m = { .msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count };

	if (s->tls)
		return stream_send(s, parts->iov_base, parts->iov_len);
	return result(sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL));
}

int stream_flush(struct stream *s, size_t *sent)
{
	struct stream_buffer *b = &s->out;
	ssize_t n = 1;

	while (b->start < b->end && n > 0) {
		n = stream_send(s, b->at + b->start, b->end - b->start);
		b->start += n > 0 ? (size_t)n : 0;
		if (sent && n > 0)
			*sent += (size_t)n;
	}
	if (b->start == b->end)
		b->start = b->end = 0;
	return n > 0 || n == -EAGAIN ? 0 : n ? (int)n : -EPIPE;
}

bool stream_pending(const struct stream *s)
{
	return s->tls && s->tls_ops->pending(s->tls);
}

short stream_events(const struct stream *s, bool read, bool write)
{
	short events = 0;

	if (read)
		events |= s->tls_want_write ? POLLOUT : POLLIN;
	if (write || s->out.start < s->out.end)
		events |= s->tls_want_read ? POLLIN : POLLOUT;
	return events;
}
