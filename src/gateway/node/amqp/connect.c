/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket, TLS and the login; the beginning and the end of a connection. The thread of the
 * node waits here, and nobody else does anything with the connection meanwhile. */
#define LOG_ROOM "gateway/amqp"
#include "gateway/node/amqp/amqp.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"

#define FRAME_MAX 131072
/* The least that the protocol allows. */
#define FRAME_MIN 4096

/* ---- what a stop of the node interrupts ---- */

/* From now on amqp_node_stop_opening() can end a wait; -1: no more. */
static int show_socket(struct amqp_node *a, int fd)
{
	int ret;

	pthread_mutex_lock(&a->opening);
	a->opening_fd = fd;
	ret = a->stopping ? -EINTR : 0;
	pthread_mutex_unlock(&a->opening);
	return ret;
}

void amqp_node_stop_opening(struct amqp_node *a)
{
	pthread_mutex_lock(&a->opening);
	a->stopping = true;
	if (a->opening_fd >= 0)
		shutdown(a->opening_fd, SHUT_RDWR);
	pthread_mutex_unlock(&a->opening);
}

/* ---- TLS ---- */

/* Without it OpenSSL would ask at a terminal. */
static int no_passphrase(char *buf, int size, int for_writing, void *arg)
{
	return -1;
}

static int fail_tls(struct amqp_node *a, const char *what)
{
	unsigned long error = ERR_peek_last_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;
	char text[300];

	ERR_clear_error();
	snprintf(text, sizeof(text), "%s%s%s%s%s", what, reason ? ": " : "", reason ? reason : "",
		 a->distrust ? ": " : "", a->distrust ? a->distrust : "");
	return outside_fail(&a->outside, -EPROTO, "TLS: %s", outside_tls_reason(text));
}

/* As OpenSSL's own check, but keeps the reason. */
static int check_certificate(X509_STORE_CTX *x, void *arg)
{
	struct amqp_node *a = arg;
	int good = X509_verify_cert(x);

	if (good <= 0)
		a->distrust = X509_verify_cert_error_string(X509_STORE_CTX_get_error(x));
	return good;
}

/* The library would not find an address in a certificate. */
static bool set_server_name(struct amqp_node *a, SSL_CTX *ctx)
{
	const char *name = a->tls.server_name ? a->tls.server_name : a->host;
	X509_VERIFY_PARAM *p = SSL_CTX_get0_param(ctx);

	return X509_VERIFY_PARAM_set1_ip_asc(p, name) || X509_VERIFY_PARAM_set1_host(p, name, 0);
}

/* The library does not show its socket before TLS has begun, and closes it by itself. So a stop
 * gets a descriptor of its own. */
static void on_tls_state(const SSL *ssl, int where, int ret)
{
	struct amqp_node *a = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	if (!(where & SSL_CB_HANDSHAKE_START) || a->tls_fd >= 0)
		return;
	a->tls_fd = fcntl(SSL_get_fd(ssl), F_DUPFD_CLOEXEC, 0);
	if (show_socket(a, a->tls_fd))
		shutdown(SSL_get_fd(ssl), SHUT_RDWR);
}

static int open_tls(struct amqp_node *a, amqp_socket_t *s, const struct timeval *limit)
{
	SSL_CTX *ctx = amqp_ssl_socket_get_context(s);
	int status;

	a->tls_fd = -1;
	SSL_CTX_set_app_data(ctx, a);
	SSL_CTX_set_info_callback(ctx, on_tls_state);
	status = amqp_socket_open_noblock(s, a->host, (int)a->port, limit);
	SSL_CTX_set_info_callback(ctx, NULL);
	show_socket(a, -1);
	if (a->tls_fd >= 0)
		close(a->tls_fd);
	return status;
}

static int set_tls(struct amqp_node *a, amqp_socket_t *s)
{
	const struct outside_tls *t = &a->tls;
	SSL_CTX *ctx = amqp_ssl_socket_get_context(s);
	int version = t->version && !strcmp(t->version, "1.3") ? TLS1_3_VERSION : TLS1_2_VERSION;

	ERR_clear_error();
	a->distrust = NULL;
	amqp_ssl_socket_set_verify_peer(s, t->verify);
	amqp_ssl_socket_set_verify_hostname(s, false);
	SSL_CTX_set_verify(ctx, t->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, check_certificate, a);
	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	if (!SSL_CTX_set_min_proto_version(ctx, version))
		return fail_tls(a, "version");
	if (t->ciphers && !SSL_CTX_set_cipher_list(ctx, t->ciphers))
		return fail_tls(a, "ciphers");
	if (t->ca || t->ca_path ? !SSL_CTX_load_verify_locations(ctx, t->ca, t->ca_path) :
				  !SSL_CTX_set_default_verify_paths(ctx))
		return fail_tls(a, "the authorities");
	if (t->cert && (SSL_CTX_use_certificate_chain_file(ctx, t->cert) != 1 ||
			SSL_CTX_use_PrivateKey_file(ctx, t->key, SSL_FILETYPE_PEM) != 1))
		return fail_tls(a, "cert and key");
	if (t->verify_host && !set_server_name(a, ctx))
		return fail_tls(a, "server_name");
	return 0;
}

/* The library connects by itself. */
static int connect_tls(struct amqp_node *a, uint64_t end_ns)
{
	amqp_socket_t *s = amqp_ssl_socket_new(a->state);
	uint64_t now = clock_now_ns(), left = now < end_ns ? end_ns - now : 0;
	struct timeval t = { .tv_sec = (time_t)(left / NSEC_PER_SEC),
			     .tv_usec = (suseconds_t)(left % NSEC_PER_SEC / 1000) };
	int ret = s ? set_tls(a, s) : -ENOMEM, status;

	if (ret)
		return ret;
	status = open_tls(a, s, &t);
	if (!status)
		return 0;
	/* OpenSSL has nothing to say when the connection ends. */
	if (status == AMQP_STATUS_SSL_CONNECTION_FAILED && !ERR_peek_last_error() && !a->distrust)
		return outside_fail(&a->outside, -ECONNRESET, "TLS: the server has closed it");
	if (status <= AMQP_STATUS_SSL_ERROR && status > _AMQP_STATUS_SSL_NEXT_VALUE)
		return fail_tls(a, amqp_error_string2(status));
	return amqp_node_fail(a, -EHOSTUNREACH, "", status);
}

/* The library's own attempt cannot be interrupted, and does not tell why it fails: with TLS,
 * where it takes no socket, one is connected and closed before. */
static int connect_server(struct amqp_node *a, uint64_t end_ns)
{
	int fd = outside_dial(&a->outside, a->host, (int)a->port, end_ns);
	amqp_socket_t *s;

	if (fd < 0)
		return fd;
	s = a->tls.enabled ? NULL : amqp_tcp_socket_new(a->state);
	if (s) {
		amqp_tcp_socket_set_sockfd(s, fd);
		return 0;
	}
	close(fd);
	return a->tls.enabled ? connect_tls(a, end_ns) : -ENOMEM;
}

/* ---- the login ---- */

/* What the node wants to be told, beside what the library asks for. */
static amqp_table_entry_t capabilities[] = {
	{ .key = { 22, "consumer_cancel_notify" },
	  .value = { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } },
	{ .key = { 18, "connection.blocked" },
	  .value = { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } },
};

static amqp_rpc_reply_t say_hello(struct amqp_node *a, const char *password)
{
	amqp_table_entry_t entries[] = {
		/* Shown by the server's own tools. */
		{ .key = { 15, "connection_name" },
		  .value = { .kind = AMQP_FIELD_KIND_UTF8,
			     .value.bytes = amqp_cstring_bytes(a->outside.node->name) } },
		{ .key = { 12, "capabilities" },
		  .value = { .kind = AMQP_FIELD_KIND_TABLE,
			     .value.table = { ARRAY_SIZE(capabilities), capabilities } } },
	};
	const amqp_table_t properties = { ARRAY_SIZE(entries), entries };

	return amqp_login_with_properties(a->state, a->vhost, AMQP_NODE_CHANNEL, FRAME_MAX,
					  (int)a->heartbeat_s, &properties,
					  AMQP_SASL_METHOD_PLAIN, a->username, password);
}

static int log_in(struct amqp_node *a, uint64_t end_ns)
{
	char buf[OUTSIDE_SECRET_MAX];
	amqp_rpc_reply_t reply;
	int ret = amqp_node_limit(a, end_ns);

	if (ret)
		return ret;
	if (!outside_secret(a->password, a->password_file, buf, a->outside.why,
			    sizeof(a->outside.why)))
		return -EACCES;
	reply = say_hello(a, buf);
	explicit_bzero(buf, sizeof(buf));
	if (reply.reply_type != AMQP_RESPONSE_NORMAL)
		return amqp_node_fail_reply(a, "the login", reply);
	/* The library would divide messages into frames without end. */
	if (amqp_get_frame_max(a->state) < FRAME_MIN)
		return outside_fail(&a->outside, -EPROTO, "the server's frames have %d bytes at most",
				    amqp_get_frame_max(a->state));
	return 0;
}

/* ---- the beginning and the end ---- */

static void forget(struct amqp_node *a)
{
	amqp_destroy_connection(a->state);
	a->state = NULL;
	free(a->body);
	a->body = NULL;
	a->body_size = 0;
	free(a->unread);
	a->unread = NULL;
	a->unread_first = a->unread_count = 0;
	a->content = (struct amqp_node_content){ 0 };
	a->blocked = false;
	node_figure_set(a->outside.node, AMQP_NODE_BLOCKED, 0);
}

static int prepare(struct amqp_node *a)
{
	a->published = 0;
	a->room = a->room_wait_ns = 0;
	a->failed = false;
	a->state = amqp_new_connection();
	a->unread = calloc((size_t)a->prefetch, sizeof(*a->unread));
	return a->state && a->unread ? 0 : -ENOMEM;
}

int amqp_node_open(struct outside *o)
{
	struct amqp_node *a = amqp_node_of(o);
	uint64_t end_ns = clock_now_ns() + (uint64_t)(o->connect_timeout_s * 1e9);
	int ret = prepare(a);

	if (!ret)
		ret = connect_server(a, end_ns);
	if (!ret)
		ret = show_socket(a, amqp_get_sockfd(a->state));
	if (!ret && o->node->is_destination)
		amqp_node_make_room(a, amqp_get_sockfd(a->state));
	if (!ret)
		ret = log_in(a, end_ns) ?: amqp_node_declare(a, end_ns);
	show_socket(a, -1);
	if (ret)
		forget(a);
	return ret;
}

void amqp_node_close(struct outside *o)
{
	struct amqp_node *a = amqp_node_of(o);
	amqp_connection_close_t bye = { .reply_code = AMQP_REPLY_SUCCESS,
					.reply_text = amqp_cstring_bytes("bye") };

	if (!a->failed) {
		amqp_node_acknowledge(a, true);
		/* The answer is not awaited. */
		if (amqp_node_has_room(a, 0))
			amqp_send_method(a->state, 0, AMQP_CONNECTION_CLOSE_METHOD, &bye);
	}
	forget(a);
}
