/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge's loop, its listening socket and the times of its clients; see bridge.h. */
#include "web/bridge.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "web/bridge_private.h"

#define TICK_MS 250 /* how often times are looked at */
/* While others wait: how long a client may do nothing. */
#define STALE_MS 2000u
/* When no descriptors are left: how long nobody is accepted. */
#define PAUSE_MS 1000

uint64_t bridge_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int look_at(struct bridge *b, int fd, void *who)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = who };

	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

/* Whose events these are, apart from clients. */
static char listener, stopper, service, failures;

static void listen_on(struct bridge *b, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.ptr = &listener };

	if (b->listening != on && !epoll_ctl(b->epoll, EPOLL_CTL_MOD, b->o->listen_fd, &e))
		b->listening = on;
}

/* The client that has sent and taken nothing for longest, and for STALE_MS at least; with `holding`
 * only clients that have an answer to take. NULL: there is none. */
static struct bridge_client *stalest(struct bridge *b, bool holding)
{
	uint64_t before = bridge_now_ms() + b->o->idle_ms - MIN(STALE_MS, b->o->idle_ms);
	struct bridge_client *found = NULL;

	list_for_each(c, &b->clients, struct bridge_client, entry)
		if ((c->state == BRIDGE_WRITING || (c->state == BRIDGE_READING && !holding)) &&
		    c->until_ms <= before && (!found || c->until_ms < found->until_ms))
			found = c;
	return found;
}

/* Ends that client, because others wait for a place or for memory. False: there is none. */
static bool end_stalest(struct bridge *b, bool holding)
{
	struct bridge_client *c = stalest(b, holding);

	if (!c)
		return false;
	b->n->cut += c->state == BRIDGE_WRITING;
	bridge_client_close(c);
	return true;
}

static bool waits(int listen_fd)
{
	struct pollfd p = { .fd = listen_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* False: nobody may be accepted for a while. */
static bool accept_all(struct bridge *b)
{
	while (b->count < b->o->clients_max || (waits(b->o->listen_fd) && end_stalest(b, false))) {
		int fd = accept4(b->o->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
		if (bridge_client_open(b, fd)) {
			close(fd);
			return false;
		}
	}
	return false;
}

static void look_at_times(struct bridge *b, uint64_t now)
{
	struct list *next;

	for (struct list *e = b->clients.next; e != &b->clients; e = next) {
		struct bridge_client *c = container_of(e, struct bridge_client, entry);

		next = e->next;
		if (now >= c->until_ms)
			bridge_client_late(c);
	}
}

static bool is_full(const struct bridge *b)
{
	return b->held_bytes >= b->o->held_bytes_max;
}

/* Ends clients that take no answers while requests wait for their memory. */
static void hurry(struct bridge *b)
{
	bool held = false;

	list_for_each(c, &b->clients, struct bridge_client, entry)
		held |= c->state == BRIDGE_HELD;
	while (held && is_full(b) && end_stalest(b, true))
		;
}

/* Requests that waited until less is held. */
static void go_on(struct bridge *b)
{
	struct list *next;

	for (struct list *e = b->clients.next; e != &b->clients; e = next) {
		struct bridge_client *c = container_of(e, struct bridge_client, entry);

		next = e->next;
		if (is_full(b))
			return;
		if (c->state == BRIDGE_HELD)
			bridge_client_go_on(c);
	}
}

/* False: to end. */
static bool handle(struct bridge *b, const struct epoll_event *e, uint64_t *pause_until)
{
	if (e->data.ptr == &stopper)
		return false;
	if (e->data.ptr == &listener) {
		if (!accept_all(b)) {
			listen_on(b, false);
			*pause_until = b->count < b->o->clients_max ?
					       bridge_now_ms() + PAUSE_MS : 0;
		}
	} else if (e->data.ptr == &service) {
		bridge_service_receive(b);
	} else if (e->data.ptr == &failures) {
		bridge_service_failures(b);
	} else {
		bridge_client_ready(e->data.ptr, e->events);
	}
	return true;
}

static void loop(struct bridge *b)
{
	uint64_t next_tick = 0, pause_until = 0;

	for (;;) {
		/* One at a time: an event may close any client, whose own events are gone
		 * from the kernel's list then. */
		struct epoll_event e;
		int n = epoll_wait(b->epoll, &e, 1, TICK_MS);
		uint64_t now = bridge_now_ms();
		bool may_listen = false;

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && !handle(b, &e, &pause_until))
			return;
		go_on(b);
		if (now >= next_tick) {
			look_at_times(b, now);
			hurry(b);
			next_tick = now + TICK_MS;
			may_listen = stalest(b, false) != NULL;
		}
		may_listen |= b->count < b->o->clients_max;
		if (!b->listening && now >= pause_until && may_listen)
			listen_on(b, true);
	}
}

static int set_up(struct bridge *b)
{
	int fd = ripc_service_fd(b->o->service), ret;

	if (fd < 0)
		return fd;
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll < 0)
		return -errno;
	ret = look_at(b, b->o->listen_fd, &listener);
	b->listening = !ret;
	if (!ret)
		ret = look_at(b, b->o->stop_fd, &stopper);
	if (!ret)
		ret = look_at(b, fd, &service);
	if (!ret)
		ret = bridge_service_start(b);
	if (ret)
		return ret;
	/* What has come before the descriptor was there. */
	bridge_service_receive(b);
	ret = look_at(b, b->failed_fd, &failures);
	if (ret)
		bridge_service_stop(b);
	return ret;
}

int bridge_run(const struct bridge_options *options, struct bridge_counters *counters)
{
	struct bridge b = { .o = options, .n = counters, .epoll = -1 };
	int ret;

	memset(counters, 0, sizeof(*counters));
	list_init(&b.clients);
	b.slots = calloc(options->clients_max, sizeof(b.slots[0]));
	b.asked = calloc(options->clients_max, sizeof(b.asked[0]));
	ret = b.slots && b.asked ? set_up(&b) : -ENOMEM;
	if (!ret) {
		loop(&b);
		bridge_service_stop(&b);
		while (!list_empty(&b.clients))
			bridge_client_close(container_of(b.clients.next, struct bridge_client,
							 entry));
	}
	if (b.epoll >= 0)
		close(b.epoll);
	close(options->listen_fd);
	free(b.asked);
	free(b.slots);
	return ret;
}
