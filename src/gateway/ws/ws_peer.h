/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's side of one connection (plugin/web.h): messages in, control frames in both
 * directions, the goodbye, and whether the client is still there. What is sent as messages
 * is up to the caller.
 */
#ifndef GATEWAY_WS_WS_PEER_H
#define GATEWAY_WS_WS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/ws/frame.h"
#include "gateway/ws/silence.h"
#include "gateway/plugin/web.h"

struct ws_peer {
	struct web_stream *stream;
	struct ws_reader *reader;
	bool closing;         /* nothing is sent any more */
	struct ws_silence silence;
};

/* `message_max`: bytes of what it may say at once. 0 or -ENOMEM. */
int ws_peer_init(struct ws_peer *p, struct web_stream *s, size_t message_max,
		 uint64_t now_ns);
void ws_peer_destroy(struct ws_peer *p);

/* A whole frame of up to WS_CONTROL_MAX bytes; who is so slow that there is no room for it
 * does not get it. */
void ws_peer_control(struct ws_peer *p, enum ws_opcode opcode, const void *data, size_t len);
/* Says goodbye, once, and ends the stream behind that. */
void ws_peer_close(struct ws_peer *p, unsigned status, const char *reason);

/*
 * Takes the next message out of data[0..*len), which moves. 1: it is in *m, and if it was a
 * ping that is answered; 0: more bytes are needed, or it is closing; -EPIPE: the client said
 * goodbye, which is answered; -EPROTO: what it says is wrong (ws_reader_error()), and it was
 * told so.
 */
int ws_peer_next(struct ws_peer *p, const char **data, size_t *len, struct ws_message *m);

/* It has said something, or taken what it was sent. */
void ws_peer_heard(struct ws_peer *p, uint64_t now_ns);
/* Asks who is silent for ping_ns by a ping (silence.h). False: it has not answered for
 * timeout_ns, and is to be given up. */
bool ws_peer_watch(struct ws_peer *p, uint64_t now_ns, uint64_t ping_ns, uint64_t timeout_ns);

#endif
