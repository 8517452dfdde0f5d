/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the control socket of a running gateway (server.h). */
#ifndef GATEWAY_CONTROL_SOCKET_CLIENT_H
#define GATEWAY_CONTROL_SOCKET_CLIENT_H

#include <jansson.h>
#include <stddef.h>

/*
 * Sends one request (`body` may be NULL) to the socket at `path`, of which '@' begins an abstract
 * name. The answer, { "status", "body" }, a new reference; NULL: there is none, `why` says why.
 */
json_t *control_client_ask(const char *path, const char *method, const char *target,
			   json_t *body, double timeout_s, char *why, size_t size);

#endif
