/* SPDX-License-Identifier: BSD-2-Clause */
/* See floor_socket_pair.h. */
#include "bench/floor/floor_socket_pair.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int limit_sleep(int fd)
{
	const struct timeval most = { .tv_sec = 1 };

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) ||
	       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ? -errno : 0;
}

int floor_udp_sockets(const struct floor_host hosts[2], int fd[2])
{
	struct sockaddr_in addr[2];
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		fd[i] = floor_host_socket(&hosts[i], SOCK_DGRAM, &addr[i]);
		err = fd[i] < 0 ? fd[i] : limit_sleep(fd[i]);
	}
	for (int i = 0; i < 2 && !err; i++)
		if (connect(fd[i], (struct sockaddr *)&addr[!i], sizeof(addr[0])))
			err = -errno;
	return err;
}

int floor_tcp_sockets(const struct floor_host hosts[2], int fd[2])
{
	struct sockaddr_in addr, other;
	const int one = 1;
	int listener = floor_host_socket(&hosts[1], SOCK_STREAM, &addr), err = 0;

	if (listener < 0)
		return listener;
	fd[0] = floor_host_socket(&hosts[0], SOCK_STREAM, &other);
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

void floor_sockets_close(const int fd[2])
{
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}
