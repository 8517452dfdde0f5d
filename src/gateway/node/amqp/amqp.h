/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `amqp`, for its own files: amqp.c has the settings, connect.c the socket and the
 * login, declare.c exchange, queue and bindings, receive.c what comes from the server, send.c
 * what goes to it.
 */
#ifndef GATEWAY_NODE_AMQP_AMQP_H
#define GATEWAY_NODE_AMQP_AMQP_H

#include <amqp.h>
#include <pthread.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define AMQP_NODE_KEYS_MAX 64
/* All that a node does goes over one channel. */
#define AMQP_NODE_CHANNEL 1
/* Names and routing keys have a length of one byte in the protocol. */
#define AMQP_NODE_NAME_MAX 255

enum {
	AMQP_NODE_REDELIVERED = OUTSIDE_FIGURES,
	AMQP_NODE_RETURNED,
	AMQP_NODE_BLOCKED,
};

enum amqp_node_exchange {
	AMQP_NODE_DIRECT,
	AMQP_NODE_FANOUT,
	AMQP_NODE_TOPIC,
	AMQP_NODE_PASSIVE,
};

/* A message from the server, of which the frames come one by one. */
struct amqp_node_content {
	enum { AMQP_NODE_NOTHING, AMQP_NODE_DELIVERY, AMQP_NODE_RETURN } kind;
	bool has_header;
	bool redelivered;
	uint64_t tag;               /* of a delivery */
	uint64_t size, got;         /* bytes of the body */
};

/* A message that the server keeps until it is acknowledged. */
struct amqp_node_unread {
	uint64_t tag;
	uint64_t upto;              /* it is read when outside_samples_read() is there */
};

struct amqp_node {
	struct outside outside;     /* first */

	/* Settings */
	const char *uri, *host, *vhost, *username, *password, *password_file;
	int64_t port, heartbeat_s;
	const char *exchange, *routing_key, *out_key, *queue;
	json_t *in_keys, *ssl;
	int exchange_type;          /* enum amqp_node_exchange */
	bool durable, declare, persistent, mandatory;
	int64_t prefetch, in_message_max;
	struct outside_tls tls;
	const char *key[AMQP_NODE_KEYS_MAX]; /* to read by */
	unsigned key_count;
	char uri_parts[1024];       /* what the texts above point to, with a uri */
	char target[300];

	/* From start to stop */
	pthread_mutex_t opening;    /* of the next two */
	int opening_fd;             /* where the thread of the node waits for the server, or -1 */
	bool stopping;
	int tls_fd;                 /* of the thread of the node: a second one of the socket, or -1 */

	/* Of a connection */
	amqp_connection_state_t state;
	const char *distrust;       /* why the server's certificate is not trusted */
	bool failed;                /* nothing can be sent any more */
	bool blocked;               /* the server takes no messages (connection.blocked) */
	uint64_t published;         /* number of the last message */
	uint64_t room;              /* bytes that the socket takes at least */
	uint64_t room_wait_ns;      /* until it is looked at again; 0: there was room */
	struct amqp_node_content content;
	char *body;                 /* of a message in several frames */
	size_t body_size;
	struct amqp_node_unread *unread; /* a ring of `prefetch` entries */
	unsigned unread_first, unread_count;
	uint64_t unread_since_ns;   /* of the last acknowledgement, or of the first message */
};

static inline struct amqp_node *amqp_node_of(struct outside *o)
{
	return container_of(o, struct amqp_node, outside);
}

/* connect.c */
int amqp_node_open(struct outside *o);
void amqp_node_close(struct outside *o);
/* Ends a wait of amqp_node_open(), for good. Any thread. */
void amqp_node_stop_opening(struct amqp_node *a);

/* fail.c: what went wrong with a call of the library; returns `ret`. */
int amqp_node_fail(struct amqp_node *a, int ret, const char *what, int status);
int amqp_node_fail_reply(struct amqp_node *a, const char *what, amqp_rpc_reply_t reply);
/* The server's own words; `what` stands in front of them. */
int amqp_node_fail_closed(struct amqp_node *a, const char *what, const amqp_method_t *m);

/* declare.c */
int amqp_node_declare(struct amqp_node *a, uint64_t end_ns);
/* Limits the next call that waits for an answer. 0, or -ETIMEDOUT or -EINTR. */
int amqp_node_limit(struct amqp_node *a, uint64_t end_ns);

/* receive.c */
int amqp_node_turn(struct outside *o);
unsigned amqp_node_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
/* Tells the server which messages a path has read; `all`: as many as possible, now. */
int amqp_node_acknowledge(struct amqp_node *a, bool all);

/* send.c */
int amqp_node_send(struct outside *o, struct outbox_message *m);
/* Whether the socket takes `len` bytes at once, so that the library does not wait. */
bool amqp_node_has_room(struct amqp_node *a, size_t len);
/* Lets the socket take the longest message at once, if the system allows it. */
void amqp_node_make_room(struct amqp_node *a, int fd);
/* The server has (not) taken messages. 0 or -EPROTO. */
int amqp_node_on_confirm(struct amqp_node *a, uint64_t tag, bool all_before, bool taken);
/* The server returns a message, by the name that send() gave it. */
void amqp_node_on_return(struct amqp_node *a, amqp_bytes_t id);

#endif
