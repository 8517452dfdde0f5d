/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to a client. They wait in a ring of its own until the socket takes them; nothing waits for a
 * client. Packets and MADs that find the ring filled are lost and counted. A client for which
 * even other messages find no place is to end: it asks without reading.
 */
#ifndef FABRIC_SERVE_OUT_H
#define FABRIC_SERVE_OUT_H

#include "fabric/serve/state.h"

/* Another reference of `b`, a packet or MAD. */
void serve_out_packet(struct serve_client *c, struct serve_buffer *b);
/* A message with a copy of `body`. */
void serve_out_message(struct serve_client *c, enum plug_type type, uint32_t a, uint32_t b,
		       const void *body, size_t bytes);
/* The answer to a question that asked for one. */
void serve_out_done(struct serve_client *c, int err, uint32_t b);
/* The state of its port, once the socket has room, and then the latest. */
void serve_out_port(struct serve_client *c);
/* A text that is freed when it is gone, and then PLUG_DONE. */
void serve_out_text(struct serve_client *c, char *text, size_t bytes, int err, uint32_t b);
/* A line for a person, behind which the connection ends. */
void serve_out_refuse(struct serve_client *c, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Looks at the client at the end of this turn. */
void serve_out_touch(struct serve_client *c);
/* Writes what the socket takes; false: the connection has ended. */
bool serve_out_flush(struct serve_client *c);
/* Does anything wait? */
bool serve_out_waits(const struct serve_client *c);
/* Forgets all. */
void serve_out_free(struct serve_client *c);

#endif
