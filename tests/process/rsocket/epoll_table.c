/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what epoll reports of a socket: for each thing that happens to it, before it is
 * added, after it, and while a thread sleeps in epoll_wait(), for all ways to watch it and
 * all events that are asked for.
 */
#include <sys/ioctl.h>

#include "epoll_help.h"

enum what { DATA, ROOM, END, OWN_END, OWN_STOP, CLOSE, RESET, WHATS };
static const char *const what_name[] = { "data", "room", "end", "own end", "own stop",
					 "close", "reset" };
enum when { BEFORE, AFTER, ASLEEP, WHENS };
static const char *const when_name[] = { "before", "after", "asleep" };

static int readable(int fd)
{
	int bytes;

	CHECK(!ioctl(fd, FIONREAD, &bytes));
	return bytes;
}

/* Lets it happen, and returns when the socket shows it. */
static void happen(struct pair *p, enum what what)
{
	struct linger now = { 1, 0 };
	int before;

	switch (what) {
	case DATA:
		before = readable(p->here);
		CHECK(write(p->there, "x", 1) == 1);
		while (readable(p->here) == before)
			usleep(100);
		break;
	case ROOM:
		for (struct pollfd s = { .fd = p->here, .events = POLLOUT };
		     poll(&s, 1, 1) == 0;)
			read_all(p->there);
		break;
	case END:
		CHECK(!shutdown(p->there, SHUT_WR));
		settle(p->here, POLLRDHUP);
		break;
	case OWN_END:
		CHECK(!shutdown(p->here, SHUT_WR));
		break;
	case OWN_STOP:
		CHECK(!shutdown(p->here, SHUT_RD));
		settle(p->here, POLLRDHUP);
		break;
	case RESET:
		CHECK(!setsockopt(p->there, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
		CHECK(!close(p->there));
		p->there = -1;
		settle(p->here, POLLHUP);
		break;
	default:
		CHECK(!close(p->there));
		p->there = -1;
		settle(p->here, POLLRDHUP);
		break;
	}
}

struct actor {
	struct pair *pair;
	enum what what;
	int done_fd;
};

static void *act(void *arg)
{
	const struct actor *a = arg;
	const uint64_t one = 1;

	usleep(1000); /* the other thread probably sleeps by then; the test holds if not */
	happen(a->pair, a->what);
	CHECK(write(a->done_fd, &one, sizeof(one)) == sizeof(one));
	return NULL;
}

/* All events that are reported until what happens has happened. */
static uint32_t asleep(struct pair *p, int set, enum what what)
{
	struct actor actor = { p, what, eventfd(0, EFD_CLOEXEC) };
	struct epoll_event event[2];
	uint32_t events = 0;
	pthread_t thread;
	bool done = false;

	CHECK(actor.done_fd >= 0);
	set_ctl(set, EPOLL_CTL_ADD, actor.done_fd, EPOLLIN | EPOLLET);
	CHECK(!pthread_create(&thread, NULL, act, &actor));
	while (!done) {
		int n = epoll_wait(set, event, 2, 20000);

		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			if (event[i].data.fd == actor.done_fd)
				done = true;
			else
				events |= event[i].events;
		}
	}
	events |= set_look(set, p->here);
	CHECK(!pthread_join(thread, NULL));
	set_ctl(set, EPOLL_CTL_DEL, actor.done_fd, 0);
	close(actor.done_fd);
	return events;
}

static void one(enum what what, enum when when, uint32_t way, uint32_t asked)
{
	struct pair p = pair_make();
	int set = set_make();

	if (what == ROOM)
		write_full(p.here);
	printf("%s %s %s %s:", what_name[what], when_name[when], events_name(way),
	       events_name(asked));
	if (when == BEFORE)
		happen(&p, what);
	set_ctl(set, EPOLL_CTL_ADD, p.here, way | asked);
	if (when == AFTER) {
		printf(" %s,", events_name(set_look(set, p.here)));
		happen(&p, what);
	}
	if (when == ASLEEP)
		printf(" %s", events_name(asleep(&p, set, what)));
	else
		printf(" %s", events_name(set_look(set, p.here)));
	printf(" again %s", events_name(set_look(set, p.here)));
	read_all(p.here);
	printf(" read %s", events_name(set_look(set, p.here)));
	set_ctl(set, EPOLL_CTL_MOD, p.here, way | asked);
	printf(" mod %s", events_name(set_look(set, p.here)));
	/* TCP reports the acknowledgement of its own end as an edge, at some time. */
	if (what == DATA || (what == OWN_END && !(way & EPOLLET))) {
		happen(&p, DATA);
		printf(" more %s", events_name(set_look(set, p.here)));
		happen(&p, DATA);
		printf(" more %s", events_name(set_look(set, p.here)));
	}
	set_ctl(set, EPOLL_CTL_DEL, p.here, 0);
	CHECK(!set_look(set, p.here));
	printf("\n");
	close(set);
	pair_close(&p);
}

int main(void)
{
	static const uint32_t ways[] = { 0, EPOLLET, EPOLLONESHOT, EPOLLET | EPOLLONESHOT };
	static const uint32_t asked[] = { EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT,
					  EPOLLIN | EPOLLRDHUP, 0 };

	alarm(100);
	listener_open();
	for (enum what what = 0; what < WHATS; what++)
		for (enum when when = 0; when < WHENS; when++)
			for (size_t way = 0; way < 4; way++)
				for (size_t i = 0; i < 5; i++)
					if (what != ROOM || asked[i] & EPOLLOUT)
						one(what, when, ways[way], asked[i]);
	return 0;
}
