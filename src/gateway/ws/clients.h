/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clients of one endpoint (plugin/web.h) that exchange samples by WebSocket, protocol
 * `live`: each client has the format that the extension of its URL names, and a backlog of
 * its own.
 *
 * A sample is printed once for each format, not for each client: frames lie in a ring that
 * all clients of the format share, and each client has a place in it. A client that falls
 * behind by more than the ring loses frames, which are counted for it, and holds up nobody.
 */
#ifndef GATEWAY_WS_CLIENTS_H
#define GATEWAY_WS_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/plugin/web.h"
#include "gateway/sample/sample.h"

struct ws_clients;

enum ws_clients_loss {
	WS_LOSS_BEHIND,    /* samples: a client was too slow */
	WS_LOSS_FORMAT,    /* samples that cannot be printed in the format of a client */
	WS_LOSS_MALFORMED, /* frames or samples of a client */
	WS_LOSS_SILENT,    /* clients that did not answer */
	WS_LOSSES,
};

struct ws_clients_settings {
	const char *path;            /* "/NAME": of the endpoint; copied */
	const char *name;            /* of the node, for messages; copied */
	struct signal_list *signals; /* of samples that are sent; a reference is taken */
	const char *format;          /* without an extension: "villas.web" */
	bool listens;                /* samples from clients are wanted */
	struct signal_list *in_signals; /* of those; NULL: not known */
	size_t message_max;          /* bytes that a client may send in one message */
	size_t backlog;              /* bytes of frames that wait, for each format */
	unsigned clients_max;        /* more are refused with status 503 */
	double ping_s, timeout_s;    /* a silent client is asked after ping_s, and given up
				      * when it has said nothing for timeout_s behind that */
	/* A client has sent samples (listens). Thread of the server; must not wait. The
	 * samples stay the caller's. */
	void (*received)(void *arg, struct sample *const smps[], unsigned count);
	/* The number of clients has changed. Thread of the server. NULL allowed. */
	void (*changed)(void *arg, unsigned clients);
	/* `n` more, of all clients together. Thread of the server or the one that sends. */
	void (*lost)(void *arg, enum ws_clients_loss kind, uint64_t n);
	void *arg;
};

/* 0 with the endpoint in the registry, or a negative errno, logged. */
int ws_clients_new(struct ws_clients **out, const struct ws_clients_settings *s);
/* Says goodbye to all (WS_GOING_AWAY) and ends the endpoint. NULL allowed. */
void ws_clients_free(struct ws_clients *c);

/*
 * Samples for all clients. Any one thread at a time; never waits for a client; without
 * clients it costs one load. A frame has up to 128 samples: those of one call, and, for
 * clients that are slower than the callers, of several.
 */
void ws_clients_send(struct ws_clients *c, struct sample *const smps[], unsigned count);

/* Whether somebody listens now. */
bool ws_clients_any(const struct ws_clients *c);

#endif
