/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides what a client may do. With tokens or an authority for certificates in the
 * settings, who has neither may do nothing. Without, the server listens at the loopback
 * interface only (http_settings.h), and processes of the gateway's user and of root may do
 * everything, those of other users nothing: the same as on the control socket.
 *
 * With `everybody` in the settings everyone may do what HTTP_OPERATE allows.
 *
 * Tokens are compared by their hashes, all of them, in a time that does not depend on
 * them. After several wrong tokens from one address, further wrong ones get status 429; valid ones
 * are accepted at any time, as other clients may have the same address.
 *
 * One thread (that of the server), except for http_access_new().
 */
#ifndef GATEWAY_HTTP_ACCESS_H
#define GATEWAY_HTTP_ACCESS_H

#include <stdint.h>

#include "gateway/http/parse.h"
#include "gateway/http/peer.h"
#include "gateway/super_node/http_settings.h"

struct http_access;

/* Reads the token file. 0, or a negative errno after a message with the name of the key. */
int http_access_new(struct http_access **out, const struct http_settings *s);
void http_access_free(struct http_access *a); /* NULL allowed */

/* Whether clients are told apart by what the kernel says of them. */
bool http_access_trusts_local(const struct http_access *a);

/* Does the kernel have to be asked for the user of each client? */
bool http_access_asks_owner(const struct http_access *a);

/*
 * The header Authorization of a request, or what stands for it; NULL without. A page in a
 * browser cannot set the header for a WebSocket, so there a token may come as a sub-protocol,
 * "bearer." with the token percent-encoded behind, which no endpoint picks. The text is of
 * the request, or in `room`; a token that does not fit there, or is not encoded well, is
 * empty.
 */
const char *http_access_authorization(const struct http_request *r, char *room, size_t size);

/*
 * The role of a client that sends the header `authorization` (NULL: none) at `now_ns` of a
 * monotonic clock; sets p->token. With HTTP_NOBODY, *status says why: 401 no token or a wrong
 * one, 403 another user, 429 too many wrong ones: the client may ask again after *retry_s.
 */
enum http_role http_access_check(struct http_access *a, struct http_peer *p,
				 const char *authorization, uint64_t now_ns,
				 int *status, unsigned *retry_s);

/*
 * Parses one line of a token file: 1 with the hash in `hash` and *role, 0 for a comment or
 * an empty line, -EINVAL with the reason in *problem. For tests.
 */
int http_access_parse_line(const char *line, unsigned char hash[32],
			   enum http_role *role, const char **problem);

#endif
