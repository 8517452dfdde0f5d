/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may plug in, and where: the greeting of a client. */
#ifndef FABRIC_SERVE_HELLO_H
#define FABRIC_SERVE_HELLO_H

#include "fabric/serve/state.h"

/* Asks the kernel who the peer of a new connection is. It is refused only when it has said hello: a
 * connection that ends before would take the reason from it. */
void serve_hello_peer(struct serve_client *c);
/* The answer to a hello: a welcome and the state of the port, or a refusal. */
void serve_hello(struct serve_client *c, const struct plug_hello *hello);

#endif
