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

/* ---- queues ---- */

unsigned station_queue_room(const struct station_queue *q)
{
	return q->size - q->count;
}

bool station_queue_put(struct station_queue *q, const uint8_t *asdu, size_t len, bool last)
{
	struct station_slot *slot = &q->slots[(q->head + q->count) % q->size];

	if (!station_queue_room(q))
		return false;
	slot->len = (uint8_t)len;
	slot->last = last;
	memcpy(slot->asdu, asdu, len);
	q->count++;
	return true;
}

static void queue_pop(struct station_queue *q)
{
	q->head = (q->head + 1) % q->size;
	q->count--;
}

void station_queue_drop(struct station_queue *q)
{
	bool last = false;

	while (q->count && !last) {
		last = q->slots[q->head].last;
		queue_pop(q);
	}
}

/* Samples of which an ASDU waits. */
static unsigned queue_samples(const struct station_queue *q)
{
	unsigned samples = 0;

	for (unsigned i = 0; i < q->count; i++)
		samples += q->slots[(q->head + i) % q->size].last;
	return samples;
}

static int queue_init(struct station_queue *q, unsigned size)
{
	q->size = size;
	q->slots = calloc(size, sizeof(*q->slots));
	return q->slots ? 0 : -ENOMEM;
}

/* ---- the link's calls ---- */

static void link_send(void *arg, const uint8_t *frame, size_t len)
{
	struct station_connection *c = arg;

	if (stream_buffer_put(&c->stream.out, frame, len))
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

	c->flight_head = (c->flight_head + count) % (unsigned)c->station->k;
	c->flight_count -= count;
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
			 socket_address_print(&c->peer, text), started ? "started" : "stopped");
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
	unsigned count = s->mode == STATION_MASTER ? 1 : (unsigned)s->clients_max;
	/* An interrogation is answered at once, with its confirmation and its end. */
	unsigned high = MAX((unsigned)s->high_size, 2 * (s->out.chunk_count + 4));
	int ret = 0;

	if (s->mode == STATION_MASTER)
		high = MAX(high, s->out.count + POINT_GROUPS + 2 * POINT_COUNTER_GROUPS + 8);
	s->connections = calloc(count, sizeof(*s->connections));
	for (unsigned i = 0; s->connections && i < count && !ret; i++) {
		struct station_connection *c = &s->connections[i];

		s->connection_count++;
		c->station = s;
		stream_init(&c->stream, -1);
		c->sent_ns = calloc((size_t)s->k, sizeof(*c->sent_ns));
		c->flight = calloc((size_t)s->k, sizeof(*c->flight));
		c->selected = calloc(s->in.count + 1, sizeof(*c->selected));
		ret = queue_init(&c->low, (unsigned)s->low_size) ?: queue_init(&c->high, high);
		if (!c->sent_ns || !c->flight || !c->selected)
			ret = -ENOMEM;
	}
	if (!s->connections || ret)
		log_error("%s: no memory for %u connections", s->node->name, count);
	return s->connections ? ret : -ENOMEM;
}

void station_connections_free(struct station *s)
{
	for (unsigned i = 0; i < s->connection_count; i++) {
		struct station_connection *c = &s->connections[i];

		stream_close(&c->stream);
		free(c->sent_ns);
		free(c->flight);
		free(c->selected);
		free(c->low.slots);
		free(c->high.slots);
	}
	free(s->connections);
	s->connections = NULL;
	s->connection_count = 0;
}

void station_connection_begin(struct station_connection *c, uint64_t now_ns)
{
	struct station *s = c->station;

	c->connecting = c->shut = false;
	c->flight_head = c->flight_count = 0;
	c->low.head = c->low.count = c->high.head = c->high.count = 0;
	memset(c->selected, 0, (s->in.count + 1) * sizeof(*c->selected));
	iec104_link_begin(&c->link, s->mode == STATION_MASTER, &s->link, c->sent_ns, &link_ops, c,
			  now_ns);
	s->open++;
	node_figure_set(s->node, STATION_CONNECTIONS, s->open);
	node_figure_add(s->node, STATION_CONNECTED, 1);
}

void station_connection_end(struct station_connection *c, const char *why)
{
	struct station *s = c->station;
	char text[SOCKET_ADDRESS_MAX];
	unsigned lost = queue_samples(&c->low);

	/* A peer that has closed after we did has read all. */
	for (unsigned i = 0; i < c->flight_count && why; i++)
		lost += c->flight[(c->flight_head + i) % (unsigned)s->k];
	if (c->link.why)
		node_figure_add(s->node, STATION_BREACHES, 1);
	socket_address_print(&c->peer, text);
	if (fault_may_log(&s->faults))
		LOG_AT(c->link.why ? LOG_WARN : LOG_INFO, "%s: %s is gone: %s", s->node->name, text,
		       why ? why : "the node has ended the connection");
	stream_close(&c->stream);
	s->open--;
	node_figure_set(s->node, STATION_CONNECTIONS, s->open);
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
	return !c->low.count && !c->high.count && !stream_buffer_filled(&c->stream.out);
}

bool station_connection_reads(const struct station_connection *c)
{
	return c->shut || stream_buffer_filled(&c->stream.out) < OUT_MAX;
}

static void send_waiting(struct station_connection *c, uint64_t now_ns)
{
	unsigned k = (unsigned)c->station->k;

	while (stream_buffer_filled(&c->stream.out) < OUT_MAX) {
		struct station_queue *q = c->high.count ? &c->high : &c->low;
		const struct station_slot *slot = &q->slots[q->head];

		if (!q->count || !iec104_link_send(&c->link, slot->asdu, slot->len, now_ns))
			return;
		c->flight[(c->flight_head + c->flight_count++) % k] = slot->last;
		queue_pop(q);
		node_figure_add(c->station->node, STATION_SENT, 1);
	}
}

/* False: the peer sends nothing more, for the reason *why (NULL: it has ended as we have). */
static bool receive(struct station_connection *c, uint64_t now_ns, const char **why)
{
	uint8_t bytes[READ_BYTES];

	for (unsigned i = 0; i < READS && station_connection_reads(c); i++) {
		ssize_t n = stream_recv(&c->stream, bytes, sizeof(bytes));

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
	ret = stream_flush(&c->stream, NULL);
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
