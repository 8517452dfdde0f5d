/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a NATS server sends to its clients: lines, and behind those of messages their bytes. And
 * what JetStream writes into subjects. No descriptors, no clock, no memory.
 */
#ifndef GATEWAY_NODE_NATS_PROTOCOL_H
#define GATEWAY_NODE_NATS_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a line, and of a message with its head; a server allows 64 MiB at most. */
#define NATS_LINE_MAX 65536
#define NATS_MESSAGE_MAX (65 << 20)

enum nats_op { NATS_INFO, NATS_MSG, NATS_PING, NATS_PONG, NATS_OK, NATS_ERR };

struct nats_piece {
	const char *at;
	size_t len;
};

struct nats_frame {
	enum nats_op op;
	/* Of a message. `head` begins with "NATS/1.0", or is empty. */
	struct nats_piece subject, reply, head;
	uint64_t sid;
	struct nats_piece data;  /* of a message, of INFO (JSON), of -ERR (without quotes) */
	size_t size;             /* of all of it */
};

/* Reads the first of `len` bytes. 1: f, which borrows from them; 0: it has not come completely;
 * -EPROTO: no server sends that. */
int nats_frame_read(struct nats_frame *f, const char *at, size_t len);

/* The status in the first line of a head ("NATS/1.0 503"); 0: none. `*text`: what follows it. */
int nats_head_status(const struct nats_piece *head, struct nats_piece *text);
/* The number in the stream of a message whose acknowledgement goes to this subject; 0: none. */
uint64_t nats_reply_number(const struct nats_piece *reply);
/* The number at the end of a subject; 0: none. */
uint64_t nats_subject_tag(const struct nats_piece *subject);

/* Copies what can be shown; returns buf. */
const char *nats_piece_shown(const struct nats_piece *p, char *buf, size_t size);
bool nats_piece_is(const struct nats_piece *p, const char *text);

#endif
