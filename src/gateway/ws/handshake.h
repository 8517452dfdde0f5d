/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opening handshake of WebSocket (RFC 6455, section 4) for either end, as pure
 * functions.
 */
#ifndef GATEWAY_WS_HANDSHAKE_H
#define GATEWAY_WS_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct web_request;

enum { WS_KEY_SIZE = 25, WS_ACCEPT_SIZE = 29 }; /* with the NUL */

/*
 * Server: checks an upgrade that a client asks for and writes the further lines of the
 * answer to `head` (Sec-WebSocket-Accept; Sec-WebSocket-Protocol where the client offers
 * `protocol`). A client that offers protocols, but not this one, is refused; one that
 * offers none is served. 101, or the status of an error (400; 426 with the version in
 * `head`).
 */
int ws_handshake_answer(const struct web_request *r, const char *protocol, char *head,
			size_t size);

/* Client: the key from 16 random bytes. */
void ws_key_write(char key[WS_KEY_SIZE], const uint8_t random[16]);
/* Client: the request for `target` of `host` ("HOST:PORT"; IPv6 in brackets); `lines` are
 * further header lines or "". Its length; 0: no room. */
size_t ws_request_write(char *to, size_t size, const char *host, const char *target,
			const char *key, const char *protocol, const char *lines);
/*
 * Client: checks the answer, whose head is text[0..len). 0; -EAGAIN: its end has not come;
 * -EPROTO with the cause in `error`. *used: bytes of the head.
 */
int ws_answer_check(const char *text, size_t len, const char *key, const char *protocol,
		    size_t *used, char *error, size_t size);

/* base64(SHA-1(key + GUID)); section 4.2.2. */
void ws_accept_write(char accept[WS_ACCEPT_SIZE], const char *key);

#endif
