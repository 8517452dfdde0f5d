/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection; see station.h. */
#define LOG_ROOM "gateway/iec60870-5-104"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/iec60870-5-104/station.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

/* Bytes that wait for a peer which takes nothing: beyond them nothing is read from it. */
#define OUT_MAX 65536u
#define READ_BYTES 4096
/* Reads in one turn, so that a peer cannot keep out the others. */
#define READS 16

/* ---- the link's calls ---- */

static void link_send(void *arg, const uint8_t *frame, size_t len)
{
	struct station_connection *c = arg;

	if (stream_buffer_put(&c->base.stream.out, frame, len))
		c->link.why = "no memory";
}

static void link_asdu(void *arg, const uint8_t *asdu, size_t len)
{
	struct station_connection *c = arg;

	node_figure_add(c->station->node, STATION_RECEIVED, 1);
	c->station->role->asdu(c, asdu, len);
}

static void link_acknowledged(void *arg, unsigned count)
{
	struct station_connection *c = arg;

	station_flow_acknowledged(&c->flow, count);
}

static void link_changed(void *arg)
{
	struct station_connection *c = arg;
	struct station *s = c->station;
	char text[SOCKET_ADDRESS_MAX];
	bool started = c->link.state == IEC104_STARTED;

	s->started += started ? 1u : -1u;
	node_figure_set(s->node, STATION_STARTED, s->started);
	if (fault_may_log(&s->faults))
		log_info("%s: %s: the data transfer has %s", s->node->name,
			 socket_address_print(&c->base.peer, text), started ? "started" : "stopped");
	if (!started)
		station_flow_stopped(&c->flow);
	else if (station_flow_started(&c->flow))
		node_figure_add(s->node, STATION_SWITCHES, 1);
	s->role->changed(c);
}

static const struct iec104_link_ops link_ops = {
	.send = link_send,
	.asdu = link_asdu,
	.acknowledged = link_acknowledged,
	.changed = link_changed,
};

/* ---- life ---- */

int station_connections_new(struct station *s)
{
	unsigned count = s->mode == STATION_MASTER ? s->remote_count : (unsigned)s->clients_max;
	/* An interrogation is answered at once, with its confirmation and its end. */
	unsigned high = MAX((unsigned)s->high_size, 2 * (s->out.chunk_count + 4));
	int ret;

	if (s->mode == STATION_MASTER)
		high = MAX(high, s->out.count + POINT_GROUPS + 2 * POINT_COUNTER_GROUPS + 8);
	s->server = (struct stream_server){
		.node = s->node,
		.faults = &s->faults,
		.peers = &s->peers,
		.peers_key = "peers",
		.max_key = "max_clients",
		.clients_figure = STATION_CONNECTIONS,
		.turned_away_figure = STATION_TURNED_AWAY,
		.events = station_connection_events,
		.listener = -1,
	};
	ret = stream_server_init(&s->server, count, sizeof(*s->connections));
	s->connections = s->server.clients;
	for (unsigned i = 0; i < count && !ret; i++) {
		struct station_connection *c = &s->connections[i];

		c->station = s;
		c->remote = s->mode == STATION_MASTER ? &s->remotes[i] : NULL;
		c->sent_ns = calloc((size_t)s->k, sizeof(*c->sent_ns));
		c->selected = calloc(s->in.count + 1, sizeof(*c->selected));
		ret = station_flow_init(&c->flow, &c->link, (unsigned)s->low_size, high,
					(unsigned)s->k);
		if (!c->sent_ns || !c->selected)
			ret = -ENOMEM;
	}
	if (ret)
		log_error("%s: no memory for %u connections", s->node->name, count);
	return ret;
}

void station_connections_free(struct station *s)
{
	for (unsigned i = 0; i < s->server.max; i++) {
		struct station_connection *c = &s->connections[i];

		stream_close(&c->base.stream);
		free(c->sent_ns);
		free(c->selected);
		station_flow_free(&c->flow);
	}
	stream_server_free(&s->server);
	s->connections = NULL;
}

static struct station_group *group_of(struct station *s, const struct socket_address *peer)
{
	for (unsigned i = 0; i < s->redundancy_count; i++)
		if (peers_have(&s->redundancy[i].peers, &peer->sa))
			return &s->redundancy[i].group;
	return NULL;
}

void station_connection_begin(struct station_connection *c, uint64_t now_ns)
{
	struct station *s = c->station;

	c->connecting = c->shut = false;
	station_flow_begin(&c->flow, group_of(s, &c->base.peer));
	memset(c->selected, 0, (s->in.count + 1) * sizeof(*c->selected));
	iec104_link_begin(&c->link, s->mode == STATION_MASTER, &s->link, c->sent_ns, &link_ops, c,
			  now_ns);
	node_figure_add(s->node, STATION_CONNECTED, 1);
}

void station_connection_end(struct station_connection *c, const char *why)
{
	struct station *s = c->station;
	char text[SOCKET_ADDRESS_MAX];
	/* A peer that has closed after we did has read all. */
	unsigned lost = station_flow_end(&c->flow, !why);

	if (c->link.why)
		node_figure_add(s->node, STATION_BREACHES, 1);
	socket_address_print(&c->base.peer, text);
	if (fault_may_log(&s->faults))
		LOG_AT(c->link.why ? LOG_WARN : LOG_INFO, "%s: %s is gone: %s", s->node->name, text,
		       why ? why : "the node has ended the connection");
	stream_server_leave(&s->server, &c->base);
	if (c->link.state == IEC104_STARTED) {
		c->link.state = IEC104_STOPPED;
		s->started--;
		node_figure_set(s->node, STATION_STARTED, s->started);
	}
	if (lost)
		node_lose(s->node, NODE_LOSS_ABSENT, lost, "%s is gone and has not acknowledged them",
			  text);
	s->role->changed(c);
}

/* ---- work ---- */

bool station_connection_is_empty(const struct station_connection *c)
{
	return !station_flow_waits(&c->flow) && !stream_buffer_filled(&c->base.stream.out);
}

bool station_connection_reads(const struct station_connection *c)
{
	return c->shut || stream_buffer_filled(&c->base.stream.out) < OUT_MAX;
}

short station_connection_events(const struct stream_client *k)
{
	const struct station_connection *c =
		container_of((struct stream_client *)k, struct station_connection, base);

	return c->connecting ? POLLOUT :
			       stream_events(&k->stream, station_connection_reads(c), false);
}

static void send_waiting(struct station_connection *c, uint64_t now_ns)
{
	while (stream_buffer_filled(&c->base.stream.out) < OUT_MAX && station_flow_send(&c->flow, now_ns))
		node_figure_add(c->station->node, STATION_SENT, 1);
}

/* False: the peer sends nothing more, for the reason *why (NULL: it has ended as we have). */
static bool receive(struct station_connection *c, uint64_t now_ns, const char **why)
{
	uint8_t bytes[READ_BYTES];

	for (unsigned i = 0; i < READS && station_connection_reads(c); i++) {
		ssize_t n = stream_recv(&c->base.stream, bytes, sizeof(bytes));

		if (n == -EAGAIN)
			return true;
		if (n <= 0) {
			*why = n ? strerrordesc_np((int)-n) :
			       c->shut ? NULL : "it has closed the connection";
			return false;
		}
		if (c->shut)
			continue;
		iec104_link_receive(&c->link, bytes, (size_t)n, now_ns);
		if (c->link.why)
			return true;
		send_waiting(c, now_ns);
	}
	return true;
}

bool station_connection_turn(struct station_connection *c, bool readable, uint64_t now_ns,
			     const char **why)
{
	int ret;

	*why = NULL;
	if (readable && !receive(c, now_ns, why))
		return false;
	if (c->shut)
		return true;
	/* What has come counts, also if it is late. */
	iec104_link_tick(&c->link, now_ns);
	send_waiting(c, now_ns);
	*why = c->link.why;
	ret = stream_flush(&c->base.stream, NULL);
	if (!*why && ret)
		*why = strerrordesc_np(-ret);
	return !*why;
}

void station_wake(struct station *s)
{
	if (!s->asleep)
		return;
	s->asleep = false;
	wakeup_post(s->wake_fd);
}

bool station_deliver(struct station *s, const struct timespec *origin)
{
	struct node *n = s->node;
	struct sample *smp;

	if (!n->is_source)
		return false;
	smp = ring_count(&s->inbox.rings[0]) < s->inbox.queuelen ? sample_alloc(&s->inbox.pool) : NULL;
	if (!smp) {
		atomic_fetch_add_explicit(&s->inbox.lost, 1, memory_order_relaxed);
		n->sequence++;
		return false;
	}
	smp->length = MIN(n->in.signals->count, smp->capacity);
	memcpy(smp->data, s->values, smp->length * sizeof(smp->data[0]));
	smp->received = clock_realtime();
	smp->origin = origin ? *origin : smp->received;
	smp->sequence = n->sequence++;
	smp->signals = n->in.signals;
	smp->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED |
		     SAMPLE_HAS_DATA;
	inbox_push(&s->inbox, 0, smp);
	inbox_wake(&s->inbox);
	return true;
}
