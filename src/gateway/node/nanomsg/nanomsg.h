/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `nanomsg`, for its own files: nanomsg.c has the settings, sockets.c the sockets of
 * the library and the messages, peers.c who is connected to them.
 */
#ifndef GATEWAY_NODE_NANOMSG_NANOMSG_H
#define GATEWAY_NODE_NANOMSG_NANOMSG_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define NANOMSG_ENDPOINTS_MAX 32
#define NANOMSG_PEERS_MAX 64

enum nanomsg_pattern { NANOMSG_PUBSUB, NANOMSG_PIPELINE, NANOMSG_PAIR };

enum {
	NANOMSG_PEERS_IN = OUTSIDE_FIGURES,
	NANOMSG_PEERS_OUT,
	NANOMSG_REFUSED,
};

/* Connections of a socket. The library's threads report them; hence a lock of their own. */
struct nanomsg_peers {
	struct node *node;
	unsigned figure;            /* shows their number */
	int event_fd;               /* of the node, for a wake-up after each change */
	pthread_mutex_t lock;
	struct {
		uint32_t id;
		bool ready;         /* the socket uses it */
	} list[NANOMSG_PEERS_MAX];
	unsigned count;             /* of list[] */
	atomic_uint ready;          /* of them */
	atomic_bool closing;        /* new ones are refused */
};

/* A direction of the node. */
struct nanomsg_side {
	json_t *endpoints, *alias;
	bool bind;
	const char *urls[NANOMSG_ENDPOINTS_MAX];
	unsigned count;

	/* From start to stop */
	nng_socket socket;
	bool open, receives;
	nng_dialer dialers[NANOMSG_ENDPOINTS_MAX];
	bool local[NANOMSG_ENDPOINTS_MAX]; /* it dials another kind of address than TCP's */
	unsigned dialer_count;
	int fd;                     /* readable when a call of the socket would not wait */
	struct nanomsg_peers peers;
};

struct nanomsg_node {
	struct outside outside;     /* first */

	/* Settings */
	int pattern;                /* enum nanomsg_pattern */
	int64_t in_message_max;
	struct nanomsg_side in, out; /* NANOMSG_PAIR: both directions use the socket of `out` */
	char target[300];

	/* From start to stop */
	int event_fd;
	bool blocked;               /* out has taken no message */
	size_t longest;             /* message so far */
	uint64_t sent_ns;           /* the last message */
};

static inline struct nanomsg_node *nanomsg_of(struct outside *o)
{
	return container_of(o, struct nanomsg_node, outside);
}

/* The side whose socket receives. */
static inline struct nanomsg_side *nanomsg_receiver(struct nanomsg_node *m)
{
	return m->pattern == NANOMSG_PAIR ? &m->out : &m->in;
}

/* sockets.c */
extern const struct outside_ops nanomsg_ops;
/* Closes the sockets. */
void nanomsg_forget(struct nanomsg_node *m);

/* peers.c */
/* Of a socket just opened; needs nanomsg_peers_clear(). 0 or an error of nng. */
int nanomsg_peers_watch(struct nanomsg_peers *p, nng_socket s);
/* After the socket is closed. */
void nanomsg_peers_clear(struct nanomsg_peers *p);

static inline unsigned nanomsg_peers_ready(struct nanomsg_peers *p)
{
	return atomic_load_explicit(&p->ready, memory_order_acquire);
}

#endif
