/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packets of a queue pair have passed, by their PSN, so that a retransmission is known
 * from a first transmission: the packets of one direction and one kind (requests, responses,
 * acknowledgements, NAKs), each of which has PSNs of its own. The last 4096 are remembered.
 *
 * A READ that is repeated from its middle on has a PSN that no request had; it is found by the
 * end of its range.
 */
#ifndef TRANSPORT_PACKET_EVENT_HISTORY_H
#define TRANSPORT_PACKET_EVENT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/rc/packet.h"

#define PACKET_HISTORY_PACKETS 4096
#define PACKET_HISTORY_READS 64

struct packet_history_entry {
	uint32_t psn;
	uint32_t stamp;         /* packet_history.count when it passed first; 0: unused */
	uint32_t number;        /* the owner's: its number among the first transmissions */
	uint32_t class_number;  /* the owner's: the same among those of its class */
	uint8_t times;          /* how often it was sent again, up to 255 */
};

struct packet_history {
	uint32_t count;         /* of first transmissions */
	struct packet_history_entry entry[PACKET_HISTORY_PACKETS];
	unsigned reads;         /* how many; the last ones are in `read` */
	struct packet_history_read {
		uint32_t psn, rkey;
		uint64_t from, end;
	} read[PACKET_HISTORY_READS];
};

/* The packet passes. Its entry: of a first transmission a new one, with `times` 0 and both numbers
 * 0, for the owner to fill in. */
struct packet_history_entry *packet_history_see(struct packet_history *h,
						const struct rc_packet *packet);

#endif
