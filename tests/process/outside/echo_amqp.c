/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare loop over librabbitmq; see echo.h. SERVER: HOST:PORT. FROM and TO are routing
 * keys of a direct exchange; the queue is the connection's own. Neither side confirms anything.
 */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include "echo.h"

#define EXCHANGE "echo"

struct echo {
	amqp_connection_state_t c;
	amqp_bytes_t to;
};

static int check(int rc, const char *what)
{
	if (rc)
		fprintf(stderr, "%s: %s\n", what, amqp_error_string2(rc));
	return rc ? -1 : 0;
}

static int check_reply(amqp_rpc_reply_t r, const char *what)
{
	if (r.reply_type == AMQP_RESPONSE_NORMAL)
		return 0;
	fprintf(stderr, "%s: %s\n", what,
		r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? amqp_error_string2(r.library_error) :
								  "the server refuses");
	return -1;
}

static int subscribe(amqp_connection_state_t c, const char *from)
{
	amqp_bytes_t exchange = amqp_cstring_bytes(EXCHANGE);
	amqp_queue_declare_ok_t *queue;
	amqp_bytes_t name;

	amqp_channel_open(c, 1);
	if (check_reply(amqp_get_rpc_reply(c), "channel"))
		return -1;
	amqp_exchange_declare(c, 1, exchange, amqp_cstring_bytes("direct"), 0, 0, 0, 0,
			      amqp_empty_table);
	if (check_reply(amqp_get_rpc_reply(c), "exchange"))
		return -1;
	queue = amqp_queue_declare(c, 1, amqp_empty_bytes, 0, 0, 1, 1, amqp_empty_table);
	if (!queue)
		return check_reply(amqp_get_rpc_reply(c), "queue");
	name = amqp_bytes_malloc_dup(queue->queue);
	amqp_queue_bind(c, 1, name, exchange, amqp_cstring_bytes(from), amqp_empty_table);
	if (check_reply(amqp_get_rpc_reply(c), "bind"))
		return -1;
	amqp_basic_consume(c, 1, name, amqp_empty_bytes, 0, 1, 1, amqp_empty_table);
	amqp_bytes_free(name);
	return check_reply(amqp_get_rpc_reply(c), "consume");
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	struct echo *e = calloc(1, sizeof(*e));
	amqp_socket_t *s;
	char host[256];
	int port = echo_host(server, host, sizeof(host));

	if (!e || !(e->c = amqp_new_connection()) || !(s = amqp_tcp_socket_new(e->c)))
		return NULL;
	e->to = amqp_cstring_bytes(to);
	if (check(amqp_socket_open(s, host, port), "connect") ||
	    check_reply(amqp_login(e->c, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"),
			"login") ||
	    subscribe(e->c, from))
		return NULL;
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	amqp_bytes_t body = { .len = len, .bytes = (void *)(uintptr_t)data };

	return check(amqp_basic_publish(e->c, 1, amqp_cstring_bytes(EXCHANGE), e->to, 0, 0, NULL, body),
		     "publish");
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	struct timeval second = { .tv_sec = 1 };
	amqp_envelope_t envelope;
	amqp_rpc_reply_t r;
	size_t len;

	amqp_maybe_release_buffers(e->c);
	r = amqp_consume_message(e->c, &envelope, &second, 0);
	if (r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && r.library_error == AMQP_STATUS_TIMEOUT)
		return 0;
	if (check_reply(r, "message"))
		return -1;
	len = envelope.message.body.len;
	if (len <= size)
		memcpy(buf, envelope.message.body.bytes, len);
	else
		fprintf(stderr, "a message has %zu bytes\n", len);
	amqp_destroy_envelope(&envelope);
	return len <= size ? (int)len : -1;
}
