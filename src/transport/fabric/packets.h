/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand packets as a medium of transport/packet: BTH to ICRC (IBTA volume 1, chapter 9), where
 * the addresses of units stand for LRH and GRH (link.h). The P_Key of a packet is that of its queue
 * pair's index in the table of the port (10.9).
 *
 * Not here: FECN and BECN (annex A10), so a marked packet is one like others.
 */
#ifndef TRANSPORT_FABRIC_PACKETS_H
#define TRANSPORT_FABRIC_PACKETS_H

#include "transport/packet/base/port.h"

extern const struct packet_medium fabric_medium;

#endif
