/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 packets as a medium of transport/packet (IBTA annex A17). Pure functions, except that
 * they read `roce_udp_port`.
 *
 * Packets that are too long for the interface leave as IP fragments, by another socket
 * (carrier/udp.h). Annex A17 does not know fragments: only busbar understands them. Their ICRC is
 * that of the whole packet with the Don't Fragment bit and, of IPv4, the identification 0, as
 * neither end knows the identification that the kernel chooses; the source port is the one that
 * the receiver sees, mostly the shared one. Once a packet of a connection was too long, all its
 * packets leave that way, so that they keep their order.
 */
#ifndef TRANSPORT_ROCE_PACKETS_H
#define TRANSPORT_ROCE_PACKETS_H

#include <stdint.h>

#include "transport/packet/base/port.h"

/* The UDP port of this process and of all peers; set before the first packet. */
extern uint16_t roce_udp_port;

extern const struct packet_medium roce_medium;

/* Does the address vector, which has a GRH, name an address that UDP can reach? */
bool roce_is_address(const struct ibv_ah_attr *to);

#endif
