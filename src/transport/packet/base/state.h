/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair that sends packets. Brings with it what all files that work on one need. */
#ifndef TRANSPORT_PACKET_BASE_STATE_H
#define TRANSPORT_PACKET_BASE_STATE_H

#include "engine/rc/requester.h"
#include "engine/rc/responder.h"
#include "hca/share/process.h"
#include "transport/packet/base/port.h"
#include "util/clock.h"

/* A posted entry, as the engine sees it, and its place in the send queue, which also holds
 * operations that send nothing. */
struct packet_entry {
	struct rc_wqe rc;
	uint32_t sq_index;
};

/* What a queue pair does about pages that are missing; only where the port has `demand`. */
struct packet_demand {
	/* Of the responder, under receive_lock. */
	bool nak_due;          /* a reminder of the NAK, or of the answer to `read`, will come */
	bool answers;          /* the reminder is of the answer */
	struct rc_packet read; /* the READ that waits for its pages; other operations: none */
	/* Of the requester, under sq_lock. */
	bool pending;          /* it waits to repeat a request */
	bool waits;            /* to be sent again, or at all, when a fault was served */
	/* Packets that were posted meanwhile: [lost_psn, lost_end). Those of them are lost that leave
	 * for the first time together with the repeated one, if the adapter loses them. */
	uint32_t lost_psn, lost_end;
};

struct packet_qp {
	struct hca_qp *qp;
	struct packet_port *port;
	unsigned generation;    /* of the port, when the queue pair was opened */
	struct packet_route route; /* of a connected queue pair; from RTR on */
	uint8_t service;        /* enum packet_service */

	/* Under sq_lock. */
	struct rc_requester requester;
	struct icrc_series request_series; /* of the route */
	struct packet_entry *entries;
	uint8_t *room;          /* for runs of packets (train.h); NULL: there was none */
	bool ready;             /* RTS was entered */
	uint16_t epoch;         /* hca_qp.tx_epoch, as `requester` knows it */
	uint32_t completed;     /* entries of `requester` that are complete */
	uint64_t gone_back;     /* requester.gone_back when it was counted last */
	uint64_t armed_ns;      /* when hca_qp.retry is due; 0: not armed */
	uint64_t look_ns;       /* until when a local operation waits; 0: none does */
	uint64_t look_since_ns;
	bool polled;            /* a poll sends entries that wait */
	/* UC: the completion of what has left waits for an answer of the peer (late.c). */
	_Atomic uint64_t late_until_ns; /* 0: none waits; read under the other lock, too */
	struct work_done late;
	unsigned heard;         /* `requests` when the last message left */
	unsigned answered;      /* so many messages in a row, before that one */
	uint8_t vain;           /* so many waits in a row brought no answer */
	/* Under wait_lock of the port. */
	bool waiting;
	struct list wait_entry;

	_Atomic uint64_t timeout_ns; /* the requester's; read under the other lock, too */
	atomic_uint requests; /* of UC that have come; changes under receive_lock */

	/* Under receive_lock of the port. */
	struct rc_responder responder;
	struct icrc_series answer_series; /* of the route */
	bool connected;         /* RTR was entered */
	bool answering;
	/* These two are also written under sq_lock alone: a lost count costs a packet at most. */
	atomic_uint told_turn;  /* of the port, when an acknowledgement left by itself */
	atomic_uint replies;    /* requests in succession that were posted before the next poll */
	struct list answer_entry;
	/* Messages use its receive queue, domain and completion queue: `qp`, or for an XRC
	 * target its stand-in at the SRQ (responder/xrc.c). */
	struct hca_qp *as;
	struct packet_xrc *xrc;
	struct packet_demand demand;
	/* The protection domains of the READs in responder.resources. */
	uint32_t read_pd[RC_RESOURCES_MAX];
};

/* Lies in hca_qp.path_part. */
struct packet_part {
	/* Changes under receive_lock of the port and sq_lock. NULL: closed. */
	struct packet_qp *state;
	struct packet_port *port;
	/* packet_posted() reads it without a lock. */
	_Atomic uint32_t unfinished;
};
_Static_assert(sizeof(struct packet_part) <= HCA_PATH_PART_BYTES, "it lies there");

/* The time of the engines, which is read for each message. */
static inline uint64_t packet_now_ns(void)
{
	return clock_now_ns();
}

static inline struct packet_part *packet_part(struct hca_qp *qp)
{
	return (struct packet_part *)(void *)qp->path_part;
}

/* The states in which requests are taken. */
static inline bool packet_receives(const struct hca_qp *qp)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
	       state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

/* ---- backlog.c ---- */
/* The requester's turn comes with the next poll: the carrier has no room, or more messages are to
 * leave with its next one. sq_lock is held. */
void packet_wait(struct packet_qp *pq);
/* The responder owes an answer. receive_lock is held. */
void packet_owes(struct packet_qp *pq);
/* Takes the queue pair out of both lists. receive_lock is held. */
void packet_forget(struct packet_qp *pq);

#endif
