/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: a thread accepts clients and answers their commands; the thread of the path makes
 * data frames and gives them to all clients that asked for data (c37_udp.h has those of UDP). A client that takes too little
 * loses frames or its connection, and holds up nobody.
 */
#define LOG_ROOM "gateway/c37.118"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/node/c37.118/c37_udp.h"
#include "gateway/part/socket_address.h"
#include "gateway/sample/time.h"
#include "gateway/stream/stream_server.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define EVENTS 16
#define STATE_MS 20
#define READ_BYTES 4096
/* Commands of one client that are answered before the others have their turn. */
#define READS_MAX 4
/* How long the end of the node waits for clients to take what was written. */
#define END_NS (NSEC_PER_SEC / 2)
/* A client that has not asked for data and says nothing for so long gives way to another one when
 * all places are taken. */
#define IDLE_NS (10 * NSEC_PER_SEC)

enum { WAKE = 1 << 16, LISTENER, DATAGRAMS };

struct client {
	struct stream_client base; /* first; it stays while it has asked for data */
	struct stream_buffer rx;   /* of its commands */
	int data_fd;               /* data go there by UDP; -1: over the connection */
	bool waits;                /* for room, so the thread looks for it */
	bool broken;               /* the thread is to close it ... */
	const char *why;           /* ... for this reason */
	uint64_t behind;           /* frames that it did not get */
};

struct c37_server {
	struct c37_node *node;
	pthread_t thread;
	bool has_thread;
	int epoll_fd, wake_fd;
	atomic_bool stop;
	pthread_mutex_t lock;      /* of what follows */
	pthread_cond_t changed;    /* somebody asks for data, or a write is to end */
	unsigned interrupts;
	struct stream_server server; /* of `clients` */
	struct client *clients;
	unsigned sending;
	struct c37_udp udp;
	uint8_t *answer;           /* C37_ANSWER_MAX; of the thread */

	/* Of the writer. */
	uint8_t *frame;            /* C37_FRAME_MAX */
	struct c37_gate gate;
	enum node_state told;      /* of the thread */
};

static bool is_open(const struct client *k)
{
	return k->base.stream.fd >= 0;
}

static const char *name_of(const struct c37_server *v)
{
	return v->node->node->name;
}

static int watch(struct c37_server *v, int op, int fd, uint32_t events, uint32_t which)
{
	struct epoll_event e = { .events = events, .data.u32 = which };

	return epoll_ctl(v->epoll_fd, op, fd, &e) ? -errno : 0;
}

/* ---- clients, with the lock ---- */

static void set_sends(struct c37_server *v, struct client *k, bool sends)
{
	v->sending += (unsigned)sends - (unsigned)k->base.stays;
	k->base.stays = sends;
	if (sends)
		pthread_cond_broadcast(&v->changed);
}

static void break_client(struct c37_server *v, struct client *k, const char *why)
{
	if (k->broken)
		return;
	k->broken = true;
	k->why = why;
	set_sends(v, k, false);
	wakeup_post(v->wake_fd);
}

static void flush(struct c37_server *v, struct client *k)
{
	bool waits;
	int ret = stream_flush(&k->base.stream, NULL);

	if (ret) {
		break_client(v, k, strerror(-ret));
		return;
	}
	waits = stream_buffer_filled(&k->base.stream.out);
	if (waits != k->waits)
		watch(v, EPOLL_CTL_MOD, k->base.stream.fd, EPOLLIN | (waits ? EPOLLOUT : 0u),
		      (uint32_t)(k - v->clients));
	k->waits = waits;
}

static void put(struct c37_server *v, struct client *k, const uint8_t *data, size_t len)
{
	if (stream_buffer_put(&k->base.stream.out, data, len))
		break_client(v, k, strerror(ENOMEM));
	else
		flush(v, k);
}

static void close_client(struct c37_server *v, struct client *k)
{
	char text[SOCKET_ADDRESS_MAX];

	if (k->behind && fault_may_log(&v->node->faults))
		log_warn("node %s: %s lost %ju frames, because it took them too slowly", name_of(v),
			 socket_address_print(&k->base.peer, text), (uintmax_t)k->behind);
	set_sends(v, k, false);
	epoll_ctl(v->epoll_fd, EPOLL_CTL_DEL, k->base.stream.fd, NULL);
	stream_server_close(&v->server, &k->base, k->why);
	stream_buffer_free(&k->rx);
	if (k->data_fd >= 0)
		close(k->data_fd);
	*k = (struct client){ .base.stream.fd = -1, .data_fd = -1 };
}

/* ---- commands ---- */

/* With the lock. */
static void put_answer(struct c37_server *v, struct client *k, size_t len)
{
	/* One that asks and does not read. */
	if (stream_buffer_filled(&k->base.stream.out) > (size_t)v->node->out.queue_bytes + C37_FRAME_MAX)
		break_client(v, k, "it asks and does not take the answers");
	else
		put(v, k, v->answer, len);
}

static void take_command(struct c37_server *v, struct client *k, const struct c37_frame *f,
			 bool sends)
{
	const struct c37_answer a =
		c37_source_answer(&v->node->source, f, sends,
				  (int64_t)timespec_to_ns(clock_realtime()), v->answer,
				  C37_ANSWER_MAX);

	if (!a.known) {
		fault_note(&v->node->faults, FAULT_FOREIGN, 1,
			   "%s for stream %u; this one has IDCODE %u",
			   f->type == C37_COMMAND ? "a command" : "a frame that is no command",
			   f->idcode, v->node->source.idcode);
		return;
	}
	node_figure_add(v->node->node, C37_COMMANDS, 1);
	pthread_mutex_lock(&v->lock);
	if (!k->broken && a.sends != k->base.stays)
		set_sends(v, k, a.sends);
	if (!k->broken && a.len)
		put_answer(v, k, a.len);
	pthread_mutex_unlock(&v->lock);
}

/* False: the client is to be closed. */
static bool look_at(struct c37_server *v, const struct client *k, bool *sends)
{
	bool works;

	pthread_mutex_lock(&v->lock);
	works = !k->broken;
	*sends = k->base.stays;
	pthread_mutex_unlock(&v->lock);
	return works;
}

/* Commands are read without the lock, so that a write does not wait for what a client sends. */
static void take_commands(struct c37_server *v, struct client *k)
{
	bool sends;

	while (stream_buffer_filled(&k->rx) && look_at(v, k, &sends)) {
		struct c37_frame f;
		const char *why;
		size_t skip;
		int n = c37_next((const uint8_t *)k->rx.at + k->rx.start,
				 stream_buffer_filled(&k->rx), &f, &skip, &why);

		if (!n)
			break;
		if (n < 0)
			fault_note(&v->node->faults, FAULT_MALFORMED, 1, "%s", why);
		else
			take_command(v, k, &f, sends);
		k->rx.start += n > 0 ? (size_t)n : skip;
	}
	if (!stream_buffer_filled(&k->rx))
		k->rx.start = k->rx.end = 0;
}

/* Number of bytes that have come; 0: none for now, or the client is to be closed. */
static size_t read_some(struct c37_server *v, struct client *k)
{
	ssize_t n = stream_buffer_reserve(&k->rx, READ_BYTES) ? -ENOMEM : 1;

	pthread_mutex_lock(&v->lock);
	if (n > 0)
		n = k->broken ? -EAGAIN : stream_recv(&k->base.stream, k->rx.at + k->rx.end, READ_BYTES);
	if (n <= 0 && n != -EAGAIN)
		break_client(v, k, n ? strerror((int)-n) : "it has closed the connection");
	pthread_mutex_unlock(&v->lock);
	return n > 0 ? (size_t)n : 0;
}

static void receive(struct c37_server *v, struct client *k)
{
	for (unsigned i = 0; i < READS_MAX; i++) {
		size_t n = read_some(v, k);

		if (!n)
			return;
		k->rx.end += n;
		k->base.heard_ns = clock_now_ns();
		take_commands(v, k);
	}
}

/* ---- the thread ---- */

static void clear_away(struct c37_server *v)
{
	for (unsigned i = 0; i < v->server.max; i++)
		if (is_open(&v->clients[i]) && v->clients[i].broken)
			close_client(v, &v->clients[i]);
}

static void give_way(struct stream_server *s, struct stream_client *base)
{
	struct c37_server *v = container_of(s, struct c37_server, server);
	struct client *k = container_of(base, struct client, base);

	break_client(v, k,
		     "it asks for nothing, and another client needs the place (out.max_clients)");
	close_client(v, k);
}

/* With the lock. */
static void accept_one(struct c37_server *v)
{
	struct stream_client *base;
	struct client *k;

	clear_away(v);
	base = stream_server_accept(&v->server, clock_now_ns());
	if (!base)
		return;
	k = container_of(base, struct client, base);
	stream_server_watch_peer(base->stream.fd, name_of(v));
	/* The host has shown by its connection that the address is its own. */
	if (v->node->out.data_port)
		k->data_fd = c37_udp_connect(&base->peer, (uint16_t)v->node->out.data_port);
	watch(v, EPOLL_CTL_ADD, base->stream.fd, EPOLLIN, (uint32_t)(k - v->clients));
}

static unsigned receivers(const struct c37_server *v)
{
	return v->sending + c37_udp_receivers(&v->udp);
}

static void take_datagrams(struct c37_server *v)
{
	pthread_mutex_lock(&v->lock);
	c37_udp_take(&v->udp, v->answer);
	if (receivers(v))
		pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
}

static void handle(struct c37_server *v, const struct epoll_event *e)
{
	struct client *k;
	bool works;

	if (e->data.u32 == WAKE) {
		wakeup_drain(v->wake_fd);
		return;
	}
	if (e->data.u32 == LISTENER) {
		pthread_mutex_lock(&v->lock);
		accept_one(v);
		pthread_mutex_unlock(&v->lock);
		stream_server_pause(&v->server);
		return;
	}
	if (e->data.u32 == DATAGRAMS) {
		take_datagrams(v);
		return;
	}
	pthread_mutex_lock(&v->lock);
	k = &v->clients[e->data.u32];
	if (is_open(k) && !k->broken && e->events & EPOLLOUT)
		flush(v, k);
	works = is_open(k) && !k->broken;
	pthread_mutex_unlock(&v->lock);
	if (works && e->events & ~(uint32_t)EPOLLOUT)
		receive(v, k);
}

/* With the lock, or at the end of the thread. How many clients are left. */
static unsigned clients_left(struct c37_server *v)
{
	return v->server.count + c37_udp_receivers(&v->udp);
}

/* What was written goes to those that take it in time. */
static void part(struct c37_server *v)
{
	uint64_t end_ns = clock_now_ns() + END_NS;
	const struct timespec pause = { .tv_nsec = 1000000 };
	bool waits = true;

	while (waits && clock_now_ns() < end_ns) {
		waits = false;
		pthread_mutex_lock(&v->lock);
		for (unsigned i = 0; i < v->server.max; i++) {
			struct client *k = &v->clients[i];

			if (is_open(k) && !k->broken && k->waits) {
				flush(v, k);
				waits |= k->waits;
			}
		}
		pthread_mutex_unlock(&v->lock);
		if (waits)
			nanosleep(&pause, NULL);
	}
	pthread_mutex_lock(&v->lock);
	for (unsigned i = 0; i < v->server.max; i++)
		if (is_open(&v->clients[i])) {
			stream_shut(&v->clients[i].base.stream);
			break_client(v, &v->clients[i], "the node stops");
		}
	clear_away(v);
	pthread_mutex_unlock(&v->lock);
}

/* Sends what is due by UDP. */
static int wait_ms(struct c37_server *v)
{
	uint64_t now = clock_now_ns(), due;

	pthread_mutex_lock(&v->lock);
	due = c37_udp_tick(&v->udp, now, v->answer);
	pthread_mutex_unlock(&v->lock);
	if (!v->told)
		return STATE_MS;
	return due == UINT64_MAX ? -1 : (int)((due - now) / 1000000 + 1);
}

static void *run(void *arg)
{
	struct c37_server *v = arg;
	struct epoll_event events[EVENTS];
	unsigned left;

	while (!atomic_load(&v->stop)) {
		int n = epoll_wait(v->epoll_fd, events, EVENTS, wait_ms(v));

		for (int i = 0; i < n; i++)
			handle(v, &events[i]);
		pthread_mutex_lock(&v->lock);
		clear_away(v);
		left = clients_left(v);
		pthread_mutex_unlock(&v->lock);
		/* Of a node that does both, the device counts. */
		if (v->node->reads && v->node->node->is_source)
			v->told = NODE_CONNECTED;
		else
			node_tell_connected(v->node->node, &v->told, left);
	}
	part(v);
	return NULL;
}

/* ---- life ---- */

static int open_listener(struct c37_server *v)
{
	int ret = stream_server_listen_at(&v->server, v->node->out.full_address, 0, "out.address");

	return ret ?: watch(v, EPOLL_CTL_ADD, v->server.listener, EPOLLIN, LISTENER);
}

static int make(struct c37_server *v)
{
	int ret = stream_server_init(&v->server, (unsigned)v->node->out.max_clients,
				     sizeof(*v->clients));

	v->answer = malloc(C37_ANSWER_MAX);
	v->frame = malloc(C37_FRAME_MAX);
	if (ret || !v->answer || !v->frame)
		return -ENOMEM;
	v->clients = v->server.clients;
	for (unsigned i = 0; i < v->server.max; i++)
		v->clients[i].data_fd = -1;
	v->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (v->epoll_fd < 0)
		return -errno;
	v->wake_fd = wakeup_open_signal();
	if (v->wake_fd < 0)
		return v->wake_fd;
	ret = watch(v, EPOLL_CTL_ADD, v->wake_fd, EPOLLIN, WAKE) ?: c37_udp_open(&v->udp, v->node);
	if (!ret && v->udp.fd >= 0)
		ret = watch(v, EPOLL_CTL_ADD, v->udp.fd, EPOLLIN, DATAGRAMS);
	return ret || !v->node->out.address ? ret : open_listener(v);
}

int c37_server_start(struct c37_node *c)
{
	struct c37_server *v = calloc(1, sizeof(*v));
	int ret;

	if (!v)
		return -ENOMEM;
	c->server = v;
	v->node = c;
	v->server = (struct stream_server){
		.node = c->node,
		.faults = &c->faults,
		.peers = &c->out.peers,
		.peers_key = "out.peers",
		.max_key = "out.max_clients",
		.clients_figure = C37_CLIENTS,
		.give_way = give_way,
		.idle_ns = IDLE_NS,
		.listener = -1,
	};
	v->epoll_fd = v->wake_fd = v->udp.fd = -1;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->changed, NULL);
	ret = make(v);
	if (!ret)
		ret = thread_start(&v->thread, "c37-server", THREAD_AS_CALLER, run, v);
	v->has_thread = !ret;
	return ret;
}

void c37_server_stop(struct c37_node *c)
{
	struct c37_server *v = c->server;

	if (!v)
		return;
	atomic_store(&v->stop, true);
	if (v->has_thread) {
		wakeup_post(v->wake_fd);
		pthread_join(v->thread, NULL);
	}
	for (unsigned i = 0; i < 2; i++) {
		const int fds[] = { v->epoll_fd, v->wake_fd };

		if (fds[i] >= 0)
			close(fds[i]);
	}
	c37_udp_close(&v->udp);
	pthread_cond_destroy(&v->changed);
	pthread_mutex_destroy(&v->lock);
	stream_server_free(&v->server);
	free(v->answer);
	free(v->frame);
	free(v);
	c->server = NULL;
}

/* ---- writing ---- */

void c37_server_interrupt(struct c37_node *c)
{
	struct c37_server *v = c->server;

	if (!v)
		return;
	pthread_mutex_lock(&v->lock);
	v->interrupts++;
	pthread_cond_broadcast(&v->changed);
	pthread_mutex_unlock(&v->lock);
}

/* With the lock: a client whose queue is full. */
static void fall_behind(struct c37_server *v, struct client *k)
{
	k->behind++;
	node_figure_add(v->node->node, C37_CLIENTS_BEHIND, 1);
	if (v->node->out.slow == C37_SLOW_SKIP)
		return;
	node_figure_add(v->node->node, C37_CLIENTS_DROPPED, 1);
	break_client(v, k, "it takes frames too slowly (out.slow, out.queue)");
}

/* With the lock. */
static void send_frame(struct c37_server *v, size_t len)
{
	size_t max = (size_t)v->node->out.queue_bytes;

	for (unsigned i = 0; i < v->server.max; i++) {
		struct client *k = &v->clients[i];

		if (!k->base.stays)
			continue;
		if (k->data_fd >= 0) {
			c37_udp_send_to(v->node, k->data_fd, v->frame, len);
			continue;
		}
		if (stream_buffer_filled(&k->base.stream.out) + len > max) {
			fall_behind(v, k);
			continue;
		}
		put(v, k, v->frame, len);
		node_figure_add(v->node->node, C37_FRAMES_SENT, 1);
	}
	c37_udp_send(&v->udp, v->frame, len);
}

/* With the lock, for out.testing: until a client asks for data or the write is to end. */
static void await_client(struct c37_server *v)
{
	unsigned interrupts = v->interrupts;

	while (!receivers(v) && interrupts == v->interrupts && !ending_has_begun()) {
		struct timespec until = timespec_from_ns(clock_monotonic_ns_slow() + NSEC_PER_SEC / 10);

		pthread_cond_clockwait(&v->changed, &v->lock, CLOCK_MONOTONIC, &until);
	}
}

/* The length of the frame; 0: the loss was counted. */
static size_t make_frame(struct c37_server *v, const struct sample *s, int64_t ns)
{
	struct node *n = v->node->node;
	size_t len = 0;

	if (ns >= 0 && ns / 1000000000 < UINT32_MAX)
		len = c37_source_data(&v->node->source, s, ns, v->frame, C37_FRAME_MAX);
	if (!len)
		node_refuse(n, NODE_LOSS_FORMAT, 1, "a time that SOC cannot hold");
	return len;
}

int c37_server_write(struct c37_node *c, struct sample *smps[], unsigned cnt)
{
	struct c37_server *v = c->server;
	unsigned sent = 0, thinned = 0, absent = 0;

	for (unsigned i = 0; i < cnt; i++) {
		const struct sample *s = smps[i];
		struct timespec origin = s->flags & SAMPLE_HAS_ORIGIN ? s->origin : clock_realtime();
		int64_t ns = sample_time_to_ns(origin);
		size_t len;

		if (!c37_gate_admits(&v->gate, c->source.period_ns, ns)) {
			thinned++;
			continue;
		}
		len = make_frame(v, s, ns);
		if (!len)
			continue;
		pthread_mutex_lock(&v->lock);
		if (c->out.testing)
			await_client(v);
		if (receivers(v)) {
			send_frame(v, len);
			sent++;
		} else {
			absent++;
		}
		pthread_mutex_unlock(&v->lock);
	}
	if (thinned) {
		node_figure_add(c->node, C37_THINNED, thinned);
		node_refuse(c->node, NODE_LOSS_FULL, thinned, "%s",
			    "samples come faster than out.data_rate");
	}
	if (absent)
		node_refuse(c->node, NODE_LOSS_ABSENT, absent, "%s", "no client has asked for data");
	return (int)sent;
}
