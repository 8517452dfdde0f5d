/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clients of a TCP server: a listening socket and a table of connections, of which each has
 * one place. Here is who may connect, which client gives its place to a new one, what poll() waits
 * for, and how many clients there are. What is read and written, and when a client is closed, is
 * up to the owner.
 *
 * A node that connects by itself may keep its connections in such a table, too. A server belongs
 * to one thread at a time.
 */
#ifndef GATEWAY_STREAM_STREAM_SERVER_H
#define GATEWAY_STREAM_STREAM_SERVER_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/part/fault.h"
#include "gateway/part/peers.h"
#include "gateway/part/socket_address.h"
#include "gateway/stream/stream.h"

/* One place of the table; the first member of what the owner keeps of a client. */
struct stream_client {
	struct stream stream;       /* fd -1: the place is free */
	struct socket_address peer;
	uint64_t heard_ns;          /* when it connected, or sent something of use last */
	bool heard;                 /* it has sent something of use; others give way before it */
	bool stays;                 /* it does not give way */
};

/* Indices of stream_server.fds, for poll(). */
enum { STREAM_SERVER_WAKE, STREAM_SERVER_LISTENER, STREAM_SERVER_CLIENTS };

struct stream_server {
	/* Of the owner; the rest is zero before stream_server_init(). */
	struct node *node;
	struct fault_counters *faults;
	const struct peers *peers;          /* hosts that may connect; NULL: all */
	const struct socket_address *only;  /* the only host that may; NULL: several */
	const char *peers_key, *max_key;    /* the keys of peers and of the number of places */
	unsigned clients_figure;            /* clients now */
	unsigned turned_away_figure;        /* connections that were not taken; 0: no figure */
	bool logs_full;                     /* that all places are taken is logged, and no fault */
	/* When no place is free, the client that has been silent longest, and for idle_ns, gives way:
	 * this function has to close it. NULL: none does. */
	void (*give_way)(struct stream_server *s, struct stream_client *k);
	uint64_t idle_ns;
	/* What poll() is to wait for at an open client. */
	short (*events)(const struct stream_client *k);

	int listener;                       /* -1: none */
	uint64_t accept_ns;                 /* no connection is accepted before */
	void *clients;                      /* `max` of them, `size` bytes each */
	size_t size;
	unsigned max;
	atomic_uint count;
	struct pollfd *fds;                 /* STREAM_SERVER_CLIENTS + max */
};

/* Makes the table. 0 or -ENOMEM. */
int stream_server_init(struct stream_server *s, unsigned max, size_t size);
/* Closes the listening socket and frees the table, in which no place is in use. */
void stream_server_free(struct stream_server *s);

static inline struct stream_client *stream_server_at(const struct stream_server *s, unsigned i)
{
	return (struct stream_client *)(void *)((char *)s->clients + i * s->size);
}

/* Listens at `own`, which `key` of the configuration names. `prepare`, NULL allowed, sets further
 * options and logs. 0 or a negative errno; logs. */
int stream_server_listen(struct stream_server *s, const struct socket_address *own,
			 const char *key, int (*prepare)(void *arg, int fd), void *arg);
/* The same at a host and `port`; 0: at "host:port". */
int stream_server_listen_at(struct stream_server *s, const char *address, unsigned port,
			    const char *key);
void stream_server_close_listener(struct stream_server *s);

/* A free place, perhaps after a client has given way; NULL: there is none. */
struct stream_client *stream_server_find_place(struct stream_server *s, uint64_t now_ns);
/* The client in place `k` is there: counts it. `stream` and `peer` are the owner's to set. */
void stream_server_enter(struct stream_server *s, struct stream_client *k, uint64_t now_ns);
/* Closes the connection: the place is free. */
void stream_server_leave(struct stream_server *s, struct stream_client *k);
/* The same, and logs why the client is gone. */
void stream_server_close(struct stream_server *s, struct stream_client *k, const char *why);

/* Accepts a connection. The client, in its place; NULL: none has come, or it was turned away. */
struct stream_client *stream_server_accept(struct stream_server *s, uint64_t now_ns);
/* For a connection whose peer may be silent for long: sends without delay, and ends when the host
 * of the peer does not answer for about 30 s. */
void stream_server_watch_peer(int fd, const char *node);
/* For an owner that does not poll s->fds: waits while no connection may be accepted because there
 * are no descriptors. */
void stream_server_pause(const struct stream_server *s);

/* Fills s->fds for poll(). Their number up to the last one that is used: poll() refuses more than
 * the process may open. */
unsigned stream_server_fill(struct stream_server *s, int wake_fd, uint64_t now_ns);

#endif
