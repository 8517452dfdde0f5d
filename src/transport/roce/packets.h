/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCE v2 packets as a medium of transport/packet (IBTA annex A17). Pure functions, but for
 * `roce_udp_port`. */
#ifndef TRANSPORT_ROCE_PACKETS_H
#define TRANSPORT_ROCE_PACKETS_H

#include <stdint.h>

#include "transport/packet/packet.h"

/* The UDP port of this process and of all peers; set before the first packet. */
extern uint16_t roce_udp_port;

extern const struct packet_medium roce_medium;

/* Does the address vector name an address that UDP can reach? */
bool roce_is_address(const struct ibv_ah_attr *to);

#endif
