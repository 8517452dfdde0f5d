/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of a connection (RC, UC): which packet is next, what an answer
 * completes, when packets are sent again and when the attempts end. IBTA volume 1,
 * 9.7 and 9.8.3.
 *
 * Pure: no clock, lock, memory allocation or random number. The caller holds a lock for
 * the structure, passes in the time (nanoseconds of any monotonic clock), and copies
 * the payload between the two calls of each pair: rc_next() and rc_sent(),
 * rc_reply_look() and rc_reply(). The first call of a pair changes nothing, so a copy
 * that failed can be tried again later.
 *
 * Invalid packets are dropped. A peer can make a request fail only with the completion
 * statuses that the specification names.
 */
#ifndef ENGINE_RC_REQUESTER_H
#define ENGINE_RC_REQUESTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/rc/pace.h"
#include "engine/rc/packet.h"
#include "engine/rc/rules.h"
#include "engine/rc/window.h"

/* A work entry. The caller fills in the first part, rc_post() the second. */
struct rc_wqe {
	uint8_t op;    /* enum rc_op, RC_SEND to RC_FLUSH */
	uint8_t flags; /* RC_IMM, RC_INVALIDATE, RC_SOLICITED, RC_FENCE, RC_WORD */
	uint8_t flush; /* enum rc_flush */
	uint32_t length;
	uint32_t imm;
	uint32_t rkey;
	uint64_t remote_addr, compare_add, swap;

	uint32_t first_psn, last_psn;
	uint32_t requests; /* number of request packets before it, modulo 2^32 */
	uint32_t ssn;      /* send sequence number (9.7.2) */
};

struct rc_requester_params {
	bool reliable;        /* false: UC */
	uint32_t mtu;         /* payload of one packet, bytes */
	uint32_t psn;         /* sq_psn */
	/* Unacknowledged request packets, 1 to 2^22: the fewest that a window has, and the two
	 * other numbers of rc_window_open(). */
	uint32_t window, window_usual, window_most;
	uint8_t max_rd_atomic;
	uint8_t retry_cnt, rnr_retry; /* 0 to 7 */
	uint64_t timeout_ns;  /* 0: no retransmission by time */
	/* The wait after an RNR NAK, in thousandths of what it asks for; 0: 1000. */
	uint32_t rnr_permille;
	/* A request without an answer is first sent again `burst` times within `burst_ns`, before the
	 * first timeout; together they use two of the retries. 0: it is not. */
	uint8_t burst;
	uint64_t burst_ns;
	uint64_t line_bps;    /* bits a second of the port, for pace.h; 0: unknown */
	struct work_ring ring;
};

struct rc_requester {
	struct rc_requester_params p;
	/* Entries [tail, head) are posted, [tail, next) have been sent. */
	uint32_t tail, next, head;
	uint32_t post_psn;   /* first PSN of the next entry to be posted */
	uint32_t send_psn;   /* PSN of the next packet, in entry `next` */
	uint32_t unacked;    /* the oldest unacknowledged PSN */
	uint32_t top_psn;    /* the PSN after the highest one ever sent */
	uint32_t asked_psn;  /* the PSN after the last packet that asked for an acknowledgement;
			      * after going back the first one that is sent again */
	uint32_t post_requests, post_ssn;
	uint32_t reads;      /* entries in [tail, next) that count for max_rd_atomic */
	uint32_t limit_ssn;  /* the last SSN that the responder's credits allow */
	bool limited;
	bool went_back;      /* by an implied NAK, for the answer at `unacked` */
	bool obeyed;         /* a sequence NAK at `unacked` was answered by going back */
	bool failed;
	uint8_t retries, rnr_retries; /* remaining numbers */
	uint32_t timeouts; /* that have passed */
	uint8_t burst;       /* how many are left of the burst */
	uint64_t rnr_until_ns; /* end of the wait after an RNR NAK; 0: none */
	uint64_t timeout_at_ns; /* 0: no answer is expected */
	uint64_t gone_back;  /* number of times, for counters */
	struct rc_window window;
	struct rc_pace pace;
	uint64_t pace_at_ns; /* the next packet has to wait until then; 0: it has not */
};

/* A packet, or a run, to be sent; its payload begins at byte `at` of the message of entry
 * `index`, and that of a run's further packets follows it. */
struct rc_tx {
	struct rc_packet packet;
	uint32_t index, at;
};

/* Destination of a response's payload: byte `at` of the message of entry `index`. */
struct rc_place {
	bool wanted;  /* false: nothing is copied; rc_reply() is called nevertheless */
	uint32_t index, at, bytes;
	/* Of a run: so many packets behind the first one follow there. The others, if it had
	 * more, are to be looked at behind rc_reply(). */
	uint32_t more;
};

void rc_requester_open(struct rc_requester *rq, const struct rc_requester_params *p);

static inline struct rc_wqe *rc_entry(const struct rc_requester *rq, uint32_t index)
{
	return work_entry(&rq->p.ring, index);
}

/* The caller has filled in entry `head`; the ring had room for it. */
void rc_post(struct rc_requester *rq);

/* The next packet to send, or a run. Entries from `limit` on do not begin (SQD state); `head`: no
 * limit. False: there is none, or not at this time. */
bool rc_next(const struct rc_requester *rq, uint32_t limit, uint64_t now_ns,
	     struct rc_tx *tx);
/* The packet of rc_next() was sent, or counts as sent. Of a run the caller may have lowered
 * `more` to the packets that were. Completes entries of UC. */
struct work_done rc_sent(struct rc_requester *rq, const struct rc_tx *tx, uint64_t now_ns);

/* If something waits to be sent: how many request packets do, and how many were sent and are
 * unacknowledged. Else 0 and 0. */
void rc_load(const struct rc_requester *rq, uint32_t *unacked, uint32_t *waiting);

/* A packet of the responder, or an RC_CNP (UC as well), came: where does its payload go? */
void rc_reply_look(const struct rc_requester *rq, const struct rc_packet *packet,
		   struct rc_place *place);
/* The same packet again, with the first rc_place.more of the run's others. `copied`: the result
 * of copying the payload, IBV_WC_SUCCESS if there was none. */
struct work_done rc_reply(struct rc_requester *rq, const struct rc_packet *packet,
			  enum ibv_wc_status copied, uint64_t now_ns);

/* The memory for a response is not there, so that this was dropped: the oldest unacknowledged
 * packet and those behind it are sent again at `until_ns`, which uses no retry. */
void rc_hold(struct rc_requester *rq, uint64_t until_ns);
/* They are sent again now. */
void rc_release(struct rc_requester *rq);

/* The time at which rc_timer() is to be called, and rc_next() behind it; 0: never. */
uint64_t rc_deadline(const struct rc_requester *rq);
struct work_done rc_timer(struct rc_requester *rq, uint64_t now_ns);

#endif
