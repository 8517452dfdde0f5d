/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queue of an iWARP connection as DDP segments, and what the responses of the peer
 * complete. RFC 5040 (RDMAP), RFC 5041 (DDP), RFC 7306 (atomics, immediate data).
 *
 * Pure, as engine/rc/requester.h: no clock, lock, allocation or system call. iwarp_request_next()
 * says what is next and changes nothing; the caller frames that segment, with the payload behind
 * the headers, and calls iwarp_requested(). Positions are bytes of the stream behind the MPA frame,
 * as the framer counts them.
 *
 * Completions are in the order of the queue. iWARP has no acknowledgement of its own: a SEND or
 * WRITE is complete when TCP has taken its last byte, from when on its memory is free again. RDMAP
 * allows that (RFC 5040, 5.5, ordering and completion): at the sender a completion does not say
 * that the data have been placed, let alone delivered. The peer may yet refuse the message. A READ
 * that follows it, or a message from the peer's program, tells. READs and atomics are complete with
 * their response.
 *
 * A TERMINATE of the peer, and the end of the stream, fail the oldest entry that is not complete,
 * whichever entry they are about: that one may be complete. The caller flushes the rest.
 *
 * The data sink of a READ has the number of the READ as its STag, and counts from 0: the peer only
 * repeats both. So a READ may have several pieces of memory, and a response shows which READ it
 * answers. Responses, of atomics as well, must come in the order of the requests.
 */
#ifndef ENGINE_IWARP_REQUESTER_H
#define ENGINE_IWARP_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/iwarp/setup.h"
#include "engine/iwarp/tx.h"
#include "engine/work.h"

/* A work entry. The caller fills in the first part, iwarp_post() the second. */
struct iwarp_wqe {
	uint8_t op;    /* enum work_op */
	uint8_t flags; /* enum work_flags */
	uint32_t length;
	uint32_t imm;  /* WORK_IMM: in network order; WORK_INVALIDATE: the STag */
	uint32_t stag; /* of the peer's memory, with `to` */
	uint64_t to, compare_add, swap;

	uint32_t msn;  /* of its message on queue 0 or 1, if it has one; set when that is framed */
	uint64_t end;  /* the position behind its last FPDU, when that is framed */
};

struct iwarp_requester_params {
	uint32_t mulpdu;  /* the longest ULPDU with payload; 64 at least */
	uint16_t ord;     /* READs and atomics under way at most */
	bool extended;    /* atomics and immediate data (RFC 7306), which no set-up negotiates */
	uint8_t rtr;      /* enum iwarp_rtr: sent before all entries; 0: none */
	struct work_ring ring;
};

struct iwarp_requester {
	struct iwarp_requester_params p;
	/* Entries [tail, head) are posted, [tail, next) are framed. */
	uint32_t tail, next, head;
	uint32_t at;           /* bytes of entry `next` that are framed */
	bool begun;            /* a segment of entry `next` is framed, and not the last one */
	uint32_t send_msn, read_msn; /* of the next messages on queue 0 and 1 */
	uint32_t response_msn; /* of the next atomic response */
	uint32_t reads;        /* READs and atomics that are framed and not answered */
	uint32_t got;          /* bytes that have come of the oldest one's response */
	uint64_t taken;        /* TCP has taken the bytes before */
	bool rtr_waits;        /* the RTR is a READ that is not answered */
	uint64_t rtr_end;      /* the position behind it */
	bool failed;
	/* Entry `refused_index` cannot be sent; it fails with this when those before it are
	 * complete. */
	enum ibv_wc_status refused;
	uint32_t refused_index;
};

/* Where the payload of a response goes: byte `at` of the message of entry `index`. */
struct iwarp_place {
	uint32_t index, at, bytes; /* 0 bytes: nowhere */
	uint64_t original;         /* of an atomic: these 8 bytes, in host order */
};

void iwarp_requester_open(struct iwarp_requester *rq, const struct iwarp_requester_params *p);

static inline struct iwarp_wqe *iwarp_entry(const struct iwarp_requester *rq, uint32_t index)
{
	return work_entry(&rq->p.ring, index);
}

/* Can such an entry be sent at all? If not the caller completes it with IBV_WC_LOC_QP_OP_ERR in
 * place of posting it. SENDs have no immediate data. */
bool iwarp_request_possible(const struct iwarp_requester *rq, const struct iwarp_wqe *e);
/* The caller has filled in entry `head`, which is possible; the ring had room for it. */
void iwarp_post(struct iwarp_requester *rq);

/* The next segment. Entries from `limit` on do not begin (SQD state); `head`: no limit. False:
 * there is none now. */
bool iwarp_request_next(const struct iwarp_requester *rq, uint32_t limit, struct iwarp_tx *tx);
/* It is framed; `position` is behind its FPDU. */
void iwarp_requested(struct iwarp_requester *rq, const struct iwarp_tx *tx, uint64_t position);
/* Its payload cannot be read (IBV_WC_LOC_PROT_ERR ...): nothing more is sent. The result may come
 * with a later call, when the entries before it are complete. In the middle of a message they
 * cannot become that, and the oldest one is flushed. */
struct work_done iwarp_request_refuse(struct iwarp_requester *rq, const struct iwarp_tx *tx,
				      enum ibv_wc_status status);
/* TCP has taken all bytes before `position`. To be called before segments are handed in that have
 * arrived behind that: a response to a request that was not sent is an error. */
struct work_done iwarp_request_taken(struct iwarp_requester *rq, uint64_t position);

/* A READ or atomic response came, or its headers: where does the payload go? The rule that it
 * breaks, or IWARP_OK. Changes nothing. */
enum iwarp_error iwarp_reply_look(const struct iwarp_requester *rq,
				  const struct iwarp_segment *segment,
				  struct iwarp_place *place);
/* It came as a whole and was good. `copied`: the result of placing it. */
struct work_done iwarp_reply(struct iwarp_requester *rq, const struct iwarp_segment *segment,
			     enum ibv_wc_status copied);

/* The connection has failed: so does the oldest entry, if there is one. Nothing more is sent. */
struct work_done iwarp_requester_fail(struct iwarp_requester *rq, enum ibv_wc_status status);

/* The status of the oldest entry behind a TERMINATE that came. */
enum ibv_wc_status iwarp_terminate_status(const struct iwarp_terminate *t);

#endif
