/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of an HTTP/1.1 request (RFC 9112). Strict: what two programs could read
 * differently (folded lines, two lengths, a space before a colon, control characters) is
 * refused and not guessed. Pure functions.
 */
#ifndef GATEWAY_HTTP_PARSE_H
#define GATEWAY_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>

/* Texts lie in the header that was parsed; "" where one is missing. */
struct http_request {
	const char *method, *target; /* the target begins with '/', or is "*" */
	int minor;                   /* of the version, 1.x */
	const char *host, *origin, *authorization, *length, *type, *prefer, *accept,
		*expect, *upgrade, *if_none_match, *fetch_site, *socket_key, *socket_version, *socket_protocol;
	bool has_length, has_encoding; /* Content-Length, Transfer-Encoding */
	bool close, upgrades;          /* words of Connection; of HTTP/1.1 only the second */
};

/* How long the header at the start of `text` is, with the empty line behind it; 0: its
 * end has not come. `from` is where the search begins: what was there at the last call. */
size_t http_header_end(const char *text, size_t len, size_t from);

/* Parses a header of `len` bytes as of http_header_end(), and changes it. 0, or the status
 * of the answer, with the reason in *why: then *r is not to be used. */
int http_parse(char *text, size_t len, struct http_request *r, const char **why);

#endif
