/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_client.h. */
#include "gateway/http/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/container_of.h"

struct http_tls_client {
	SSL_CTX *ctx;
	SSL *ssl;
};

static void client_close(struct http_tls_client *c)
{
	if (c->ssl)
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	free(c);
}

static int trust(SSL_CTX *ctx, const struct http_tls_client_settings *s)
{
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if ((s->ca ? SSL_CTX_load_verify_locations(ctx, s->ca, NULL) :
		     SSL_CTX_set_default_verify_paths(ctx)) != 1)
		return -EINVAL;
	if (s->cert && (SSL_CTX_use_certificate_chain_file(ctx, s->cert) != 1 ||
			SSL_CTX_use_PrivateKey_file(ctx, s->key ? s->key : s->cert,
						    SSL_FILETYPE_PEM) != 1))
		return -EINVAL;
	return 0;
}

/* The certificate has to be that of the host, a name or a number. */
static int name_host(SSL *ssl, const char *host)
{
	unsigned char a[16];

	if (inet_pton(AF_INET, host, a) == 1 || inet_pton(AF_INET6, host, a) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_tlsext_host_name(ssl, host);
	return SSL_set1_host(ssl, host);
}

static const char *reason(const SSL *ssl)
{
	long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	if (verified != X509_V_OK)
		return X509_verify_cert_error_string(verified);
	return why ? why : "the other end closed the connection";
}

static struct http_tls_client *client_open(int fd, const struct http_tls_client_settings *s,
					   char *error, size_t size)
{
	struct http_tls_client *c = calloc(1, sizeof(*c));

	ERR_clear_error();
	if (!c)
		return NULL;
	c->ctx = SSL_CTX_new(TLS_client_method());
	if (c->ctx && !trust(c->ctx, s))
		c->ssl = SSL_new(c->ctx);
	if (c->ssl && SSL_set_fd(c->ssl, fd) == 1 && name_host(c->ssl, s->host) == 1 &&
	    SSL_connect(c->ssl) == 1)
		return c;
	snprintf(error, size, "%s", reason(c->ssl));
	SSL_free(c->ssl);
	c->ssl = NULL;
	client_close(c);
	return NULL;
}

static ssize_t client_read(struct http_tls_client *c, void *to, size_t size)
{
	int n = SSL_read(c->ssl, to, (int)MIN(size, (size_t)INT_MAX));

	if (n > 0)
		return n;
	return SSL_get_error(c->ssl, n) == SSL_ERROR_ZERO_RETURN ? 0 : -EIO;
}

static ssize_t client_write(struct http_tls_client *c, const void *from, size_t len)
{
	int n = SSL_write(c->ssl, from, (int)MIN(len, (size_t)INT_MAX));

	return n > 0 ? n : -EIO;
}

/* Found by its name. */
extern const struct http_tls_client_ops http_tls_client;
const struct http_tls_client_ops http_tls_client = {
	.open = client_open,
	.read = client_read,
	.write = client_write,
	.close = client_close,
};
