/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to a peer that may be slow: a socket, with TLS or without, and the bytes that
 * wait until the peer takes them. No function waits. Each owner has its own rule for a peer that
 * takes too little: it looks at the number of bytes that wait before it puts more.
 *
 * A stream belongs to one thread at a time.
 */
#ifndef GATEWAY_STREAM_STREAM_H
#define GATEWAY_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "gateway/tls/tls.h"

/* Bytes at[start] to at[end - 1] of `size`. */
struct stream_buffer {
	char *at; /* NULL: no memory is held */
	size_t start, end, size;
};

static inline size_t stream_buffer_filled(const struct stream_buffer *b)
{
	return b->end - b->start;
}

/* Moves the bytes to the front. */
void stream_buffer_compact(struct stream_buffer *b);
/* Makes room for `len` bytes at at[end]: moves the bytes, or takes more memory. 0 or -ENOMEM. */
int stream_buffer_reserve(struct stream_buffer *b, size_t len);
/* Adds bytes behind the last one. 0 or -ENOMEM. */
int stream_buffer_put(struct stream_buffer *b, const void *data, size_t len);
void stream_buffer_free(struct stream_buffer *b);

struct stream {
	int fd;                        /* -1: none */
	const struct tls_ops *tls_ops; /* of `tls` */
	struct tls_conn *tls;          /* NULL: without TLS */
	/* TLS reads while it writes, and the other way round: what it waits for is not what the
	 * owner asked for. */
	bool tls_want_read, tls_want_write;
	struct stream_buffer out;      /* what waits for the peer */
};

/* `fd`, which is the stream's from now on, does not block. */
void stream_init(struct stream *s, int fd);
/* With TLS from now on. `host`: struct tls_ops. 0 or -ENOMEM. */
int stream_start_tls(struct stream *s, const struct tls_ops *ops, struct tls_context *ctx,
		     const char *host);
/* Tells the peer that nothing more comes. What the peer sends can still be read. */
void stream_shut(struct stream *s);
/* Closes the socket; what waits is lost. Without effect if there is none. */
void stream_close(struct stream *s);

/* Number of bytes; 0: the peer sends nothing any more; -EAGAIN: nothing has come for now; or
 * another negative errno. */
ssize_t stream_recv(struct stream *s, void *to, size_t size);
/* Past the bytes that wait, of which there must be none. Number of bytes, which may be that of
 * the first part; -EAGAIN: the peer takes nothing for now; or another negative errno. */
ssize_t stream_send(struct stream *s, const void *data, size_t len);
ssize_t stream_send_parts(struct stream *s, const struct iovec *parts, int count);
/* Sends what waits, as much as the peer takes. The number of bytes that were sent is added to
 * *sent (NULL allowed). 0, or a negative errno: the connection is broken. */
int stream_flush(struct stream *s, size_t *sent);

/* Whether bytes have come that the kernel does not tell of. */
bool stream_pending(const struct stream *s);
/* POLLIN, POLLOUT or both (EPOLLIN and EPOLLOUT are the same numbers): what to wait for when the
 * owner wants to read or to write, or when bytes wait. */
short stream_events(const struct stream *s, bool read, bool write);

#endif
