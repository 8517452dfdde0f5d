/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what epoll, and the other calls that wait, do with a socket that several threads use,
 * when signals come, and beside other descriptors.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/select.h>
#include <sys/timerfd.h>

#include "epoll_help.h"

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

static void *wait_for_ever(void *arg)
{
	struct epoll_event got;

	epoll_wait(*(int *)arg, &got, 1, -1);
	return NULL;
}

static void cancelled(void)
{
	struct pair p = pair_make();
	int set = set_make();
	pthread_t thread;
	void *end;

	set_ctl(set, EPOLL_CTL_ADD, p.here, EPOLLIN);
	for (int i = 0; i < 20; i++) {
		CHECK(!pthread_create(&thread, NULL, wait_for_ever, &set));
		if (i % 2)
			usleep(1000); /* it probably sleeps by then; the test holds if not */
		CHECK(!pthread_cancel(thread));
		CHECK(!pthread_join(thread, &end) && end == PTHREAD_CANCELED);
	}
	put(p.there);
	settle(p.here, POLLIN);
	SAY("then: %s", events_name(set_look(set, p.here)));
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

CASES({ "threads", threads }, { "ping-pong", ping_pong }, { "cancelled", cancelled },
      { "small stacks", small_stacks }, { "masks", masks }, { "timers", timers })
