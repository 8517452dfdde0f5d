/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: a thread answers clients over TCP, or requests of a serial line. Nothing waits for a
 * client: each has what has come of its next request and what it has not taken of its answers. The
 * path that writes only changes registers; requests to write become samples that a path reads.
 */
#define LOG_ROOM "gateway/modbus"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "gateway/format/part/text.h"
#include "gateway/node/modbus/modbus.h"
#include "gateway/sample/signals.h"
#include "gateway/stream/stream_server.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define MS (NSEC_PER_SEC / 1000)
/* How often the thread looks whether it can tell the node's state. */
#define STATE_NS (20 * MS)
/* Bytes of answers that a client has not taken: beyond them its requests wait. */
#define OUT_MAX 4096u
#define IN_BYTES 512
/* A client without a request for so long gives way to another one when all places are taken. */
#define IDLE_NS (10 * NSEC_PER_SEC)
/* A silence that ends a frame of a serial line: 3.5 bytes, and what adapters hold bytes back. */
#define SILENCE_BITS 39
#define SILENCE_NS (20 * MS)

struct client {
	struct stream_client base; /* first */
	uint8_t in[IN_BYTES];
	size_t filled;
};

struct modbus_server {
	struct modbus_node *m;
	struct fault_counters faults;
	struct inbox inbox;

	pthread_mutex_t lock;   /* of the store, and these */
	bool has_values;        /* a sample was written ... */
	uint64_t written_ns;    /* ... then */

	/* Of the thread. */
	pthread_t thread;
	bool has_thread;
	atomic_bool stop;
	int wake_fd;
	struct stream_server clients; /* of struct client */
	enum node_state told;   /* the state of the node that is shown */

	/* The serial line. */
	int line;               /* -1: it is not open */
	uint8_t echo[MODBUS_RTU_BYTES]; /* what was sent, and comes back */
	size_t echo_at, echo_len;
	struct backoff retry;
	bool heard, said_closed;
	uint8_t in[MODBUS_RTU_BYTES];
	size_t filled;
	uint64_t silence_ns, quiet_at_ns;
};

/* ---- requests ---- */

static void set_values(const struct modbus_side *side, struct modbus_store *store, struct sample *s)
{
	for (unsigned i = 0; i < side->count; i++) {
		const struct modbus_map *map = &side->maps[i];

		modbus_value_read(map, modbus_store_at(store, map->table, map->address),
				  &s->data[map->signal]);
	}
}

/* A sample of all that clients have written. */
static void deliver(struct modbus_server *v, struct sample *s)
{
	struct node *n = v->m->outside.node;

	set_values(&v->m->in, &v->m->store, s);
	s->length = v->m->in.count;
	s->signals = n->in.signals;
	s->origin = s->received = clock_realtime();
	s->sequence = n->sequence++;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	inbox_push(&v->inbox, 0, s);
	inbox_wake(&v->inbox);
	node_figure_add(n, MODBUS_WRITES, 1);
}

static void store_values(struct modbus_store *store, const struct modbus_pdu *p)
{
	uint16_t *at = modbus_store_at(store, p->table, p->write.address);

	if (p->masks)
		*at = (uint16_t)((*at & p->and_mask) | (p->or_mask & ~p->and_mask));
	for (unsigned i = 0; i < p->write.count && !p->masks; i++)
		at[i] = modbus_pdu_value(p, i);
}

/* With the lock. A client is told when there is no room for a sample, so that none is lost. */
static enum modbus_refusal write_values(struct modbus_server *v, const struct modbus_pdu *p)
{
	enum modbus_refusal refusal = modbus_store_check(&v->m->store, p->table, &p->write);
	struct sample *s;

	if (refusal)
		return refusal;
	if (!v->m->outside.node->is_source)
		return MODBUS_FAILED;
	if (ring_count(&v->inbox.rings[0]) >= v->inbox.queuelen)
		return MODBUS_BUSY;
	s = sample_alloc(&v->inbox.pool);
	if (!s)
		return MODBUS_BUSY;
	store_values(&v->m->store, p);
	deliver(v, s);
	return MODBUS_ACCEPTED;
}

static bool is_too_old(const struct modbus_server *v)
{
	double age = v->m->max_age_s;

	return age > 0 && clock_now_ns() - v->written_ns > (uint64_t)(age * 1e9);
}

/* With the lock. */
static enum modbus_refusal read_values(struct modbus_server *v, const struct modbus_pdu *p,
				       uint16_t to[])
{
	bool of_node;
	enum modbus_refusal refusal;

	refusal = modbus_store_read(&v->m->store, p->table, &p->read, to, &of_node);
	if (refusal || !of_node)
		return refusal;
	if (!v->has_values)
		return MODBUS_BUSY;
	return is_too_old(v) ? MODBUS_FAILED : MODBUS_ACCEPTED;
}

/* With the lock. What cannot be read is not written either; what was written is not refused, also
 * if the values have become too old meanwhile. */
static enum modbus_refusal carry_out(struct modbus_server *v, const struct modbus_pdu *p,
				     uint16_t values[])
{
	enum modbus_refusal refusal = p->read.count ? read_values(v, p, values) : MODBUS_ACCEPTED;
	bool of_node;

	if (!refusal && p->write.count)
		refusal = write_values(v, p);
	if (!refusal && p->write.count && p->read.count)
		refusal = modbus_store_read(&v->m->store, p->table, &p->read, values, &of_node);
	return refusal;
}

static bool is_for_us(const struct modbus_node *m, uint8_t unit)
{
	return m->transport == MODBUS_RTU ? unit == m->unit || unit == MODBUS_BROADCAST_ADDRESS :
					    m->any_unit || unit == m->unit;
}

/* The answer to a request; its length. */
static size_t answer(struct modbus_server *v, const struct modbus_frame *f,
		     uint8_t to[MODBUS_PDU_BYTES])
{
	struct node *n = v->m->outside.node;
	uint16_t values[MODBUS_READ_BITS];
	enum modbus_refusal refusal;
	struct modbus_pdu p;

	node_figure_add(n, MODBUS_REQUESTS, 1);
	refusal = modbus_pdu_decode(f->pdu, f->len, &p);
	if (!is_for_us(v->m, f->unit))
		refusal = MODBUS_NO_TARGET;
	if (!refusal) {
		pthread_mutex_lock(&v->lock);
		refusal = carry_out(v, &p, values);
		pthread_mutex_unlock(&v->lock);
	}
	if (!refusal)
		return modbus_answer_encode(&p, f->pdu, values, to);
	node_figure_add(n, MODBUS_EXCEPTION + (unsigned)refusal - 1, 1);
	return modbus_refusal_encode(p.function, refusal, to);
}

/* ---- clients ---- */

static struct client *client_at(struct modbus_server *v, unsigned i)
{
	return container_of(stream_server_at(&v->clients, i), struct client, base);
}

static bool takes_requests(const struct stream_client *k)
{
	return stream_buffer_filled(&k->stream.out) < OUT_MAX;
}

/* Answers the requests that have come as a whole. False: the client was closed. */
static bool serve(struct modbus_server *v, struct client *k)
{
	size_t at = 0;
	const char *why = NULL;

	while (!why) {
		uint8_t bytes[MODBUS_TCP_BYTES];
		struct modbus_frame f;
		int n = modbus_tcp_decode(k->in + at, k->filled - at, &f, &why);
		size_t len;

		if (n <= 0)
			break;
		len = answer(v, &f, bytes + MODBUS_TCP_HEAD);
		len = modbus_tcp_encode(f.transaction, f.unit, len, bytes);
		if (stream_buffer_put(&k->base.stream.out, bytes, len))
			why = strerrordesc_np(ENOMEM);
		at += (size_t)n;
		k->base.heard_ns = clock_now_ns();
	}
	if (why) {
		fault_note(&v->faults, FAULT_MALFORMED, 1, "%s", why);
		stream_server_close(&v->clients, &k->base, why);
		return false;
	}
	k->filled -= at;
	memmove(k->in, k->in + at, k->filled);
	return true;
}

/* One read, so that a client cannot keep out the others. False: the client was closed. */
static bool receive(struct modbus_server *v, struct client *k)
{
	ssize_t n = stream_recv(&k->base.stream, k->in + k->filled, sizeof(k->in) - k->filled);

	if (n > 0) {
		k->filled += (size_t)n;
		return true;
	}
	if (n == -EAGAIN)
		return true;
	stream_server_close(&v->clients, &k->base,
			    n ? strerrordesc_np((int)-n) : "it has closed the connection");
	return false;
}

static void turn(struct modbus_server *v, struct client *k, short revents)
{
	int ret;

	if (k->base.stream.fd < 0 || !revents)
		return;
	if (revents & ~POLLOUT && takes_requests(&k->base) && (!receive(v, k) || !serve(v, k)))
		return;
	ret = stream_flush(&k->base.stream, NULL);
	if (ret)
		stream_server_close(&v->clients, &k->base, strerrordesc_np(-ret));
}

static short client_events(const struct stream_client *k)
{
	return stream_events(&k->stream, takes_requests(k), false);
}

static void give_way(struct stream_server *s, struct stream_client *k)
{
	stream_server_close(s, k,
			    "it asks for nothing, and another client needs the place (max_clients)");
}

static void accept_one(struct modbus_server *v, uint64_t now_ns)
{
	struct stream_client *base = stream_server_accept(&v->clients, now_ns);

	if (!base)
		return;
	stream_server_watch_peer(base->stream.fd, v->m->outside.node->name);
	container_of(base, struct client, base)->filled = 0;
}

/* ---- a serial line ---- */

static void close_line(struct modbus_server *v, const char *why)
{
	if (!v->said_closed)
		log_warn("%s: %s: %s; trying again every %g s at least", v->m->outside.node->name,
			 v->m->device, why, v->m->reconnect_s);
	v->said_closed = true;
	/* Bytes that nobody takes would hold up the end. */
	if (v->line >= 0)
		tcflush(v->line, TCOFLUSH);
	v->line = -1;
	v->heard = false;
	v->filled = 0;
	modbus_close_line(v->m);
	backoff_plan(&v->retry, (uint64_t)(v->m->reconnect_s * 1e9), clock_now_ns());
}

static void open_line(struct modbus_server *v)
{
	int ret = modbus_open_line(v->m);

	if (ret) {
		close_line(v, modbus_strerror(-ret));
		return;
	}
	v->line = modbus_get_socket(v->m->ctx);
	v->echo_at = v->echo_len = 0;
	backoff_reset(&v->retry);
	if (v->said_closed)
		log_info("%s: %s is open", v->m->outside.node->name, v->m->device);
	v->said_closed = false;
}

static void answer_line(struct modbus_server *v, const struct modbus_frame *f)
{
	uint8_t bytes[MODBUS_RTU_BYTES];
	size_t len;

	if (!is_for_us(v->m, f->unit))
		return;
	v->heard = true;
	len = answer(v, f, bytes + MODBUS_RTU_HEAD);
	/* Nobody answers what is for all units. */
	if (f->unit == MODBUS_BROADCAST_ADDRESS)
		return;
	len = modbus_rtu_encode(f->unit, len, bytes);
	if (write(v->line, bytes, len) != (ssize_t)len)
		fault_note(&v->faults, FAULT_DROPPED, 1, "the line takes no answer");
	if (!v->m->echo)
		return;
	memcpy(v->echo, bytes, len);
	v->echo_at = 0;
	v->echo_len = len;
}

/* Leaves out the node's own answer of `len` bytes that have come. How many are left. */
static size_t drop_echo(struct modbus_server *v, uint8_t *bytes, size_t len)
{
	size_t own = MIN(len, v->echo_len - v->echo_at);

	if (!own)
		return len;
	if (memcmp(bytes, v->echo + v->echo_at, own)) {
		v->echo_len = v->echo_at = 0;
		fault_note(&v->faults, FAULT_MALFORMED, 1, "the line does not echo what was sent (echo)");
		return len;
	}
	v->echo_at += own;
	memmove(bytes, bytes + own, len - own);
	return len - own;
}

/* Takes frames of what has come; `silence`: nothing came behind it. */
static void serve_line(struct modbus_server *v, bool silence)
{
	size_t at = 0, skipped = 0;

	while (at < v->filled) {
		struct modbus_frame f;
		int n = modbus_rtu_decode(v->in + at, v->filled - at, silence, &f);

		if (!n)
			break;
		if (n > 0)
			answer_line(v, &f);
		skipped += n < 0;
		at += n > 0 ? (size_t)n : 1;
	}
	if (skipped)
		fault_note(&v->faults, FAULT_MALFORMED, 1, "%zu bytes of the line are no frame",
			   skipped);
	v->filled -= at;
	memmove(v->in, v->in + at, v->filled);
}

static void turn_line(struct modbus_server *v, short revents, uint64_t now_ns)
{
	ssize_t n;

	if (revents) {
		n = read(v->line, v->in + v->filled, sizeof(v->in) - v->filled);
		if (n > 0) {
			v->filled += drop_echo(v, v->in + v->filled, (size_t)n);
			v->quiet_at_ns = now_ns + v->silence_ns;
			serve_line(v, false);
		} else if (!n || (errno != EAGAIN && errno != EINTR)) {
			close_line(v, n ? strerror(errno) : "it has ended");
		}
	} else if (v->filled && now_ns >= v->quiet_at_ns) {
		serve_line(v, true);
	}
}

/* ---- the thread ---- */

static void wait_for_events(struct modbus_server *v)
{
	uint64_t now = clock_now_ns(), until = UINT64_MAX;
	unsigned count = stream_server_fill(&v->clients, v->wake_fd, now);

	if (v->line >= 0)
		v->clients.fds[STREAM_SERVER_LISTENER].fd = v->line;
	if (!v->told)
		until = now + STATE_NS;
	if (v->clients.accept_ns > now)
		until = MIN(until, v->clients.accept_ns);
	if (v->filled)
		until = MIN(until, v->quiet_at_ns);
	if (v->m->transport == MODBUS_RTU && v->line < 0)
		until = MIN(until, v->retry.at_ns);
	wakeup_poll(v->clients.fds, count, until);
}

static void *run(void *server)
{
	struct modbus_server *v = server;
	unsigned n = v->clients.max;
	/* The line, or the listener. */
	const struct pollfd *source = &v->clients.fds[STREAM_SERVER_LISTENER];

	v->retry.at_ns = 1; /* at once */
	while (!atomic_load(&v->stop)) {
		uint64_t now = clock_now_ns();

		if (v->m->transport == MODBUS_RTU && v->line < 0 && backoff_is_due(&v->retry, now))
			open_line(v);
		node_tell_connected(v->m->outside.node, &v->told, v->clients.count || v->heard);
		wait_for_events(v);
		now = clock_now_ns();
		for (unsigned i = 0; i < n; i++)
			turn(v, client_at(v, i), v->clients.fds[STREAM_SERVER_CLIENTS + i].revents);
		if (v->line >= 0)
			turn_line(v, source->fd == v->line ? source->revents : 0, now);
		else if (v->clients.listener >= 0 && source->revents)
			accept_one(v, now);
	}
	for (unsigned i = 0; i < n; i++)
		if (client_at(v, i)->base.stream.fd >= 0)
			stream_server_close(&v->clients, &client_at(v, i)->base, "the node stops");
	return NULL;
}

/* ---- life ---- */

/* What clients read before they have written anything. */
static void set_first_values(struct modbus_node *m)
{
	const struct signal_list *l = m->outside.node->in.signals;

	for (unsigned i = 0; i < m->in.count && l; i++) {
		const struct modbus_map *map = &m->in.maps[i];
		const struct signal *s = &l->signals[map->signal];

		modbus_value_write(map, s->type, &s->init,
				   modbus_store_at(&m->store, map->table, map->address));
	}
}

static int make(struct modbus_server *v)
{
	struct modbus_node *m = v->m;
	int ret = stream_server_init(&v->clients,
				     m->transport == MODBUS_TCP ? (unsigned)m->clients_max : 0,
				     sizeof(struct client));

	if (ret)
		return ret;
	v->silence_ns = SILENCE_NS + SILENCE_BITS * NSEC_PER_SEC / (uint64_t)m->baudrate;
	ret = inbox_init(&v->inbox, 1, (unsigned)m->outside.queuelen, m->in.count);
	if (ret)
		return ret;
	v->wake_fd = wakeup_open_signal();
	return v->wake_fd < 0 ? v->wake_fd : 0;
}

int modbus_server_start(struct modbus_node *m)
{
	struct modbus_server *v = calloc(1, sizeof(*v));
	int ret;

	if (!v)
		return -ENOMEM;
	m->server = v;
	v->m = m;
	v->faults.node = m->outside.node;
	v->inbox.event_fd = v->wake_fd = v->line = -1;
	v->clients = (struct stream_server){
		.node = m->outside.node,
		.faults = &v->faults,
		.peers = &m->peers,
		.peers_key = "peers",
		.max_key = "max_clients",
		.clients_figure = MODBUS_CLIENTS,
		.turned_away_figure = MODBUS_TURNED_AWAY,
		.give_way = give_way,
		.idle_ns = IDLE_NS,
		.events = client_events,
		.listener = -1,
	};
	pthread_mutex_init(&v->lock, NULL);
	set_first_values(m);
	ret = make(v);
	if (ret)
		log_error("%s: no room for its clients and queue: %s", m->outside.node->name,
			  strerror(-ret));
	if (!ret && m->transport == MODBUS_TCP)
		ret = stream_server_listen_at(&v->clients, m->address, (unsigned)m->port, "address");
	if (!ret)
		ret = thread_start(&v->thread, "modbus-server", THREAD_NORMAL, run, v);
	v->has_thread = !ret;
	if (ret)
		modbus_server_stop(m);
	return ret;
}

void modbus_server_stop(struct modbus_node *m)
{
	struct modbus_server *v = m->server;

	if (!v)
		return;
	atomic_store(&v->stop, true);
	if (v->has_thread) {
		wakeup_post(v->wake_fd);
		pthread_join(v->thread, NULL);
	}
	if (v->line >= 0)
		tcflush(v->line, TCOFLUSH);
	modbus_close_line(m);
	if (v->wake_fd >= 0)
		close(v->wake_fd);
	inbox_note_unread(&v->inbox, &v->faults);
	inbox_destroy(&v->inbox);
	fault_finish(&v->faults);
	pthread_mutex_destroy(&v->lock);
	stream_server_free(&v->clients);
	free(v);
	m->server = NULL;
}

/* ---- samples ---- */

int modbus_server_read(struct modbus_node *m, struct sample *smps[], unsigned cnt)
{
	struct modbus_server *v = m->server;

	return inbox_read(&v->inbox, m->outside.node, &v->faults, smps, cnt);
}

struct inbox *modbus_server_inbox(struct modbus_node *m)
{
	return m->server ? &m->server->inbox : NULL;
}

/* Why a sample cannot be put into registers; NULL: it can. */
static const char *find_fault(const struct modbus_node *m, const struct sample *s,
			      const struct signal_list *l, unsigned *signal)
{
	const char *why = NULL;

	for (unsigned i = 0; i < m->out.count && !why; i++) {
		const struct modbus_map *map = &m->out.maps[i];
		uint16_t words[MODBUS_VALUE_MAX] = { 0 };

		*signal = map->signal;
		why = modbus_value_write(map, text_type(l, map->signal), &s->data[map->signal],
					 words);
	}
	return why;
}

static bool write_one(struct modbus_server *v, const struct sample *s)
{
	struct modbus_node *m = v->m;
	struct node *n = m->outside.node;
	const struct signal_list *l = s->signals ? s->signals : n->out.signals;
	unsigned signal = 0;
	const char *why;

	if (s->length < m->out.count) {
		node_refuse(n, NODE_LOSS_FORMAT, 1, "a sample has %u values, out.signals are %u",
			    s->length, m->out.count);
		return false;
	}
	why = find_fault(m, s, l, &signal);
	if (why) {
		node_refuse(n, NODE_LOSS_FORMAT, 1, "value %u (from 0 on) %s", signal, why);
		return false;
	}
	pthread_mutex_lock(&v->lock);
	for (unsigned i = 0; i < m->out.count; i++) {
		const struct modbus_map *map = &m->out.maps[i];

		modbus_value_write(map, text_type(l, map->signal), &s->data[map->signal],
				   modbus_store_at(&m->store, map->table, map->address));
	}
	v->has_values = true;
	v->written_ns = clock_now_ns();
	pthread_mutex_unlock(&v->lock);
	return true;
}

int modbus_server_write(struct modbus_node *m, struct sample *smps[], unsigned cnt)
{
	unsigned written = 0;

	for (unsigned i = 0; i < cnt; i++)
		written += write_one(m->server, smps[i]);
	return (int)written;
}
