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

#include "engine/rc/pace.h"
#include "engine/rc/packet.h"
#include "engine/rc/rules.h"

#define RC_RESOURCES_MAX 128 /* max_dest_rd_atomic; a power of 2 */

struct rc_responder_params {
	bool reliable;
	uint32_t mtu;
	uint32_t psn;          /* rq_psn */
	/* max_dest_rd_atomic, up to RC_RESOURCES_MAX. A peer that has more requests of
	 * this kind unanswered breaks the rules (9.7.4.1): NAK, invalid request. */
	uint8_t max_rd_atomic;
	uint8_t min_rnr_timer; /* its 5-bit code */
	uint64_t ack_delay_ns; /* how long a requested acknowledgement may wait for
				* one that acknowledges more */
	uint64_t line_bps;     /* bits a second of the port, for pace.h; 0: unknown */
};

/* A READ, atomic, FLUSH or WRITE of a word, stored because the peer may repeat it. */
struct rc_resource {
	uint8_t op;
	bool told;          /* it was answered once */
	uint32_t first_psn, last_psn, msn;
	/* Of the next packet of its response; behind last_psn: that is complete. */
	uint32_t next_psn;
	uint32_t begin_psn; /* where the response began this time */
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
	/* Counters modulo 2^32: entry `answered` is the oldest one of [0, taken) that waits
	 * for its response; some behind it may have theirs, before one is repeated. */
	struct rc_resource resources[RC_RESOURCES_MAX];
	uint32_t resources_taken, resources_answered;
	uint8_t syndrome;     /* of the ACK or NAK that is sent after the responses */
	uint32_t nak_psn;
	bool owed;
	uint64_t due_ns;
	bool told_sequence;   /* a NAK for the gap was sent or is to be sent */
	bool failed;          /* a fatal NAK: nothing is accepted any more */
	struct rc_marks marks;
	struct rc_pace pace;  /* of READ responses */
};

struct rc_look {
	uint8_t verdict;  /* enum rc_verdict */
	uint8_t needs;    /* enum work_need: a receive at `at`, memory at `remote_addr` */
	uint8_t op;       /* of the message: RC_SEND ... */
	uint32_t at;      /* position of the payload in the message */
	uint32_t rkey, length;
	uint64_t remote_addr;
	/* Of a run: so many packets behind the first one are like it in all of this, their
	 * payloads follow its own. rc_take() is for them as well; the caller may lower the
	 * number before. The others, if the run has more, are to be looked at behind that. */
	uint32_t more;
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
	/* Its memory is not there: nothing was done; packets behind it are dropped without a NAK. The
	 * caller calls rc_rnr(), or looks at the packet again. */
	RC_NOT_THERE,
};

struct rc_taken {
	bool complete;   /* the receive is complete, with `bytes` of message */
	bool fail;       /* the queue pair has to go to the error state */
	uint32_t bytes;
};

/* An answer; its payload is `packet.bytes` at `remote_addr`, read by `rkey`. That of a run's
 * further packets follows. */
struct rc_response {
	struct rc_packet packet;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t when_ns; /* for rc_responded() */
};

void rc_responder_open(struct rc_responder *rs, const struct rc_responder_params *p);

void rc_look(const struct rc_responder *rs, const struct rc_packet *packet,
	     struct rc_look *look);
/* `look`: the result of rc_look() for this packet. `old`: an atomic's original value. */
struct rc_taken rc_take(struct rc_responder *rs, const struct rc_packet *packet,
			const struct rc_look *look, enum rc_answer answer,
			uint64_t old, uint64_t now_ns);

/* The expected packet came and got RC_NOT_THERE: an RNR NAK becomes due. */
void rc_rnr(struct rc_responder *rs, uint64_t now_ns);

/* A packet that a switch has marked (CE in the IP header) came for this queue pair, a
 * request or an answer: a CNP becomes due, at most one in RC_PACE_CNP_NS. */
static inline void rc_marked(struct rc_responder *rs, uint64_t now_ns)
{
	rc_marks_add(&rs->marks, now_ns);
}

/* A CNP came: responses of READs leave more slowly. The requester of the queue pair has
 * its own pace, and gets the packet as well. */
static inline void rc_slow(struct rc_responder *rs, uint64_t now_ns)
{
	rc_pace_cut(&rs->pace, now_ns);
}

/*
 * The next packet to send: a CNP first, then responses, then what is owed besides. False:
 * there is none, or not at this time.
 *
 * `early`: including an acknowledgement that may wait (ack_delay_ns). The caller passes
 * false in the turn in which the request came, so that the program's reply may leave
 * first and one acknowledgement may tell of more requests; and true in its next turn,
 * whenever that is. Who passes false sees to another turn at rc_respond_deadline().
 */
bool rc_respond_next(const struct rc_responder *rs, bool early, uint64_t now_ns,
		     struct rc_response *response);
/* It has left; of a run the caller may have lowered `more`. `fetched`: the result of reading the
 * payload. */
struct rc_taken rc_responded(struct rc_responder *rs,
			     const struct rc_response *response,
			     enum rc_answer fetched);
/* What rc_responded() changes for packets with RC_OK, to take them back. */
struct rc_respond_mark {
	uint32_t answered;
	bool owed, cnp_owed;
	struct rc_pace pace;
	/* Of [answered, taken) of the responder, from the first on. */
	struct rc_resource resources[RC_RESOURCES_MAX];
};
/* Between the two only rc_respond_next() and rc_responded() with RC_OK. */
void rc_respond_mark(const struct rc_responder *rs, struct rc_respond_mark *m);
void rc_respond_undo(struct rc_responder *rs, const struct rc_respond_mark *m);
/* The time from which rc_respond_next() has something also if not `early`; it may have
 * passed. 0: there is nothing. */
uint64_t rc_respond_deadline(const struct rc_responder *rs);

#endif
