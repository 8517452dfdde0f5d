/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between frames and the bytes of RoCE v2 packets (wire/ib/header.h). Pure functions of
 * any thread.
 *
 * What a frame has and such a packet does not carry:
 * - src_qpn of RC, UC and XRC: decoded as 0. The receiver knows its peer by dst_qpn, and
 *   checks the source address instead.
 * - grh and ipv4 of UD: the IP header holds that. They are decoded as 0, and the transport
 *   sets them.
 * - rc.length of atomics: decoded as 8. The length of a SEND is nowhere, as in the engine.
 * - service of a CNP, which is for a queue pair of any: decoded as PACKET_RC.
 * - rc.psn of UD is carried and may have any value; the engine does not look at it.
 */
#ifndef TRANSPORT_PACKET_FRAME_IB_H
#define TRANSPORT_PACKET_FRAME_IB_H

#include <stddef.h>
#include <stdint.h>

#include "transport/packet/frame/frame.h"

/* Writes BTH and extended headers; returns their length, 0: the service has no such
 * operation. P_Key 0xffff, MigReq set, pad count by rc.bytes. The caller puts payload,
 * ib_pad(rc.bytes) zero bytes and the ICRC behind. */
size_t packet_ib_encode(const struct packet_frame *f, uint8_t to[PACKET_HEADER_BYTES]);

/* The PSN of an encoded packet, which is part of its BTH (wire/ib/header.h). */
static inline uint32_t packet_ib_psn(const uint8_t *header)
{
	return (uint32_t)header[9] << 16 | (uint32_t)header[10] << 8 | header[11];
}

static inline void packet_ib_renumber(uint8_t *header, uint32_t psn)
{
	header[9] = (uint8_t)(psn >> 16);
	header[10] = (uint8_t)(psn >> 8);
	header[11] = (uint8_t)psn;
}

/* The P_Key of an encoded packet. */
static inline uint16_t packet_ib_pkey(const uint8_t *header)
{
	return (uint16_t)(header[2] << 8 | header[3]);
}

static inline void packet_ib_set_pkey(uint8_t *header, uint16_t pkey)
{
	header[2] = (uint8_t)(pkey >> 8);
	header[3] = (uint8_t)pkey;
}

/* `bytes` are those from the BTH to the ICRC, which the caller has checked. Returns the
 * length of the headers; 0: no packet for a queue pair, to be dropped: not one by
 * ib_decode(), of another partition than the default one, a payload of more than PACKET_MTU,
 * or a reserved AETH syndrome. rc.bytes is the payload without pad; it lies within `bytes`. */
size_t packet_ib_decode(const uint8_t *from, size_t bytes, struct packet_frame *f);
/* The same for a packet of any partition. */
size_t packet_ib_decode_any(const uint8_t *from, size_t bytes, struct packet_frame *f);

#endif
