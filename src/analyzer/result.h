/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the analyzer takes and finds. A flow is the requests of one side of a connection with
 * their answers: requester, responder, and the responder's QP number. The words client and
 * server are those of the literature on on-demand paging: requester and responder.
 */
#ifndef ANALYZER_RESULT_H
#define ANALYZER_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib/header.h"

struct analyzer_address {
	uint8_t family;    /* enum capture_family */
	uint8_t bytes[16]; /* zero behind the address */
};

struct analyzer_packet {
	uint64_t number;   /* in the capture, from 1 */
	int64_t when_ns;
	struct analyzer_address src, dst;
	struct ib_packet ib;
	uint32_t bytes;    /* from the BTH to the ICRC */
	bool marked;       /* congestion experienced */
	uint32_t origin;   /* where it was captured: interface and direction */
};

/* In the order of their weight: the verdict on a flow is the first that was found. */
enum analyzer_kind {
	ANALYZER_DAMMING,
	ANALYZER_READ_FLOOD,
	ANALYZER_WRITE_AMPLIFICATION,
	ANALYZER_TIMEOUT,
	ANALYZER_DAMMING_RECOVERED,
	ANALYZER_REFUSED,    /* a NAK that ends the connection */
	/* Below: events that cost time and are no pitfall. */
	ANALYZER_LOSS,
	ANALYZER_RNR,
	ANALYZER_CONGESTION,
	ANALYZER_PAGE_FAULT,
	ANALYZER_INCOMPLETE,
	ANALYZER_NONE,
};
#define ANALYZER_PITFALLS_END ANALYZER_LOSS

enum analyzer_side {
	ANALYZER_SIDE_UNKNOWN,
	ANALYZER_SERVER,
	ANALYZER_CLIENT,
};

enum analyzer_confidence {
	ANALYZER_LOW,
	ANALYZER_MEDIUM,
	ANALYZER_HIGH,
};

/* Why a request was sent again. */
enum analyzer_trigger {
	ANALYZER_BY_RNR,
	ANALYZER_BY_SEQUENCE,  /* NAK, PSN sequence error */
	ANALYZER_BY_DISCARD,   /* the requester dropped the answer: its page was missing */
	ANALYZER_BY_GAP,       /* an answer was lost, and a later one showed it */
	ANALYZER_BY_TIMEOUT,
	ANALYZER_BY_DAMMING,   /* a timeout that follows a pending period */
	ANALYZER_BY_UNKNOWN,
	ANALYZER_TRIGGERS,
};

/* Why a flow cannot be judged in full: bits. */
enum analyzer_gap {
	ANALYZER_NO_ANSWERS = 1 << 0,       /* only the requests were captured */
	ANALYZER_NO_REQUESTS = 1 << 1,      /* only answers */
	ANALYZER_REQUESTS_MISSING = 1 << 2,
	ANALYZER_ANSWERS_MISSING = 1 << 3,
	ANALYZER_RESENDS_UNEXPLAINED = 1 << 4,
	ANALYZER_ENDS_EARLY = 1 << 5,       /* requests without an answer at the end */
	ANALYZER_NO_TIMES = 1 << 6,
	ANALYZER_FORGOTTEN = 1 << 7,        /* more open requests than are kept */
};

/* One stall, of damming, timeout or recovered damming. Packet numbers are 0 if unknown. */
struct analyzer_finding {
	enum analyzer_kind kind;
	enum analyzer_side side;
	enum analyzer_confidence confidence;
	int64_t begin_ns, stall_ns;
	uint32_t psn;             /* of the request that got stuck */
	uint32_t psn_before;      /* of the request whose pending period it fell into */
	uint8_t opcode, opcode_before;
	uint32_t stuck;           /* requests that were sent again at the end of the stall */
	uint32_t timeouts;        /* how often the same request ran into the timeout */
	int64_t after_ns;         /* from the opening of the pending period to its first send */
	unsigned timeout_code;    /* the exponent that fits: 4.096 us * 2^code */
	double timeout_factor;    /* stall in units of that time */
	uint64_t packet_open, packet_closed, packet_sent, packet_again, packet_answer;
};

#define ANALYZER_INFLATIONS 8 /* below 1, 1 to 2 ... 6 to 7, 7 and more times the nominal */
#define ANALYZER_FINDINGS_MAX 64

struct analyzer_result {
	unsigned number;           /* of the flow, from 1, in the order of appearance */
	struct analyzer_address src, dst;
	uint32_t qpn, peer_qpn;    /* responder's, requester's */
	bool paired;
	enum analyzer_kind verdict;
	uint32_t kinds;            /* all that was found, bits 1 << enum analyzer_kind */
	unsigned gaps;             /* enum analyzer_gap */

	int64_t first_ns, last_ns;
	uint64_t packets, request_packets, answers;
	uint64_t requests;         /* distinct PSNs of requests */
	uint64_t wire_bytes, good_bytes; /* good: payload, each byte once */
	uint64_t resends[ANALYZER_TRIGGERS];
	int64_t lost_ns[ANALYZER_TRIGGERS];
	uint64_t timeouts, sequence_naks, refusals, marks, notifications;
	uint64_t twice;            /* packets that were captured at two places */
	uint64_t requests_missing, answers_missing, answers_unmatched, forgotten;
	uint8_t refusal;           /* code of the last NAK */
	int64_t silent_ns;         /* the longest time without a packet while a request was open */
	uint64_t silent_packet;    /* the packet that ended it */

	uint64_t rnr_naks, rnr_faults, rnr_receives; /* by a missing page, a missing receive */
	uint64_t rnr_waits, inflation[ANALYZER_INFLATIONS];
	double inflation_min, inflation_max, inflation_sum;
	int64_t rnr_nominal_ns;    /* of the last */

	/* READs whose answers the requester dropped at least three times. */
	uint64_t flood_requests, flood_resends, flood_bytes;
	int64_t flood_begin_ns, flood_end_ns;
	uint64_t flood_packet;     /* the first of them that was sent a fourth time */
	unsigned flood_flows;      /* flows with such READs at the same time */
	/* WRITEs that were sent again behind an RNR NAK. */
	uint64_t write_resends, write_distinct, write_naks, writes;
	uint64_t write_packet;     /* the first RNR NAK */

	unsigned findings;         /* kept ones; the first ANALYZER_FINDINGS_MAX */
	uint64_t findings_all;
	struct analyzer_finding *finding;
};

/* What holds for the capture as a whole. */
struct analyzer_totals {
	uint64_t packets, others;  /* RDMA packets; those of services without answers */
	uint64_t flows_refused;    /* packets of flows beyond the bound */
	uint64_t backwards;        /* packets whose time is before that of the one before */
	bool requests_bounded;     /* the memory for requests was used up */
	int64_t first_ns, last_ns;
	uint64_t pages;            /* with READs whose answers were dropped */
	int64_t stale_ns;          /* longest time from the first good answer to the last one */
};

#endif
