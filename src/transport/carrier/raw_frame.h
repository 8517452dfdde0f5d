/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of raw.h: headers of Ethernet, IP and UDP, without options, and the packet. Of a
 * train all packets follow, the lengths in the headers span them, and the last two bytes of the
 * Ethernet source address, which are 0 otherwise, have the length of each packet. Pure functions.
 */
#ifndef TRANSPORT_CARRIER_RAW_FRAME_H
#define TRANSPORT_CARRIER_RAW_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/carrier/carrier.h"
#include "transport/carrier/raw.h"

/* IEEE 802: "local experimental ethertype 1", which no protocol has. */
#define RAW_ETHERTYPE 0x88b5
#define RAW_ETHERNET_BYTES 14
#define RAW_UDP_BYTES 8
#define RAW_HEADERS_V4 (RAW_ETHERNET_BYTES + 20 + RAW_UDP_BYTES)
#define RAW_HEADERS_V6 (RAW_ETHERNET_BYTES + 40 + RAW_UDP_BYTES)
#define RAW_FRAME_BYTES (RAW_HEADERS_V6 + CARRIER_RAW_BYTES)

/* The frame of the unit, which has `bytes`, CARRIER_RAW_BYTES at most. `port`: both ports. How
 * long it is; 0: `from` and `to` are not addresses of one IP version. */
size_t raw_frame_write(const struct carrier_unit *unit, size_t bytes, uint16_t port,
		       uint8_t frame[RAW_FRAME_BYTES]);

/* The other way. Fills segment, from, to, tos, ttl, ip_id and known of the unit, and *packets,
 * which lies in the frame. False: it is none. */
bool raw_frame_read(const uint8_t *frame, size_t bytes, struct carrier_unit *unit,
		    struct iovec *packets);

#endif
