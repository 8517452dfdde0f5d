/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an iWARP connection does for the peer's requests: which message is expected, what a segment
 * needs to be carried out, which rule it breaks, and the responses. RFC 5040, RFC 5041, RFC 7306.
 *
 * Pure, as requester.h. Segments are handled by pairs of calls: iwarp_look() says what a segment
 * needs and changes nothing; the caller takes a receive, checks the key and places the payload, all
 * of it or piece by piece as it arrives; iwarp_take() gets the result, when the FPDU was good.
 *
 * TCP delivers all segments once and in order, so each deviation is an error that ends the
 * connection. A message that finds no receive is one, too: there is no RNR.
 *
 * A WRITE of no bytes, and a READ of none, need no valid STag: they are how an initiator begins.
 */
#ifndef ENGINE_IWARP_RESPONDER_H
#define ENGINE_IWARP_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/iwarp/setup.h"
#include "engine/iwarp/tx.h"
#include "engine/work.h"

#define IWARP_READS_MAX 128 /* IRD; a power of 2 */

struct iwarp_responder_params {
	uint32_t mulpdu; /* the longest ULPDU with payload; 64 at least */
	uint16_t ird;    /* READs and atomics that wait for their response, up to IWARP_READS_MAX */
	bool extended;   /* atomics and immediate data (RFC 7306) are carried out */
	uint8_t rtr;     /* enum iwarp_rtr: a SEND of no bytes that comes first takes no receive */
};

/* A READ or atomic of the peer whose response is due. */
struct iwarp_inbound_read {
	bool atomic;
	uint32_t length, sink_stag, source_stag;
	uint64_t sink_to, source_to;
	uint32_t request; /* of an atomic */
	uint64_t original;
};

struct iwarp_responder {
	struct iwarp_responder_params p;
	uint32_t send_msn, read_msn; /* of the next messages on queue 0 and 1 */
	/* A SEND of which segments have come and not the last one; its opcode. */
	bool sending;
	uint8_t send_opcode;
	uint32_t at;          /* bytes of it that have come */
	/* Bytes of the last WRITE, for immediate data behind it. */
	bool writing;         /* its last segment has not come */
	uint32_t written;
	/* Counters modulo 2^32: entries [answered, taken) wait for their response. */
	struct iwarp_inbound_read reads[IWARP_READS_MAX];
	uint32_t taken, answered;
	uint32_t sent;        /* bytes of the oldest one's response that are framed */
	uint32_t response_msn; /* of the next atomic response */
	bool failed;          /* nothing is taken any more */
};

/* What the caller has to do for a segment. */
struct iwarp_look {
	enum iwarp_error error; /* it breaks this rule: nothing is done for it */
	uint8_t needs;          /* enum work_need */
	uint32_t at;            /* PLACE, of a SEND: the offset of the payload in the receive */
	uint32_t stag;          /* PLACE (WRITE), READ, ATOMIC, INVALIDATE */
	uint64_t to;
	uint32_t bytes;         /* that are placed or read */
	/* ATOMIC. */
	bool swaps;             /* COMPARE_SWAP, else FETCH_ADD */
	uint64_t compare_add, swap;
};

/* The result of what the caller did. */
enum iwarp_answer {
	IWARP_DONE,
	IWARP_NO_RECEIVE,
	IWARP_NO_ROOM,         /* in the receive */
	IWARP_NO_STAG,         /* no such key */
	IWARP_NO_BOUNDS,       /* outside of its memory */
	IWARP_NO_STREAM,       /* the key belongs to another protection domain or queue pair */
	IWARP_NO_ACCESS,       /* it lacks the right */
	IWARP_NOT_INVALIDATED,
	IWARP_NOT_ALIGNED,     /* an atomic */
	IWARP_LOCAL,           /* an error of this end: access to its own receive */
};

struct iwarp_taken {
	enum iwarp_error error; /* the connection has to end with this; IWARP_OK: it goes on */
	bool complete;          /* the receive is complete, with `bytes` of message */
	bool solicited;
	bool immediate;         /* behind a WRITE of `bytes`; imm in network order */
	bool invalidated;       /* imm is the STag */
	uint32_t bytes, imm;
};

void iwarp_responder_open(struct iwarp_responder *rs, const struct iwarp_responder_params *p);

/* `segment`: a request, which is all but responses and TERMINATE, or its headers. */
void iwarp_look(const struct iwarp_responder *rs, const struct iwarp_segment *segment,
		struct iwarp_look *look);
/* `look`: the result of iwarp_look() for it. `original`: an atomic's value before. */
struct iwarp_taken iwarp_take(struct iwarp_responder *rs, const struct iwarp_segment *segment,
			      const struct iwarp_look *look, enum iwarp_answer answer,
			      uint64_t original);

/* The next segment of a response. False: none is due. */
bool iwarp_respond_next(const struct iwarp_responder *rs, struct iwarp_tx *tx);
/* It is framed. */
void iwarp_responded(struct iwarp_responder *rs, const struct iwarp_tx *tx);
/* Its payload can no longer be read. Returns what the connection has to end with. */
enum iwarp_error iwarp_respond_failed(struct iwarp_responder *rs, enum iwarp_answer answer);

/* Is a response under way of which segments are framed and not the last one? */
static inline bool iwarp_respond_is_midway(const struct iwarp_responder *rs)
{
	return rs->sent != 0;
}

/* Is a message of the peer under way? Then its end of the stream is no orderly one. */
static inline bool iwarp_responder_is_midway(const struct iwarp_responder *rs)
{
	return rs->sending || rs->writing;
}

#endif
