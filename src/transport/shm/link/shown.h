/* SPDX-License-Identifier: BSD-2-Clause */
/* What a link keeps for a capture (watch/watch.h) and for faults (watch/faults.h). */
#ifndef TRANSPORT_SHM_LINK_SHOWN_H
#define TRANSPORT_SHM_LINK_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/carrier/impair.h"
#include "transport/packet/frame/frame.h"
#include "transport/shm/ring/ring.h"

/* One slot's part of a message. */
struct shm_part_shown {
	struct packet_frame frame; /* what all of its packets have in common */
	const uint8_t *data;       /* NULL: none */
	uint32_t at, bytes, length;
	uint32_t psn;              /* of the message's first packet */
	uint32_t mtu;
	bool more, answered, none; /* none: the capture does not show it */
};

/* The faults of a link. */
struct shm_faults_of {
	struct impair_lane out; /* under tx_lock */
	struct impair_lane in;  /* under rx_lock, like the following members */
	bool open;              /* the lanes are set */
	uint32_t seen;          /* the fate of the slots before this position is decided */
	struct {
		uint64_t due_ns;
		bool lost;
	} slots[SHM_SLOTS];
};

#endif
