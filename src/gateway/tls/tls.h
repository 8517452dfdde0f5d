/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the module with TLS offers to servers and to clients: its symbol is `http_tls`. It is
 * a module, because it needs OpenSSL's libssl; without it there are HTTP and ws:// only.
 */
#ifndef GATEWAY_TLS_TLS_H
#define GATEWAY_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_context;
struct tls_conn;

/* Files, in PEM. */
struct tls_settings {
	const char *cert, *key; /* one's own; a client may have none (NULL) */
	/* Authorities: whose clients a server takes (NULL: it asks for no certificate), or
	 * whose servers a client trusts (NULL: those of the system). */
	const char *ca;

	/* The rest is for clients. Folder of authorities, in place of `ca` or beside it. */
	const char *ca_path;
	const char *ciphers;     /* of TLS 1.2, as OpenSSL names them; NULL: its own choice */
	bool only_1_3;           /* no connection with an older version than TLS 1.3 */
	bool any_authority;      /* the server's certificate is not checked at all */
	bool any_host;           /* or it may be that of another host */
};

enum tls_role { TLS_SERVER, TLS_CLIENT };

struct tls_ops {
	/* Loads the files. 0 or a negative errno; then `error` says which file cannot be used,
	 * as "cert PATH: why". */
	int (*context_new)(struct tls_context **out, enum tls_role role,
			   const struct tls_settings *s, char *error, size_t size);
	/* Connections that were made from it go on. */
	void (*context_free)(struct tls_context *ctx);
	/* NULL without memory. `fd` stays the caller's. `host`: whose certificate a client
	 * wants to see, a name or a number; NULL for a server. */
	struct tls_conn *(*conn_new)(struct tls_context *ctx, int fd, const char *host);
	void (*conn_free)(struct tls_conn *c);
	/* As recv() and send(), with the handshake in front: number of bytes, 0 at the end of
	 * what the peer sends, -EAGAIN (then *want_write says what to wait for), or another
	 * negative errno. */
	ssize_t (*read)(struct tls_conn *c, void *to, size_t size, bool *want_write);
	ssize_t (*write)(struct tls_conn *c, const void *from, size_t len, bool *want_read);
	/* The handshake alone: 0, -EAGAIN, or another negative errno. */
	int (*greet)(struct tls_conn *c, bool *want_write);
	/* Why the connection failed, after an error other than -EAGAIN. */
	const char *(*reason)(const struct tls_conn *c);
	/* Whether bytes are there that the kernel does not tell of. */
	bool (*pending)(const struct tls_conn *c);
	/* Says that no more comes. */
	void (*shut)(struct tls_conn *c);
};

#endif
