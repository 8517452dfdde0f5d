/* SPDX-License-Identifier: BSD-2-Clause */
/* See epoll_help.h. */
#include "epoll_help.h"

static int listener = -1;
static struct sockaddr_in name;

int listener_open(void)
{
	socklen_t len = sizeof(name);
	int small = 32768;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(listener >= 0);
	name = (struct sockaddr_in){ .sin_family = AF_INET };
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	CHECK(!setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	CHECK(!bind(listener, (struct sockaddr *)&name, sizeof(name)));
	CHECK(!getsockname(listener, (struct sockaddr *)&name, &len));
	CHECK(!listen(listener, 64));
	return listener;
}

int listener_fd(void)
{
	return listener;
}

static void *call(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 32768;

	(void)arg;
	CHECK(fd >= 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	CHECK(!connect(fd, (struct sockaddr *)&name, sizeof(name)));
	return (void *)(intptr_t)fd;
}

pthread_t caller_start(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, call, NULL));
	return thread;
}

int caller_end(pthread_t thread)
{
	void *fd;

	CHECK(!pthread_join(thread, &fd));
	return (int)(intptr_t)fd;
}

void nonblock(int fd)
{
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
}

struct pair pair_make(void)
{
	pthread_t caller = caller_start();
	struct pair p = { .here = accept(listener, NULL, NULL) };

	CHECK(p.here >= 0);
	p.there = caller_end(caller);
	nonblock(p.here);
	nonblock(p.there);
	settle(p.here, POLLOUT);
	return p;
}

void pair_close(struct pair *p)
{
	if (p->there >= 0)
		close(p->there);
	if (p->here >= 0)
		close(p->here);
}

void settle(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	while ((p.revents & events) != events)
		CHECK(poll(&p, 1, 20000) == 1);
}

int read_all(int fd)
{
	char buf[4096];
	ssize_t n;

	do
		n = read(fd, buf, sizeof(buf));
	while (n > 0);
	return n < 0 ? errno : 0;
}

void write_full(int fd)
{
	static char block[4096];
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	/* Full for a while: not only while bytes are on their way. */
	do
		while (write(fd, block, sizeof(block)) > 0)
			;
	while (poll(&p, 1, 30) == 1);
}

int set_make(void)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	CHECK(set >= 0);
	return set;
}

void set_ctl(int set, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	CHECK(!epoll_ctl(set, op, fd, &event));
}

uint32_t set_look(int set, int fd)
{
	struct epoll_event event[4];
	int n = epoll_wait(set, event, 4, 0);

	CHECK(n == 0 || (n == 1 && event[0].data.fd == fd));
	return n ? event[0].events : 0;
}

const char *events_name(uint32_t events)
{
	static _Thread_local char text[8][64];
	static _Thread_local unsigned next;
	char *to = text[next++ % 8];
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{ EPOLLIN, "in" }, { EPOLLOUT, "out" }, { EPOLLERR, "err" },
		{ EPOLLHUP, "hup" }, { EPOLLRDHUP, "rdhup" }, { EPOLLET, "et" },
		{ EPOLLONESHOT, "oneshot" },
	};

	strcpy(to, "");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (events & names[i].bit)
			sprintf(to + strlen(to), "%s%s", *to ? "+" : "", names[i].name);
	return *to ? to : "-";
}

const char *result(int ret)
{
	return ret < 0 ? strerror(errno) : "ok";
}

void put(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

int cases_run(int argc, char **argv, const struct a_case *cases, size_t count)
{
	alarm(100);
	listener_open();
	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		printf("%s\n", cases[i].name);
		fflush(stdout);
		cases[i].run();
	}
	return 0;
}
