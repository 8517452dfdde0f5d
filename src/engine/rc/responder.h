/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving half of a connection (RC, UC): which packet is the expected one, what
 * carrying it out needs, what is answered, and what is answered again. IBTA volume 1,
 * 9.7 and 9.8.3.
 *
 * Pure, as requester.h says. Requests come in pairs of calls: rc_look() says what a
 * packet needs and changes nothing; the caller finds the receive, checks the key, copies
 * the bytes; rc_take() says how that ended. Answers go out in pairs, too:
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
	uint8_t min_rnr_timer; /* code */
	uint64_t ack_delay_ns; /* how long an acknowledgement that was asked for may
				* wait for one that covers more */
};

/* A READ or atomic that may be asked for again. */
struct rc_resource {
	uint8_t op;
	uint32_t first_psn, last_psn, msn;
	uint32_t next_psn;  /* of its answer */
	uint32_t rkey, length;
	uint64_t remote_addr; /* of what first_psn brings */
	uint64_t old_value;
};

struct rc_responder {
	struct rc_responder_params p;
	uint32_t expected_psn, msn;
	/* The message that has begun, RC_ACK for none; of a WRITE the range. */
	uint8_t message;
	bool claimed;         /* it has a receive, which it keeps */
	bool skipping;        /* UC: until the next message begins */
	uint32_t at;          /* bytes of it that are there */
	uint32_t rkey, length;
	uint64_t remote_addr;
	/* Free running: [answered, taken) wait for their answers, those before
	 * `repeated` have had one already. */
	struct rc_resource resources[RC_RESOURCES_MAX];
	uint32_t resources_taken, resources_answered, resources_repeated;
	uint8_t syndrome;     /* what is owed behind them */
	uint32_t nak_psn;
	bool owed;
	uint64_t due_ns;
	bool told_sequence;   /* NAK for the gap was sent or is owed */
	bool failed;          /* after the last NAK nothing more */
};

/* What a packet needs, bits. */
enum rc_need {
	RC_NEED_RECEIVE = 1 << 0, /* a new one; `length` is not known yet for SEND */
	RC_NEED_PLACE = 1 << 1,   /* payload: into the receive at `at` (SEND) or to
				   * `remote_addr` (WRITE), its key checked */
	RC_NEED_READ = 1 << 2,    /* the key for [remote_addr, + length), to be read */
	RC_NEED_ATOMIC = 1 << 3,  /* carried out, on 8 bytes at remote_addr */
	RC_NEED_INVALIDATE = 1 << 4, /* `imm`, behind placing */
	RC_NEED_COMPLETE = 1 << 5,   /* the receive is full: a completion */
};

struct rc_look {
	uint8_t verdict;  /* of the engine: enum rc_verdict */
	uint8_t needs;
	uint8_t op;       /* of the message: RC_SEND ... */
	uint32_t at;      /* of the payload in the message */
	uint32_t rkey, length;
	uint64_t remote_addr;
};

enum rc_verdict {
	RC_EXPECTED,
	RC_AGAIN,    /* a duplicate whose answer is repeated */
	RC_GAP,      /* packets before it were lost */
	RC_WRONG,    /* a request that is not valid here */
	RC_IGNORED,
};

/* How the caller's part ended. */
enum rc_answer {
	RC_OK,
	RC_NO_RECEIVE,   /* RNR; the same packet will come again */
	RC_NO_ACCESS,
	RC_NO_OPERATION, /* local errors: no room, no access to the receive */
	RC_NOT_VALID,
	RC_NOT_NOW,      /* nothing happened, as if it had been lost */
};

struct rc_taken {
	bool complete;   /* the receive: `bytes` of message */
	bool fail;       /* the queue pair goes to the error state */
	uint32_t bytes;
};

/* An answer: `packet.bytes` of payload are read at `remote_addr` by `rkey`. */
struct rc_response {
	struct rc_packet packet;
	uint32_t rkey;
	uint64_t remote_addr;
};

void rc_responder_open(struct rc_responder *rs, const struct rc_responder_params *p);

void rc_look(const struct rc_responder *rs, const struct rc_packet *packet,
	     struct rc_look *look);
/* `look` as rc_look() gave it for this packet. `old`: what an atomic found. */
struct rc_taken rc_take(struct rc_responder *rs, const struct rc_packet *packet,
			const struct rc_look *look, enum rc_answer answer,
			uint64_t old, uint64_t now_ns);

/* The next answer that is due. `early`: also an acknowledgement that may wait. */
bool rc_respond_next(const struct rc_responder *rs, bool early, uint64_t now_ns,
		     struct rc_response *response);
/* `fetched`: how reading its payload ended. */
struct rc_taken rc_responded(struct rc_responder *rs,
			     const struct rc_response *response,
			     enum rc_answer fetched);
/* When an acknowledgement that waits is due; 0: none waits. */
uint64_t rc_respond_deadline(const struct rc_responder *rs);

#endif
