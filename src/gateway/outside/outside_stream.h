/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream (gateway/stream) to a server, for node-types that speak its protocol themselves. What
 * fails puts its reason into o->why.
 */
#ifndef GATEWAY_OUTSIDE_OUTSIDE_STREAM_H
#define GATEWAY_OUTSIDE_OUTSIDE_STREAM_H

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "gateway/stream/stream.h"

/* What has come, for a protocol whose packets have a length or an end. */
struct outside_input {
	struct stream_buffer b;
	bool more;                /* there may be packets that poll() does not tell of */
	uint64_t heard_ns;        /* when the last bytes came */
};

/* Connects to a TCP port of `host`, within outside_limit(). 0 or a negative errno. */
int outside_stream_open(struct outside *o, struct stream *s, const char *host, int port,
			uint64_t until_ns);
/* Starts TLS, if it is enabled, and greets. `host`: whose certificate it has to be, unless the
 * settings name another one. 0 or a negative errno. */
int outside_stream_start_tls(struct outside *o, struct stream *s, const struct outside_tls *t,
			     const char *host, uint64_t until_ns);
/* Sends what waits, as much as the server takes. 0 or a negative errno. */
int outside_stream_flush(struct outside *o, struct stream *s);
/* Number of bytes; 0: nothing has come for now; or a negative errno, also if the server has ended
 * the connection. */
ssize_t outside_stream_recv(struct outside *o, struct stream *s, void *to, size_t size);
/* For open(): waits until the server sends something, and adds it. 0 or a negative errno. */
int outside_stream_await(struct outside *o, struct stream *s, struct outside_input *in,
			 uint64_t until_ns);
/* For turn(): reads, and has take() take packets from in->b, until nothing is there or others have
 * their turn. take() returns 1; 0: the next packet has not come completely; or a negative errno.
 * 0 or a negative errno. */
int outside_stream_read(struct outside *o, struct stream *s, struct outside_input *in,
			int (*take)(struct outside *o));
/* For wait(): fds[0] is the stream, and *until_ns is past if turn() has to come soon; returns 1. While
 * the server does not take our answers, nothing is read, so that these stay bounded. */
unsigned outside_stream_wait(const struct stream *s, const struct outside_input *in,
			     struct pollfd fds[], uint64_t *until_ns);
/* Says that nothing more comes, waits a moment for the server to do the same, and closes it. For a
 * server that must read the last words: if the kernel had bytes for us, it would reset the
 * connection. */
void outside_stream_end_gently(struct stream *s);

#endif
