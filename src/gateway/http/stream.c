/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that an endpoint (plugin/web.h) has taken over: bytes go through in both
 * directions, what is sent waits here for a client that is slow.
 */
#define LOG_ROOM "gateway/http"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/query.h"
#include "gateway/http/service.h"
#include "gateway/plugin/web.h"
#include "util/container_of.h"
#include "util/wakeup.h"

#define ROOM (256u << 10) /* bytes that wait for a client */

struct http_stream {
	struct web_stream base;
	struct list entry;   /* of the server */
	struct http_conn *conn;
	struct web_endpoint *endpoint;
	void *client;
	bool open;           /* open() has taken it */
	bool ending, full;
	atomic_bool woken;
	size_t out_len;
	char out[ROOM];
};

static struct http_stream *of(const struct web_stream *s)
{
	return container_of((struct web_stream *)s, struct http_stream, base);
}

static size_t stream_room(const struct web_stream *s)
{
	return ROOM - of(s)->out_len;
}

static int stream_send(struct web_stream *base, const void *data, size_t len)
{
	struct http_stream *s = of(base);

	if (len > ROOM - s->out_len) {
		s->full = true;
		return -ENOBUFS;
	}
	memcpy(s->out + s->out_len, data, len);
	s->out_len += len;
	return 0;
}

static void stream_end(struct web_stream *s)
{
	of(s)->ending = true;
}

static void stream_wake(struct web_stream *base)
{
	struct http_stream *s = of(base);

	if (!atomic_exchange(&s->woken, true))
		wakeup_post(s->conn->server->wake_fd);
}

static const struct web_stream_ops ops = {
	.send = stream_send,
	.room = stream_room,
	.end = stream_end,
	.wake = stream_wake,
};

void http_stream_close(struct http_conn *c)
{
	struct http_stream *s = c->stream;

	if (!s)
		return;
	c->stream = NULL;
	list_remove(&s->entry);
	if (s->open)
		s->endpoint->ops->closed(s->client);
	web_endpoint_put(s->endpoint);
	free(s);
}

/* The endpoint says yes or no. Its lines go between ours. */
static int ask_endpoint(struct http_stream *s, const struct web_request *r)
{
	char head[1024], lines[768] = "";
	int n, status = s->endpoint->ops->open(s->endpoint, &s->base, r, lines, sizeof(lines),
					       &s->client);
	char *early;

	if (status != 101)
		return status;
	s->open = true;
	n = snprintf(head, sizeof(head),
		     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n%s\r\n",
		     r->upgrade, lines);
	/* What open() has sent already comes behind the header. */
	early = s->out;
	if (n < 0 || (size_t)n >= sizeof(head) || (size_t)n > ROOM - s->out_len)
		return 500;
	memmove(early + n, early, s->out_len);
	memcpy(early, head, (size_t)n);
	s->out_len += (size_t)n;
	return 101;
}

int http_stream_open(struct http_conn *c, const struct http_request *r,
		     struct web_endpoint *e, const char *path)
{
	const char *query = strchr(r->target, '?');
	struct web_request request = {
		.upgrade = r->upgrade, .path = path, .query = query ? query + 1 : "",
		.key = r->socket_key, .version = r->socket_version,
		.protocols = r->socket_protocol,
	};
	struct http_stream *s = calloc(1, sizeof(*s));
	int status;

	if (!s) {
		web_endpoint_put(e);
		return 503;
	}
	s->base.ops = &ops;
	s->conn = c;
	s->endpoint = e;
	c->stream = s;
	list_push(&c->server->streams, &s->entry);
	status = ask_endpoint(s, &request);
	if (status == 101)
		http_conn_set_state(c, HTTP_STREAM);
	else
		http_stream_close(c);
	return status;
}

bool http_stream_wants_write(const struct http_conn *c)
{
	return c->stream && c->stream->out_len;
}

int http_stream_received(struct http_conn *c, const void *data, size_t len)
{
	struct http_stream *s = c->stream;

	if (!s->ending && len && s->endpoint->ops->received(s->client, data, len))
		s->ending = true;
	return 0;
}

/* 0: all is sent; 1: not yet; -1: the connection is to end. */
int http_stream_flush(struct http_conn *c)
{
	struct http_stream *s = c->stream;
	size_t done = 0;
	ssize_t n = 0;

	for (;;) {
		while (done < s->out_len) {
			n = http_conn_send(c, s->out + done, s->out_len - done);
			if (n <= 0)
				break;
			done += (size_t)n;
			http_conn_set_state(c, HTTP_STREAM);
		}
		memmove(s->out, s->out + done, s->out_len - done);
		s->out_len -= done;
		if (s->out_len)
			return n == -EAGAIN || n == -EINTR ? 1 : -1;
		c->deadline_ns = UINT64_MAX;
		if (s->ending)
			return -1;
		if (!s->full)
			return 0;
		done = 0;
		s->full = false;
		s->endpoint->ops->writable(s->client);
	}
}

void http_streams_wake(struct http_server *s)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams; l = next) {
		struct http_stream *stream = container_of(l, struct http_stream, entry);
		struct http_conn *c = stream->conn;

		next = l->next;
		if (web_endpoint_is_leaving(stream->endpoint)) {
			http_conn_close(c);
			continue;
		}
		if (!atomic_exchange(&stream->woken, false) || stream->ending)
			continue;
		stream->endpoint->ops->writable(stream->client);
		http_conn_pump(c);
	}
}
