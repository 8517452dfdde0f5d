/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS for programs that ask one server after another, and wait: on top of tls.h, in the same
 * module. Its symbol is `http_tls_client`. */
#ifndef GATEWAY_TLS_TLS_CLIENT_H
#define GATEWAY_TLS_TLS_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

struct tls_client;

struct tls_client_settings {
	const char *host; /* whose certificate it has to be */
	const char *ca;   /* file of authorities; NULL: those of the system */
	const char *cert, *key; /* of the client; NULL: none */
};

struct tls_client_ops {
	/* Greets over `fd`, which blocks and stays the caller's. NULL, with the reason in
	 * `error`. */
	struct tls_client *(*open)(int fd, const struct tls_client_settings *s, char *error,
				   size_t size);
	/* As recv() and send(): number of bytes, 0 at the end, or -EIO. */
	ssize_t (*read)(struct tls_client *c, void *to, size_t size);
	ssize_t (*write)(struct tls_client *c, const void *from, size_t len);
	void (*close)(struct tls_client *c);
};

#endif
