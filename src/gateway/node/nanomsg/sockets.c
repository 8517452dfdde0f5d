/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of nng and the messages. The sockets stay from the start of the node to its stop:
 * nng itself listens and dials again. The room gateway/outside counts the node as connected
 * while a peer is there.
 */
#define LOG_ROOM "gateway/nanomsg"
#include "gateway/node/nanomsg/nanomsg.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/clock.h"

/* Messages that are taken before others have their turn. */
#define READS_MAX 64
/* nng allows queues of up to 8192 messages. */
#define QUEUE_MAX 8192
#define QUEUE_MIN 16
/* A closed socket forgets what its queue holds: time for messages that were just sent. */
#define LINGER_NS (50 * UINT64_C(1000000))
#define RECONNECT_MIN_MS 100
/* Before a socket is closed; see calm() and stop_dialing(). */
#define CALM_NS (30 * UINT64_C(1000000))
#define LOCAL_RECONNECT_MS 20
#define LOCAL_QUIET_MS (LOCAL_RECONNECT_MS + QUIET_MS)
#define QUIET_MS 10u
#define NOWHERE UINT32_C(0xf0000001) /* 240.0.0.1 */

static int fail(struct nanomsg_node *m, int rv, const char *what)
{
	int ret = rv == NNG_ENOMEM ? -ENOMEM : rv == NNG_EADDRINUSE ? -EADDRINUSE : -EIO;

	return outside_fail(&m->outside, ret, "%s: %s", what, nng_strerror(rv));
}

/* ---- opening ---- */

/* Adds a dialer to the side; see stop_dialing(). */
static int dial(nng_socket s, const char *url, struct nanomsg_side *side)
{
	bool local = strncmp(url, "tcp", 3);
	nng_dialer *d = &side->dialers[side->dialer_count];
	int rv = nng_dialer_create(d, s, url);

	if (!rv && local)
		rv = nng_dialer_set_ms(*d, NNG_OPT_RECONNMINT, LOCAL_RECONNECT_MS) ?:
		     nng_dialer_set_ms(*d, NNG_OPT_RECONNMAXT, LOCAL_RECONNECT_MS);
	if (rv)
		return rv;
	side->local[side->dialer_count++] = local;
	return nng_dialer_start(*d, NNG_FLAG_NONBLOCK);
}

/* Attaches the endpoints of `side` to a socket. */
static int attach(struct nanomsg_node *m, nng_socket s, struct nanomsg_side *side)
{
	side->dialer_count = 0;
	for (unsigned i = 0; i < side->count; i++) {
		const char *url = side->urls[i];
		int rv = side->bind ? nng_listen(s, url, NULL, 0) : dial(s, url, side);

		if (rv)
			return fail(m, rv, url);
	}
	return 0;
}

static int set_options(struct nanomsg_node *m, nng_socket s, bool receives)
{
	int most = (int)m->outside.reconnect_ms;

	/* Not every transport and pattern knows each of them. */
	nng_socket_set_bool(s, NNG_OPT_TCP_NODELAY, true);
	nng_socket_set_bool(s, NNG_OPT_TCP_KEEPALIVE, true);
	return nng_socket_set_ms(s, NNG_OPT_RECONNMINT, MIN(most, RECONNECT_MIN_MS)) ?:
	       nng_socket_set_ms(s, NNG_OPT_RECONNMAXT, most) ?:
	       /* Nobody sends to a publisher. */
	       nng_socket_set_size(s, NNG_OPT_RECVMAXSZ,
				   receives ? (size_t)m->in_message_max : 1);
}

/* Opens the socket of a side, whose descriptor is that of `which`. */
static int open_socket(struct nanomsg_node *m, struct nanomsg_side *side,
		       int (*open)(nng_socket *), bool receives, const char *which)
{
	int rv = open(&side->socket);

	if (rv)
		return fail(m, rv, "a socket");
	side->open = true;
	side->receives = receives;
	side->peers.event_fd = m->event_fd;
	rv = nanomsg_peers_watch(&side->peers, side->socket) ?:
	     set_options(m, side->socket, receives) ?:
	     nng_socket_get_int(side->socket, which, &side->fd);
	return rv ? fail(m, rv, "a socket") : 0;
}

/* The socket that only receives. */
static int open_in(struct nanomsg_node *m)
{
	bool pubsub = m->pattern == NANOMSG_PUBSUB;
	int ret = open_socket(m, &m->in, pubsub ? nng_sub0_open : nng_pull0_open, true,
			      NNG_OPT_RECVFD);
	int rv;

	if (ret)
		return ret;
	rv = pubsub ? nng_socket_set(m->in.socket, NNG_OPT_SUB_SUBSCRIBE, "", 0) ?:
		      nng_socket_set_int(m->in.socket, NNG_OPT_RECVBUF,
					 MIN((int)m->outside.queuelen, QUEUE_MAX)) : 0;
	return rv ? fail(m, rv, "a socket") : attach(m, m->in.socket, &m->in);
}

/* How many messages a publisher keeps for each peer, so that they are out.backlog bytes. */
static int queue_length(const struct nanomsg_node *m)
{
	return (int)MAX(MIN((size_t)m->outside.backlog / m->longest, (size_t)QUEUE_MAX),
			(size_t)QUEUE_MIN);
}

static int open_out(struct nanomsg_node *m)
{
	int ret = open_socket(m, &m->out, m->pattern == NANOMSG_PUBSUB ? nng_pub0_open :
			      m->pattern == NANOMSG_PIPELINE ? nng_push0_open : nng_pair0_open,
			      m->pattern == NANOMSG_PAIR, NNG_OPT_SENDFD);
	int rv;

	if (ret)
		return ret;
	rv = m->pattern == NANOMSG_PUBSUB ?
		     nng_socket_set_int(m->out.socket, NNG_OPT_SENDBUF, queue_length(m)) :
	     m->pattern == NANOMSG_PAIR ?
		     nng_socket_get_int(m->out.socket, NNG_OPT_RECVFD, &m->in.fd) : 0;
	if (rv)
		return fail(m, rv, "a socket");
	ret = attach(m, m->out.socket, &m->out);
	return ret || m->pattern != NANOMSG_PAIR ? ret : attach(m, m->out.socket, &m->in);
}

static bool uses(const struct nanomsg_node *m, const struct nanomsg_side *side)
{
	const struct node *n = m->outside.node;

	if (m->pattern == NANOMSG_PAIR)
		return side == &m->out;
	return side->count && (side == &m->out ? n->is_destination : n->is_source);
}

static unsigned count_peers(struct nanomsg_node *m)
{
	return nanomsg_peers_ready(&m->in.peers) + nanomsg_peers_ready(&m->out.peers);
}

static int nanomsg_open(struct outside *o)
{
	struct nanomsg_node *m = nanomsg_of(o);
	int ret = 0;

	if (m->event_fd < 0) {
		m->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (m->event_fd < 0)
			return -errno;
		m->longest = 128;
		m->blocked = false;
		if (uses(m, &m->in))
			ret = open_in(m);
		if (!ret && uses(m, &m->out))
			ret = open_out(m);
	}
	if (!ret)
		return !count_peers(m);
	nanomsg_forget(m);
	return ret;
}

/*
 * nng_close() leaves a connection behind, with its descriptor and the endpoint, when it comes
 * between two steps of the greeting (nng 1.5.2: the next step begins an operation that is closed,
 * and its end is never reported). A greeting has no steps once it waits for the peer. So no dialer
 * may begin to connect any more: one of TCP gets a source address that no host has, which fails at
 * once; one of another kind dials so often that its last attempt falls into the wait.
 */
static void stop_dialing(struct nanomsg_side *side, unsigned *wait_ms)
{
	const nng_sockaddr nowhere = { .s_in = { .sa_family = NNG_AF_INET,
						 .sa_addr = htonl(NOWHERE) } };

	for (unsigned i = 0; i < side->dialer_count; i++) {
		nng_dialer d = side->dialers[i];

		nng_dialer_set_ms(d, NNG_OPT_RECONNMAXT, INT32_MAX);
		nng_dialer_set_ms(d, NNG_OPT_RECONNMINT, INT32_MAX);
		if (!side->local[i])
			nng_dialer_set_addr(d, NNG_OPT_LOCADDR, &nowhere);
		*wait_ms = MAX(*wait_ms, side->local[i] ? LOCAL_QUIET_MS : QUIET_MS);
	}
	side->dialer_count = 0;
}

/*
 * nng_close() can wait for ever when a header of a message has just come (nng 1.5.2: the
 * transport begins to read the rest with an operation that is closed, and the end of the read is
 * never reported). So no message may come while it is called: too long a message, which each
 * one is now, ends its connection in a safe way, and connections without traffic are safe.
 */
static void calm(struct nanomsg_side *side)
{
	uint64_t end_ns = clock_now_ns() + CALM_NS;

	atomic_store(&side->peers.closing, true);
	nng_socket_set_size(side->socket, NNG_OPT_RECVMAXSZ, 1);
	while (nanomsg_peers_ready(&side->peers) && clock_now_ns() < end_ns)
		usleep(1000);
}

static void close_socket(struct nanomsg_side *side)
{
	if (!side->open)
		return;
	if (side->receives)
		calm(side);
	/* After this, nng calls no function of peers.c for the socket. */
	nng_close(side->socket);
	nanomsg_peers_clear(&side->peers);
	side->open = false;
}

void nanomsg_forget(struct nanomsg_node *m)
{
	unsigned wait_ms = 0;

	stop_dialing(&m->in, &wait_ms);
	stop_dialing(&m->out, &wait_ms);
	usleep(1000 * wait_ms);
	close_socket(&m->in);
	close_socket(&m->out);
	if (m->event_fd >= 0)
		close(m->event_fd);
	m->event_fd = -1;
}

static void nanomsg_close(struct outside *o)
{
	struct nanomsg_node *m = nanomsg_of(o);
	uint64_t now = clock_now_ns();

	if (!outside_is_ending(o) || !m->sent_ns || now - m->sent_ns >= LINGER_NS)
		return;
	usleep((useconds_t)((m->sent_ns + LINGER_NS - now) / 1000));
}

/* ---- messages ---- */

/* The longest message sets how many of them a publisher may keep. */
static void note_length(struct nanomsg_node *m, size_t len)
{
	if (likely(len <= m->longest))
		return;
	m->longest = len;
	if (m->pattern == NANOMSG_PUBSUB)
		nng_socket_set_int(m->out.socket, NNG_OPT_SENDBUF, queue_length(m));
}

static int nanomsg_send(struct outside *o, struct outbox_message *msg)
{
	struct nanomsg_node *m = nanomsg_of(o);
	int rv;

	/* A publisher without a peer would drop it. */
	if (!nanomsg_peers_ready(&m->out.peers))
		return -EAGAIN;
	note_length(m, msg->len);
	rv = nng_send(m->out.socket, (void *)msg->data, msg->len, NNG_FLAG_NONBLOCK);
	if (likely(!rv)) {
		m->sent_ns = clock_now_ns();
		return OUTSIDE_SENT;
	}
	if (rv == NNG_EAGAIN || rv == NNG_ETIMEDOUT || rv == NNG_ENOMEM) {
		m->blocked = true;
		outside_wake(o);
		return -EAGAIN;
	}
	return rv == NNG_EMSGSIZE ?
		       outside_fail(o, -EMSGSIZE, "a message of %zu bytes: %s", msg->len,
				    nng_strerror(rv)) :
		       fail(m, rv, "a message");
}

static int receive(struct nanomsg_node *m)
{
	struct nanomsg_side *side = nanomsg_receiver(m);
	nng_msg *msg;

	for (unsigned i = 0; i < READS_MAX && side->open && !outside_is_enough(&m->outside); i++) {
		int rv = nng_recvmsg(side->socket, &msg, NNG_FLAG_NONBLOCK);

		if (rv == NNG_EAGAIN || rv == NNG_ETIMEDOUT)
			return 0;
		if (rv)
			return fail(m, rv, "receiving");
		outside_received(&m->outside, nng_msg_body(msg), nng_msg_len(msg));
		nng_msg_free(msg);
	}
	return 0;
}

static int nanomsg_turn(struct outside *o)
{
	struct nanomsg_node *m = nanomsg_of(o);
	bool up = atomic_load_explicit(&o->up, memory_order_relaxed);
	eventfd_t events;
	int ret;

	eventfd_read(m->event_fd, &events);
	m->blocked = false;
	ret = receive(m);
	if (ret)
		return ret;
	outside_set_partial(o, (m->in.open && !nanomsg_peers_ready(&m->in.peers)) ||
			       (m->out.open && !nanomsg_peers_ready(&m->out.peers)));
	if (!count_peers(m))
		return up ? outside_fail(o, -ECONNRESET, "its last peer has gone") : 0;
	if (!up)
		outside_is_up(o);
	return 0;
}

static unsigned nanomsg_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct nanomsg_node *m = nanomsg_of(o);
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = m->event_fd, .events = POLLIN };
	if (nanomsg_receiver(m)->open)
		fds[n++] = (struct pollfd){ .fd = m->in.fd, .events = POLLIN };
	if (m->blocked && m->out.open)
		fds[n++] = (struct pollfd){ .fd = m->out.fd, .events = POLLIN };
	return n;
}

const struct outside_ops nanomsg_ops = {
	.open = nanomsg_open,
	.close = nanomsg_close,
	.send = nanomsg_send,
	.turn = nanomsg_turn,
	.wait = nanomsg_wait,
};
