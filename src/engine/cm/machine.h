/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection, with its deadlines. Pure: no socket, clock or lock.
 *
 * Adds to the table of states (state.h): which message is repeated and when,
 * what a repeated message of the peer means, when an MRA asks the peer to wait and
 * how long a side waits that received one, which side becomes passive if both
 * call each other, and how long the time-wait lasts. The caller passes in the time,
 * of any clock that never goes back, and the random values. So the same code runs
 * over a socket without loss, over datagrams, and in a simulated network.
 *
 * After each call the caller sends and reports what `out` says, and calls
 * cm_machine_tick() when deadline_ns is reached (0: no deadline).
 *
 * After CM_DO_DESTROY the machine reports nothing, but still answers messages until
 * it is CM_DONE. Over a carrier without loss it may be freed at once.
 */
#ifndef ENGINE_CM_MACHINE_H
#define ENGINE_CM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/cm/state.h"

struct cm_machine {
	enum cm_state state;
	bool active;             /* this side sent the REQ or SIDR_REQ */
	bool peer_to_peer;       /* both may call each other; set before CM_DO_CONNECT */
	bool orphan;             /* CM_DO_DESTROY was given: nothing is reported */
	bool mra_due;           /* at the next deadline an MRA is sent */
	bool path_waits;         /* a LAP was sent and has no APR yet */
	uint8_t repeats, repeats_max;
	uint8_t answer_code;     /* answer_ns as a code of 4.096 us * 2^n */
	uint8_t trip_code_max;   /* of trip_ns; 0: 1 s */
	uint32_t local_comm_id, remote_comm_id; /* remote: 0: not known yet */
	uint32_t local_qpn, remote_qpn;
	uint64_t local_guid, service_id;
	uint64_t tid;
	uint64_t ask_ns;         /* from a message to its repetition */
	uint64_t answer_ns;      /* response time that the peer grants this side */
	uint64_t trip_ns;        /* round trip, estimated by the ACK timeout */
	uint64_t rest_ns;        /* length of the time-wait */
	uint64_t deadline_ns;
	/* This side's limit for the times that the peer's messages ask for; 0: none. All
	 * repetitions of an answer together take at most this long, and the MRAs of a caller
	 * prolong a wait by at most this; those of a called peer by the longest time that an
	 * MRA can ask for. */
	uint64_t limit_ns;
	uint64_t until_ns;       /* when a wait that MRAs prolong ends */
	struct cm_mad sent;      /* the message that is repeated */
};

struct cm_output {
	bool send, report, qp_error;
	bool path_answered;      /* a LAP has its answer, or none came in time: */
	int path_status;         /* enum cm_path_status or -ETIMEDOUT */
	int event;               /* to report: enum rdma_cm_event_type */
	int status;              /* of `event`: reason, SIDR status or negative errno */
	struct cm_mad mad;
};

/* `local_comm_id`: random, and unique at this end of the carrier. */
void cm_machine_init(struct cm_machine *m, uint32_t local_comm_id);
/* For SIDR, whose messages carry no times; the values are those of a REQ's fields. */
void cm_machine_pace(struct cm_machine *m, uint8_t response_code,
		     uint8_t retries, uint8_t ack_code);

/*
 * An input other than a message or the time: CM_DO_..., CM_GOT_STALE,
 * CM_NO_LISTENER, CM_REFUSED or CM_PEER_GONE. `message` is the message to send,
 * without the communication identifiers; a transaction identifier is needed in REQ
 * and SIDR_REQ only. It is required for CONNECT, LOOKUP, LOAD_PATH and ACCEPT, and
 * may give the reason and private data of a REJ, or a SIDR_REP. Errors are those of
 * cm_state_step(), -EINVAL without required `message`, and -EBUSY for a second
 * LOAD_PATH before the answer to the first one.
 */
int cm_machine_ask(struct cm_machine *m, enum cm_input what,
		   const struct cm_mad *message, uint64_t now_ns,
		   struct cm_output *out);
/* A message came. -ENOENT: it is not for this machine (see wire_cm_stray_answer());
 * -EPROTO: it does not belong to the state and is ignored. */
int cm_machine_receive(struct cm_machine *m, const struct cm_mad *mad,
		    uint64_t now_ns, struct cm_output *out);
/* The deadline came. -EAGAIN: there is none, or it is later than now_ns. */
int cm_machine_tick(struct cm_machine *m, uint64_t now_ns, struct cm_output *out);

/* Is the message for this connection? */
bool cm_machine_accepts(const struct cm_machine *m, const struct cm_mad *mad);
/* Does a new REQ of the same QP of the peer make this connection stale? */
bool cm_machine_holds_qp(const struct cm_machine *m);

#endif
