/* SPDX-License-Identifier: BSD-2-Clause */
/* See rs_help.h. */
#include "rs_help.h"

int rs_listener(uint16_t *port, void (*prepare)(int fd))
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	if (prepare)
		prepare(fd);
	CHECK(rbind(fd, cm_loopback(0), sizeof(struct sockaddr_in)) == 0);
	CHECK(rlisten(fd, 16) == 0);
	CHECK(rgetsockname(fd, (struct sockaddr *)&name, &len) == 0);
	CHECK(len == sizeof(name) && name.sin_port);
	*port = ntohs(name.sin_port);
	return fd;
}

int rs_poll(int fd, short events, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n = rpoll(&p, 1, timeout_ms);

	CHECK(n >= 0);
	CHECK(n == (p.revents != 0));
	return p.revents;
}

void rs_nonblock(int fd, bool on)
{
	CHECK(rfcntl(fd, F_SETFL, on ? O_NONBLOCK : 0) == 0);
	CHECK(!!(rfcntl(fd, F_GETFL) & O_NONBLOCK) == on);
}

int rs_get_int(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK(rgetsockopt(fd, level, name, &value, &len) == 0);
	CHECK(len == sizeof(value));
	return value;
}

void rs_set_int(int fd, int level, int name, int value)
{
	CHECK(rsetsockopt(fd, level, name, &value, sizeof(value)) == 0);
}

void rs_pair_make(struct rs_pair *p, void (*prepare)(int fd))
{
	uint16_t port;

	p->listener = rs_listener(&port, prepare);
	p->caller = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(p->caller >= 0);
	if (prepare)
		prepare(p->caller);
	rs_nonblock(p->caller, true);
	CHECK(rconnect(p->caller, cm_loopback(port), sizeof(struct sockaddr_in)) == -1);
	CHECK(errno == EINPROGRESS);
	while (!rs_poll(p->listener, POLLIN, 1)) /* the caller takes its steps, too */
		rs_poll(p->caller, POLLOUT, 1);
	p->callee = raccept(p->listener, NULL, NULL);
	CHECK(p->callee >= 0);
	CHECK(rs_poll(p->caller, POLLOUT, -1) == POLLOUT);
	CHECK(rs_get_int(p->caller, SOL_SOCKET, SO_ERROR) == 0);
	rs_nonblock(p->caller, false);
}

void rs_pair_free(struct rs_pair *p)
{
	CHECK(rclose(p->caller) == 0);
	CHECK(rclose(p->callee) == 0);
	CHECK(rclose(p->listener) == 0);
}

void rs_write_all(int fd, const void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = rsend(fd, (const char *)buf + done, len - done, 0);

		CHECK(n > 0);
		done += (size_t)n;
	}
}

void rs_read_all(int fd, void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = rrecv(fd, (char *)buf + done, len - done, 0);

		CHECK(n > 0);
		done += (size_t)n;
	}
}
