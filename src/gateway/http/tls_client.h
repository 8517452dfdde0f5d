/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's side of TLS, in the same module as the server's (tls.h): its symbol is
 * `http_tls_client`. For programs that ask one server after another, and wait. */
#ifndef GATEWAY_HTTP_TLS_CLIENT_H
#define GATEWAY_HTTP_TLS_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

struct http_tls_client;

struct http_tls_client_settings {
	const char *host; /* whose certificate it has to be */
	const char *ca;   /* file of authorities; NULL: those of the system */
	const char *cert, *key; /* of the client; NULL: none */
};

struct http_tls_client_ops {
	/* Greets over `fd`, which blocks and stays the caller's. NULL, with the reason in
	 * `error`. */
	struct http_tls_client *(*open)(int fd, const struct http_tls_client_settings *s,
					char *error, size_t size);
	/* As recv() and send(): number of bytes, 0 at the end, or -EIO. */
	ssize_t (*read)(struct http_tls_client *c, void *to, size_t size);
	ssize_t (*write)(struct http_tls_client *c, const void *from, size_t len);
	void (*close)(struct http_tls_client *c);
};

#endif
