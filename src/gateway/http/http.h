/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTTP server of a gateway: the requests of control/api.h for other programs and
 * hosts. This header is what programs that run a gateway use of it.
 *
 * One thread (`http`) serves all connections and waits for nothing else; requests are
 * carried out by two more (worker.h).
 *
 * Further users of the server need no change of it: a request is a row in
 * control/request.c, a page is a table of files, and a protocol is an endpoint that takes
 * over connections (plugin/web.h).
 */
#ifndef GATEWAY_HTTP_HTTP_H
#define GATEWAY_HTTP_HTTP_H

#include <stdbool.h>

#include "gateway/super_node/http_settings.h"

struct http;
struct super_node;

/*
 * Starts the server if the configuration of `sn` has the group `http`, or if `listen` is
 * not NULL: "", "PORT", "ADDRESS" or "ADDRESS:PORT" ("[ADDRESS]:PORT" with IPv6), which
 * counts more than the group. Port 0 is any free one; the log says which.
 * 0 with *out, which is NULL when there is nothing to start; or a negative errno, logged.
 * `sn` must outlive it.
 */
int http_start(struct http **out, struct super_node *sn, const char *listen);

/*
 * Reads certificates and tokens again, when they are replaced by SIGHUP and not found to be
 * so by the server itself. Open connections stay. Any thread; NULL allowed.
 */
void http_refresh(struct http *h);

/* Answers what has been asked, new requests with status 503, and ends. NULL allowed. */
void http_stop(struct http *h);

/* Parses `listen` over *s; `address` is written to `room`. 0 or -EINVAL. For http_start()
 * and tests. */
int http_listen_parse(struct http_settings *s, const char *listen, char *room,
		      unsigned size);

#endif
