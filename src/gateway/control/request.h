/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of requests, for api.c, which finds a request in it. */
#ifndef GATEWAY_CONTROL_REQUEST_H
#define GATEWAY_CONTROL_REQUEST_H

#include "gateway/control/api.h"

#define SEGMENTS_MAX 4

struct request {
	struct super_node *sn;
	const char *args[SEGMENTS_MAX]; /* what stands for '*' */
	const char *query, *accept;     /* "" without */
	const json_t *body;
	int status;
	struct control_answer *answer;
};

struct route {
	struct control_entry entry;
	/* The JSON of the answer; NULL: it set the answer's text, or there is no memory. */
	json_t *(*handle)(struct request *r);
};

/* The first that fits counts. */
extern const struct route request_routes[];
extern const size_t request_route_count;

/* An answer that is an error. */
json_t *request_fail(struct request *r, int status, const char *text);

#endif
