/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor --iwarp PORT`: whether a TCP port of another host is reached, which is all that a
 * connection of iWARP needs. Nothing is sent: a program that listens there sees a call that ends. */
#include "cli/doctor.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "util/clock.h"

#define PATIENCE_MS 3000 /* two segments may get lost */

/* 0, or a negative errno: what TCP said of the call. */
static int call(int fd, const struct sockaddr_in6 *to, uint64_t *took)
{
	struct pollfd polled = { .fd = fd, .events = POLLOUT };
	uint64_t from = clock_now_ns();
	int err = doctor_connect(fd, to), error = 0;
	socklen_t size = sizeof(error);

	if (err && err != -EINPROGRESS)
		return err;
	if (err && poll(&polled, 1, PATIENCE_MS) <= 0)
		return -ETIMEDOUT;
	*took = clock_now_ns() - from;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return -error;
}

static void say_reached(int fd, const char *text, uint16_t port, uint64_t took)
{
	int mss = 0;
	socklen_t size = sizeof(mss);

	getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &size);
	doctor_good("TCP port %u of %s takes calls, the first in %.1f us; segments have up to %d bytes",
		    port, text, (double)took / 1e3, mss);
}

static void say_silent(const char *text, uint16_t port)
{
	doctor_bad(doctor_remedy("is the host on? Open the port there and between: 'nft add rule inet filter input tcp dport %u accept', 'ufw allow %u/tcp' or 'firewall-cmd --add-port=%u/tcp'",
				 port, port, port),
		   "nothing comes back from TCP port %u of %s: a firewall drops it, or the host is away",
		   port, text);
}

void doctor_stream(const struct doctor_route *route, uint16_t port)
{
	struct sockaddr_in6 to = route->to;
	char text[INET6_ADDRSTRLEN];
	uint64_t took = 0;
	int fd = doctor_socket(SOCK_STREAM, -1), ret;

	doctor_text(&to, text);
	to.sin6_port = htons(port);
	ret = fd < 0 ? fd : call(fd, &to, &took);
	if (!ret)
		say_reached(fd, text, port, took);
	else if (ret == -ECONNREFUSED)
		doctor_bad("start the program there by iWARP (BUSBAR_DEVICES=iwarp), or 'busbar doctor --serve --iwarp PORT'",
			   "%s is there, but nobody listens on its TCP port %u", text, port);
	else if (ret == -ETIMEDOUT)
		say_silent(text, port);
	else if (ret == -EHOSTUNREACH || ret == -ENETUNREACH)
		doctor_bad("is it on, is the cable in, is the address right? 'ip neigh' shows whether it answers",
			   "%s does not answer on the link, or a router or firewall refuses the way to it", text);
	else
		doctor_bad("see what forbids TCP here (firewall, seccomp, container)",
			   "TCP port %u of %s cannot be called: %s", port, text, strerror(-ret));
	if (fd >= 0)
		close(fd);
}

/* ---- the other side ---- */

static int open_listener(uint16_t port)
{
	int fd = doctor_socket(SOCK_STREAM, port), ret;

	if (fd < 0 || !listen(fd, 16))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static void say_caller(const struct sockaddr_in6 *from)
{
	struct sockaddr_in6 address;
	char text[INET6_ADDRSTRLEN];

	if (doctor_map((const struct sockaddr *)from, &address))
		doctor_good("a call comes from %s", doctor_text(&address, text));
}

int doctor_stream_serve(uint16_t port, unsigned seconds)
{
	uint64_t until = seconds ? clock_now_ns() + seconds * NSEC_PER_SEC : UINT64_MAX;
	struct pollfd polled = { .fd = open_listener(port), .events = POLLIN };
	unsigned calls = 0;

	if (polled.fd < 0) {
		doctor_bad("'ss -ltnp' names the program that has it; ports below 1024 need root",
			   "TCP port %u cannot be listened on: %s", port, strerror(-polled.fd));
		return CLI_FAILED;
	}
	doctor_serve_begin();
	doctor_good("taking calls on TCP port %u", port);
	while (doctor_serve_wait(&polled, 1, until)) {
		struct sockaddr_in6 from = { .sin6_family = AF_UNSPEC };
		socklen_t size = sizeof(from);
		int fd = accept4(polled.fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		if (calls++ < 1000)
			say_caller(&from);
		close(fd);
	}
	close(polled.fd);
	if (calls)
		return CLI_OK;
	doctor_bad("if another host made some, a firewall drops them", "no call came");
	return CLI_FAILED;
}
