/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that answers questions of 64 bytes, and its client, over TCP. Both sleep in
 * epoll_wait(). epoll_rdma.c is the same over RDMA.
 *
 *	epoll-tcp serve ADDRESS PORT
 *	epoll-tcp ask ADDRESS PORT COUNT
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "times.h"

#define BYTES 64

static int epoll_fd, listener = -1, connection = -1;
static char message[BYTES];
static size_t got;
static bool ended;
static uint64_t *times, asked_ns;           /* the client's; NULL: this is the server */
static size_t wanted, answered;

static void watch(int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e))
		err(1, "epoll");
}

static void prepare(int fd)
{
	const int one = 1;

	connection = fd;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		err(1, "TCP_NODELAY");
	watch(fd);
}

static void send_message(void)
{
	asked_ns = times ? now_ns() : 0;
	/* One of 64 bytes finds room in an empty buffer. */
	if (send(connection, message, BYTES, MSG_NOSIGNAL) != BYTES)
		err(1, "send");
}

static void on_message(void)
{
	if (times)
		times[answered] = now_ns() - asked_ns;
	answered++;
	if (!times || answered < wanted)
		send_message();
	else
		ended = true;
}

/* One call: epoll says again when there is more. */
static void on_bytes(void)
{
	ssize_t n = recv(connection, message + got, BYTES - got, MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN)
			err(1, "recv");
		return;
	}
	got += (size_t)n;
	ended = n == 0;
	if (got == BYTES) {
		got = 0;
		on_message();
	}
}

int main(int argc, char *argv[])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc < 4 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1 ||
	    strcmp(argv[1], argc == 5 ? "ask" : "serve"))
		errx(2, "usage: epoll-tcp serve ADDRESS PORT | ask ADDRESS PORT COUNT");
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (argc == 5) {
		wanted = WARM_UP + (size_t)atoi(argv[4]);
		times = calloc(wanted, sizeof(*times));
		if (!times || connect(fd, (struct sockaddr *)&at, sizeof(at)))
			err(1, "%s", argv[2]);
		prepare(fd);
		send_message();
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
			err(1, "%s port %s", argv[2], argv[3]);
		listener = fd;
		watch(fd);
		puts("listening");
		fflush(stdout);
	}
	while (!ended) {
		struct epoll_event ready[2];
		int n = epoll_wait(epoll_fd, ready, 2, -1);

		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd == listener)
				prepare(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
			else
				on_bytes();
		}
	}
	if (times && answered < wanted)
		errx(1, "the server has closed the connection");
	if (times)
		times_print(times + WARM_UP, wanted - WARM_UP);
	return 0;
}
