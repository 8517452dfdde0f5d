/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMAV_FORK_SAFE: a connection begins as TCP and becomes an rsocket on its first use,
 * in the process that uses it, because queue pairs do not survive fork().
 *
 * The side that accepted the connection listens with an rsocket at a new port and sends
 * its number in one message over TCP; the caller connects there. After that no byte
 * goes over TCP. Both sides must have RDMAV_FORK_SAFE set.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/preload/preload.h"
#include "util/cancel.h"

#define ANSWER_MS 10000

struct offer {
	char magic[4];
	uint16_t version, port; /* network order; port 0: the connection stays TCP */
};

static pthread_mutex_t later_lock = PTHREAD_MUTEX_INITIALIZER;

void preload_later_forked(void)
{
	pthread_mutex_init(&later_lock, NULL);
}

bool preload_fork_safe(void)
{
	static _Atomic int known = -1;
	int value = atomic_load_explicit(&known, memory_order_relaxed);

	if (value < 0) {
		const char *text = getenv("RDMAV_FORK_SAFE");

		value = text && *text && strcmp(text, "0");
		atomic_store(&known, value);
	}
	return value;
}

static void port_set(struct sockaddr_storage *addr, uint16_t port)
{
	/* sin_port and sin6_port have the same offset. */
	((struct sockaddr_in *)addr)->sin_port = port;
}

static uint16_t port_of(const struct sockaddr_storage *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_port;
}

/* Sends or receives all `len` bytes over TCP, even if the socket does not block. */
static bool whole(int fd, void *buf, size_t len, bool out)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd p = { .fd = fd, .events = out ? POLLOUT : POLLIN };
		char *at = (char *)buf + done;
		ssize_t n;

		if (preload_real.poll(&p, 1, ANSWER_MS) == 0)
			return false;
		n = out ? preload_real.send(fd, at, len - done, MSG_NOSIGNAL) :
			  preload_real.recv(fd, at, len - done, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static int rsocket_accept(int listener, int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct offer offer = { .magic = "rsfk", .version = htons(1) };
	struct pollfd p = { .fd = listener, .events = POLLIN };

	if (preload_real.getsockname(fd, (struct sockaddr *)&name, &len))
		return -1;
	port_set(&name, 0);
	if (listener >= 0 && !rbind(listener, (struct sockaddr *)&name, len) &&
	    !rlisten(listener, 1) &&
	    !rgetsockname(listener, (struct sockaddr *)&name, &len))
		offer.port = port_of(&name);
	if (!whole(fd, &offer, sizeof(offer), true) || !offer.port)
		return -1;
	return rpoll(&p, 1, ANSWER_MS) == 1 ? raccept(listener, NULL, NULL) : -1;
}

static int passive(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int listener, rs;

	if (preload_real.getsockname(fd, (struct sockaddr *)&name, &len))
		return -1;
	listener = rsocket(name.ss_family, SOCK_STREAM, 0);
	rs = rsocket_accept(listener, fd);
	if (listener >= 0)
		rclose(listener);
	return rs;
}

static int active(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct offer offer;
	int rs;

	if (preload_real.getpeername(fd, (struct sockaddr *)&name, &len) ||
	    !whole(fd, &offer, sizeof(offer), false) ||
	    memcmp(offer.magic, "rsfk", 4) || offer.version != htons(1) ||
	    !offer.port)
		return -1;
	rs = rsocket(name.ss_family, SOCK_STREAM, 0);
	port_set(&name, offer.port);
	if (rs >= 0 && rconnect(rs, (struct sockaddr *)&name, len)) {
		rclose(rs);
		rs = -1;
	}
	return rs;
}

/* Is the TCP connection established? Not yet, perhaps, with a non-blocking connect(). */
static bool tcp_ready(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	return !preload_real.getpeername(fd, (struct sockaddr *)&name, &len);
}

int preload_later(int fd, struct preload_socket *s)
{
	CANCEL_OFF;
	enum preload_state state;
	int rs;

	if (!tcp_ready(fd))
		return -1;
	pthread_mutex_lock(&later_lock);
	state = atomic_load(&s->state);
	if (state != PRELOAD_ACTIVE && state != PRELOAD_PASSIVE) {
		pthread_mutex_unlock(&later_lock);
		return s->rs;
	}
	preload_enter();
	rs = state == PRELOAD_ACTIVE ? active(fd) : passive(fd);
	if (rs >= 0)
		rfcntl(rs, F_SETFL, preload_real.fcntl(fd, F_GETFL));
	preload_leave();
	s->rs = rs;
	if (rs >= 0)
		atomic_store(&s->state, PRELOAD_CONNECTED);
	pthread_mutex_unlock(&later_lock);
	if (rs < 0)
		preload_become_tcp(fd, s);
	else
		preload_watches_move(s);
	return rs;
}
