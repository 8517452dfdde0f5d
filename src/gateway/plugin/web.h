/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What others offer through the HTTP server of a gateway (gateway/http/), which they need
 * not know: files from memory, and endpoints that take over connections whose clients
 * ask to upgrade them (WebSocket). Requests have a table of their own, control/request.c.
 *
 * The registry is there without a server, too; then nobody comes.
 */
#ifndef GATEWAY_PLUGIN_WEB_H
#define GATEWAY_PLUGIN_WEB_H

#include <stdbool.h>
#include <stddef.h>

#include "util/list.h"

/* A file that GET gives to everybody who may reach the server, whatever his role. */
struct web_file {
	const char *path;     /* "/", "/assets/page.js" */
	const char *type;     /* "text/html; charset=utf-8" */
	const char *encoding; /* "gzip"; NULL: as it is */
	const char *etag;     /* with its quotes, changes with the contents */
	const char *policy;   /* Content-Security-Policy; NULL: none */
	const void *data;
	size_t len;
};

/* The files that there are, borrowed for ever; before any server is started. */
void web_files_set(const struct web_file *files, size_t count);
/* NULL: there is none of this path. */
const struct web_file *web_file_find(const char *path);

struct web_stream;
struct web_endpoint;

/* What a client that asks for an upgrade says; texts are "" where they are missing. */
struct web_request {
	const char *upgrade;   /* "websocket" */
	const char *path;      /* "/NAME.json", decoded */
	const char *query;     /* behind '?', not decoded */
	const char *key, *version, *protocols; /* Sec-WebSocket-Key ... */
};

/* Called by the thread of the server, which must not be held up: nothing here waits. */
struct web_endpoint_ops {
	/*
	 * Takes the connection: returns 101 with further header lines ("Name: value\r\n") in
	 * `head` and *client; or refuses it with the status of an error. Origin and role have
	 * been checked.
	 */
	int (*open)(struct web_endpoint *e, struct web_stream *s, const struct web_request *r,
		    char *head, size_t size, void **client);
	/* Bytes have come. 0, or -1: the connection ends once what was sent is gone. */
	int (*received)(void *client, const void *data, size_t len);
	/* There is room again, or somebody called web_stream_wake(). */
	void (*writable)(void *client);
	/* The connection is gone. The last call; from now on nothing may use the stream. */
	void (*closed)(void *client);
};

struct web_endpoint {
	/* "/NAME" serves "/NAME" and "/NAME.EXTENSION". */
	const char *path;
	bool commands; /* what clients send has effects: needs the role operate */
	const struct web_endpoint_ops *ops;
	void *arg;
	/* Of the registry */
	struct list entry;
	unsigned users;
	bool leaving;
};

/* 0, or -EEXIST. The endpoint stays the caller's. */
int web_endpoint_add(struct web_endpoint *e);
/* Ends its connections and returns after the last call of its functions. Not from these,
 * nor with a lock that they take. */
void web_endpoint_remove(struct web_endpoint *e);

/* A connection that an endpoint has taken; the functions are the server's. */
struct web_stream_ops {
	int (*send)(struct web_stream *s, const void *data, size_t len);
	size_t (*room)(const struct web_stream *s);
	void (*end)(struct web_stream *s);
	void (*wake)(struct web_stream *s);
};

struct web_stream {
	const struct web_stream_ops *ops;
};

/* From the functions of the endpoint only: 0, all of it is on its way; -ENOBUFS, there is
 * no room for all of it and nothing was taken: writable() is called when there is. */
static inline int web_stream_send(struct web_stream *s, const void *data, size_t len)
{
	return s->ops->send(s, data, len);
}

/* How many bytes web_stream_send() would take. */
static inline size_t web_stream_room(const struct web_stream *s)
{
	return s->ops->room(s);
}

/* Ends the connection once all is sent. */
static inline void web_stream_end(struct web_stream *s)
{
	s->ops->end(s);
}

/* Any thread, until closed() returns: writable() is called soon. */
static inline void web_stream_wake(struct web_stream *s)
{
	s->ops->wake(s);
}

/* ---- for the server ---- */

/* The endpoint for `path`, which stays until web_endpoint_put(); NULL: none. */
struct web_endpoint *web_endpoint_get(const char *path);
void web_endpoint_put(struct web_endpoint *e);
/* Whether somebody waits for its end. */
bool web_endpoint_is_leaving(struct web_endpoint *e);
/* Called, from any thread, when an endpoint leaves; NULL: no server. */
void web_set_waker(void (*wake)(void *arg), void *arg);

#endif
