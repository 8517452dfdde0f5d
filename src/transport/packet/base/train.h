/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that leave together; see train.c. */
#ifndef TRANSPORT_PACKET_BASE_TRAIN_H
#define TRANSPORT_PACKET_BASE_TRAIN_H

#include "hca/limits.h"
#include "transport/packet/base/port.h"

/* Where a packet of a train lies: its header in `text`, with its trailer behind it, and its payload
 * in `iov`; or all of it in `room`. */
struct packet_part_of_train {
	uint8_t *header;
	uint16_t placed; /* bytes of payload in `room`, between header and trailer */
	uint8_t header_bytes, payload, pieces;
};

/* Packets for one destination that leave together. All but the last one have the length of
 * the first one. Where payloads stay where they are, pieces of `iov` are, in turns, text and
 * payload: the trailer of a packet and the header of the next one are one piece. The kernel takes
 * long to gather many pieces, so packets of a run lie one behind the other in `room`. */
struct packet_train {
	struct packet_port *port;
	struct packet_route *route;
	struct icrc_series *series; /* of the route */
	uint32_t qpn;     /* of the queue pair that sends */
	bool fragments;   /* packet_route.fragments when the train began */
	unsigned most;    /* packets that may leave together */
	unsigned packets, pieces;
	uint32_t segment; /* length of the first packet */
	uint32_t bytes, text_bytes, room_bytes;
	uint8_t *room;    /* PACKET_TRAIN_BYTES; NULL: only packet_train_end() may be called */
	bool ended;       /* no packet may follow */
	bool lost;        /* it is shown, and gets lost (CARRIER_LOST) */
	uint32_t length;  /* length of the header of the packet that is being added */
	struct packet_part_of_train packet[PACKET_TRAIN_MAX];
	struct iovec iov[CARRIER_IOV_MAX];
	uint8_t text[PACKET_TRAIN_MAX * (PACKET_HEADER_BYTES + PACKET_TRAILER_BYTES)];
};
_Static_assert(CARRIER_IOV_MAX <= UINT8_MAX + 1 && PACKET_HEADER_BYTES <= UINT8_MAX, "it fits");

/* `series`: zeros, or that of an earlier train of the route. */
static inline void packet_train_open(struct packet_train *t, struct packet_port *port, uint32_t qpn,
				     struct packet_route *route, struct icrc_series *series)
{
	t->port = port;
	t->qpn = qpn;
	t->route = route;
	t->series = series;
	t->most = port->train();
	t->fragments = atomic_load_explicit(&route->fragments, memory_order_relaxed);
	t->packets = t->pieces = 0;
	t->bytes = t->text_bytes = t->room_bytes = 0;
	t->room = NULL;
	t->ended = t->lost = false;
}

/* Begins one more packet. Returns room for up to HCA_MAX_SGE pieces of its payload, or NULL: the
 * train has to leave first. An empty train takes any packet. */
struct iovec *packet_train_begin(struct packet_train *t, const struct packet_frame *f);
/* Ends the packet, whose `n` pieces of payload that iovec names. */
void packet_train_end(struct packet_train *t, unsigned n);
/* How many packets with the header that was begun last, and a payload of so many bytes in one
 * piece, the train still takes. */
uint32_t packet_train_room(const struct packet_train *t, uint32_t payload);
/* Where the payload of the packet that was begun goes in `room`, and those of more packets with the
 * same header and as many bytes, at `stride` behind each other; as many as packet_train_room()
 * says. */
uint8_t *packet_train_place(const struct packet_train *t, uint32_t bytes, uint32_t *stride);
/* Ends the packet that was begun, which is `like`, with its payload in that place; and for `i` from 1
 * on in this order, without another packet between them, packets that differ from it in the PSN. */
void packet_train_placed(struct packet_train *t, const struct rc_packet *like, uint32_t i);
/* Emits the train: 0, or why the carrier took none of it. Packets that are too long leave in
 * fragments, where the medium allows it, and so do later ones of the route. */
int packet_train_emit(struct packet_train *t);

#endif
