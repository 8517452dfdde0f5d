/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what epoll does with a socket in the cases that epoll_table.c has not: errors,
 * listeners, connect(), dup(), close(), fork(), small arrays, nested sets.
 */
#include <sys/wait.h>

#include "epoll_help.h"

/* ---- errors ---- */

static void errors(void)
{
	struct epoll_event in = { .events = EPOLLIN }, one;
	struct epoll_event alone = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	struct epoll_event wrong = { .events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT };
	struct pair p = pair_make();
	int set = set_make();

	SAY("mod before add: %s", result(epoll_ctl(set, EPOLL_CTL_MOD, p.here, &in)));
	SAY("del before add: %s", result(epoll_ctl(set, EPOLL_CTL_DEL, p.here, NULL)));
	SAY("exclusive oneshot: %s", result(epoll_ctl(set, EPOLL_CTL_ADD, p.here, &wrong)));
	SAY("add: %s", result(epoll_ctl(set, EPOLL_CTL_ADD, p.here, &in)));
	SAY("add again: %s", result(epoll_ctl(set, EPOLL_CTL_ADD, p.here, &in)));
	SAY("mod exclusive: %s", result(epoll_ctl(set, EPOLL_CTL_MOD, p.here, &alone)));
	SAY("del: %s", result(epoll_ctl(set, EPOLL_CTL_DEL, p.here, NULL)));
	SAY("del again: %s", result(epoll_ctl(set, EPOLL_CTL_DEL, p.here, &in)));
	SAY("add exclusive: %s", result(epoll_ctl(set, EPOLL_CTL_ADD, p.here, &alone)));
	SAY("mod of an exclusive: %s", result(epoll_ctl(set, EPOLL_CTL_MOD, p.here, &in)));
	SAY("unknown operation: %s", result(epoll_ctl(set, 99, p.here, &in)));
	SAY("no event: %s", result(epoll_ctl(set, EPOLL_CTL_MOD, p.here, NULL)));
	SAY("no set: %s", result(epoll_ctl(p.there, EPOLL_CTL_ADD, p.here, &in)));
	SAY("no descriptor as set: %s", result(epoll_ctl(-1, EPOLL_CTL_ADD, p.here, &in)));
	SAY("wait for no set: %s", result(epoll_wait(p.here, &one, 1, 0)));
	SAY("wait for nothing: %s", result(epoll_wait(set, &one, 0, 0)));
	SAY("set in itself: %s", result(epoll_ctl(set, EPOLL_CTL_ADD, set, &in)));
	SAY("size 0: %s", result(epoll_create(0)));
	close(set);
	SAY("wait for a closed set: %s", result(epoll_wait(set, &one, 1, 0)));
	pair_close(&p);
}

/* ---- listeners and callers ---- */

static void listeners(void)
{
	static const uint32_t ways[] = { 0, EPOLLET };
	int l = listener_fd();

	nonblock(l);
	for (int way = 0; way < 2; way++) {
		int set = set_make(), here;
		struct epoll_event got;
		pthread_t caller;

		set_ctl(set, EPOLL_CTL_ADD, l, EPOLLIN | ways[way]);
		SAY("%s before: %s", events_name(ways[way]), events_name(set_look(set, l)));
		caller = caller_start();
		CHECK(epoll_wait(set, &got, 1, 20000) == 1 && got.data.fd == l);
		SAY("called: %s", events_name(got.events));
		SAY("again: %s", events_name(set_look(set, l)));
		here = accept(l, NULL, NULL);
		CHECK(here >= 0);
		SAY("accepted: %s", events_name(set_look(set, l)));
		CHECK(accept(l, NULL, NULL) == -1 && errno == EAGAIN);
		close(caller_end(caller));
		close(here);
		caller = caller_start();
		CHECK(epoll_wait(set, &got, 1, 20000) == 1 && got.data.fd == l);
		here = accept(l, NULL, NULL);
		CHECK(here >= 0);
		SAY("called again: %s", events_name(got.events));
		close(caller_end(caller));
		close(here);
		close(set);
	}
	CHECK(!fcntl(l, F_SETFL, 0));
}

static void *serve_one(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)accept(listener_fd(), NULL, NULL);
}

/* A socket that is added before it is connected. */
static void callers(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct epoll_event got;

	CHECK(!getsockname(listener_fd(), (struct sockaddr *)&name, &len));
	for (int refused = 0; refused < 2; refused++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), set = set_make();
		pthread_t server;
		void *there;
		int error = 0, ret;

		set_ctl(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT);
		SAY("fresh: %s", events_name(set_look(set, fd)));
		if (refused)
			name.sin_port = htons(1);
		else
			CHECK(!pthread_create(&server, NULL, serve_one, NULL));
		ret = connect(fd, (struct sockaddr *)&name, len);
		CHECK(!ret || errno == EINPROGRESS || errno == ECONNREFUSED);
		if (!refused || errno == EINPROGRESS) {
			CHECK(epoll_wait(set, &got, 1, 20000) == 1);
			SAY("connected: %s", events_name(got.events));
			len = sizeof(error);
			CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
			SAY("error: %s", strerror(error));
		}
		if (!refused) {
			CHECK(!pthread_join(server, &there));
			put((int)(intptr_t)there);
			settle(fd, POLLIN);
			SAY("bytes: %s", events_name(set_look(set, fd)));
			close((int)(intptr_t)there);
		}
		len = sizeof(name);
		close(fd);
		SAY("closed: %s", events_name(set_look(set, fd)));
		close(set);
	}
}

/* ---- descriptors ---- */

/* Opens /dev/null until it has the number. */
static int null_open_at(int number)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && fd <= number);
	if (fd < number) {
		CHECK(null_open_at(number) == number);
		close(fd);
	}
	return number;
}

static void descriptors(void)
{
	struct pair p = pair_make();
	int set = set_make(), other, set_too = dup(set);
	struct epoll_event got;

	CHECK(set_too >= 0);
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	other = dup(p.here);
	set_ctl(set_too, EPOLL_CTL_ADD, other, EPOLLIN | EPOLLONESHOT);
	put(p.there);
	settle(other, POLLIN);
	SAY("two descriptors: %d", epoll_wait(set_too, (struct epoll_event[3]){ { 0 } }, 3, 0));
	SAY("one spent: %s", events_name(set_look(set, p.here)));
	set_ctl(set_too, EPOLL_CTL_DEL, other, 0);
	close(p.here);
	CHECK(epoll_wait(set, &got, 1, 0) == 1);
	SAY("the first closed: %s", events_name(got.events));
	CHECK(got.data.fd == p.here);
	close(other);
	SAY("both closed: %d", epoll_wait(set, &got, 1, 0));
	pair_close(&(struct pair){ -1, p.there });

	p = pair_make();
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	CHECK(!close_range((unsigned)p.here, (unsigned)p.here, 0));
	other = null_open_at(p.here);
	SAY("the number is a file's: %zd", read(other, &got, sizeof(got)));
	settle(p.there, POLLRDHUP);
	SAY("the other side: %d", read_all(p.there));
	pair_close(&(struct pair){ other, p.there });

	p = pair_make();
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	close(set);
	put(p.there);
	settle(p.here, POLLIN);
	SAY("by the set's other descriptor: %s", events_name(set_look(set_too, p.here)));
	close(set_too);
	set = set_make();
	SAY("a new set: %s", events_name(set_look(set, p.here)));
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	SAY("added: %s", events_name(set_look(set, p.here)));
	close(set);
	pair_close(&p);
}

static void children(void)
{
	struct pair p = pair_make();
	int set = set_make(), status;
	pid_t child;

	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(set);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	put(p.there);
	settle(p.here, POLLIN);
	SAY("after a fork: %s", events_name(set_look(set, p.here)));
	close(set);
	pair_close(&p);
}

static int read_one_byte(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1 && byte == 'x';
}

/* A server that becomes a daemon after it has begun to listen, with a set. */
static void daemons(void)
{
	int l = listener_fd(), set = set_make(), closed = eventfd(0, EFD_CLOEXEC), status;
	struct epoll_event got;
	uint64_t one = 1;
	pthread_t caller;
	pid_t child;
	int here;

	set_ctl(set, EPOLL_CTL_ADD, l, EPOLLIN);
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child) { /* its listener ends, then the child goes on in its place */
		CHECK(!close(l));
		CHECK(write(closed, &one, sizeof(one)) == sizeof(one));
		CHECK(waitpid(child, &status, 0) == child && !status);
		close(set);
		close(closed);
		listener_open();
		return;
	}
	CHECK(read(closed, &one, sizeof(one)) == sizeof(one));
	caller = caller_start();
	CHECK(epoll_wait(set, &got, 1, 20000) == 1 && got.data.fd == l);
	SAY("called: %s", events_name(got.events));
	here = accept(l, NULL, NULL);
	CHECK(here >= 0);
	put(caller_end(caller));
	settle(here, POLLIN);
	SAY("bytes: %d", read_one_byte(here));
	fflush(stdout);
	_exit(0);
}

static void arrays(void)
{
	struct pair p[3];
	struct epoll_event got;
	int set = set_make(), event = eventfd(1, EFD_CLOEXEC), seen[3] = { 0 }, others = 0;

	for (int i = 0; i < 3; i++) {
		p[i] = pair_make();
		set_ctl(set, EPOLL_CTL_ADD, p[i].here, EPOLLIN);
		put(p[i].there);
		settle(p[i].here, POLLIN);
	}
	set_ctl(set, EPOLL_CTL_ADD, event, EPOLLIN);
	for (int i = 0; i < 40; i++) {
		CHECK(epoll_wait(set, &got, 1, 0) == 1);
		others += got.data.fd == event;
		for (int k = 0; k < 3; k++)
			seen[k] += got.data.fd == p[k].here;
	}
	SAY("each has its turn: %d", seen[0] && seen[1] && seen[2] && others);
	close(set);
	close(event);
	for (int i = 0; i < 3; i++)
		pair_close(&p[i]);
}

static void nested(void)
{
	struct pair p = pair_make();
	int inner = set_make(), outer = set_make();
	struct pollfd poller = { .fd = inner, .events = POLLIN };

	set_ctl(outer, EPOLL_CTL_ADD, inner, EPOLLIN);
	set_ctl(inner, EPOLL_CTL_ADD, p.here, EPOLLIN);
	set_look(inner, p.here);
	SAY("quiet: %s %d", events_name(set_look(outer, inner)), poll(&poller, 1, 0));
	put(p.there);
	settle(p.here, POLLIN);
	SAY("bytes: %s %d", events_name(set_look(outer, inner)), poll(&poller, 1, 0));
	SAY("inside: %s", events_name(set_look(inner, p.here)));
	SAY("unread: %s %d", events_name(set_look(outer, inner)), poll(&poller, 1, 0));
	read_all(p.here);
	set_look(inner, p.here);
	SAY("read: %s %d", events_name(set_look(outer, inner)), poll(&poller, 1, 0));
	close(outer);
	close(inner);
	pair_close(&p);
}

CASES({ "errors", errors }, { "listeners", listeners }, { "callers", callers },
      { "descriptors", descriptors }, { "children", children }, { "daemons", daemons },
      { "arrays", arrays }, { "nested", nested })
