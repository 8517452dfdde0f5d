/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that knows TCP sockets only: a server in a child and a client exchange bytes by
 * every call that a library which turns sockets into rsockets replaces; by sendfile() only
 * with an argument, because that of rdma-core 44 fails. preloaded.sh runs it.
 * The first call of each process is socket(), because some of these libraries begin there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                  \
	do {                                                                         \
		if (!(what)) {                                                       \
			fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__,        \
				__LINE__, #what, strerror(errno));                   \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

#define SIZE ((socklen_t)sizeof(struct sockaddr_in))
enum { ROUNDS = 6, BYTES = 8 };

static int kinds = 5;

static void wait_readable(int fd, int round)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	fd_set set;

	if (round % 2) {
		FD_ZERO(&set);
		FD_SET(fd, &set);
		CHECK(select(fd + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &set));
	} else {
		CHECK(poll(&p, 1, -1) == 1 && p.revents & POLLIN);
	}
}

static void take(int fd, int round)
{
	char in[BYTES];
	struct iovec parts[2] = { { in, 3 }, { in + 3, BYTES - 3 } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n;

	wait_readable(fd, round);
	switch (round % 5) {
	case 0: n = read(fd, in, BYTES); break;
	case 1: n = recv(fd, in, BYTES, 0); break;
	case 2: n = recvfrom(fd, in, BYTES, 0, NULL, NULL); break;
	case 3: n = readv(fd, parts, 2); break;
	default: n = recvmsg(fd, &msg, 0); break;
	}
	CHECK(n == BYTES);
	for (int i = 0; i < BYTES; i++)
		CHECK(in[i] == 'a' + round);
}

static void give(int fd, int round)
{
	char out[BYTES];
	struct iovec parts[2] = { { out, 5 }, { out + 5, BYTES - 5 } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	FILE *file = tmpfile();
	off_t at = 0;
	ssize_t n;

	memset(out, 'a' + round, BYTES);
	CHECK(file && fwrite(out, BYTES, 1, file) == 1 && !fflush(file));
	switch (round % kinds) {
	case 0: n = write(fd, out, BYTES); break;
	case 1: n = send(fd, out, BYTES, 0); break;
	case 2: n = sendto(fd, out, BYTES, 0, NULL, 0); break;
	case 3: n = writev(fd, parts, 2); break;
	case 4: n = sendmsg(fd, &msg, 0); break;
	default: n = sendfile(fd, fileno(file), &at, BYTES); break;
	}
	CHECK(n == BYTES);
	fclose(file);
}

static void serve(int port_to)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = SIZE;
	char byte;

	CHECK(listener >= 0);
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	CHECK(!bind(listener, (struct sockaddr *)&name, SIZE));
	CHECK(!getsockname(listener, (struct sockaddr *)&name, &len));
	CHECK(!listen(listener, 8));
	CHECK(write(port_to, &name.sin_port, 2) == 2);
	fd = accept(listener, (struct sockaddr *)&name, &len);
	CHECK(fd >= 0 && len == SIZE);
	CHECK(name.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	for (int round = 0; round < ROUNDS; round++) {
		take(fd, round);
		give(fd, round);
	}
	CHECK(recv(fd, &byte, 1, 0) == 0);
	CHECK(!close(fd) && !close(listener));
}

static void call(int port_from)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), value = 1;
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(value);
	char byte;

	CHECK(fd >= 0);
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(read(port_from, &name.sin_port, 2) == 2);
	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)));
	CHECK(!connect(fd, (struct sockaddr *)&name, SIZE));
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len) && !value);
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK) && fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(recv(fd, &byte, 1, 0) == -1 && errno == EAGAIN);
	for (int round = 0; round < ROUNDS; round++) {
		give(fd, round);
		take(fd, round);
	}
	len = SIZE;
	CHECK(!getpeername(fd, (struct sockaddr *)&name, &len) && len == SIZE);
	CHECK(!shutdown(fd, SHUT_WR));
	CHECK(!close(fd));
}

int main(int argc, char **argv)
{
	int port[2], status;
	pid_t child;

	(void)argv;
	kinds += argc > 1;
	alarm(30);
	CHECK(!pipe(port));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(30);
		serve(port[1]);
		return 0;
	}
	call(port[0]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
