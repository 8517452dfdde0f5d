/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `websocket`, for its own files: websocket.c is the node, link.c and
 * link_connect.c are connections to other gateways, inbox.c is what has come.
 *
 * Threads: the path that writes, the path that reads, the thread of the HTTP server (for
 * clients of the endpoint), one for each destination, and a short one that tells the state
 * when the node has started.
 */
#ifndef GATEWAY_NODE_WEBSOCKET_WEBSOCKET_H
#define GATEWAY_NODE_WEBSOCKET_WEBSOCKET_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/part/inbox.h"
#include "gateway/node/websocket/url.h"
#include "gateway/part/backoff.h"
#include "gateway/part/fault.h"
#include "gateway/stream/stream.h"
#include "gateway/tls/tls.h"
#include "gateway/ws/clients.h"
#include "gateway/ws/feed.h"
#include "gateway/ws/inlet.h"
#include "gateway/ws/silence.h"
#include "gateway/plugin/node.h"
#include "util/prng.h"

struct ws_node;

/* Messages that wait for the peer at most, with what is sent of them; the rest waits in the feed. */
#define WS_LINK_MESSAGES 256

/* Figures of the node-type, behind the kinds of faults. */
enum {
	WS_CLIENTS = FAULT_KINDS,
	WS_LINKS,
	WS_LINKS_MADE,
	WS_LINKS_LOST,
	WS_UNREACHABLE,
	WS_SILENT,
	WS_CLIENTS_BEHIND,
	WS_CLIENTS_REFUSED,
};

/* A destination. */
struct ws_link {
	struct ws_node *owner;
	const char *text;           /* its URL; of the configuration */
	struct ws_url url;
	unsigned ring;              /* of the inbox */
	pthread_t thread;
	bool has_thread;
	int wake_fd;
	atomic_bool up;             /* samples are taken for it */
	atomic_bool asleep;         /* it wants to be woken for new ones */
	struct ws_feed *feed;       /* NULL: nothing is written */

	/* Of its thread */
	struct stream socket;
	struct ws_place place;
	/* The messages in socket.out: where each ends, and its samples. */
	struct {
		size_t end;
		unsigned samples;
	} messages[WS_LINK_MESSAGES];
	unsigned message_count;
	struct ws_reader *reader;
	struct format *scan;
	struct ws_inlet inlet;
	bool has_inlet;
	char *early;                /* what came behind the answer to the handshake */
	size_t early_len;
	struct prng random;         /* of masks */
	struct ws_silence silence;
	bool closing, close_seen;
	bool said_unreachable, said_malformed;
	struct backoff retry;
};

struct ws_node {
	struct inbox inbox; /* first */
	/* Settings */
	json_t *destinations;
	const char *format, *ssl_ca, *ssl_cert, *ssl_private_key, *token_file;
	bool wait_connected;
	double connect_timeout_s, ping_s, timeout_s;
	int64_t reconnect_ms, clients_max, message_max;
	int64_t queuelen, backlog;

	struct node *node;
	struct ws_clients *clients;
	struct ws_link *links;
	unsigned link_count;
	const struct tls_ops *tls_ops;
	struct tls_context *tls;
	struct fault_counters faults;
	_Atomic uint64_t client_losses[WS_LOSSES]; /* since the start */

	pthread_mutex_t lock;       /* with those below */
	pthread_cond_t changed;
	unsigned links_up, client_count;
	bool stopping, connected, shown;
	pthread_t teller;
	bool has_teller;
	atomic_bool ending;         /* links are to say goodbye */
};

/* websocket.c: a link has come (+1) or gone (-1). */
void ws_node_links_changed(struct ws_node *s, int by);
/* Samples from another gateway or client, through ring `ring`. */
void ws_node_received(struct ws_node *s, unsigned ring, struct sample *const smps[],
		      unsigned count);

/* link.c */
int ws_link_start(struct ws_link *l);
/* Waits until it has said goodbye, after what was written; in two seconds. To be called
 * after `ending` is set and all links are woken. */
void ws_link_stop(struct ws_link *l);
/* New samples are in the feed. The thread that writes. */
void ws_link_wake(struct ws_link *l);

/* link_connect.c: 0 with l->socket connected, greeted and upgraded; or a negative errno, with the
 * reason in `why`; -ECANCELED: the node stops. */
int ws_link_connect(struct ws_link *l, char *why, size_t size);
void ws_link_close(struct ws_link *l);
/* Waits for `events` of the socket (if there is one), for ws_link_wake() or the end of the node,
 * until `until_ns`. */
void ws_link_wait(struct ws_link *l, short events, uint64_t until_ns);

#endif
