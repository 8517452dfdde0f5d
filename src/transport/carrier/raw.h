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
 *   others leave by the carrier below, and so does what the kernel does not take.
 *
 * Order: a receiver finds frames before what came by the carrier below, so a unit that left by
 *   that may be overtaken by frames until it has been received. The other way round units keep
 *   their order.
 *
 * A frame (raw_frame.h) is the IP packet that the carrier below would have sent, or for a
 * train what it gives to the kernel for it, with a header of Ethernet whose type is that of
 * local experiments: nothing of the host but these sockets takes it. So CARRIER_RAW says that
 * the receiver has one.
 *
 * Delivery: as of the carrier below, with TOS, TTL and the identification always known.
 *
 * Waiting: for EPOLLIN of carrier_raw_fd() and what the carrier below waits for. While frames
 * come, polls look at the carrier below every CARRIER_RAW_LOOK_NS only; so one that returns 0
 * may have left its socket readable, unless carrier_raw_look_below() was called before.
 */
#ifndef TRANSPORT_CARRIER_RAW_H
#define TRANSPORT_CARRIER_RAW_H

#include <stdint.h>

#include "transport/carrier/carrier.h"
#include "util/clock_source.h"

#define CARRIER_RAW_BYTES 880 /* behind the header of UDP */
#define CARRIER_RAW_LOOK_NS 20000

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
 * CAP_NET_RAW; -ENODEV, -ENETDOWN: no loopback interface, or it is down; -EIO: a frame to
 * oneself does not arrive, as a rule of the host takes it away; -ENOMEM; or another negative
 * errno. */
int carrier_raw_open(struct carrier *below, const struct carrier_raw_params *params,
		     struct carrier **out);

int carrier_raw_fd(const struct carrier *c);

/* How often the kernel took no frame, so that the unit left by the carrier below. Any thread. */
uint64_t carrier_raw_refused(const struct carrier *c);

/* The next poll looks at the carrier below, too. For who is about to sleep, or was woken. While
 * nobody polls. */
void carrier_raw_look_below(struct carrier *c);

/* For who was told of EPOLLERR at the descriptor, as happens when the interface goes down: that
 * ends. Any thread. */
void carrier_raw_forgive(struct carrier *c);

/* Does a unit of so many bytes leave as a frame, if CARRIER_RAW and the others allow it? */
static inline int carrier_raw_is_short(size_t bytes)
{
	return bytes && bytes <= CARRIER_RAW_BYTES;
}

/* Any thread; one at a time. Makes a system call. */
void carrier_raw_count(struct carrier *c, struct carrier_raw_counters *out);

#endif
