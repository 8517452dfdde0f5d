/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of the fabric's process: the clock, the sockets; see serve.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/serve.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fabric/agent/agent.h"
#include "fabric/serve/arrive.h"
#include "fabric/serve/build.h"
#include "fabric/serve/client.h"
#include "fabric/serve/mads.h"
#include "fabric/serve/manager.h"
#include "fabric/serve/nodes.h"
#include "fabric/serve/out.h"
#include "fabric/serve/owner.h"
#include "fabric/serve/pool.h"
#include "fabric/serve/send.h"
#include "fabric/serve/state.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define BACKLOG 256
#define EVENTS 64
/* How far the engine's time may be ahead of the real one: a packet passes a small fabric in one turn. */
#define AHEAD_NS 5000
/* Events of the engine in a turn: how long a client waits for its turn at most. */
#define EVENTS_OF_ENGINE 1024
/* A wait that is shorter is spent with asking the sockets again: to sleep and to wake takes longer. */
#define SPIN_NS 50000
/* For so long after the last message the process does not sleep, if there are processors for it and for
 * two programs that poll: where they have to share, it would hold up those that it waits for. */
#define ACTIVE_NS 30000
#define ACTIVE_PROCESSORS 3
#define TIMER_SLACK_NS 1000
/* How often packets that do not move are looked for, and for how long they have not. */
#define DEADLOCK_NS UINT64_C(500000000)
#define LINE_BYTES 512
/* Timers of clients that a turn carries out: a host can have a hundred thousand for one millisecond. */
#define TIMERS 64

/* ---- what the engine says ---- */

static void on_deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	serve_arrive(arg, node, port, p);
}

static void on_drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		    enum fabric_drop why)
{
	serve_arrive_not(arg, node, port, p, why);
}

static void *on_share(void *arg, void *data)
{
	return serve_pool_share(data);
}

static void on_writable(void *arg, uint32_t node, uint8_t port)
{
	struct serve *s = arg;
	struct serve_host *h = serve_nodes_host(s, node, port);

	if (h && list_empty(&h->in_writable))
		list_push(&s->writable, &h->in_writable);
}

static void on_link(void *arg, uint32_t node, uint8_t port, bool up)
{
	struct serve *s = arg;

	if (s->agents)
		fabric_agents_link(s->agents, node, port, up, s->now_ns);
	if (s->manager)
		serve_manager_link(s->manager, s->now_ns);
}

static void on_marked(void *arg, uint32_t node, uint8_t port, const struct fabric_packet *p)
{
	const struct serve *s = arg;

	fabric_agents_marked(s->agents, node, port, p->slid, p->dlid, p->sl, s->now_ns);
}

/* Tables that lead packets in a circle let lanes wait for each other for ever. */
static void on_deadlock(void *arg, const struct fabric_lane_at *cycle, size_t count)
{
	struct serve *s = arg;
	char line[LINE_BYTES];
	size_t at = 0;

	if (s->deadlocks++)
		return;
	for (size_t i = 0; i < count && at < sizeof(line); i++) {
		int n = snprintf(line + at, sizeof(line) - at, "%s%s:%u lane %u", i ? ", " : "",
				 s->topology->nodes[cycle[i].node].id, cycle[i].port, cycle[i].lane);

		at += n > 0 ? (size_t)n : 0;
	}
	log_warn("deadlock: the packets of %zu lanes wait for each other (%s); forwarding tables without circles, such as those of --sm auto, avoid it",
		 count, line);
}

/* ---- a turn ---- */

static void expire(struct serve *s)
{
	struct wheel_timer *t;

	for (unsigned i = 0; i < TIMERS && (t = wheel_expire(&s->hellos, s->now_ns)); i++)
		serve_client_expire(list_entry(t, struct serve_client, timer));
	for (unsigned i = 0; i < TIMERS && (t = wheel_expire(&s->wheel, s->now_ns)); i++)
		serve_mads_expire(list_entry(t, struct serve_pending, timer));
	if (fabric_agents_next_ns(s->agents) <= s->now_ns)
		fabric_agents_tick(s->agents, s->now_ns);
	if (s->manager && serve_manager_next_ns(s->manager) <= s->now_ns)
		serve_manager_tick(s->manager, s->now_ns);
}

static void settle_clients(struct serve *s)
{
	struct list *l, round;

	/* One that is touched meanwhile has its turn in the next round. */
	list_init(&round);
	list_splice(&round, &s->dirty);
	while ((l = list_pop(&round)))
		serve_client_settle(list_entry(l, struct serve_client, in_dirty));
	serve_client_free_gone(s);
}

static void set_listener(struct serve *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = &s->listener };

	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listener, &e);
}

/* Carries out what is due; true: something was. */
static bool turn(struct serve *s)
{
	uint64_t events;

	s->now_ns = clock_monotonic_ns_slow();
	events = fabric_run(s->fabric, (s->now_ns + AHEAD_NS - s->origin_ns) * 1000, EVENTS_OF_ENGINE);
	serve_send_waiting(s);
	serve_arrive_looped(s);
	expire(s);
	settle_clients(s);
	if (fabric_packets_inside(s->fabric) && s->now_ns >= s->deadlock_ns) {
		fabric_find_deadlock(s->fabric, DEADLOCK_NS * 1000);
		s->deadlock_ns = s->now_ns + DEADLOCK_NS;
	}
	if (s->listener_rests_ns && s->now_ns >= s->listener_rests_ns) {
		s->listener_rests_ns = 0;
		set_listener(s, EPOLLIN);
	}
	return events;
}

/* When the next turn has something to do, which the sockets do not say. */
static uint64_t next_ns(const struct serve *s)
{
	uint64_t at_ps = fabric_next_ps(s->fabric), at_ns = UINT64_MAX, other_ns;

	if (!list_empty(&s->dirty) || !list_empty(&s->writable) || s->looped)
		return 0;
	if (at_ps != FABRIC_NEVER) {
		at_ns = s->origin_ns + at_ps / 1000;
		at_ns = at_ns > AHEAD_NS ? at_ns - AHEAD_NS : 0;
	}
	if (fabric_packets_inside(s->fabric) && s->deadlock_ns < at_ns)
		at_ns = s->deadlock_ns;
	other_ns = fabric_agents_next_ns(s->agents);
	at_ns = other_ns < at_ns ? other_ns : at_ns;
	other_ns = wheel_next_ns(&s->wheel);
	at_ns = other_ns < at_ns ? other_ns : at_ns;
	other_ns = wheel_next_ns(&s->hellos);
	at_ns = other_ns < at_ns ? other_ns : at_ns;
	if (s->manager && serve_manager_next_ns(s->manager) < at_ns)
		at_ns = serve_manager_next_ns(s->manager);
	if (s->listener_rests_ns && s->listener_rests_ns < at_ns)
		at_ns = s->listener_rests_ns;
	return at_ns;
}

static void on_event(struct serve *s, const struct epoll_event *e)
{
	struct serve_client *c;

	if (e->data.ptr == &s->listener) {
		serve_client_accept(s);
		if (s->listener_rests_ns)
			set_listener(s, 0);
		return;
	}
	if (e->data.ptr == &s->signal_fd || e->data.ptr == &s->wake_fd) {
		s->stopping = true;
		return;
	}
	c = e->data.ptr;
	if (c->stage == SERVE_GONE)
		return;
	if (e->events & EPOLLIN)
		serve_client_read(c);
	else if (e->events & (EPOLLHUP | EPOLLERR))
		serve_client_end(c);
	if (e->events & EPOLLOUT && c->stage != SERVE_GONE)
		serve_out_touch(c);
}

/* Sleeps until the next turn or a message, and takes messages. How many sockets had some, or a negative
 * errno. */
static int take_messages(struct serve *s, uint64_t until_ns, bool sleeps)
{
	struct epoll_event events[EVENTS];
	struct pollfd p = { .fd = s->epoll_fd, .events = POLLIN };
	int n;

	if (sleeps) {
		uint64_t now_ns = clock_monotonic_ns_slow();
		struct timespec t = timespec_from_ns(until_ns > now_ns ? until_ns - now_ns : 0);

		ppoll(&p, 1, until_ns == UINT64_MAX ? NULL : &t, NULL);
	}
	n = epoll_wait(s->epoll_fd, events, EVENTS, 0);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	s->now_ns = clock_monotonic_ns_slow();
	for (int i = 0; i < n; i++)
		on_event(s, &events[i]);
	return n;
}

/* That this process may use. */
static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

int serve_turn(struct serve *s, bool may_sleep)
{
	const bool worked = turn(s);
	const uint64_t until_ns = next_ns(s);
	int n;

	if (!s->ready && (!s->manager || serve_manager_is_done(s->manager))) {
		s->ready = true;
		if (s->set.ready)
			s->set.ready(&s->set);
	}
	if (worked)
		s->active_ns = s->now_ns;
	n = take_messages(s, until_ns, may_sleep && until_ns > s->now_ns + SPIN_NS &&
				       s->now_ns - s->active_ns > s->awake_ns);
	if (n < 0) {
		log_error("the fabric ends: epoll_wait: %s", strerror(-n));
		return n;
	}
	if (n)
		s->active_ns = s->now_ns;
	return 0;
}

int serve_run(struct serve *s)
{
	int ret = 0;

	s->awake_ns = processors() >= ACTIVE_PROCESSORS ? ACTIVE_NS : 0;
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	while (!s->stopping && !ret)
		ret = serve_turn(s, true);
	/* What `stop` answers. */
	settle_clients(s);
	return ret;
}

void serve_stop(struct serve *s)
{
	wakeup_post(s->wake_fd);
}

/* ---- start and end ---- */

static int watch(struct serve *s, int fd, void *what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_listener(struct serve *s)
{
	struct abstract_name name;
	int ret = abstract_name(&name, PLUG_NAME, s->set.name);

	s->listener = ret ? ret : abstract_open(&name, SOCK_SEQPACKET, BACKLOG);
	if (s->listener == -EADDRINUSE)
		log_error("a fabric '%s' runs already; another one needs another --name", s->set.name);
	else if (s->listener < 0)
		log_error("the fabric's socket cannot be opened: %s", strerror(-s->listener));
	return s->listener < 0 ? s->listener : watch(s, s->listener, &s->listener);
}

static int open_descriptors(struct serve *s)
{
	sigset_t signals;
	int ret;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->wake_fd = wakeup_open_signal();
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -errno;
	s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->epoll_fd < 0 || s->wake_fd < 0 || s->signal_fd < 0) {
		ret = errno ? -errno : -EMFILE;
		log_error("no descriptors for the fabric: %s", strerror(-ret));
		return ret;
	}
	ret = watch(s, s->wake_fd, &s->wake_fd);
	if (!ret)
		ret = watch(s, s->signal_fd, &s->signal_fd);
	return ret ? ret : open_listener(s);
}

static int check_users(const struct serve *s)
{
	for (unsigned i = 0; i < s->set.user_count; i++) {
		const char *host = s->set.users[i].host;
		uint32_t node;
		unsigned port;
		char hint[128];

		if (!host)
			continue;
		node = serve_nodes_find(s, host, &port);
		if (node != TOPOLOGY_NONE && s->topology->nodes[node].kind == TOPOLOGY_HCA && !port)
			continue;
		log_error("user %u: the fabric has no host '%s'%s", (unsigned)s->set.users[i].uid, host,
			  serve_nodes_hint(s, host, TOPOLOGY_HCA, hint, sizeof(hint)));
		return -ENODEV;
	}
	return 0;
}

int serve_open(const struct serve_settings *settings, struct serve **out)
{
	struct serve *s = calloc(1, sizeof(*s));
	const struct fabric_ops ops = {
		.deliver = on_deliver, .drop = on_drop, .share = on_share, .writable = on_writable,
		.link = on_link, .deadlock = on_deadlock, .marked = on_marked, .arg = s,
	};
	int ret;

	if (!s)
		return -ENOMEM;
	s->set = *settings;
	s->topology = settings->topology;
	s->listener = s->epoll_fd = s->signal_fd = s->wake_fd = -1;
	s->looped_last = &s->looped;
	list_init(&s->clients);
	list_init(&s->dirty);
	list_init(&s->gone);
	list_init(&s->writable);
	serve_owner_init(s);
	s->origin_ns = s->now_ns = clock_monotonic_ns_slow();
	wheel_init(&s->wheel, s->now_ns);
	wheel_init(&s->hellos, s->now_ns);
	ret = serve_build(s, &ops);
	if (!ret)
		ret = serve_nodes_open(s);
	if (!ret)
		ret = check_users(s);
	if (!ret && s->set.manager)
		ret = serve_manager_open(s, &s->manager);
	if (!ret)
		ret = open_descriptors(s);
	if (ret)
		serve_close(s);
	else
		*out = s;
	return ret;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void serve_close(struct serve *s)
{
	list_for_each_safe (c, &s->clients, struct serve_client, entry)
		serve_client_end(c);
	serve_client_free_gone(s);
	close_fd(s->listener);
	close_fd(s->signal_fd);
	close_fd(s->wake_fd);
	close_fd(s->epoll_fd);
	serve_manager_close(s->manager);
	fabric_agents_close(s->agents);
	serve_build_free(s);
	serve_pool_free(&s->pool);
	free(s);
}
