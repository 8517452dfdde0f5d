/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of a connection (RC, UC): which packet is expected, what it needs to be
 * carried out, what is answered, and which answers are repeated. IBTA volume 1, 9.7
 * and 9.8.3.
 *
 * Pure, like requester.h. Requests are handled by pairs of calls: rc_look() says what a
 * packet needs and changes nothing; the caller takes a receive, checks the key and
 * copies the payload; rc_take() gets the result. Answers are sent by pairs as well:
 * rc_respond_next() and rc_responded().
 */
#ifndef ENGINE_RC_RESPONDER_H
#define ENGINE_RC_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"

#define RC_RESOURCES_MAX 16 /* max_dest_rd_atomic */

struct rc_responder_params {
	bool reliable;
	uint32_t mtu;
	uint32_t psn;          /* rq_psn */
	uint8_t max_rd_atomic; /* max_dest_rd_atomic, up to RC_RESOURCES_MAX */
	uint8_t min_rnr_timer; /* its 5-bit code */
	uint64_t ack_delay_ns; /* how long a requested acknowledgement may wait for
				* one that acknowledges more */
};

/* A READ or atomic, stored because the peer may repeat it. */
struct rc_resource {
	uint8_t op;
	uint32_t first_psn, last_psn, msn;
	uint32_t next_psn;  /* of the next packet of its response */
	uint32_t rkey, length;
	uint64_t remote_addr; /* address of the data of first_psn */
	uint64_t old_value;
};

struct rc_responder {
	struct rc_responder_params p;
	uint32_t expected_psn, msn;
	/* Operation of the incomplete message, RC_ACK: none; of a WRITE its range. */
	uint8_t message;
	bool claimed;         /* the caller has taken a receive for it */
	bool skipping;        /* UC: packets are dropped until a message begins */
	uint32_t at;          /* bytes of it that have come */
	uint32_t rkey, length;
	uint64_t remote_addr;
	/* Counters modulo 2^32: [answered, taken) wait for their responses; those before
	 * `repeated` have had one already. */
	struct rc_resource resources[RC_RESOURCES_MAX];
	uint32_t resources_taken, resources_answered, resources_repeated;
	uint8_t syndrome;     /* of the ACK or NAK that is sent after the responses */
	uint32_t nak_psn;
	bool owed;
	uint64_t due_ns;
	bool told_sequence;   /* a NAK for the gap was sent or is to be sent */
	bool failed;          /* a fatal NAK: nothing is accepted any more */
};

/* What the caller has to do for a packet; bits. */
enum rc_need {
	RC_NEED_RECEIVE = 1 << 0, /* take a receive; the length of a SEND is unknown */
	RC_NEED_PLACE = 1 << 1,   /* copy the payload into the receive at `at` (SEND),
				   * or check the key and copy to remote_addr (WRITE) */
	RC_NEED_READ = 1 << 2,    /* check the key for reading `length` bytes */
	RC_NEED_ATOMIC = 1 << 3,  /* carry it out, on 8 bytes at remote_addr */
	RC_NEED_INVALIDATE = 1 << 4, /* the key `imm`, after the copy */
	RC_NEED_COMPLETE = 1 << 5,   /* complete the receive */
};

struct rc_look {
	uint8_t verdict;  /* enum rc_verdict */
	uint8_t needs;
	uint8_t op;       /* of the message: RC_SEND ... */
	uint32_t at;      /* position of the payload in the message */
	uint32_t rkey, length;
	uint64_t remote_addr;
};

enum rc_verdict {
	RC_EXPECTED,
	RC_AGAIN,    /* a duplicate: its answer is repeated */
	RC_GAP,      /* packets before it were lost */
	RC_WRONG,    /* an invalid request */
	RC_IGNORED,
};

/* The result of what the caller did for a packet. */
enum rc_answer {
	RC_OK,
	RC_NO_RECEIVE,   /* RNR NAK; the peer sends the packet again */
	RC_NO_ACCESS,
	RC_NO_OPERATION, /* local error: no room in the receive, or no access to it */
	RC_NOT_VALID,
	RC_NOT_NOW,      /* nothing was done; the packet counts as lost */
};

struct rc_taken {
	bool complete;   /* the receive is complete, with `bytes` of message */
	bool fail;       /* the queue pair has to go to the error state */
	uint32_t bytes;
};

/* An answer; its payload is `packet.bytes` at `remote_addr`, read by `rkey`. */
struct rc_response {
	struct rc_packet packet;
	uint32_t rkey;
	uint64_t remote_addr;
};

void rc_responder_open(struct rc_responder *rs, const struct rc_responder_params *p);

void rc_look(const struct rc_responder *rs, const struct rc_packet *packet,
	     struct rc_look *look);
/* `look`: the result of rc_look() for this packet. `old`: an atomic's original value. */
struct rc_taken rc_take(struct rc_responder *rs, const struct rc_packet *packet,
			const struct rc_look *look, enum rc_answer answer,
			uint64_t old, uint64_t now_ns);

/* The next packet to send. `early`: including an acknowledgement that may wait. False:
 * there is none. */
bool rc_respond_next(const struct rc_responder *rs, bool early, uint64_t now_ns,
		     struct rc_response *response);
/* `fetched`: the result of reading the payload. */
struct rc_taken rc_responded(struct rc_responder *rs,
			     const struct rc_response *response,
			     enum rc_answer fetched);
/* The time at which a delayed acknowledgement is due; 0: there is none. */
uint64_t rc_respond_deadline(const struct rc_responder *rs);

#endif
