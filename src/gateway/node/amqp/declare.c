/* SPDX-License-Identifier: BSD-2-Clause */
/* What the node needs at the server: exchange, queue, bindings, consumer. */
#define LOG_ROOM "gateway/amqp"
#include "gateway/node/amqp/amqp.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>

#include "util/clock.h"

static const char *const type_names[] = { "direct", "fanout", "topic", "direct" };

int amqp_node_limit(struct amqp_node *a, uint64_t end_ns)
{
	uint64_t now = clock_now_ns(), left = now < end_ns ? end_ns - now : 0;
	struct timeval t = { .tv_sec = (time_t)(left / NSEC_PER_SEC),
			     .tv_usec = (suseconds_t)(left % NSEC_PER_SEC / 1000) };

	if (outside_is_ending(&a->outside))
		return -EINTR;
	if (!left)
		return outside_fail_silent(&a->outside);
	amqp_set_handshake_timeout(a->state, &t);
	amqp_set_rpc_timeout(a->state, &t);
	return 0;
}

/* After a call that waited for an answer. */
static int check(struct amqp_node *a, const char *what)
{
	amqp_rpc_reply_t reply = amqp_get_rpc_reply(a->state);

	return reply.reply_type == AMQP_RESPONSE_NORMAL ? 0 :
							  amqp_node_fail_reply(a, what, reply);
}

static int declare_exchange(struct amqp_node *a, uint64_t end_ns)
{
	int ret = amqp_node_limit(a, end_ns);

	/* The one without a name is always there. */
	if (ret || !*a->exchange)
		return ret;
	amqp_exchange_declare(a->state, AMQP_NODE_CHANNEL, amqp_cstring_bytes(a->exchange),
			      amqp_cstring_bytes(type_names[a->exchange_type]),
			      a->exchange_type == AMQP_NODE_PASSIVE, a->durable, 0, 0,
			      amqp_empty_table);
	return check(a, "the exchange");
}

static int bind_queue(struct amqp_node *a, amqp_bytes_t queue, uint64_t end_ns)
{
	int ret = 0;

	/* To the exchange without a name each queue is bound by its own name. */
	for (unsigned i = 0; i < a->key_count && *a->exchange && !ret; i++) {
		ret = amqp_node_limit(a, end_ns);
		if (ret)
			break;
		amqp_queue_bind(a->state, AMQP_NODE_CHANNEL, queue, amqp_cstring_bytes(a->exchange),
				amqp_cstring_bytes(a->key[i]), amqp_empty_table);
		ret = check(a, "the binding");
	}
	return ret;
}

static int consume(struct amqp_node *a, amqp_bytes_t queue, uint64_t end_ns)
{
	int ret = amqp_node_limit(a, end_ns);

	if (ret)
		return ret;
	amqp_basic_qos(a->state, AMQP_NODE_CHANNEL, 0, (uint16_t)a->prefetch, 0);
	ret = check(a, "in.prefetch") ?: amqp_node_limit(a, end_ns);
	if (ret)
		return ret;
	amqp_basic_consume(a->state, AMQP_NODE_CHANNEL, queue, amqp_empty_bytes, 0, 0, 0,
			   amqp_empty_table);
	return check(a, "reading the queue");
}

static int declare_queue(struct amqp_node *a, uint64_t end_ns)
{
	amqp_bytes_t queue = a->queue ? amqp_cstring_bytes(a->queue) : amqp_empty_bytes;
	char name[AMQP_NODE_NAME_MAX + 1];
	amqp_queue_declare_ok_t *ok;
	int ret = amqp_node_limit(a, end_ns);

	if (ret || !a->declare)
		return ret ?: consume(a, queue, end_ns);
	/* Without a name it lasts as long as the connection. */
	ok = amqp_queue_declare(a->state, AMQP_NODE_CHANNEL, queue, 0, a->queue != NULL, !a->queue,
				!a->queue, amqp_empty_table);
	ret = check(a, "the queue");
	if (!ret && (!ok || ok->queue.len > AMQP_NODE_NAME_MAX))
		ret = outside_fail(&a->outside, -EPROTO, "the server names no queue");
	if (ret)
		return ret;
	/* The library's memory of the answer ends with the next call. */
	memcpy(name, ok->queue.bytes, ok->queue.len);
	queue = (amqp_bytes_t){ ok->queue.len, name };
	return bind_queue(a, queue, end_ns) ?: consume(a, queue, end_ns);
}

int amqp_node_declare(struct amqp_node *a, uint64_t end_ns)
{
	const struct node *n = a->outside.node;
	int ret = amqp_node_limit(a, end_ns);

	if (ret)
		return ret;
	amqp_channel_open(a->state, AMQP_NODE_CHANNEL);
	ret = check(a, "a channel");
	if (!ret)
		ret = declare_exchange(a, end_ns);
	if (!ret && n->is_destination)
		ret = amqp_node_limit(a, end_ns);
	if (!ret && n->is_destination) {
		amqp_confirm_select(a->state, AMQP_NODE_CHANNEL);
		ret = check(a, "confirmations");
	}
	if (!ret && n->is_source)
		ret = declare_queue(a, end_ns);
	return ret;
}
