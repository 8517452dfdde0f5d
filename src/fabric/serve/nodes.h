/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the agents of the nodes and the packets and clients of the fabric's process. */
#ifndef FABRIC_SERVE_NODES_H
#define FABRIC_SERVE_NODES_H

#include "fabric/serve/state.h"

struct ib_native;

/* Opens the agents of all nodes, whose engine stands. 0 or a negative errno. */
int serve_nodes_open(struct serve *s);
/* A datagram to QP0 or QP1 has come to a port of the node. */
void serve_nodes_receive(struct serve *s, uint32_t node, uint8_t port, const uint8_t *packet,
			 const struct ib_native *n);
/* The port of an adapter; NULL: a switch, or no such port. */
struct serve_host *serve_nodes_host(struct serve *s, uint32_t node, uint8_t port);

/* The node "NAME", or "NAME:PORT"; *port 0: none is given. TOPOLOGY_NONE: there is none. */
uint32_t serve_nodes_find(const struct serve *s, const char *name, unsigned *port);
/* ", did you mean ...?" for a name that was not found, of nodes of a kind (0: of any); or "". */
const char *serve_nodes_hint(const struct serve *s, const char *name, int kind, char *buf, size_t size);

#endif
