/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that clients send. Nothing in them is believed: lengths, source and destination LID, P_Key and
 * source queue pair are compared with what the fabric knows of the client and its port.
 */
#ifndef FABRIC_SERVE_PACKET_H
#define FABRIC_SERVE_PACKET_H

#include "fabric/serve/state.h"

/* The packet, a checked PLUG_PACKET, goes into the fabric, to the host itself, or is refused and counted.
 * The buffer is this function's. */
void serve_packet_take(struct serve_client *c, struct serve_buffer *b);
/* "slid": the name of a count. */
const char *serve_packet_refused_name(enum serve_refused kind);

#endif
