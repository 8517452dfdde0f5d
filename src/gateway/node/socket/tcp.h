/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections of a socket node. Private to this folder.
 *
 * Three threads use them: the reader and the writer (of paths), and the connecting thread,
 * which alone opens and closes connections. It does so under both locks; the reader and the
 * writer hold their own lock while they use connections, never while they sleep. A thread
 * that finds a connection broken marks it, and the connecting thread closes it.
 */
#ifndef GATEWAY_NODE_SOCKET_TCP_H
#define GATEWAY_NODE_SOCKET_TCP_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "gateway/node/socket/socket.h"
#include "gateway/part/backoff.h"
#include "gateway/stream/stream_input.h"
#include "gateway/stream/stream_server.h"
#include "util/clock.h"
#include "util/wakeup.h"

#define TCP_EVENTS 16
#define FRAME_HEADER 4
#define TCP_CLOSED "it has closed the connection"
#define MS (NSEC_PER_SEC / 1000)

struct tcp_connection {
	struct stream_client base;   /* first; `out` is under tx_lock, what is heard under rx_lock */
	struct format *reader;
	_Atomic(const char *) broken; /* why the connecting thread is to close it; NULL: it
				      * works */

	/* Under rx_lock. */
	struct stream_input rx;
	const char *end_why;         /* the peer sends nothing any more for this reason */

	/* Under tx_lock. */
	bool tx_dead;                /* it cannot be written any more */
	bool watched;                /* the connecting thread waits for room */
	uint64_t said_end_ns;        /* when the node ended it; 0: not yet */
	char slow_why[120];          /* the value of `broken` if it takes too little */
	uint64_t missing_since_ns;   /* it has missed a message and has not caught
				      * up since: not waited for; 0: all is well */
	uint64_t patience_ns;        /* how long others were kept waiting for it
				      * since it had caught up */
	uint64_t missed;             /* messages */
};

/* node->ends.fd is an epoll descriptor, of readable connections and of node->ends.wait. */
struct tcp {
	struct socket_node *node;
	bool server, framed, read;   /* read: by a path */
	pthread_mutex_t rx_lock, tx_lock;
	struct stream_server table;  /* of `places`; of a client, too, which has one */
	struct tcp_connection *places;
	unsigned next;               /* place to read first; reader */

	/* Of the writer. */
	char *message;               /* out.buffer_size bytes */

	/* Of the connecting thread. */
	pthread_t thread;
	bool has_thread;
	int epoll_fd, wake_fd;
	atomic_bool stop, tried;     /* tried: the first attempt to connect has ended */
	struct backoff retry;
	bool said_unreachable;
	enum node_state told;        /* the node's state as it was last told; 0: not yet */
};

/* A frame: its length in network byte order, then a message. */
static inline uint32_t tcp_frame_get(const char *at)
{
	uint32_t len;

	memcpy(&len, at, sizeof(len));
	return ntohl(len);
}

static inline void tcp_frame_put(char *at, size_t len)
{
	uint32_t raw = htonl((uint32_t)len);

	memcpy(at, &raw, sizeof(raw));
}

/* Events that are not of a place. */
enum { EVENT_WAKE = 0x10000, EVENT_LISTENER };

static inline uint64_t tcp_event_data(const struct tcp *st, const struct tcp_connection *c)
{
	return (uint64_t)(c - st->places);
}

/* An event's place, NULL when its connection has been closed. An event may be older than the
 * connection in its place: those who handle it never wait for the socket. */
static inline struct tcp_connection *tcp_event_place(struct tcp *st, uint64_t data)
{
	return data < st->table.max && st->places[data].base.stream.fd >= 0 ? &st->places[data] :
									    NULL;
}

/* Has the connecting thread close it, and log `why`, which has to stay. Any thread. */
static inline void tcp_break(struct tcp *st, struct tcp_connection *c, const char *why)
{
	const char *works = NULL;

	if (atomic_compare_exchange_strong(&c->broken, &works, why))
		wakeup_post(st->wake_fd);
}

/* tcp_connect.c */
int tcp_listen(struct tcp *st); /* logs */
void *tcp_run(void *tcp);
/* Closes the connection that gives its place to another peer. */
void tcp_give_way(struct stream_server *table, struct stream_client *k);
/* Drops what has come. False: the peer sends nothing any more, for the reason *why. */
bool tcp_discard(struct tcp_connection *c, const char **why);

/* tcp_write.c */
/* Sends to all peers what netem has delayed. */
void tcp_send_delayed(void *node, char *buf, size_t len);
/* Under tx_lock: sends what waits; true when nothing is left. */
bool tcp_flush(struct tcp *st, struct tcp_connection *c);
/* Under tx_lock: has the connecting thread wait for c->watched, and for what comes if no path
 * reads. */
void tcp_watch(struct tcp *st, const struct tcp_connection *c);

#endif
