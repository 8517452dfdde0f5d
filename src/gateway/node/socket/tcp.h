/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections of a socket node. Private to this folder.
 *
 * Three threads meet here: the reader and the writer (of paths) and the
 * connecting thread, which alone opens and closes connections. It does so under
 * both locks; the reader and the writer hold their own one while they use
 * connections, never while they sleep. Who finds a connection broken says so and
 * leaves the rest to the connecting thread.
 */
#ifndef GATEWAY_NODE_SOCKET_TCP_H
#define GATEWAY_NODE_SOCKET_TCP_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gateway/node/socket/socket.h"
#include "gateway/part/backoff.h"
#include "gateway/stream/stream.h"
#include "util/clock.h"

#define TCP_EVENTS 16
#define FRAME_HEADER 4
#define TCP_WHY_MAX 120
#define MS (NSEC_PER_SEC / 1000)

struct tcp_connection {
	struct stream socket;        /* fd -1: a free place; `out` is under tx_lock */
	unsigned generation;         /* of the place: changes with each peer */
	struct socket_address peer;
	struct format *reader;
	atomic_bool breaking;        /* somebody has found it broken ... */
	atomic_bool broken;          /* ... the connecting thread is to close it */
	char why[TCP_WHY_MAX];    /* what broke it first */

	/* Under rx_lock. */
	struct stream_buffer rx;
	struct timespec received;    /* of what came last */
	bool pending;                /* rx may hold a whole sample */
	bool at_end;                 /* the peer sends nothing any more ... */
	const char *end_why;         /* ... for this reason */
	bool waits_for_end;          /* rx begins with an unfinished sample ... */
	struct format_unfinished unfinished; /* ... of which so much is known */
	bool heard;                  /* a sample has come of it ... */
	uint64_t heard_ns;           /* ... then; or when it connected */

	/* Under tx_lock. */
	bool tx_dead;                /* it cannot be written any more */
	bool watched;                /* the connecting thread waits for room */
	uint64_t said_end_ns;        /* at the node's end: when we said it */
	bool heard_end;              /* and the peer has said its own */
	bool slow;                   /* this is why it was broken */
	uint64_t missing_since_ns;   /* it has missed a message and has not caught
				      * up since: not waited for; 0: all is well */
	uint64_t patience_ns;        /* how long others were kept waiting for it
				      * since it had caught up */
	uint64_t missed;             /* messages */
};

struct tcp {
	struct socket_node *node;
	bool server, framed, read;   /* read: by a path */
	pthread_mutex_t rx_lock, tx_lock;
	struct tcp_connection *places;
	unsigned place_count;
	atomic_uint connected;       /* places in use */
	unsigned next;               /* place to read first; reader */
	int rx_epoll;                /* readable connections, wake_fd */

	/* Of the writer. */
	struct pollfd *slow;         /* place_count: whom it waits for */
	char *message;
	size_t message_size;

	/* Of the connecting thread. */
	pthread_t thread;
	bool has_thread;
	int epoll_fd, wake_fd, listener, attempt;
	atomic_bool stop, tried;     /* tried: the first attempt's end is known */
	uint64_t attempt_end_ns;
	unsigned address, address_count; /* of the peer's name: which one is tried */
	struct backoff retry;
	bool said_unreachable;
	bool shown_connected, shown; /* the node's state, when it was told */
};

/* Numbers of what is no place, in events. */
enum { EVENT_WAKE = 0x10000, EVENT_LISTENER, EVENT_ATTEMPT };

/* An event's place, NULL when its connection is gone. */
static inline uint64_t tcp_event_data(const struct tcp *st,
					 const struct tcp_connection *c)
{
	return (uint64_t)c->generation << 32 | (uint64_t)(c - st->places);
}

static inline struct tcp_connection *tcp_event_place(struct tcp *st,
							   uint64_t data)
{
	unsigned i = (unsigned)data & 0xffffffff;
	struct tcp_connection *c = i < st->place_count ? &st->places[i] : NULL;

	return c && c->socket.fd >= 0 && c->generation == (unsigned)(data >> 32) ? c :
									     NULL;
}

void tcp_wake_thread(struct tcp *st);

/* Has the connecting thread close it; `why` is told. Under either lock. */
void tcp_break(struct tcp *st, struct tcp_connection *c,
		  const char *why);

/* tcp_connect.c */
int tcp_listen(struct tcp *st); /* logs */
void *tcp_run(void *tcp);
/* Closes one under both locks. */
void tcp_close_place(struct tcp *st, struct tcp_connection *c);

/* tcp_write.c */
/* Sends to all peers what netem has delayed. */
void tcp_send_delayed(void *node, char *buf, size_t len);
/* Under tx_lock: sends what waits; true when nothing is left. */
bool tcp_flush(struct tcp *st, struct tcp_connection *c);

#endif
