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

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	const char *address;   /* of the client, with its port, for messages */
	/* Where open() may say in a sentence why it refuses. */
	char *why;
	size_t why_size;
};

/* Called by the thread of the server, which must not be held up: nothing here waits. */
struct web_endpoint_ops {
	/*
	 * Takes the connection: returns 101 with further header lines ("Name: value\r\n") in
	 * `head` and *client; or refuses it with the status of an error, with further header
	 * lines in `head` and the reason in r->why. Origin and role have been checked.
	 */
	int (*open)(struct web_endpoint *e, struct web_stream *s, const struct web_request *r,
		    char *head, size_t size, void **client);
	/* Bytes have come. 0, or -1: the connection ends once what was sent is gone. */
	int (*received)(void *client, const void *data, size_t len);
	/* All that waited for a slow client is gone. NULL: not wanted. */
	void (*writable)(void *client);
	/* The connection is gone. The last call; from now on nothing may use the stream. */
	void (*closed)(void *client);
	/* Those below are for the endpoint, and NULL where it does not want them. They, like
	 * all others, may send to any of its clients. */
	/* Somebody called web_endpoint_wake(). */
	void (*woken)(struct web_endpoint *e);
	/* About every WEB_TICK_MS while there is a client, to look for news. */
	void (*tick)(struct web_endpoint *e);
	/* About every WEB_WATCH_MS while there is a client; `now_ns` of clock_now_ns(). */
	void (*watch)(struct web_endpoint *e, uint64_t now_ns);
	/* The endpoint or the server ends: the last chance to send something. */
	void (*goodbye)(void *client);
};

#define WEB_TICK_MS 20
#define WEB_WATCH_MS 100
/* web_stream_room() while nothing waits. */
#define WEB_ROOM ((size_t)256 << 10)
/* What web_stream_send() takes at once while nothing waits. */
#define WEB_SEND_MAX ((size_t)16 << 20)

/* Which paths an endpoint with the path "/NAME" serves. Of several that fit, the one with
 * the longest path has it; so "" with WEB_BELOW serves all that nobody else does. */
enum web_match {
	WEB_NAME,  /* "/NAME" and "/NAME.EXTENSION" */
	WEB_BELOW, /* what begins with "/NAME/" */
};

struct web_endpoint {
	const char *path;
	enum web_match match;
	bool commands; /* what clients send has effects: needs the role operate */
	const struct web_endpoint_ops *ops;
	void *arg;
	/* Of the registry */
	struct list entry;
	unsigned users;
	atomic_bool leaving, woken;
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
	void (*want)(struct web_stream *s);
	void (*end)(struct web_stream *s);
};

struct web_stream {
	const struct web_stream_ops *ops;
};

/* Any thread: woken() is called soon. Any number of calls by then are one, and cost one
 * atomic exchange each; the first one may be a system call. */
void web_endpoint_wake(struct web_endpoint *e);

/* From the functions of the endpoint only: 0, all of it is on its way; -ENOBUFS, there is
 * no room for all of it and nothing was taken: writable() is called when all that was taken
 * before is gone. Something longer than the room is taken while nothing waits, up to
 * WEB_SEND_MAX. -ENOMEM: nothing was taken, and the connection should end. */
static inline int web_stream_send(struct web_stream *s, const void *data, size_t len)
{
	return s->ops->send(s, data, len);
}

/* How many bytes may wait beside those that do. */
static inline size_t web_stream_room(const struct web_stream *s)
{
	return s->ops->room(s);
}

/* writable() is called when all that was taken is gone. */
static inline void web_stream_want(struct web_stream *s)
{
	s->ops->want(s);
}

/* Ends the connection once all is sent. */
static inline void web_stream_end(struct web_stream *s)
{
	s->ops->end(s);
}

/* Whether there is a server. */
bool web_is_served(void);

/* ---- for the server ---- */

/* The endpoint for `path`, which stays until web_endpoint_put(); NULL: none. */
struct web_endpoint *web_endpoint_get(const char *path);
void web_endpoint_put(struct web_endpoint *e);
/* Whether somebody waits for its end. */
static inline bool web_endpoint_is_leaving(const struct web_endpoint *e)
{
	return atomic_load_explicit(&e->leaving, memory_order_acquire);
}
/* Whether somebody waits for the end of any. */
bool web_endpoints_leaving(void);
/*
 * One after another, of those with clients: those that were woken, and are not any more;
 * those that want ticks; those that want to watch. `after`: the one that the last call
 * returned, which is put; NULL: the first. NULL: there are no more.
 */
enum web_turn { WEB_WOKEN, WEB_TICK, WEB_WATCH };
struct web_endpoint *web_endpoint_next(struct web_endpoint *after, enum web_turn turn);
/* Called, from any thread, when an endpoint leaves or is woken, and at once if that was
 * before; NULL: no server. */
void web_set_waker(void (*wake)(void *arg), void *arg);

#endif
