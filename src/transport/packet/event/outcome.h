/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What became of an event: how the other end reacted to it, how many packets were sent again, and
 * how long the queue pair took to make progress. All of this is seen in the packets of the queue
 * pair that pass the place of the event afterwards, and that no event drops or corrupts there. Pure:
 * packets and times in, a line out.
 *
 * Reaction: sequence NAKs, RNR NAKs, other NAKs (refused) and CNPs that answer; where a request is
 * sent again without one, this is by the NAK that passed before the event if no acknowledgement came
 * in between, else by an implied NAK (IBTA volume 1, 9.7.5.2.8) if a response passed that comes behind
 * the packet, else by a timeout.
 * Progress: an answer that covers the PSN of the packet; of UC, where there are no answers, the
 * next message begins.
 */
#ifndef TRANSPORT_PACKET_EVENT_OUTCOME_H
#define TRANSPORT_PACKET_EVENT_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/packet/event/rules.h"

/* A packet that passes. */
struct packet_event_packet {
	uint32_t qpn;        /* the queue pair of this end */
	uint32_t psn;
	uint32_t number;     /* which one of the queue pair and direction: of first transmissions */
	uint32_t class_number; /* the same, of its class */
	uint8_t direction;   /* enum carrier_direction */
	uint8_t class;       /* enum packet_event_class */
	uint8_t service;     /* enum packet_service */
	uint8_t opcode;      /* of the BTH */
	uint8_t syndrome;    /* of ACK and NAK */
	uint8_t times;       /* how often it was sent again before; 0: never */
	bool request;        /* of the requester; CNPs are neither */
	bool begins;         /* the first packet of a message */
	bool lost;           /* by an event: dropped or corrupted */
};

enum packet_event_reaction { /* bits, in the order in which they are named */
	PACKET_EVENT_SEQUENCE_NAK = 1 << 0,
	PACKET_EVENT_RNR_NAK = 1 << 1,
	PACKET_EVENT_REFUSED = 1 << 2,
	PACKET_EVENT_TIMEOUT = 1 << 3,
	PACKET_EVENT_IMPLIED_NAK = 1 << 4,
	PACKET_EVENT_NOTIFIED = 1 << 5,
};

struct packet_event_record {
	struct packet_event_packet packet;
	uint32_t line, number; /* of the rule; of the packet, as the rule counts */
	uint8_t action;
	uint8_t reaction;      /* enum packet_event_reaction */
	uint8_t pending;       /* the same, of a NAK that passed before, see above; 0: none */
	bool open;             /* neither progress nor the end of the queue pair was seen */
	bool progressed;
	bool beyond;           /* a response behind the packet has passed */
	uint32_t sent_again;
	uint64_t at_ns, delay_ns;
	uint64_t reaction_ns, progress_ns; /* since at_ns */
};

/* The reaction that a NAK with this syndrome is. */
enum packet_event_reaction packet_event_reaction_of(uint8_t syndrome);

/* The event of `rule` takes place at `packet`, which has `number` as the rule counts. `pending`:
 * the reaction that the last answer was before, if it was a NAK; else 0. */
void packet_event_record_begin(struct packet_event_record *r, const struct packet_event_rule *rule,
			       const struct packet_event_packet *packet, uint32_t number,
			       uint8_t pending, uint64_t now_ns);
/* A later packet of the same queue pair passes; r->open. */
void packet_event_record_see(struct packet_event_record *r, const struct packet_event_packet *p,
			     uint64_t now_ns);

/* KEY=VALUE, separated by blanks, on one line; times in microseconds, `at` counts from since_ns
 * on. Keys without a value yet are left out. */
void packet_event_record_tell(const struct packet_event_record *r, uint64_t since_ns, char *line,
			      size_t bytes);

#endif
