/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction between two hosts to one QP. It carries requests of the sender, and answers
 * to the requests of the direction that it is paired with. Private to the analyzer.
 */
#ifndef ANALYZER_FLOW_H
#define ANALYZER_FLOW_H

#include "analyzer/ladder.h"
#include "analyzer/result.h"

#define ANALYZER_PENDING_KEPT 8
#define US INT64_C(1000)
#define MS INT64_C(1000000)

/* Times that tell the causes of a resend apart. */
#define ANALYZER_TIMEOUT_NS_MIN (20 * MS)   /* no adapter waits less for an answer */
#define ANALYZER_DISCARD_NS_MIN (300 * US)  /* a requester with a missing page waits longer */
#define ANALYZER_DISCARD_NS_MAX (100 * MS)
#define ANALYZER_WINDOW_NS (1 * MS)         /* a pending period acts on what follows so long */
#define ANALYZER_BURST_NS (5 * MS)          /* between packets of one go-back */
#define ANALYZER_RECEIVE_NS_MAX (100 * US)  /* a NAK for a missing receive comes sooner */

/* A request packet; a READ stands for all of its answers' PSNs. */
struct analyzer_request {
	uint32_t psn, span;         /* span: PSNs; 0: not known */
	uint32_t length, rkey;
	uint64_t va;
	int64_t first_ns, last_ns, answer_ns;
	uint64_t first_packet, last_packet, answer_packet;
	uint32_t sends, answers;
	uint32_t answers_since;     /* since it was sent last */
	uint32_t discards;
	uint32_t pending;           /* the period in whose window it was sent first; 0: none */
	uint8_t opcode;
	bool open;                  /* no answer yet */
	bool has_address;
	bool sent_by_rnr;           /* again, at least once */
};

/* Requests in the order of their PSNs. */
struct analyzer_requests {
	struct analyzer_request *ring;
	uint32_t head, count, room; /* room: a power of two, or 0 */
	uint32_t open_from;         /* all before it, from the head, have been answered */
};

/* From an RNR NAK, or an answer that the requester dropped, to the resend. */
struct analyzer_pending {
	uint32_t id;                /* 0: never used */
	uint32_t psn;
	uint8_t opcode;
	enum analyzer_side side;
	bool closed;
	int64_t open_ns, nominal_ns, close_ns, answer_ns;
	uint64_t open_packet, close_packet;
};

struct analyzer_nak {
	bool valid;
	uint32_t psn;
	int64_t when_ns;
};

/* Resends that follow each other in the order of PSNs. */
struct analyzer_burst {
	enum analyzer_trigger trigger;
	uint32_t psn;
	int64_t begin_ns, last_ns;
	bool any;
	int finding;                /* whose stall it ends; -1: none */
};

struct analyzer_flow {
	struct analyzer_flow *next_hash, *next_host; /* of the same hash, from and to the same hosts */
	struct analyzer_flow *partner;
	bool tentative;             /* the pair is a guess */
	bool listed;                /* among the flows of its hosts without a partner */
	struct analyzer_scout *scout; /* NULL: not needed, or no memory */
	uint32_t pair_attempts, pair_skip, matches, mismatches;
	uint32_t mtu;               /* of requests, and of answers to them */
	struct analyzer_requests requests;
	struct analyzer_pending pending[ANALYZER_PENDING_KEPT];
	uint32_t pending_last;      /* id */
	struct analyzer_nak sequence;
	struct analyzer_burst burst;
	uint32_t answered_psn;      /* the newest that was answered */
	bool answered_any, untimed;
	int64_t seen_ns;            /* a packet of either direction */
	struct analyzer_copies *copies; /* NULL: the capture was made at one place */
	struct analyzer_ladder *ladder; /* NULL: not wanted, or no memory */
	unsigned stalls_told;       /* of result.finding */
	uint32_t kinds_told;        /* bits, as result.kinds */
	uint64_t answers_alone;     /* answers in this direction to requests that were not seen */
	struct analyzer_result result;
};

static inline uint8_t analyzer_operation(uint8_t opcode)
{
	return opcode & IB_OPERATION_MASK;
}

static inline bool analyzer_is_answer(uint8_t opcode)
{
	uint8_t op = analyzer_operation(opcode);

	return op >= IB_READ_RESPONSE_FIRST && op <= IB_ATOMIC_ACKNOWLEDGE;
}

/* Requests that a packet with data answers, and no plain acknowledgement. */
static inline bool analyzer_wants_data(uint8_t opcode)
{
	uint8_t op = analyzer_operation(opcode);

	return op == IB_READ_REQUEST || op == IB_COMPARE_SWAP || op == IB_FETCH_ADD;
}

static inline bool analyzer_is_write(uint8_t opcode)
{
	uint8_t op = analyzer_operation(opcode);

	return op == IB_WRITE_FIRST || op == IB_WRITE_MIDDLE || op == IB_WRITE_LAST ||
	       op == IB_WRITE_ONLY;
}

/* Requests that take a receive of the responder. */
static inline bool analyzer_takes_receive(uint8_t opcode)
{
	uint8_t op = analyzer_operation(opcode);

	return op <= IB_SEND_ONLY_IMM || op == IB_WRITE_LAST_IMM || op == IB_WRITE_ONLY_IMM ||
	       op == IB_SEND_LAST_INVALIDATE || op == IB_SEND_ONLY_INVALIDATE;
}

#endif
