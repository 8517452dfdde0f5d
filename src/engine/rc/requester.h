/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of a connection (RC, UC): which packet is next, what an answer
 * completes, when to send again and when to give up. IBTA volume 1, 9.7 and 9.8.3.
 *
 * Pure: no clock, lock, memory or random number of its own. The caller guards the
 * structure, says what time it is (nanoseconds of any monotonic clock), and moves the
 * bytes between the two calls of each pair: rc_next() and rc_sent(), rc_reply_look()
 * and rc_reply(). The first of a pair changes nothing, so that a copy that failed can
 * be tried again later.
 *
 * Packets that the engine dislikes are dropped; nothing that a peer sends makes it fail
 * other than by the completion status that the specification names.
 */
#ifndef ENGINE_RC_REQUESTER_H
#define ENGINE_RC_REQUESTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"

/* A work entry. The caller fills in the upper half, rc_post() the lower. */
struct rc_wqe {
	uint8_t op;    /* enum rc_op, RC_SEND to RC_FETCH_ADD */
	uint8_t flags; /* RC_IMM, RC_INVALIDATE, RC_SOLICITED, RC_FENCE, RC_WORD */
	uint32_t length;
	uint32_t imm;
	uint32_t rkey;
	uint64_t remote_addr, compare_add, swap;

	uint32_t first_psn, last_psn;
	uint32_t requests; /* request packets of all entries before it, free running */
	uint32_t ssn;      /* sends before and with it (9.7.2) */
};

struct rc_requester_params {
	bool reliable;        /* false: UC */
	uint32_t mtu;         /* payload of one packet, bytes */
	uint32_t psn;         /* sq_psn */
	uint32_t window;      /* request packets on their way; 1 to 2^22 */
	uint8_t max_rd_atomic;
	uint8_t retry_cnt, rnr_retry; /* 0 to 7 */
	uint64_t timeout_ns;  /* 0: never sends again by itself */
	/* The ring of work entries: the entry of index i lies `stride` bytes * (i &
	 * mask) behind `entries`. */
	void *entries;
	uint32_t stride, mask;
};

struct rc_requester {
	struct rc_requester_params p;
	/* Entries [tail, head) are posted, [tail, next) have been sent. */
	uint32_t tail, next, head;
	uint32_t post_psn;   /* of the next entry to be posted */
	uint32_t send_psn;   /* of the next packet, in entry `next` */
	uint32_t unacked;    /* the oldest without an answer */
	uint32_t top_psn;    /* behind the highest that was ever sent */
	uint32_t post_requests, post_ssn;
	uint32_t reads;      /* READ and atomic entries in [tail, next) */
	uint32_t limit_ssn;  /* by the responder's credits */
	bool limited;
	bool went_back;      /* for the answer that `unacked` lacks */
	bool failed;
	uint8_t retries, rnr_retries; /* that are left */
	uint64_t rnr_until_ns; /* 0: not waiting */
	uint64_t timeout_at_ns; /* 0: nothing is awaited */
	uint64_t gone_back;  /* how often, for counters */
};

/* What a call has decided about work entries: those below `upto` are complete, and the
 * one at `upto` has failed unless `status` is IBV_WC_SUCCESS; then the queue pair has to
 * go to the error state. */
struct rc_done {
	uint32_t upto;
	enum ibv_wc_status status;
};

/* A packet to be sent: its payload is at `at` in the message of entry `index`. */
struct rc_tx {
	struct rc_packet packet;
	uint32_t index, at;
};

/* Where the payload of an answer belongs. */
struct rc_place {
	bool wanted;  /* false: rc_reply() all the same */
	uint32_t index, at, bytes;
};

void rc_requester_open(struct rc_requester *rq, const struct rc_requester_params *p);

static inline struct rc_wqe *rc_entry(const struct rc_requester *rq, uint32_t index)
{
	return (struct rc_wqe *)(void *)((char *)rq->p.entries +
					 (uint64_t)(index & rq->p.mask) * rq->p.stride);
}

/* Entry `head` has been filled in; there was room. */
void rc_post(struct rc_requester *rq);

/* The next packet. `limit`: entries from there on stay (the SQD state); `head` for
 * none. False: nothing to send, or not now. */
bool rc_next(const struct rc_requester *rq, uint32_t limit, uint64_t now_ns,
	     struct rc_tx *tx);
/* It was sent, or is as good as sent. Completes entries of UC. */
struct rc_done rc_sent(struct rc_requester *rq, const struct rc_tx *tx, uint64_t now_ns);

/* An answer came. */
void rc_reply_look(const struct rc_requester *rq, const struct rc_packet *packet,
		   struct rc_place *place);
/* `copied`: how placing its payload ended, IBV_WC_SUCCESS without any. */
struct rc_done rc_reply(struct rc_requester *rq, const struct rc_packet *packet,
			enum ibv_wc_status copied, uint64_t now_ns);

/* When rc_timer() is to be called: 0 for never. */
uint64_t rc_deadline(const struct rc_requester *rq);
struct rc_done rc_timer(struct rc_requester *rq, uint64_t now_ns);

#endif
