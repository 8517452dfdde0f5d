/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what epoll, and the other calls that wait, do with a socket in the cases that
 * epoll_table.c has not: errors, listeners, connect(), dup(), close(), fork(), threads,
 * nested sets, other descriptors, signals.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "epoll_help.h"

#define SAY(...)                        \
	do {                            \
		printf("\t" __VA_ARGS__); \
		printf("\n");           \
	} while (0)

static const char *result(int ret)
{
	return ret < 0 ? strerror(errno) : "ok";
}

static void put(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

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

/* ---- threads ---- */

enum { WAITERS = 4, BYTES = 200 };

struct crew {
	int set, here, stop;
	atomic_int got, double_use, busy;
};

/* Takes a byte when the event comes, and asks for the next event. */
static void *wait_in_crew(void *arg)
{
	struct crew *c = arg;
	struct epoll_event got;
	char byte;

	for (;;) {
		CHECK(epoll_wait(c->set, &got, 1, 20000) == 1);
		if (got.data.fd == c->stop)
			return NULL;
		if (atomic_fetch_add(&c->busy, 1))
			atomic_fetch_add(&c->double_use, 1);
		if (read(c->here, &byte, 1) == 1)
			atomic_fetch_add(&c->got, 1);
		atomic_fetch_sub(&c->busy, 1);
		set_ctl(c->set, EPOLL_CTL_MOD, c->here, EPOLLIN | EPOLLONESHOT);
	}
}

static void threads(void)
{
	struct pair p = pair_make();
	struct crew c = { .set = set_make(), .here = p.here, .stop = eventfd(0, 0) };
	const uint64_t one = 1;
	pthread_t waiter[WAITERS];

	set_ctl(c.set, EPOLL_CTL_ADD, c.stop, EPOLLIN);
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_create(&waiter[i], NULL, wait_in_crew, &c));
	/* Added while they sleep. */
	set_ctl(c.set, EPOLL_CTL_ADD, p.here, EPOLLIN | EPOLLONESHOT);
	for (int i = 0; i < BYTES; i++) {
		put(p.there);
		while (i % 10 == 9 && atomic_load(&c.got) < i - 5)
			usleep(100);
	}
	while (atomic_load(&c.got) < BYTES)
		usleep(100);
	CHECK(write(c.stop, &one, sizeof(one)) == sizeof(one));
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_join(waiter[i], NULL));
	SAY("every byte once: %d, two threads at once: %d", c.got == BYTES, c.double_use);
	close(c.set);
	close(c.stop);
	pair_close(&p);
}

static void *echo(void *arg)
{
	const struct pair *p = arg;
	int set = set_make();
	struct epoll_event got;
	char byte;

	set_ctl(set, EPOLL_CTL_ADD, p->there, EPOLLIN | EPOLLET);
	for (int i = 0; i < 1000; i++) {
		while (read(p->there, &byte, 1) != 1)
			CHECK(epoll_wait(set, &got, 1, 20000) == 1);
		CHECK(write(p->there, &byte, 1) == 1);
	}
	close(set);
	return NULL;
}

static void *echo_one(void *arg)
{
	const struct pair *p = arg;
	char byte;

	settle(p->there, POLLIN);
	CHECK(read(p->there, &byte, 1) == 1 && write(p->there, &byte, 1) == 1);
	return NULL;
}

/* A wake-up that is lost ends in the time limit. */
static void ping_pong(void)
{
	struct pair p = pair_make();
	int set = set_make();
	struct epoll_event got;
	pthread_t thread;
	char byte;

	CHECK(!pthread_create(&thread, NULL, echo, &p));
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	for (int i = 0; i < 1000; i++) {
		put(p.here);
		CHECK(epoll_wait(set, &got, 1, 20000) == 1 && got.events == EPOLLIN);
		CHECK(read(p.here, &byte, 1) == 1);
	}
	CHECK(!pthread_join(thread, NULL));
	SAY("a thousand times");
	close(set);
	pair_close(&p);
}

/* A library that is loaded must leave room on a small stack. */
static void small_stacks(void)
{
	struct pair p = pair_make();
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, 65536));
	ret = pthread_create(&thread, &attr, echo_one, &p);
	SAY("a thread with 64 KiB: %s", strerror(ret));
	CHECK(!ret);
	put(p.here);
	settle(p.here, POLLIN);
	CHECK(!pthread_join(thread, NULL));
	pair_close(&p);
}

/* ---- signals and timers ---- */

static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

/* A blocked signal that is pending ends a wait with a mask that lets it in. */
static void masks(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct pair p = pair_make();
	struct pollfd poller = { .fd = p.here, .events = POLLIN };
	struct timespec limit = { 20, 0 };
	int set = set_make(), ret = 0;
	struct epoll_event got;
	sigset_t blocked, none;
	fd_set fds;

	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!pthread_sigmask(SIG_BLOCK, &blocked, NULL));
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	for (int call = 0; call < 4; call++) {
		CHECK(!raise(SIGUSR1));
		FD_ZERO(&fds);
		FD_SET(p.here, &fds);
		switch (call) {
		case 0: ret = epoll_pwait(set, &got, 1, 20000, &none); break;
		case 1: ret = epoll_pwait2(set, &got, 1, &limit, &none); break;
		case 2: ret = ppoll(&poller, 1, &limit, &none); break;
		default: ret = pselect(p.here + 1, &fds, NULL, NULL, &limit, &none); break;
		}
		SAY("%d: %s, signals %d", call, result(ret), atomic_load(&signals));
	}
	close(set);
	pair_close(&p);
}

static void timers(void)
{
	struct itimerspec soon = { .it_value = { 0, 2000000 } };
	struct pair p = pair_make();
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), set = set_make();
	struct pollfd both[2] = { { .fd = p.here, .events = POLLIN },
				  { .fd = timer, .events = POLLIN } };
	struct timeval limit = { 20, 0 };
	struct epoll_event got;
	fd_set fds;
	int ret;

	CHECK(!timerfd_settime(timer, 0, &soon, NULL));
	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	set_ctl(set, EPOLL_CTL_ADD, timer, EPOLLIN);
	CHECK(epoll_wait(set, &got, 1, 20000) == 1 && got.data.fd == timer);
	SAY("epoll: %s", events_name(got.events));
	ret = poll(both, 2, 20000);
	SAY("poll: %d %x %x", ret, both[0].revents, both[1].revents);
	FD_ZERO(&fds);
	FD_SET(p.here, &fds);
	FD_SET(timer, &fds);
	SAY("select: %d", select(FD_SETSIZE, &fds, NULL, NULL, &limit));
	put(p.there);
	settle(p.here, POLLIN);
	ret = poll(both, 2, 20000);
	SAY("both: %d %x %x", ret, both[0].revents, both[1].revents);
	close(timer);
	SAY("no time: %d", epoll_wait(set, &got, 1, 0));
	read_all(p.here);
	SAY("a little: %d", epoll_wait(set, &got, 1, 5));
	close(set);
	pair_close(&p);
}

/* With an argument only the case of that name. */
int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "errors", errors }, { "listeners", listeners }, { "callers", callers },
		{ "descriptors", descriptors }, { "children", children },
		{ "arrays", arrays }, { "nested", nested }, { "threads", threads },
		{ "ping-pong", ping_pong }, { "small stacks", small_stacks },
		{ "masks", masks }, { "timers", timers },
	};

	alarm(100);
	listener_open();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		printf("%s\n", cases[i].name);
		fflush(stdout);
		cases[i].run();
	}
	return 0;
}
