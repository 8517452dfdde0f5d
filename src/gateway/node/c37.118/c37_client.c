/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of a client, and its thread: it connects, again when the connection is lost, brings
 * bytes to the session and commands to the device, and makes samples of data frames.
 */
#define LOG_ROOM "gateway/c37.118"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/dial.h"
#include "gateway/base/thread.h"
#include "gateway/node/c37.118/c37_node.h"
#include "gateway/node/c37.118/c37_session.h"
#include "gateway/part/backoff.h"
#include "gateway/part/socket_address.h"
#include "gateway/part/socket_option.h"
#include "gateway/sample/time.h"
#include "gateway/stream/stream.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define ATTEMPT_NS (5 * NSEC_PER_SEC)
#define STATE_NS (NSEC_PER_SEC / 50)
#define RX_BYTES (2 * (size_t)C37_FRAME_MAX)
/* Reads of one socket before the other things have their turn. */
#define READS_MAX 16
#define ADDRESSES_MAX 16

struct c37_client {
	struct c37_node *node;
	struct c37_stream *stream;
	const struct c37_config_in *in;
	struct c37_session session;
	pthread_t thread;
	bool has_thread;
	int wake_fd;
	atomic_bool stop;

	/* Of the thread. */
	struct stream tcp;
	int udp;                  /* -1: none */
	struct socket_address peer;
	uint8_t *rx;              /* RX_BYTES; of TCP: bytes that are not read yet */
	size_t filled;
	uint8_t *datagram;        /* C37_FRAME_MAX */
	struct backoff retry;
	bool up, broken, said_unreachable, said_cut;
	bool runs;
	enum node_state told;
};

static const char *name_of(const struct c37_client *l)
{
	return l->node->node->name;
}

/* ---- what the session does ---- */

static void send_command(void *arg, const uint8_t *data, size_t len)
{
	struct c37_client *l = arg;

	if (l->tcp.fd < 0) {
		/* A lost command is repeated, as its answer does not come. */
		if (send(l->udp, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			log_debug("node %s: a command to %s: %s", name_of(l), l->in->address,
				  strerror(errno));
		return;
	}
	if (stream_buffer_put(&l->tcp.out, data, len) || stream_flush(&l->tcp, NULL))
		l->broken = true;
}

static void note_cut(struct c37_client *l, const struct c37_layout *layout, unsigned cut)
{
	if (likely(!cut))
		return;
	node_figure_add(l->node->node, C37_CUT, 1);
	if (!l->said_cut && fault_may_log(&l->node->faults))
		log_warn("node %s: a data frame has %u values, for %u of which a sample has no room: raise %s",
			 name_of(l), layout->signals->count, cut,
			 l->node->join ? "values of in.streams" : "in.values");
	l->said_cut = true;
}

static void take_data(void *arg, const struct c37_layout *layout, const struct c37_frame *f,
		      uint64_t sequence, int64_t time_ns)
{
	struct c37_client *l = arg;
	struct c37_node *c = l->node;
	struct sample *s;

	node_figure_set(c->node, C37_TIME_QUALITY, f->quality & C37_TIME_CODE);
	if (c->join) {
		note_cut(l, layout, c37_join_put(l->stream, layout, f, time_ns));
		return;
	}
	s = sample_alloc(&c->inbox.pool);
	if (!s) {
		atomic_fetch_add_explicit(&c->inbox.lost, 1, memory_order_relaxed);
		return;
	}
	note_cut(l, layout, c37_layout_read(layout, f, c->typed ? c->node->in.signals : NULL, s));
	s->sequence = sequence;
	s->origin = sample_time_from_ns(time_ns);
	s->received = clock_realtime();
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	if (!c->typed)
		sample_set_signals(s, layout->signals);
	inbox_push(&c->inbox, 0, s);
}

static void take_layout(void *arg, const struct c37_layout *layout,
			const struct c37_layout *before)
{
	struct c37_client *l = arg;
	const struct signal_list *want = l->node->node->in.signals;
	char rate[32];

	if (layout->config.rate >= 0)
		snprintf(rate, sizeof(rate), "%d a second", layout->config.rate);
	else
		snprintf(rate, sizeof(rate), "one in %d s", -layout->config.rate);
	l->said_cut = false;
	if (!fault_may_log(&l->node->faults))
		return;
	log_info("node %s: %s of stream %u: stations %u, values %u, frames %s",
		 name_of(l), before ? "another configuration" : "configuration", layout->idcode,
		 layout->config.stations, layout->signals->count, rate);
	if (l->node->typed && !l->node->join && want->count != layout->signals->count)
		log_warn("node %s: the device has %u values, in.signals has %u", name_of(l),
			 layout->signals->count, want->count);
}

static void take_header(void *arg, struct c37_bytes text)
{
	struct c37_client *l = arg;
	char line[200];
	size_t len = MIN(text.len, sizeof(line) - 1);

	for (size_t i = 0; i < len; i++)
		line[i] = (char)(text.at[i] < ' ' || text.at[i] >= 0x7f ? '.' : text.at[i]);
	line[len] = '\0';
	if (fault_may_log(&l->node->faults))
		log_info("node %s: header of the device: %s", name_of(l), line);
}

static void count(void *arg, enum c37_figure figure, uint64_t n)
{
	struct c37_client *l = arg;

	node_figure_add(l->node->node, figure, n);
}

static void fault(void *arg, enum socket_fault kind, const char *why)
{
	struct c37_client *l = arg;

	fault_note(&l->node->faults, kind, 1, "%s", why);
}

static int64_t wall_ns(void *arg)
{
	return (int64_t)timespec_to_ns(clock_realtime());
}

static const struct c37_session_ops session_ops = {
	.send = send_command,
	.data = take_data,
	.layout = take_layout,
	.header = take_header,
	.count = count,
	.fault = fault,
	.wall_ns = wall_ns,
};

/* ---- connecting ---- */

static void wait_for(struct c37_client *l, struct pollfd fds[3], unsigned count, uint64_t until_ns)
{
	fds[0] = (struct pollfd){ .fd = l->wake_fd, .events = POLLIN };
	wakeup_poll(fds, count, until_ns);
}

static int connect_to(struct c37_client *l, int kind, const struct socket_address *a,
		      uint64_t until_ns)
{
	const struct dial_limit limit = { until_ns, &l->stop, l->wake_fd };
	int fd = socket(a->sa.sa_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0)
		return -errno;
	ret = dial_connect(fd, &a->sa, a->len, &limit);
	if (ret) {
		close(fd);
		return ret;
	}
	l->peer = *a;
	if (kind == SOCK_DGRAM) {
		l->udp = fd;
		return 0;
	}
	socket_option_try(fd, IPPROTO_TCP, TCP_NODELAY, 1, name_of(l), "TCP_NODELAY");
	stream_init(&l->tcp, fd);
	return 0;
}

/* Where data come to, if not from where commands go. */
static int open_data(struct c37_client *l, char *why)
{
	struct socket_address at;
	int ret = socket_address_resolve(LAYER_UDP, l->in->data_address,
					 l->peer.sa.sa_family, &at, why);

	if (ret)
		return ret;
	l->udp = socket(at.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->udp >= 0 && !bind(l->udp, &at.sa, at.len))
		return 0;
	ret = -errno;
	snprintf(why, SOCKET_WHY_MAX, "in.data_address: %s", strerror(-ret));
	return ret;
}

static int connect_any(struct c37_client *l, char *why)
{
	const struct c37_config_in *in = l->in;
	bool udp = in->transport == C37_UDP;
	struct socket_address list[ADDRESSES_MAX];
	uint64_t until_ns = clock_now_ns() + ATTEMPT_NS;
	int n = socket_address_resolve_all(udp ? LAYER_UDP : LAYER_TCP_CLIENT, in->full_address,
					   AF_UNSPEC, list, ADDRESSES_MAX, why), ret = n;

	for (int i = 0; i < n; i++) {
		ret = connect_to(l, udp ? SOCK_DGRAM : SOCK_STREAM, &list[i], until_ns);
		if (!ret || ret == -ECANCELED)
			break;
	}
	if (n > 0 && ret)
		snprintf(why, SOCKET_WHY_MAX, "%s", strerror(-ret));
	return !ret && in->transport == C37_BOTH ? open_data(l, why) : ret;
}

static void disconnect(struct c37_client *l)
{
	stream_close(&l->tcp);
	if (l->udp >= 0)
		close(l->udp);
	l->udp = -1;
	l->filled = 0;
	l->up = l->broken = false;
}

static void attempt(struct c37_client *l)
{
	char why[SOCKET_WHY_MAX], text[SOCKET_ADDRESS_MAX];
	int ret = connect_any(l, why);

	if (!ret) {
		l->up = true;
		node_figure_add(l->node->node, C37_CONNECTIONS, 1);
		if ((l->in->transport != C37_UDP || !l->said_unreachable) &&
		    fault_may_log(&l->node->faults))
			log_info("node %s: connected to %s", name_of(l),
				 socket_address_print(&l->peer, text));
		c37_session_begin(&l->session, l->in->transport == C37_TCP, clock_now_ns());
		return;
	}
	disconnect(l);
	if (ret == -ECANCELED)
		return;
	node_figure_add(l->node->node, C37_UNREACHABLE, 1);
	backoff_plan(&l->retry, (uint64_t)l->in->reconnect_ms * 1000000, clock_now_ns());
	if (!l->said_unreachable)
		log_info("node %s: cannot reach %s: %s; trying again every %lld ms", name_of(l),
			 l->in->full_address, why, (long long)l->in->reconnect_ms);
	l->said_unreachable = true;
}

static void give_up(struct c37_client *l, const char *why)
{
	if (!l->said_unreachable && fault_may_log(&l->node->faults))
		log_info("node %s: %s is given up: %s", name_of(l), l->in->full_address, why);
	/* Of a device that answered, each time is told. */
	l->said_unreachable = l->session.state != C37_RUNNING;
	if (l->session.state == C37_RUNNING)
		backoff_reset(&l->retry);
	c37_session_end(&l->session, l->tcp.fd < 0);
	disconnect(l);
	backoff_plan(&l->retry, (uint64_t)l->in->reconnect_ms * 1000000, clock_now_ns());
}

/* ---- receiving ---- */

static void take_stream(struct c37_client *l)
{
	for (unsigned i = 0; i < READS_MAX && l->up && !l->broken; i++) {
		ssize_t n = stream_recv(&l->tcp, l->rx + l->filled, RX_BYTES - l->filled);
		size_t used;

		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			give_up(l, n ? strerror((int)-n) : "it has closed the connection");
			return;
		}
		l->filled += (size_t)n;
		used = c37_session_take(&l->session, l->rx, l->filled, clock_now_ns());
		l->filled -= used;
		memmove(l->rx, l->rx + used, l->filled);
	}
}

static void take_datagram(struct c37_client *l, size_t len, const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];
	size_t used;

	if (!socket_address_equal(from, &l->peer, l->in->transport == C37_UDP)) {
		fault_note(&l->node->faults, FAULT_FOREIGN, 1, "from %s",
			   socket_address_print(from, text));
		return;
	}
	used = c37_session_take(&l->session, l->datagram, len, clock_now_ns());
	if (used < len)
		fault_note(&l->node->faults, FAULT_MALFORMED, 1,
			   "a datagram ends within a frame");
}

static void take_datagrams(struct c37_client *l)
{
	for (unsigned i = 0; i < READS_MAX && l->udp >= 0; i++) {
		struct socket_address from = { .len = sizeof(from.storage) };
		ssize_t n = recvfrom(l->udp, l->datagram, C37_FRAME_MAX, MSG_DONTWAIT, &from.sa,
				     &from.len);

		if (n < 0) {
			/* Nobody listens there now: the session notices that no answer comes. */
			if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
				give_up(l, strerror(errno));
			if (errno != EINTR && errno != ECONNREFUSED)
				return;
			continue;
		}
		take_datagram(l, (size_t)n, &from);
	}
}

/* ---- the thread ---- */

static void turn(struct c37_client *l)
{
	struct pollfd fds[3] = { { 0 },
				 { .fd = l->tcp.fd, .events = stream_events(&l->tcp, true, false) },
				 { .fd = l->udp, .events = POLLIN } };
	uint64_t next_ns = l->up ? UINT64_MAX : l->retry.at_ns;

	if (l->up && !c37_session_due(&l->session, clock_now_ns(), &next_ns)) {
		give_up(l, l->session.why);
		return;
	}
	if (!l->told)
		next_ns = MIN(next_ns, clock_now_ns() + STATE_NS);
	wait_for(l, fds, 3, next_ns);
	if (fds[1].revents & POLLOUT && stream_flush(&l->tcp, NULL))
		l->broken = true;
	if (fds[1].revents & ~POLLOUT)
		take_stream(l);
	if (l->up && fds[2].revents)
		take_datagrams(l);
	if (l->up && l->broken)
		give_up(l, "commands cannot be sent");
	inbox_wake(&l->node->inbox);
}

static void note_running(struct c37_client *l, bool runs)
{
	if (runs == l->runs)
		return;
	l->runs = runs;
	atomic_fetch_add(&l->node->running, runs ? 1u : -1u);
	if (l->node->join)
		c37_join_set(l->stream, runs);
}

/* The node is connected when all its devices send data. */
static void tell(struct c37_client *l)
{
	struct c37_node *c = l->node;

	node_tell_connected(c->node, &l->told, atomic_load(&c->running) == c->stream_count);
}

static void *run(void *arg)
{
	struct c37_client *l = arg;

	l->retry.at_ns = clock_now_ns();
	while (!atomic_load(&l->stop)) {
		if (!l->up && backoff_is_due(&l->retry, clock_now_ns()))
			attempt(l);
		if (atomic_load(&l->stop))
			break;
		turn(l);
		if (l->session.state == C37_RUNNING)
			l->said_unreachable = false;
		note_running(l, l->session.state == C37_RUNNING);
		tell(l);
	}
	if (l->up)
		c37_session_end(&l->session, true);
	disconnect(l);
	note_running(l, false);
	return NULL;
}

int c37_client_start(struct c37_stream *s)
{
	const struct c37_config_in *in = &s->in;
	struct c37_node *c = s->node;
	struct c37_client *l = calloc(1, sizeof(*l));
	int ret = -ENOMEM;

	if (!l)
		return -ENOMEM;
	s->client = l;
	l->stream = s;
	l->in = in;
	l->node = c;
	l->udp = -1;
	stream_init(&l->tcp, -1);
	l->session = (struct c37_session){
		.ops = &session_ops,
		.arg = l,
		.idcode = (uint16_t)in->idcode,
		.cfg3 = in->cfg3,
		.wants_header = in->header,
		.status = in->status,
		.drops_invalid = in->drop_invalid,
		.timeout_ns = (uint64_t)(in->timeout_s * 1e9),
		/* Joined streams have no numbers of their own. */
		.track.sequence = c->join ? 0 : c->node->sequence,
	};
	l->wake_fd = wakeup_open_signal();
	l->rx = malloc(RX_BYTES);
	l->datagram = malloc(C37_FRAME_MAX);
	if (l->rx && l->datagram)
		ret = l->wake_fd < 0 ? l->wake_fd :
		      thread_start(&l->thread, "c37-client", THREAD_AS_CALLER, run, l);
	l->has_thread = !ret;
	return ret;
}

void c37_client_stop(struct c37_stream *s)
{
	struct c37_client *l = s->client;

	if (!l)
		return;
	atomic_store(&l->stop, true);
	if (l->has_thread) {
		wakeup_post(l->wake_fd);
		pthread_join(l->thread, NULL);
	}
	c37_session_destroy(&l->session);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	free(l->rx);
	free(l->datagram);
	free(l);
	s->client = NULL;
}
