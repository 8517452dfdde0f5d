/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One client of an endpoint, for clients.c: its frames in both directions, pings, its end.
 * A client that nothing is said to or by costs this structure and that of its reader.
 */
#ifndef GATEWAY_WS_CLIENT_H
#define GATEWAY_WS_CLIENT_H

#include <stdatomic.h>

#include "gateway/ws/clients.h"
#include "gateway/ws/feed.h"
#include "gateway/ws/handshake.h"
#include "gateway/ws/inlet.h"
#include "gateway/ws/ws_peer.h"
#include "util/clock.h"
#include "util/list.h"

/* As many as there are formats, and more. */
#define WS_RINGS_MAX 32

/* The samples of one format. */
struct ws_ring {
	struct ws_feed *feed;
	struct list clients;
	atomic_uint count;
};

struct ws_clients {
	struct web_endpoint endpoint;
	char *path, *name, *format;
	struct signal_list *signals, *in_signals;
	bool listens;
	size_t message_max, backlog;
	unsigned clients_max;
	uint64_t ping_ns, timeout_ns;
	void (*received)(void *arg, struct sample *const smps[], unsigned count);
	void (*changed)(void *arg, unsigned clients);
	void (*lost)(void *arg, enum ws_clients_loss kind, uint64_t n);
	void *arg;

	struct ws_ring rings[WS_RINGS_MAX];
	atomic_uint ring_count;

	struct list clients;
	uint64_t now_ns;          /* of the last watch */
	bool has_inlet;
	struct ws_inlet inlet;

	atomic_uint count;
};

struct ws_client {
	struct list entry, in_ring;
	struct ws_clients *owner;
	struct ws_ring *ring;
	struct ws_peer peer;
	struct format *scan;      /* made for its first message */
	struct ws_place place;
	bool ignored;             /* what it sends; it was logged */
	char address[];
};

/* NULL without memory. */
struct ws_client *ws_client_new(struct ws_clients *c, struct ws_ring *r,
				struct web_stream *s, const char *address);
void ws_client_free(struct ws_client *k);
/* Sends what is new in its ring, as far as there is room. */
void ws_client_feed(struct ws_client *k);
/* Asks whether it is there, or gives it up. */
void ws_client_watch(struct ws_client *k);

/* For the endpoint; `client` is a struct ws_client. */
int ws_client_received(void *client, const void *data, size_t len);
void ws_client_writable(void *client);
void ws_client_goodbye(void *client);

#endif
