/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS by OpenSSL; see tls.h. Versions 1.2 and 1.3, with the library's ciphers. */
#define LOG_ROOM "gateway/http"
#include "gateway/http/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "util/container_of.h"
#include "util/log.h"

struct http_tls_context {
	SSL_CTX *ctx;
};

struct http_tls_conn {
	SSL *ssl;
};

static int fail(const char *key, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	log_error("http.%s %s: %s", key, path, why ? why : "it cannot be used");
	ERR_clear_error();
	return -EINVAL;
}

/* A certificate, or the connection is not made. */
static int ask_clients(SSL_CTX *ctx, const char *authority)
{
	STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(authority);

	if (!names || SSL_CTX_load_verify_locations(ctx, authority, NULL) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return fail("ssl_ca", authority);
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int load(SSL_CTX *ctx, const struct http_settings *s)
{
	static const unsigned char id[] = "busbar";

	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
	if (SSL_CTX_use_certificate_chain_file(ctx, s->ssl_cert) != 1)
		return fail("ssl_cert", s->ssl_cert);
	if (SSL_CTX_use_PrivateKey_file(ctx, s->ssl_private_key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return fail("ssl_private_key", s->ssl_private_key);
	return s->ssl_ca ? ask_clients(ctx, s->ssl_ca) : 0;
}

static int context_new(struct http_tls_context **out, const struct http_settings *s)
{
	struct http_tls_context *c = calloc(1, sizeof(*c));
	int ret = -ENOMEM;

	if (c)
		c->ctx = SSL_CTX_new(TLS_server_method());
	if (!c || !c->ctx)
		goto err_context;
	ret = load(c->ctx, s);
	if (ret)
		goto err_ctx;
	*out = c;
	return 0;
err_ctx:
	SSL_CTX_free(c->ctx);
err_context:
	free(c);
	return ret;
}

static void context_free(struct http_tls_context *c)
{
	SSL_CTX_free(c->ctx);
	free(c);
}

static struct http_tls_conn *conn_new(struct http_tls_context *ctx, int fd)
{
	struct http_tls_conn *c = calloc(1, sizeof(*c));

	if (c)
		c->ssl = SSL_new(ctx->ctx);
	if (!c || !c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
		if (c)
			SSL_free(c->ssl);
		free(c);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_accept_state(c->ssl);
	return c;
}

static void conn_free(struct http_tls_conn *c)
{
	SSL_free(c->ssl);
	free(c);
}

/* What `ret` of an operation means, with *other if it waits the other way round. */
static ssize_t outcome(struct http_tls_conn *c, int ret, int other_way, bool *other)
{
	int error = SSL_get_error(c->ssl, ret);
	unsigned long e = ERR_peek_last_error();

	*other = error == other_way;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (e)
		log_debug("TLS: %s", ERR_reason_error_string(e));
	ERR_clear_error();
	return -EIO;
}

static ssize_t tls_read(struct http_tls_conn *c, void *to, size_t size, bool *want_write)
{
	int n;

	ERR_clear_error();
	n = SSL_read(c->ssl, to, (int)MIN(size, (size_t)INT_MAX));
	*want_write = false;
	return n > 0 ? n : outcome(c, n, SSL_ERROR_WANT_WRITE, want_write);
}

static ssize_t tls_write(struct http_tls_conn *c, const void *from, size_t len,
			 bool *want_read)
{
	int n;

	ERR_clear_error();
	n = SSL_write(c->ssl, from, (int)MIN(len, (size_t)INT_MAX));
	*want_read = false;
	return n > 0 ? n : outcome(c, n, SSL_ERROR_WANT_READ, want_read);
}

static bool tls_pending(const struct http_tls_conn *c)
{
	return SSL_pending(c->ssl) > 0;
}

static void tls_shut(struct http_tls_conn *c)
{
	ERR_clear_error();
	SSL_shutdown(c->ssl);
	ERR_clear_error();
}

/* Found by its name; certificates.c. */
extern const struct http_tls_ops http_tls;
const struct http_tls_ops http_tls = {
	.context_new = context_new,
	.context_free = context_free,
	.conn_new = conn_new,
	.conn_free = conn_free,
	.read = tls_read,
	.write = tls_write,
	.pending = tls_pending,
	.shut = tls_shut,
};
