/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter over the carrier over UDP: short packets to processes of this host go past IP and
 * UDP, by packet sockets (packet(7)) on the loopback interface. Sending costs a third, and
 * who polls reads memory that it shares with the kernel (PACKET_RX_RING), without a system
 * call. Needs CAP_NET_RAW. Rules of a firewall for the loopback interface do not see them.
 *
 * What leaves as a raw frame
 *   Units with CARRIER_RAW and CARRIER_FROM, and without CARRIER_INTERFACE and
 *   CARRIER_FRAGMENTS, of at most CARRIER_RAW_BYTES, trains too: a train is one frame. All
 *   others leave by the carrier below, and so do short ones while another unit with
 *   CARRIER_RAW went that way shortly before (CARRIER_RAW_APART_NS): units keep their order
 *   that way, as the receiver looks in two places. It finds them in another order only if it
 *   has not looked for so long.
 *   What the kernel does not take leaves by the carrier below.
 *
 * A frame (raw_frame.h) is the IP packet that the carrier below would have sent, or for a
 * train what it gives to the kernel for it, with a header of Ethernet whose type is that of
 * local experiments: nothing of the host but these sockets takes it. So CARRIER_RAW says that
 * the receiver has one.
 *
 * Delivery: as of the carrier below, with TOS, TTL and the identification always known.
 * Frames come before what the carrier below delivers in the same poll.
 *
 * Waiting: for EPOLLIN of carrier_raw_fd() and what the carrier below waits for. While frames
 * come, a poll looks at the carrier below in one of some tens only; so one that returns 0 may
 * have left its socket readable.
 */
#ifndef TRANSPORT_CARRIER_RAW_H
#define TRANSPORT_CARRIER_RAW_H

#include <stdint.h>

#include "transport/carrier/carrier.h"
#include "util/clock_source.h"

#define CARRIER_RAW_BYTES 880 /* behind the header of UDP */
#define CARRIER_RAW_APART_NS 5000000

struct carrier_raw_params {
	uint16_t port;    /* of UDP, of all frames: source and destination */
	/* Taken are frames of which the second four bytes behind the header of UDP, as a
	 * number of the network, are `value` under `mask`. */
	uint32_t mask, value;
	struct clock_source clock;
};

struct carrier_raw_counters {
	uint64_t sent;     /* frames */
	uint64_t refused;  /* by the kernel; they left by the carrier below */
	uint64_t received;
	uint64_t malformed;
	uint64_t overrun;  /* the ring was full; since the last call */
};

/* Over `below`, a carrier over UDP, which is the filter's when this succeeds. 0; -EPERM: no
 * CAP_NET_RAW; -ENODEV: no loopback interface; -ENOMEM; or another negative errno. */
int carrier_raw_open(struct carrier *below, const struct carrier_raw_params *params,
		     struct carrier **out);

int carrier_raw_fd(const struct carrier *c);

/* Any thread; one at a time. Makes a system call. */
void carrier_raw_count(struct carrier *c, struct carrier_raw_counters *out);

#endif
