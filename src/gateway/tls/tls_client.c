/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_client.h. */
#include "gateway/tls/tls_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/tls/tls.h"

extern const struct tls_ops http_tls;

struct tls_client {
	struct tls_context *context;
	struct tls_conn *conn;
};

static struct tls_client *client_open(int fd, const struct tls_client_settings *s,
				      char *error, size_t size)
{
	const struct tls_settings settings = { .cert = s->cert, .key = s->key, .ca = s->ca };
	struct tls_client *c = calloc(1, sizeof(*c));
	bool want_write;

	snprintf(error, size, "no memory for TLS");
	if (!c)
		return NULL;
	if (http_tls.context_new(&c->context, TLS_CLIENT, &settings, error, size))
		goto err_client;
	c->conn = http_tls.conn_new(c->context, fd, s->host);
	if (!c->conn)
		goto err_context;
	if (!http_tls.greet(c->conn, &want_write))
		return c;
	snprintf(error, size, "%s", http_tls.reason(c->conn));
	http_tls.conn_free(c->conn);
err_context:
	http_tls.context_free(c->context);
err_client:
	free(c);
	return NULL;
}

static void client_close(struct tls_client *c)
{
	http_tls.shut(c->conn);
	http_tls.conn_free(c->conn);
	http_tls.context_free(c->context);
	free(c);
}

static ssize_t client_read(struct tls_client *c, void *to, size_t size)
{
	bool want_write;
	ssize_t n = http_tls.read(c->conn, to, size, &want_write);

	return n < 0 ? -EIO : n;
}

static ssize_t client_write(struct tls_client *c, const void *from, size_t len)
{
	bool want_read;
	ssize_t n = http_tls.write(c->conn, from, len, &want_read);

	return n > 0 ? n : -EIO;
}

/* Found by its name. */
extern const struct tls_client_ops http_tls_client;
const struct tls_client_ops http_tls_client = {
	.open = client_open,
	.read = client_read,
	.write = client_write,
	.close = client_close,
};
