/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture of the process (BUSBAR_CAPTURE, carrier/capture.h): frames as the RoCE v2
 * packets that an adapter would have sent, with headers of Ethernet, IP and UDP, with
 * right lengths and checksums and with their ICRC. All transports share one capture, with
 * an interface for each.
 *
 * What such a packet has beyond its frame:
 *   addresses  of a datagram those in its GRH, else those of the connection, by its GIDs;
 *              127.0.0.1 where a queue pair of another process stands for this one (XRC).
 *              IPv4 if both are IPv4 addresses. Identification 0, Don't Fragment.
 *   MAC        02:00 and the last four bytes of the address; that of a group for a group.
 *   UDP        from a port that the numbers of the queue pairs choose, to 4791.
 */
#ifndef TRANSPORT_PACKET_FRAME_SHOW_H
#define TRANSPORT_PACKET_FRAME_SHOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "hca/object/qp.h"
#include "hca/path/transport.h"
#include "transport/carrier/carrier.h"
#include "transport/packet/frame/frame.h"

/* Is a capture wanted? Constant in the life of the process. */
bool packet_show_wanted(void);
/* With the start and the stop of each transport that shows; without need if no capture is
 * wanted. If the file cannot be opened, that is told, and nothing is shown.
 * process.lock is held. */
void packet_show_start(void);
void packet_show_stop(void);
/* In a forked child. */
void packet_show_forked(void);

/* The queue pair enters RTR: its addresses are those of its attributes. No lock is held. */
void packet_show_connected(const struct hca_qp *qp);
/* It is reset or destroyed. */
void packet_show_closed(const struct hca_qp *qp);
/* The path MTU of a queue pair that is connected, else 1024. */
uint32_t packet_show_mtu(uint32_t qpn);

/* One packet. `ops`: the transport; the payload, f->rc.bytes, is in `n` pieces. `comment`
 * may be NULL. Any thread, with any locks. Nothing is done between packet_show_stop()
 * and packet_show_start(). */
void packet_show(const struct hca_transport_ops *ops, enum carrier_direction direction,
		 const struct packet_frame *f, const struct iovec *payload, unsigned n,
		 const char *comment);

/* The ends of a packet: addresses as GIDs. */
struct packet_ends {
	uint8_t src[16], dst[16];
	uint8_t tos, ttl;
	uint16_t src_port, dst_port, ip_id;
};

/* One packet whose bytes from the BTH to the ICRC are there, PACKET_SHOW_IB at most. */
#define PACKET_SHOW_IB (PACKET_HEADER_BYTES + PACKET_MTU + 3 + 4)
void packet_show_bytes(const struct hca_transport_ops *ops,
		       enum carrier_direction direction, const struct packet_ends *ends,
		       const void *ib, size_t bytes);

/* A segment of TCP; `ends` are those of its sender. At most PACKET_SHOW_STREAM bytes. */
struct packet_tcp {
	uint32_t seq, ack;
	bool syn, fin, rst, acks;
};
#define PACKET_SHOW_STREAM 4096
void packet_show_tcp(const struct hca_transport_ops *ops, enum carrier_direction direction,
		     const struct packet_ends *ends, const struct packet_tcp *tcp,
		     const void *data, size_t bytes);

/* What packet_show() writes; how many bytes. Pure. */
#define PACKET_SHOW_BYTES (14 + 40 + 8 + PACKET_SHOW_IB)
size_t packet_show_encode(const struct packet_ends *ends, const struct packet_frame *f,
			  const struct iovec *payload, unsigned n,
			  uint8_t to[PACKET_SHOW_BYTES]);
/* Likewise for packet_show_bytes(). */
size_t packet_show_wrap(const struct packet_ends *ends, const void *ib, size_t bytes,
			uint8_t to[PACKET_SHOW_BYTES]);
/* Likewise for packet_show_tcp(). */
size_t packet_show_segment(const struct packet_ends *ends, const struct packet_tcp *tcp,
			   const void *data, size_t bytes, uint8_t to[PACKET_SHOW_BYTES]);

#endif
