/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clients of an endpoint; see clients.h. All of it is called by the thread of the HTTP
 * server, but for ws_clients_send(), which puts samples into the rings and wakes that
 * thread once, and what looks at counters.
 */
#define LOG_ROOM "gateway/websocket"
#include "gateway/ws/clients.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/ws/client.h"
#include "util/container_of.h"
#include "util/log.h"

#define PROTOCOL "live"

/* Of this extension; NULL with the reason and *status. */
static struct ws_ring *find_ring(struct ws_clients *c, const char *format, int *status,
				 char *why, size_t size)
{
	unsigned count = atomic_load_explicit(&c->ring_count, memory_order_relaxed);
	struct ws_ring *r = &c->rings[count];
	int ret;

	for (unsigned i = 0; i < count; i++)
		if (!strcmp(ws_feed_name(c->rings[i].feed), format))
			return &c->rings[i];
	*status = 503;
	snprintf(why, size, "there are too many formats");
	if (count == ARRAY_SIZE(c->rings))
		return NULL;
	ret = ws_feed_new(&r->feed, format, c->signals, c->backlog, why, size);
	*status = ret == -ENOENT ? 404 : ret == -ENOMEM ? 503 : 400;
	if (ret)
		return NULL;
	list_init(&r->clients);
	/* From now on the sending thread sees it. */
	atomic_store_explicit(&c->ring_count, count + 1, memory_order_release);
	return r;
}

/* "/NAME.json" -> "json"; what a client wrote goes into messages, so it has to be text. */
static const char *extension(const struct ws_clients *c, const char *path, char *to,
			     size_t size)
{
	const char *at = path + strlen(c->path);

	if (*at != '.')
		return c->format;
	snprintf(to, size, "%s", at + 1);
	for (char *p = to; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return to;
}

static int clients_open(struct web_endpoint *e, struct web_stream *s,
			const struct web_request *r, char *head, size_t size, void **client)
{
	struct ws_clients *c = e->arg;
	char text[64];
	const char *format = extension(c, r->path, text, sizeof(text));
	struct ws_ring *ring;
	int status = ws_handshake_answer(r, PROTOCOL, head, size);

	if (status == 101 && atomic_load(&c->count) >= c->clients_max) {
		snprintf(r->why, r->why_size, "there are %u clients already", c->clients_max);
		status = 503;
	} else if (status != 101) {
		snprintf(r->why, r->why_size,
			 "this is no handshake of WebSocket, version 13, with the protocol " PROTOCOL " or none");
	}
	ring = status == 101 ? find_ring(c, format, &status, r->why, r->why_size) : NULL;
	if (ring) {
		status = 503;
		snprintf(r->why, r->why_size, "there is no memory");
		*client = ws_client_new(c, ring, s, r->address);
		if (*client)
			status = 101;
	}
	if (status == 101) {
		log_debug("node %s: client %s, format %s", c->name, r->address, format);
		if (c->changed)
			c->changed(c->arg, atomic_load(&c->count));
		return 101;
	}
	/* Headers of a handshake that is good are no part of a refusal. */
	if (status != 426)
		*head = '\0';
	log_info("node %s: client %s is refused: %s", c->name, r->address, r->why);
	return status;
}

static void clients_woken(struct web_endpoint *e)
{
	struct ws_clients *c = e->arg;
	unsigned count = atomic_load_explicit(&c->ring_count, memory_order_relaxed);

	for (unsigned i = 0; i < count; i++) {
		struct ws_ring *r = &c->rings[i];

		ws_feed_trim(r->feed);
		list_for_each(client, &r->clients, struct ws_client, in_ring)
			ws_client_feed(client);
	}
}

static void clients_watch(struct web_endpoint *e, uint64_t now_ns)
{
	struct ws_clients *c = e->arg;

	/* Who has come since the server has looked at the clock is later than that. */
	c->now_ns = MAX(c->now_ns, now_ns);
	list_for_each(client, &c->clients, struct ws_client, entry)
		ws_client_watch(client);
}

static void clients_closed(void *client)
{
	struct ws_client *k = client;
	struct ws_clients *c = k->owner;

	ws_client_free(k);
	if (c->changed)
		c->changed(c->arg, atomic_load(&c->count));
}

static const struct web_endpoint_ops ops = {
	.open = clients_open,
	.received = ws_client_received,
	.writable = ws_client_writable,
	.closed = clients_closed,
	.woken = clients_woken,
	.watch = clients_watch,
	.goodbye = ws_client_goodbye,
};

static void free_clients(struct ws_clients *c)
{
	for (unsigned i = 0; i < atomic_load(&c->ring_count); i++)
		ws_feed_free(c->rings[i].feed);
	if (c->has_inlet)
		ws_inlet_destroy(&c->inlet);
	signal_list_put(c->signals);
	signal_list_put(c->in_signals);
	free(c->path);
	free(c->name);
	free(c->format);
	free(c);
}

static void copy_settings(struct ws_clients *c, const struct ws_clients_settings *s)
{
	c->path = strdup(s->path);
	c->name = strdup(s->name);
	c->format = strdup(s->format);
	c->signals = s->signals ? signal_list_get(s->signals) : NULL;
	c->in_signals = s->in_signals ? signal_list_get(s->in_signals) : NULL;
	c->listens = s->listens;
	c->message_max = s->message_max;
	c->backlog = s->backlog;
	c->clients_max = s->clients_max;
	c->ping_ns = (uint64_t)(s->ping_s * 1e9);
	c->timeout_ns = (uint64_t)(s->timeout_s * 1e9);
	c->received = s->received;
	c->changed = s->changed;
	c->lost = s->lost;
	c->arg = s->arg;
}

int ws_clients_new(struct ws_clients **out, const struct ws_clients_settings *s)
{
	struct ws_clients *c = calloc(1, sizeof(*c));
	int ret = -ENOMEM;

	if (!c)
		return ret;
	list_init(&c->clients);
	c->now_ns = clock_now_ns();
	copy_settings(c, s);
	c->endpoint = (struct web_endpoint){ .path = c->path, .commands = s->listens,
					     .ops = &ops, .arg = c };
	if (c->path && c->name && c->format)
		ret = web_endpoint_add(&c->endpoint);
	if (!ret) {
		*out = c;
		return 0;
	}
	log_error("node %s: %s", s->name, ret == -EEXIST ?
		  "something else is served at its path" : strerror(-ret));
	free_clients(c);
	return ret;
}

void ws_clients_free(struct ws_clients *c)
{
	if (!c)
		return;
	web_endpoint_remove(&c->endpoint);
	free_clients(c);
}

void ws_clients_send(struct ws_clients *c, struct sample *const smps[], unsigned count)
{
	unsigned rings;
	bool any = false;

	if (!ws_clients_any(c))
		return;
	rings = atomic_load_explicit(&c->ring_count, memory_order_acquire);
	for (unsigned i = 0; i < rings; i++) {
		unsigned clients = atomic_load_explicit(&c->rings[i].count,
							memory_order_relaxed);
		struct ws_feed_put put;

		if (!clients)
			continue;
		put = ws_feed_put(c->rings[i].feed, smps, count);
		any = true;
		if (unlikely(put.lost))
			c->lost(c->arg, WS_LOSS_BEHIND, (uint64_t)put.lost * clients);
		if (unlikely(put.refused))
			c->lost(c->arg, WS_LOSS_FORMAT, (uint64_t)put.refused * clients);
	}
	if (any)
		web_endpoint_wake(&c->endpoint);
}

bool ws_clients_any(const struct ws_clients *c)
{
	return atomic_load_explicit(&c->count, memory_order_relaxed);
}
