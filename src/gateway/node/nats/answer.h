/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of JetStream to messages that were published: JSON, from anybody who knows the inbox. */
#ifndef GATEWAY_NODE_NATS_ANSWER_H
#define GATEWAY_NODE_NATS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

struct nats_answer {
	bool good;             /* the stream has stored the message */
	int code;              /* of an error, as of HTTP */
	char text[200];        /* of an error */
};

/* False: it is no answer. */
bool nats_answer_read(struct nats_answer *a, const char *data, size_t len);
#endif
