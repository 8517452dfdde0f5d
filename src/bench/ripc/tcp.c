/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same over plain TCP sockets of loopback, as a program would without ripc: whoever waits
 * polls as long as ripc does, then sleeps. A file is sent out of memory, behind a head.
 */
#define LOG_ROOM "bench/ripc"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/ripc/ripc.h"
#include "util/log.h"

#define WAIT_MS 50
#define REQUEST "GET /" RIPC_BENCH_FILE " HTTP/1.1\r\nHost: tcp\r\n\r\n"
/* As long as that of ripc's answer. */
#define HEAD_BYTES 256

struct tcp {
	struct ripc_bench *b;
	int fd;
	char *buffer;
};

/* Ready for `events`; -EINTR: `stop`. */
static int wait_for(struct tcp *t, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (!atomic_load(&t->b->stop)) {
		int n = poll(&p, 1, WAIT_MS);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -EINTR;
}

/* All of `bytes`, there or from there. */
static int move(struct tcp *t, char *at, size_t bytes, bool receive)
{
	uint64_t idle_ns = 0;

	while (bytes) {
		ssize_t n = receive ? recv(t->fd, at, bytes, MSG_DONTWAIT) :
				      send(t->fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		uint64_t now;

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
			idle_ns = 0;
			continue;
		}
		if (!n)
			return -EPIPE;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		now = clock_monotonic_ns_slow();
		idle_ns = idle_ns ?: now;
		if (now - idle_ns >= t->b->poll_us * UINT64_C(1000)) {
			int ret = wait_for(t, t->fd, receive ? POLLIN : POLLOUT);

			if (ret)
				return ret;
		}
	}
	return 0;
}

static void no_delay(const struct tcp *t)
{
	const int one = 1;

	setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int answer_all(struct tcp *t)
{
	size_t head = t->b->fetch ? HEAD_BYTES : 0;
	size_t request = t->b->fetch ? sizeof(REQUEST) - 1 : t->b->size;
	int ret = 0;

	no_delay(t);
	while (!ret)
		ret = move(t, t->buffer, request, true) ?:
		      move(t, t->buffer, head + t->b->size, false);
	/* The other side ends when it has enough. */
	return ret == -EPIPE || ret == -ECONNRESET || ret == -EINTR ? 0 : ret;
}

static int answer(struct tcp *t)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret = 0;

	if (listener < 0 || bind(listener, (struct sockaddr *)&a, bytes) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&a, &bytes))
		ret = -errno;
	if (!ret) {
		t->b->port = a.sin_port;
		atomic_store(&t->b->ready, true);
		ret = wait_for(t, listener, POLLIN);
	}
	if (!ret) {
		t->fd = accept(listener, NULL, NULL);
		ret = t->fd < 0 ? -errno : answer_all(t);
	}
	if (listener >= 0)
		close(listener);
	return ret == -EINTR ? 0 : ret;
}

static int once(struct ripc_bench *b, void *arg, uint64_t number)
{
	struct tcp *t = arg;
	char request[] = REQUEST;

	if (t->fd < 0) { /* the first one connects, as with ripc */
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = b->port,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

		t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (t->fd < 0 || connect(t->fd, (struct sockaddr *)&a, sizeof(a)))
			return -errno;
		no_delay(t);
	}
	return (b->fetch ? move(t, request, sizeof(request) - 1, false) :
			   move(t, t->buffer, b->size, false)) ?:
	       move(t, t->buffer, (b->fetch ? HEAD_BYTES : 0) + b->size, true);
}

int bench_ripc_tcp(struct ripc_bench *b, enum ripc_side side)
{
	struct tcp t = { .b = b, .fd = -1, .buffer = malloc(HEAD_BYTES + b->size) };
	int ret;

	if (!t.buffer)
		return -ENOMEM;
	memset(t.buffer, 'x', HEAD_BYTES + b->size);
	ret = side == RIPC_ANSWERS ? answer(&t) : ripc_bench_loop(b, once, &t, NULL);
	if (ret && ret != -EINTR)
		log_error("TCP: %s", strerror(-ret));
	if (t.fd >= 0)
		close(t.fd);
	free(t.buffer);
	return ret;
}
