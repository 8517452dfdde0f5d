/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare loop over librabbitmq; see echo.h. SERVER: HOST:PORT, or HOST:PORT,confirm. FROM and TO
 * are routing keys of a direct exchange; the queue is the connection's own. With `confirm` messages
 * are persistent, the server confirms them, and what has come is acknowledged, together with what
 * came in the same 5 ms: what a node-type amqp does by default. Without it neither side confirms
 * anything.
 */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include "echo.h"

#define EXCHANGE "echo"
/* Of a node's default settings. */
#define PREFETCH 256
#define ACK_COUNT (PREFETCH / 4 + 1)
#define ACK_US 5000

struct echo {
	amqp_connection_state_t c;
	amqp_bytes_t to;
	bool confirm;
	unsigned long long sent, confirmed; /* messages: the last one, and how many */
	uint64_t tag;			    /* of the last message that has come */
	unsigned unacked;
	double unacked_since;
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

static int subscribe(amqp_connection_state_t c, const char *from, bool confirm)
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
	if (confirm && (!amqp_confirm_select(c, 1) || !amqp_basic_qos(c, 1, 0, PREFETCH, 0)))
		return check_reply(amqp_get_rpc_reply(c), "confirmations");
	amqp_basic_consume(c, 1, name, amqp_empty_bytes, 0, !confirm, 1, amqp_empty_table);
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
	e->confirm = strstr(server, ",confirm");
	if (check(amqp_socket_open(s, host, port), "connect") ||
	    check_reply(amqp_login(e->c, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"),
			"login") ||
	    subscribe(e->c, from, e->confirm))
		return NULL;
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	amqp_bytes_t body = { .len = len, .bytes = (void *)(uintptr_t)data };
	amqp_basic_properties_t p = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2 };

	e->sent++;
	return check(amqp_basic_publish(e->c, 1, amqp_cstring_bytes(EXCHANGE), e->to, 0, 0,
					e->confirm ? &p : NULL, body),
		     "publish");
}

static int acknowledge(struct echo *e, uint64_t tag)
{
	if (tag && !e->unacked++)
		e->unacked_since = now_us();
	e->tag = tag ? tag : e->tag;
	if (!e->unacked || (e->unacked < ACK_COUNT && now_us() - e->unacked_since < ACK_US))
		return 0;
	e->unacked = 0;
	return check(amqp_basic_ack(e->c, 1, e->tag, 1), "acknowledge");
}

/* amqp_consume_message() leaves what is not a message to its caller. */
static int take_confirmation(struct echo *e)
{
	const amqp_basic_ack_t *ack;
	amqp_frame_t frame;

	if (check(amqp_simple_wait_frame(e->c, &frame), "confirmation"))
		return -1;
	ack = frame.payload.method.decoded;
	if (frame.frame_type != AMQP_FRAME_METHOD ||
	    frame.payload.method.id != AMQP_BASIC_ACK_METHOD || ack->delivery_tag > e->sent) {
		fprintf(stderr, "the server does not confirm a message\n");
		return -1;
	}
	e->confirmed = ack->multiple ? ack->delivery_tag : e->confirmed + 1;
	return 0;
}

/* As echo_wait(), but with 0 for what is no message, too; *timed_out: nothing has come. */
static int wait_once(struct echo *e, void *buf, size_t size, bool *timed_out)
{
	struct timeval limit = { .tv_sec = !e->unacked, .tv_usec = e->unacked ? ACK_US : 0 };
	amqp_envelope_t envelope;
	amqp_rpc_reply_t r;
	size_t len;

	amqp_maybe_release_buffers(e->c);
	r = amqp_consume_message(e->c, &envelope, &limit, 0);
	*timed_out = r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
		     r.library_error == AMQP_STATUS_TIMEOUT;
	if (*timed_out)
		return 0;
	if (e->confirm && r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
	    r.library_error == AMQP_STATUS_UNEXPECTED_STATE)
		return take_confirmation(e);
	if (check_reply(r, "message"))
		return -1;
	len = envelope.message.body.len;
	if (len <= size)
		memcpy(buf, envelope.message.body.bytes, len);
	else
		fprintf(stderr, "a message has %zu bytes\n", len);
	if (e->confirm && acknowledge(e, envelope.delivery_tag))
		len = size + 1;
	amqp_destroy_envelope(&envelope);
	return len <= size ? (int)len : -1;
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	bool a_second, timed_out;
	int n;

	do {
		a_second = !e->unacked;
		n = wait_once(e, buf, size, &timed_out);
		if (!n && acknowledge(e, 0))
			return -1;
	} while (!n && !(a_second && timed_out));
	return n;
}
