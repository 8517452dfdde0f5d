/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles requests to a running gateway. A request has a method, a path and a JSON body,
 * an answer has an HTTP status and a JSON body. Every transport of requests uses this
 * table; the local socket (server.h) is one.
 *
 * Paths are those of VILLASnode's REST interface, with or without "/api/v2" in
 * front. Any thread; commands run one after another.
 */
#ifndef GATEWAY_CONTROL_API_H
#define GATEWAY_CONTROL_API_H

#include <jansson.h>

struct super_node;

/*
 * Carries out one request. `body` may be NULL. Sets *status and returns a new reference,
 * NULL only without memory; after an error it is an object with the key "error".
 * Segments of `path` may be percent-encoded.
 */
json_t *control_handle(struct super_node *sn, const char *method,
		       const char *path, const json_t *body, int *status);

/* Names of the requests, such as "node/start"; a new reference. */
json_t *control_request_names(void);

#endif
