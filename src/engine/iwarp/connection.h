/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An iWARP connection behind its set-up: the requester and the responder on one TCP stream, and how
 * the stream ends. RFC 5040, 6 and 7; RFC 5044, 7.
 *
 * Pure: segments, bytes that TCP has taken, the end of the stream and the time in; segments,
 * completions and what to do with the socket out. The caller holds a lock, copies, and
 *
 * - sends: iwarp_next(), puts payload behind the headers and frames both with `framer`, then
 *   iwarp_framed(). It may frame ahead of what TCP takes, as far as it likes; iwarp_took() says how
 *   much TCP took, anywhere in an FPDU. What TCP has not taken goes on at that byte: the caller
 *   keeps it, and copies it where its memory may change or go. With CRCs it copies a READ response
 *   before it is framed, because the peer may write there meanwhile;
 * - receives: each segment by iwarp_arrived() and iwarp_carried_out(). Without a buffer in the
 *   receiver the first one gets the headers; then payload is placed as it comes, and all else is
 *   done at the end of the FPDU, when it is known to be good;
 * - after each call looks at the outcome, and at iwarp_action().
 *
 * Order. The parts of an outcome count in the order of its members: a receive is complete before
 * sends are, both before the queue pair fails, and all of it before the disconnect. So a program
 * sees a message before the disconnect that follows it. `fail` and `disconnected` come once each.
 *
 * Who sends when. The responder of the set-up sends nothing until an FPDU has come (RFC 5044,
 * 7.1.2): siw ends a connection on which a byte follows the reply. READ responses and the send
 * queue take turns at the borders of messages, never within one.
 *
 * Ways to end:
 * - iwarp_close(): when all entries are complete and all responses are sent, this end sends no more
 *   (SHUTDOWN); what still arrives is carried out until the peer's end.
 * - An error of the peer, or of this end: responses that were due before are sent, unless a
 *   message of the send queue is half sent; then a TERMINATE, and no more. What arrives is dropped.
 * - A TERMINATE of the peer: no answer, and no more is sent. What arrives is dropped.
 * - The end of the stream between two messages: entries that are not complete are flushed.
 *   Elsewhere, or when the stream was reset, the oldest one fails with IBV_WC_RETRY_EXC_ERR.
 * - iwarp_abort(): at once.
 * An orderly end that does not advance for `close_ns`, and any other one that takes longer, becomes
 * an abort; so does one behind iwarp_flushed() that takes longer.
 */
#ifndef ENGINE_IWARP_CONNECTION_H
#define ENGINE_IWARP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/iwarp/requester.h"
#include "engine/iwarp/responder.h"
#include "wire/iwarp/fpdu.h"
#include "wire/iwarp/receiver.h"

struct iwarp_connection_params {
	const struct iwarp_terms *terms; /* of the set-up */
	uint32_t mulpdu;   /* of iwarp_mulpdu(); 64 at least */
	bool extended;     /* atomics and immediate data: both ends must know it of each other */
	struct work_ring ring;
	/* Of the responder: how long it waits for the RTR that was agreed on; 0: for ever. */
	uint64_t begin_ns;
	uint64_t close_ns; /* 0: for ever */
};

enum iwarp_output { /* what is sent */
	IWARP_OUT_MESSAGES,
	IWARP_OUT_CLOSING,   /* messages, and then the end */
	IWARP_OUT_TERMINATE, /* responses that are due, the TERMINATE, and then the end */
	IWARP_OUT_END,       /* nothing more is framed */
	IWARP_OUT_SHUT,      /* the socket was shut down for writing */
};

enum iwarp_input { /* what is done with what arrives */
	IWARP_IN_MESSAGES,
	IWARP_IN_DROPPED,
	IWARP_IN_ENDED,
};

struct iwarp_connection {
	struct iwarp_framer framer;
	uint64_t taken;       /* bytes that TCP has taken; the others up to framer.position wait */
	struct iwarp_requester rq;
	struct iwarp_responder rs;
	uint8_t output, input; /* enum iwarp_output, iwarp_input */
	bool begun;           /* this end may send */
	bool responses_first; /* whose turn it is */
	bool midway;          /* a message of the send queue is framed in part, for ever */
	bool aborted, failed, disconnected;
	uint64_t close_ns, deadline_ns;
	/* Why it ended, for logs and events. */
	enum iwarp_error error;        /* the peer broke this rule, or this end failed */
	bool terminated;               /* by the peer: `terminate` is what it said */
	struct iwarp_terminate terminate; /* else that this end sends */
};

/* What a call changes for the program, in this order. */
struct iwarp_outcome {
	struct iwarp_taken receive; /* `complete`: the receive that the caller has taken is */
	struct work_done done;      /* of the send queue */
	bool fail;                  /* the queue pair goes to the error state, and flushes */
	bool disconnected;          /* the program is told */
};

/* What arrived, and what the caller does for it. */
struct iwarp_arrival {
	bool reply;             /* payload goes to `place`, else as `look` says */
	struct iwarp_look look; /* `error` also of replies; then nothing is done */
	struct iwarp_place place;
};

enum iwarp_action {
	IWARP_NO_ACTION,
	IWARP_SHUTDOWN, /* shut the socket down for writing, then iwarp_shut() */
	IWARP_CLOSE,    /* both directions have ended: close the socket */
	IWARP_RESET,    /* close it so that the peer gets a reset */
};

void iwarp_connection_open(struct iwarp_connection *c, const struct iwarp_connection_params *p,
			   uint64_t now_ns);

/* The path's maximum segment size has changed; from the next segment on. */
static inline void iwarp_set_mulpdu(struct iwarp_connection *c, uint32_t mulpdu)
{
	c->rq.p.mulpdu = c->rs.p.mulpdu = mulpdu;
}

/* ---- sending ---- */

/* Is surely no segment due? Cheaper than iwarp_next(). */
static inline bool iwarp_is_quiet(const struct iwarp_connection *c)
{
	return c->output == IWARP_OUT_MESSAGES && c->rq.next == c->rq.head && !c->rq.p.rtr &&
	       c->rs.answered == c->rs.taken;
}

/* The next segment. `limit`: entries from there on do not begin (SQD state); rq.head: no limit. */
bool iwarp_next(const struct iwarp_connection *c, uint32_t limit, struct iwarp_tx *tx);
/* It was framed with `framer`. */
void iwarp_framed(struct iwarp_connection *c, const struct iwarp_tx *tx);
/* In place of it: its payload cannot be read. `status`: of the entry, with IWARP_FROM_ENTRY; else
 * `answer` is why. */
struct iwarp_outcome iwarp_unreadable(struct iwarp_connection *c, const struct iwarp_tx *tx,
				      enum ibv_wc_status status, enum iwarp_answer answer);
/* TCP took `bytes` more. To be called before what arrives behind that is handed in. */
struct iwarp_outcome iwarp_took(struct iwarp_connection *c, uint64_t bytes);

/* ---- receiving ---- */

/* False: the segment is dropped without looking at it, nor is iwarp_carried_out() called. */
bool iwarp_arrived(const struct iwarp_connection *c, const struct iwarp_segment *segment,
		   struct iwarp_arrival *arrival);
/* The FPDU was good, and this was done. `answer`: of requests; `copied`: of replies. If the
 * connection has failed since the headers came, nothing changes; the receive is flushed as others
 * are. */
struct iwarp_outcome iwarp_carried_out(struct iwarp_connection *c,
				       const struct iwarp_segment *segment,
				       const struct iwarp_arrival *arrival,
				       enum iwarp_answer answer, uint64_t original,
				       enum ibv_wc_status copied);
/* The receiver says IWARP_BROKEN. Nothing more is handed to it. */
struct iwarp_outcome iwarp_broken(struct iwarp_connection *c, const struct iwarp_receiver *r);

/* ---- ending ---- */

/* The peer has ended the stream; `idle`: iwarp_receiver_idle(). */
struct iwarp_outcome iwarp_ended(struct iwarp_connection *c, bool idle);
/* The stream was reset, or timed out. */
struct iwarp_outcome iwarp_lost(struct iwarp_connection *c);
/* The program disconnects, in order. */
void iwarp_close(struct iwarp_connection *c);
/* Behind that the queue pair has left the states in which it completes entries, and they are flushed:
 * none begins any more, none is waited for, and what arrives is dropped. An entry that is half sent
 * makes it an abort. */
struct iwarp_outcome iwarp_flushed(struct iwarp_connection *c);
/* It does so at once, or the queue pair has failed; its entries are flushed. */
struct iwarp_outcome iwarp_abort(struct iwarp_connection *c);
/* This end ends the connection with a TERMINATE, which no segment has caused: when the set-up says
 * so, or when something of the own queue pair has failed. */
struct iwarp_outcome iwarp_refuse(struct iwarp_connection *c, enum iwarp_error error);

/* What to do with the socket now; sets `deadline_ns`. */
enum iwarp_action iwarp_action(struct iwarp_connection *c, uint64_t now_ns);
void iwarp_shut(struct iwarp_connection *c);
/* To be called at `deadline_ns`, if that is not 0. */
struct iwarp_outcome iwarp_timer(struct iwarp_connection *c, uint64_t now_ns);

#endif
