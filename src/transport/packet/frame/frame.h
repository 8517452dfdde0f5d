/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet between queue pairs, without its payload and without the layout on a wire. */
#ifndef TRANSPORT_PACKET_FRAME_H
#define TRANSPORT_PACKET_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/rc/packet.h"
#include "hca/limits.h"

#define PACKET_MTU 4096          /* the longest payload */
#define PACKET_HEADER_BYTES 192  /* the longest header that encode() of a medium writes */

/* Why bytes are not a frame. */
enum packet_fault { PACKET_MALFORMED, PACKET_BAD_ICRC };

enum packet_service { PACKET_RC, PACKET_UC, PACKET_UD, PACKET_XRC };

/* Which header a datagram of RoCE v2 had (IBTA annex 17, A17.4.5.1). */
enum packet_network_header { PACKET_ROCE_V2_IPV6 = 0x9, PACKET_ROCE_V2_IPV4 = 0xa };

struct packet_frame {
	/* UD: op RC_SEND, bytes, imm and their flags. With `more` the frame is a run of packets
	 * that came; packets that leave have a frame each. */
	struct rc_packet rc;
	uint8_t service;     /* enum packet_service */
	bool ipv4;           /* UD: `grh` holds an IPv4 header */
	/* UD that came: is there a header in `grh`; and the members of the completion. */
	bool global;
	uint8_t sl;          /* of RoCE: enum packet_network_header */
	uint8_t path_bits;
	uint16_t slid, pkey_index;
	uint32_t dst_qpn, src_qpn;
	uint32_t stride;     /* distance between the payloads of a run */
	uint32_t srqn;       /* XRC requests */
	uint32_t qkey;       /* UD */
	uint8_t grh[HCA_GRH_BYTES]; /* UD, as the receiver finds it */
};

#endif
