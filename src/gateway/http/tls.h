/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the module with TLS offers: its symbol is `http_tls`. It is a module, because it
 * needs OpenSSL's libssl; without it there is HTTP only.
 */
#ifndef GATEWAY_HTTP_TLS_H
#define GATEWAY_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "gateway/super_node/http_settings.h"

struct http_tls_context;
struct http_tls_conn;

struct http_tls_ops {
	/* Loads certificate, key and authority. 0 or a negative errno; logs the key of the
	 * configuration that cannot be used. */
	int (*context_new)(struct http_tls_context **out, const struct http_settings *s);
	/* Connections that were made from it go on. */
	void (*context_free)(struct http_tls_context *ctx);
	/* NULL without memory. `fd` stays the caller's. */
	struct http_tls_conn *(*conn_new)(struct http_tls_context *ctx, int fd);
	void (*conn_free)(struct http_tls_conn *c);
	/* As recv() and send(), with the handshake in front: number of bytes, 0 at the end of
	 * what the client sends, -EAGAIN (then *want_write says what to wait for), or another
	 * negative errno. */
	ssize_t (*read)(struct http_tls_conn *c, void *to, size_t size, bool *want_write);
	ssize_t (*write)(struct http_tls_conn *c, const void *from, size_t len,
			 bool *want_read);
	/* Whether bytes are there that the kernel does not tell of. */
	bool (*pending)(const struct http_tls_conn *c);
	/* Says that no more comes. */
	void (*shut)(struct http_tls_conn *c);
};

#endif
