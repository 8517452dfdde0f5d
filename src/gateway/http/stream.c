/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that an endpoint (plugin/web.h) has taken over: bytes go through in both
 * directions, what is sent waits here for a client that is slow. An endpoint may send to any
 * of its clients at any time; those to which it has sent are in a list of the server, which
 * is worked off after the call.
 */
#define LOG_ROOM "gateway/http"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/query.h"
#include "gateway/http/service.h"
#include "gateway/plugin/web.h"
#include "util/clock.h"
#include "util/container_of.h"

struct http_stream {
	struct web_stream base;
	struct list entry;   /* of the server */
	struct list unsent;  /* likewise */
	struct http_conn *conn;
	struct web_endpoint *endpoint;
	void *client;
	bool open;           /* open() has taken it */
	bool full;           /* the endpoint waits for writable() */
	bool blocked;        /* the kernel takes no more for now */
	bool ending, hurried;
};

static struct http_stream *of(const struct web_stream *s)
{
	return container_of((struct web_stream *)s, struct http_stream, base);
}

static size_t waiting(const struct http_conn *c)
{
	return stream_buffer_filled(&c->socket.out);
}

static size_t room_of(const struct web_stream *s)
{
	return WEB_ROOM - MIN(waiting(of(s)->conn), (size_t)WEB_ROOM);
}

/* It is sent after the present call of the endpoint, unless the kernel takes nothing: then
 * as soon as it does. */
static void plan_flush(struct http_stream *s)
{
	if (!s->blocked && list_empty(&s->unsent))
		list_push(&s->conn->server->unsent, &s->unsent);
}

static int send_to_client(struct web_stream *base, const void *data, size_t len)
{
	struct http_stream *s = of(base);
	struct stream *socket = &s->conn->socket;

	/* Many may have sent to it before its turn has come. */
	if (len > room_of(base) && s->open && !s->blocked)
		stream_flush(socket, NULL);
	if (len > (waiting(s->conn) ? room_of(base) : WEB_SEND_MAX)) {
		s->full = true;
		return -ENOBUFS;
	}
	if (stream_buffer_put(&socket->out, data, len))
		return -ENOMEM;
	plan_flush(s);
	return 0;
}

static void want_room(struct web_stream *s)
{
	of(s)->full = true;
	plan_flush(of(s));
}

static void end_soon(struct web_stream *s)
{
	of(s)->ending = true;
	plan_flush(of(s));
}

static const struct web_stream_ops ops = {
	.send = send_to_client,
	.room = room_of,
	.want = want_room,
	.end = end_soon,
};

void http_stream_close(struct http_conn *c)
{
	struct http_stream *s = c->stream;

	if (!s)
		return;
	c->stream = NULL;
	list_remove(&s->entry);
	list_remove(&s->unsent);
	if (s->open && s->endpoint->ops->tick)
		c->server->ticking--;
	if (s->open)
		s->endpoint->ops->closed(s->client);
	web_endpoint_put(s->endpoint);
	stream_buffer_free(&c->socket.out);
	free(s);
}

/* The endpoint says yes or no. Its lines go between ours, and behind the header what it has
 * sent already. */
static int ask_endpoint(struct http_stream *s, const struct web_request *r, char *lines,
			size_t lines_size)
{
	struct stream_buffer *out = &s->conn->socket.out;
	char head[1024];
	int n, status = s->endpoint->ops->open(s->endpoint, &s->base, r, lines, lines_size,
					       &s->client);

	if (status != 101)
		return status;
	s->open = true;
	if (s->endpoint->ops->tick)
		s->conn->server->ticking++;
	n = snprintf(head, sizeof(head),
		     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n%s\r\n",
		     r->upgrade, lines);
	if (n < 0 || (size_t)n >= sizeof(head) || stream_buffer_reserve(out, (size_t)n))
		return 500;
	stream_buffer_compact(out);
	memmove(out->at + n, out->at, out->end);
	memcpy(out->at, head, (size_t)n);
	out->end += (size_t)n;
	return 101;
}

int http_stream_open(struct http_conn *c, const struct http_request *r,
		     struct web_endpoint *e, const char *path, struct http_refusal *refusal)
{
	const char *query = strchr(r->target, '?');
	struct web_request request = {
		.upgrade = r->upgrade, .path = path, .query = query ? query + 1 : "",
		.key = r->socket_key, .version = r->socket_version,
		.protocols = r->socket_protocol, .address = c->peer.text,
		.why = refusal->why, .why_size = sizeof(refusal->why),
	};
	struct http_stream *s = calloc(1, sizeof(*s));
	int status;

	snprintf(refusal->why, sizeof(refusal->why), "this connection cannot be upgraded so");
	*refusal->lines = '\0';
	if (!s) {
		web_endpoint_put(e);
		return 503;
	}
	s->base.ops = &ops;
	s->conn = c;
	s->endpoint = e;
	c->stream = s;
	list_init(&s->unsent);
	list_push(&c->server->streams, &s->entry);
	status = ask_endpoint(s, &request, refusal->lines, sizeof(refusal->lines));
	if (status == 101)
		http_conn_set_state(c, HTTP_STREAM);
	else
		http_stream_close(c);
	return status;
}

bool http_stream_may_read(const struct http_conn *c)
{
	return c->stream && waiting(c) <= WEB_ROOM / 2;
}

void http_stream_received(struct http_conn *c, const void *data, size_t len)
{
	struct http_stream *s = c->stream;

	if (!s->ending && len && s->endpoint->ops->received(s->client, data, len))
		s->ending = true;
}

/* It waits for the client: only for so long, and shorter once there is no more to say. */
static int wait_for_client(struct http_stream *s, bool moved)
{
	struct http_conn *c = s->conn;

	if (moved || !s->blocked)
		http_conn_set_state(c, HTTP_STREAM);
	if (s->ending && !s->hurried) {
		s->hurried = true;
		c->deadline_ns = c->server->now_ns + HTTP_LEAVE_NS;
	}
	s->blocked = true;
	return 1;
}

int http_stream_flush(struct http_conn *c)
{
	struct http_stream *s = c->stream;

	for (;;) {
		size_t sent = 0;
		bool told;

		list_remove(&s->unsent);
		if (stream_flush(&c->socket, &sent))
			return -1;
		if (waiting(c))
			return wait_for_client(s, sent);
		/* No memory is held while nothing waits. */
		stream_buffer_free(&c->socket.out);
		c->deadline_ns = UINT64_MAX;
		if (s->ending)
			return -1;
		told = s->full || s->blocked;
		s->full = s->blocked = false;
		if (!told)
			return 0;
		if (s->endpoint->ops->writable)
			s->endpoint->ops->writable(s->client);
		if (!waiting(c) && !s->ending)
			return 0;
	}
}

void http_stream_goodbye(struct http_conn *c)
{
	struct http_stream *s = c->stream;

	if (s->ending || !s->endpoint->ops->goodbye)
		return;
	s->endpoint->ops->goodbye(s->client);
	stream_flush(&c->socket, NULL);
}

/* The clients of endpoints that leave. */
static void end_leaving(struct http_server *s)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams; l = next) {
		struct http_stream *stream = container_of(l, struct http_stream, entry);
		struct http_conn *c = stream->conn;

		next = l->next;
		if (!web_endpoint_is_leaving(stream->endpoint))
			continue;
		http_stream_goodbye(c);
		http_conn_leave(c);
		http_conn_pump(c);
	}
}

void http_streams_wake(struct http_server *s)
{
	if (web_endpoints_leaving())
		end_leaving(s);
	for (struct web_endpoint *e = NULL; (e = web_endpoint_next(e, WEB_WOKEN));)
		if (e->ops->woken)
			e->ops->woken(e);
	http_streams_flush(s);
}

void http_streams_watch(struct http_server *s)
{
	for (struct web_endpoint *e = NULL; (e = web_endpoint_next(e, WEB_WATCH));)
		e->ops->watch(e, s->now_ns);
}

void http_streams_flush(struct http_server *s)
{
	struct list *first;

	while ((first = list_pop(&s->unsent)))
		http_conn_flush(container_of(first, struct http_stream, unsent)->conn);
}

void http_streams_tick(struct http_server *s)
{
	if (!s->ticking || s->now_ns < s->streams_ns)
		return;
	s->streams_ns = s->now_ns + WEB_TICK_MS * UINT64_C(1000000);
	for (struct web_endpoint *e = NULL; (e = web_endpoint_next(e, WEB_TICK));)
		e->ops->tick(e);
}
