/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a server answers besides files and endpoints (plugin/web.h): requests, which it is
 * given at its start and knows nothing of. Those of a gateway are control/api.h's (http.c);
 * a relay has others and no gateway.
 */
#ifndef GATEWAY_HTTP_REQUESTS_H
#define GATEWAY_HTTP_REQUESTS_H

#include "gateway/control/api.h"

/* What is to be known of a request before it is carried out. */
struct http_found {
	struct control_rule rule;
	const char *allow; /* with 405: a method that there is instead; static */
	const char *why;   /* with 404: what would be right; static */
};

struct http_requests {
	const char *server; /* what messages call it: "gateway" */
	/* 200, 404 or 405 with *f filled. The thread of the server; HEAD comes as GET. */
	int (*find)(const char *method, const char *path, struct http_found *f);
	/* As control_ask(), without the super-node. A worker's thread; may wait. */
	void (*ask)(void *arg, const struct control_question *q, struct control_answer *a);
};

#endif
