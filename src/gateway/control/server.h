/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control over a Unix socket on this host: one JSON object per line in, one out.
 *
 *	{"method": "POST", "path": "/node/a/restart", "body": {...}, "id": 7}
 *	{"status": 200, "body": {...}, "id": 7}
 *
 * `method` is GET when it is missing; the answer repeats `id`, which may be any value.
 * One thread of the server handles all clients; a client can delay neither samples nor
 * other clients.
 *
 * Only the owner may open the socket (mode 0600). The server refuses connections of
 * processes of other users, except root; this also protects abstract sockets (names
 * that begin with '@').
 */
#ifndef GATEWAY_CONTROL_SERVER_H
#define GATEWAY_CONTROL_SERVER_H

#include <jansson.h>
#include <stddef.h>

struct control_server;
struct super_node;

/* 0 or a negative errno; logs the cause. `sn` must outlive it. */
int control_server_start(struct control_server **out, struct super_node *sn,
			 const char *path);
/* Refuses requests that were received and not yet answered with status 503, then ends the
 * server. NULL allowed. */
void control_server_stop(struct control_server *s);

/* Handles one request line, without its line end. Returns the answer with a line end,
 * which the caller frees; NULL without memory. For the server and tests. */
char *control_line(struct super_node *sn, const char *line, size_t len);

#endif
