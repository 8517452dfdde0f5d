/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file server: HTTP/1.1 requests (GET and HEAD) to a service of ripc, each one item of a
 * message, short where it fits, and answers of one long message of two items, head and
 * content. A field "Ripc-Request: N" of a request comes back in its answer: by that a client
 * tells the answers to several requests apart.
 */
#ifndef WEB_SERVER_H
#define WEB_SERVER_H

#include <stdatomic.h>
#include <stddef.h>

#include "web/store.h"

struct ripc;
struct ripc_service;

#define SERVER_REQUEST_MAX 16384 /* bytes of a request */
/* Answers that are on their way: of a thread, and of one client among these. A client that
 * does not fetch its answers gets no more, and holds nobody else up. */
#define SERVER_SENDING_MAX 256
#define SERVER_SENDING_OF_ONE 32

struct server {
	struct ripc *r;
	struct ripc_service *service;
	struct store *store;
	size_t content_max;     /* of one answer; more only in ranges */
	atomic_bool stop;
	atomic_uint_fast64_t requests, answered, refused, failed;
};

/* Answers requests until `stop` is set, and then a message has come to the service. Several
 * threads may. Does not close what the server has. */
void server_work(struct server *s);

#endif
