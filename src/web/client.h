/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a file server (server.h), one request at a time. */
#ifndef WEB_CLIENT_H
#define WEB_CLIENT_H

#include <busbar/ripc.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "web/head.h"

struct client {
	struct ripc *r;
	struct ripc_service *service; /* whose messages it receives; others are dropped */
	uint32_t server;
	int timeout_ms;         /* for an answer */
	bool resend;            /* short messages may be lost: asks again meanwhile */
	const atomic_bool *stop; /* NULL: none */
	uint64_t number;        /* of the last request; random, so that others cannot answer it */
};

/* An answer; it belongs to the client until client_release(). */
struct client_answer {
	struct head_answer head;
	const void *content;
	size_t bytes;
	struct ripc_message message;
};

/*
 * `path` as a person writes it: percent-encoded here, a slash is put in front. `fields`: more
 * lines of the head, each with CR LF. 0; -EINTR: `stop`; -EBADMSG: what came is no answer;
 * -ENAMETOOLONG; an error of sending; -ETIMEDOUT.
 */
int client_ask(struct client *c, const char *method, const char *path, const char *fields,
	       struct client_answer *out);
void client_release(struct client_answer *a);

#endif
