/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that are too long for the interface; packets.h says what becomes of them. */
#ifndef TRANSPORT_ROCE_TOO_LONG_H
#define TRANSPORT_ROCE_TOO_LONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet_route;

/* The UDP port from which packets leave in fragments; 0: none can. Set before the first packet. */
extern uint16_t roce_fragment_port;

/* As packet_medium.too_long. The first call of the process logs the interface and the remedy. */
bool roce_too_long(const struct packet_route *route, size_t bytes);

/* The longest path MTU whose packets fit an interface of `mtu` bytes; 0: none. */
unsigned roce_path_mtu(unsigned mtu, bool ipv4);

#endif
