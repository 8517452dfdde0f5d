/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection of a process: its hello, its messages, its end. */
#ifndef FABRIC_SERVE_CLIENT_H
#define FABRIC_SERVE_CLIENT_H

#include "fabric/serve/state.h"

/* Takes the connections that wait. */
void serve_client_accept(struct serve *s);
/* Reads some messages. */
void serve_client_read(struct serve_client *c);
/* Carries out a message of `bytes` bytes as it was received. The buffer is this function's. */
void serve_client_message(struct serve_client *c, struct serve_buffer *b, size_t bytes);
/* Writes what waits, and tells epoll what to wait for; ends a connection that is over. */
void serve_client_settle(struct serve_client *c);
/* It has not said hello, or has not taken its refusal, in time. */
void serve_client_expire(struct serve_client *c);
/* Ends the connection; the structure lives until serve_client_free_gone(). */
void serve_client_end(struct serve_client *c);
void serve_client_free_gone(struct serve *s);

#endif
