/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS by OpenSSL; see tls.h. Versions 1.2 and 1.3, with the library's ciphers. */
#define LOG_ROOM "gateway/tls"
#include "gateway/tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/container_of.h"
#include "util/log.h"

struct tls_context {
	SSL_CTX *ctx;
	bool any_host; /* see tls_settings */
};

struct tls_conn {
	SSL *ssl;
	const char *reason; /* of the last error; NULL: the other end has gone */
};

/* What a file is for, and why it cannot be used. */
struct failure {
	char *text;
	size_t size;
};

static int fail(const struct failure *f, const char *what, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	snprintf(f->text, f->size, "%s %s: %s", what, path, why ? why : "it cannot be used");
	ERR_clear_error();
	return -EINVAL;
}

/* A server: a certificate, or the connection is not made. */
static int ask_clients(SSL_CTX *ctx, const char *authority, const struct failure *f)
{
	STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(authority);

	if (!names || SSL_CTX_load_verify_locations(ctx, authority, NULL) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return fail(f, "ca", authority);
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

/* A client: whom it trusts. */
static int trust(SSL_CTX *ctx, const struct tls_settings *s, const struct failure *f)
{
	SSL_CTX_set_verify(ctx, s->any_authority ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	if (s->ca && SSL_CTX_load_verify_locations(ctx, s->ca, NULL) != 1)
		return fail(f, "ca", s->ca);
	if (s->ca_path && SSL_CTX_load_verify_locations(ctx, NULL, s->ca_path) != 1)
		return fail(f, "ca_path", s->ca_path);
	if (s->ca || s->ca_path)
		return 0;
	return SSL_CTX_set_default_verify_paths(ctx) == 1 ?
		       0 : fail(f, "ca", "of the system");
}

/* What both sides have in common. */
static int load(SSL_CTX *ctx, const struct tls_settings *s, const struct failure *f)
{
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	if (!s->cert)
		return 0;
	if (SSL_CTX_use_certificate_chain_file(ctx, s->cert) != 1)
		return fail(f, "cert", s->cert);
	if (SSL_CTX_use_PrivateKey_file(ctx, s->key ? s->key : s->cert,
					SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return fail(f, "key", s->key ? s->key : s->cert);
	return 0;
}

static int load_server(SSL_CTX *ctx, const struct tls_settings *s, const struct failure *f)
{
	static const unsigned char id[] = "busbar";

	SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
	return load(ctx, s, f) ?: s->ca ? ask_clients(ctx, s->ca, f) : 0;
}

static int load_client(SSL_CTX *ctx, const struct tls_settings *s, const struct failure *f)
{
	int ret = load(ctx, s, f) ?: trust(ctx, s, f);

	if (!ret && s->only_1_3)
		SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	if (!ret && s->ciphers && SSL_CTX_set_cipher_list(ctx, s->ciphers) != 1)
		ret = fail(f, "ciphers", s->ciphers);
	return ret;
}

static int context_new(struct tls_context **out, enum tls_role role,
		       const struct tls_settings *s, char *error, size_t size)
{
	const struct failure f = { error, size };
	struct tls_context *c = calloc(1, sizeof(*c));
	int ret = -ENOMEM;

	ERR_clear_error();
	snprintf(error, size, "no memory for TLS");
	if (c)
		c->ctx = SSL_CTX_new(role == TLS_SERVER ? TLS_server_method() :
							  TLS_client_method());
	if (!c || !c->ctx)
		goto err_context;
	ret = role == TLS_SERVER ? load_server(c->ctx, s, &f) : load_client(c->ctx, s, &f);
	if (ret)
		goto err_ctx;
	c->any_host = s->any_host || s->any_authority;
	*out = c;
	return 0;
err_ctx:
	SSL_CTX_free(c->ctx);
err_context:
	free(c);
	return ret;
}

static void context_free(struct tls_context *c)
{
	SSL_CTX_free(c->ctx);
	free(c);
}

/* The certificate has to be that of the host, a name or a number, unless it may be any. */
static int name_host(SSL *ssl, const char *host, bool any_host)
{
	unsigned char a[16];
	bool is_number = inet_pton(AF_INET, host, a) == 1 || inet_pton(AF_INET6, host, a) == 1;

	if (!is_number)
		SSL_set_tlsext_host_name(ssl, host);
	if (any_host)
		return 1;
	return is_number ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) :
			   SSL_set1_host(ssl, host);
}

static struct tls_conn *conn_new(struct tls_context *ctx, int fd, const char *host)
{
	struct tls_conn *c = calloc(1, sizeof(*c));

	if (c)
		c->ssl = SSL_new(ctx->ctx);
	if (!c || !c->ssl || SSL_set_fd(c->ssl, fd) != 1 ||
	    (host && name_host(c->ssl, host, ctx->any_host) != 1)) {
		if (c)
			SSL_free(c->ssl);
		free(c);
		ERR_clear_error();
		return NULL;
	}
	if (host)
		SSL_set_connect_state(c->ssl);
	else
		SSL_set_accept_state(c->ssl);
	return c;
}

static void conn_free(struct tls_conn *c)
{
	SSL_free(c->ssl);
	free(c);
}

/* What `ret` of an operation means, with *other if it waits the other way round. */
static ssize_t outcome(struct tls_conn *c, int ret, int other_way, bool *other)
{
	int error = SSL_get_error(c->ssl, ret);
	unsigned long e = ERR_peek_last_error();

	*other = error == other_way;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	c->reason = e ? ERR_reason_error_string(e) : NULL;
	if (e)
		log_debug("%s", c->reason ? c->reason : "an error without a name");
	ERR_clear_error();
	return -EIO;
}

static ssize_t tls_read(struct tls_conn *c, void *to, size_t size, bool *want_write)
{
	int n;

	ERR_clear_error();
	n = SSL_read(c->ssl, to, (int)MIN(size, (size_t)INT_MAX));
	*want_write = false;
	return n > 0 ? n : outcome(c, n, SSL_ERROR_WANT_WRITE, want_write);
}

static ssize_t tls_write(struct tls_conn *c, const void *from, size_t len,
			 bool *want_read)
{
	int n;

	ERR_clear_error();
	n = SSL_write(c->ssl, from, (int)MIN(len, (size_t)INT_MAX));
	*want_read = false;
	return n > 0 ? n : outcome(c, n, SSL_ERROR_WANT_READ, want_read);
}

static int tls_greet(struct tls_conn *c, bool *want_write)
{
	int ret;

	ERR_clear_error();
	ret = SSL_do_handshake(c->ssl);
	*want_write = false;
	if (ret == 1)
		return 0;
	ret = (int)outcome(c, ret, SSL_ERROR_WANT_WRITE, want_write);
	return ret ? ret : -EIO;
}

static const char *tls_reason(const struct tls_conn *c)
{
	long verified = SSL_get_verify_result(c->ssl);

	if (verified != X509_V_OK)
		return X509_verify_cert_error_string(verified);
	return c->reason ? c->reason : "the other end closed the connection";
}

static bool tls_pending(const struct tls_conn *c)
{
	return SSL_pending(c->ssl) > 0;
}

static void tls_shut(struct tls_conn *c)
{
	ERR_clear_error();
	SSL_shutdown(c->ssl);
	ERR_clear_error();
}

/* Found by its name. */
extern const struct tls_ops http_tls;
const struct tls_ops http_tls = {
	.context_new = context_new,
	.context_free = context_free,
	.conn_new = conn_new,
	.conn_free = conn_free,
	.read = tls_read,
	.write = tls_write,
	.greet = tls_greet,
	.reason = tls_reason,
	.pending = tls_pending,
	.shut = tls_shut,
};
