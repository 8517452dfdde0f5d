/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control over a Unix socket on this host: one JSON object per line in, one out.
 *
 *	{"method": "POST", "path": "/node/a/restart", "body": {...}, "id": 7}
 *	{"status": 200, "body": {...}, "id": 7}
 *
 * `method` is GET when it is missing; `id`, any value, comes back as it was. A
 * thread of its own serves all clients; what they do or fail to do holds up no
 * sample and no other client.
 *
 * The socket is for its owner (mode 0600), and only his processes and root's are
 * heard; that holds for abstract ones ('@' in front) too.
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
/* Requests that have come by then and are not answered are refused with status 503.
 * NULL allowed. */
void control_server_stop(struct control_server *s);

/* One line without its end; the answer with its end, malloc()ed. NULL when there
 * is no memory. For the server and tests. */
char *control_line(struct super_node *sn, const char *line, size_t len);

#endif
