/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests about a running gateway: a method, a path and a JSON body in, a
 * status as of HTTP and a JSON body out. One table for every way that requests
 * come by; the local socket (server.h) is one.
 *
 * Paths are those of VILLASnode's REST interface, with or without "/api/v2" in
 * front. Any thread; commands run one after another.
 */
#ifndef GATEWAY_CONTROL_API_H
#define GATEWAY_CONTROL_API_H

#include <jansson.h>

struct super_node;

/*
 * Carries out one request. `body` may be NULL. Returns a new reference, never
 * NULL but for lack of memory, and sets *status; an error has an object with
 * "error". Segments of `path` may be percent-encoded.
 */
json_t *control_handle(struct super_node *sn, const char *method,
		       const char *path, const json_t *body, int *status);

#endif
