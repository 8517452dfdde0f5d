/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a call of the library failed, for messages. */
#include <errno.h>
#include <stdio.h>

#include "gateway/node/amqp/amqp.h"

int amqp_node_fail(struct amqp_node *a, int ret, const char *what, int status)
{
	const char *between = *what ? ": " : "";

	if (status == AMQP_STATUS_TIMEOUT)
		return outside_fail(&a->outside, -ETIMEDOUT, "%s%sit does not answer in time", what,
				    between);
	if (status == AMQP_STATUS_HEARTBEAT_TIMEOUT)
		return outside_fail(&a->outside, ret, "%s%sit is silent for too long (heartbeat)",
				    what, between);
	return outside_fail(&a->outside, ret, "%s%s%s", what, between, amqp_error_string2(status));
}

int amqp_node_fail_closed(struct amqp_node *a, const char *what, const amqp_method_t *m)
{
	const amqp_connection_close_t *of_all = m->decoded;
	const amqp_channel_close_t *of_channel = m->decoded;
	amqp_bytes_t text;
	int code;

	if (m->id == AMQP_CONNECTION_CLOSE_METHOD) {
		code = of_all->reply_code;
		text = of_all->reply_text;
	} else if (m->id == AMQP_CHANNEL_CLOSE_METHOD) {
		code = of_channel->reply_code;
		text = of_channel->reply_text;
	} else {
		return outside_fail(&a->outside, -EPROTO, "%s: the answer makes no sense", what);
	}
	return outside_fail(&a->outside, code == 403 ? -EACCES : -ECONNRESET, "%s: %d %.*s", what, code,
			    (int)MIN(text.len, (size_t)200), (const char *)text.bytes);
}

int amqp_node_fail_reply(struct amqp_node *a, const char *what, amqp_rpc_reply_t reply)
{
	char text[100];

	if (outside_is_ending(&a->outside))
		return -EINTR;
	snprintf(text, sizeof(text), "the server refuses %s", what);
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
		return amqp_node_fail_closed(a, text, &reply.reply);
	if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
		return amqp_node_fail(a, -ECONNRESET, what, reply.library_error);
	return outside_fail(&a->outside, -EPROTO, "%s: no answer", what);
}
