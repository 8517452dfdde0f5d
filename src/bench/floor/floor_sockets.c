/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See floor_method.h. A socket stays in the namespace in which it was made, so only the thread that
 * makes it goes there, for that call.
 */
#include "bench/floor/floor_method.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "util/container_of.h"

/* "A=10.77.0.1" up to `end`. */
static bool parse_one(const char *text, const char *end, struct floor_host *host)
{
	const char *equals = memchr(text, '=', (size_t)(end - text));
	char address[INET_ADDRSTRLEN];

	if (!equals || equals == text || memchr(text, '/', (size_t)(equals - text)) ||
	    (size_t)(equals - text) >= sizeof(host->netns) ||
	    (size_t)(end - equals) > sizeof(address))
		return false;
	snprintf(host->netns, sizeof(host->netns), "%.*s", (int)(equals - text), text);
	snprintf(address, sizeof(address), "%.*s", (int)(end - equals - 1), equals + 1);
	return inet_pton(AF_INET, address, &host->address) == 1;
}

bool floor_hosts_parse(const char *text, struct floor_host hosts[2])
{
	const char *comma = strchr(text, ',');

	return comma && parse_one(text, comma, &hosts[0]) &&
	       parse_one(comma + 1, comma + 1 + strlen(comma + 1), &hosts[1]);
}

static int make_there(const char *netns, int type)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), there, fd;
	char path[100];

	if (here < 0)
		return -errno;
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	there = open(path, O_RDONLY | O_CLOEXEC);
	fd = there < 0 ? -errno : 0;
	if (there >= 0) {
		fd = setns(there, CLONE_NEWNET) ? -errno : socket(AF_INET, type, 0);
		if (fd == -1)
			fd = -errno;
		if (setns(here, CLONE_NEWNET) && fd >= 0) {
			close(fd);
			fd = -EIO;
		}
		close(there);
	}
	close(here);
	return fd;
}

/* A socket of IPv4 in the host's namespace, bound to its address and a port that is free, which
 * *addr gets. The descriptor, or a negative errno. */
static int host_socket(const struct floor_host *host, int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = host->netns[0] ? make_there(host->netns, type | SOCK_CLOEXEC) :
				  socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return host->netns[0] ? fd : -errno;
	*addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = host->address };
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) ||
	    getsockname(fd, (struct sockaddr *)addr, &len)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static int limit_sleep(int fd)
{
	const struct timeval most = { .tv_sec = 1 };

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) ||
	       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ? -errno : 0;
}

int floor_sockets_udp(const struct floor_host hosts[2], int fd[2])
{
	struct sockaddr_in addr[2];
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		fd[i] = host_socket(&hosts[i], SOCK_DGRAM, &addr[i]);
		err = fd[i] < 0 ? fd[i] : limit_sleep(fd[i]);
	}
	for (int i = 0; i < 2 && !err; i++)
		if (connect(fd[i], (struct sockaddr *)&addr[!i], sizeof(addr[0])))
			err = -errno;
	return err;
}

int floor_sockets_tcp(const struct floor_host hosts[2], int fd[2])
{
	struct sockaddr_in addr, other;
	const int one = 1;
	int listener = host_socket(&hosts[1], SOCK_STREAM, &addr), err = 0;

	if (listener < 0)
		return listener;
	fd[0] = host_socket(&hosts[0], SOCK_STREAM, &other);
	if (fd[0] < 0)
		err = fd[0];
	else if (listen(listener, 1) || connect(fd[0], (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	if (!err) {
		fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		err = fd[1] < 0 ? -errno : 0;
	}
	for (int i = 0; i < 2 && !err; i++) {
		err = limit_sleep(fd[i]);
		if (!err && setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
			err = -errno;
	}
	close(listener);
	return err;
}

int floor_sockets_packet(const struct floor_host hosts[2], int fd[2])
{
	static const struct {
		int level, option;
	} options[] = { { IPPROTO_IP, IP_PKTINFO }, { IPPROTO_IP, IP_RECVTOS },
			{ IPPROTO_IP, IP_RECVTTL }, { IPPROTO_UDP, UDP_GRO } };
	struct sockaddr_in addr;
	const int one = 1;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		fd[i] = host_socket(&hosts[i], SOCK_DGRAM, &addr);
		err = fd[i] < 0 ? fd[i] : 0;
		for (unsigned k = 0; k < ARRAY_SIZE(options) && !err; k++)
			if (setsockopt(fd[i], options[k].level, options[k].option, &one,
				       sizeof(one)))
				err = -errno;
	}
	return err;
}

void floor_sockets_close(const int fd[2])
{
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}
