/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection in time: pure.
 *
 * On top of the table of states: which message is sent again and when, what a
 * message that comes twice means, when the peer is told that an answer takes
 * longer (MRA) and how long one waits that was told so, which of two callers
 * that call each other becomes the called, how long a connection rests. The time
 * is passed in and is any clock that only goes forward; random values too. No
 * socket, clock or lock inside, so the same code runs over a socket that loses
 * nothing, over datagrams, and in a simulated network.
 *
 * After each call: what `out` says to send is sent, what it says to report is
 * reported, and cm_machine_tick() is called when deadline_ns (0: never) is there.
 *
 * An application that destroys its identifier may leave the machine behind: it
 * reports nothing any more and goes on answering until it is CM_DONE. Where no
 * message is lost it may as well be dropped.
 */
#ifndef RDMACM_CM_MACHINE_H
#define RDMACM_CM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "rdmacm/cm_state.h"

struct cm_machine {
	enum cm_state state;
	bool active;             /* it asked for the connection */
	bool peer_to_peer;       /* two callers may meet; before CM_DO_CONNECT */
	bool orphan;             /* the application is gone */
	bool thinking;           /* the next deadline tells the peer so */
	bool path_waits;         /* a LAP is not answered yet */
	uint8_t repeats, repeats_max;
	uint8_t answer_code;     /* of answer_ns */
	uint32_t local_comm_id, remote_comm_id; /* remote: 0 is not known yet */
	uint32_t local_qpn, remote_qpn;
	uint64_t local_guid, service_id;
	uint64_t tid;
	uint64_t ask_ns;         /* until the peer is asked again */
	uint64_t answer_ns;      /* until the peer wants to hear from us */
	uint64_t trip_ns;        /* two packet lifetimes and a bit */
	uint64_t rest_ns;        /* of the time-wait */
	uint64_t deadline_ns;
	struct cm_mad sent;      /* what may have to be said again */
};

struct cm_output {
	bool send, report, qp_error;
	bool path_answered;      /* the LAP's end: */
	int path_status;         /* enum cm_path_status or -ETIMEDOUT */
	int event;               /* enum rdma_cm_event_type */
	int status;              /* reason, SIDR status or negative errno */
	struct cm_mad mad;
};

/* `local_comm_id`: random, and no other's of this end of the carrier. */
void cm_machine_init(struct cm_machine *m, uint32_t local_comm_id);
/* For SIDR, whose messages say nothing of time: fields as those of a REQ. */
void cm_machine_pace(struct cm_machine *m, uint8_t response_code,
		     uint8_t retries, uint8_t ack_code);

/*
 * A request of the application or news of the world (CM_DO_..., CM_GOT_STALE,
 * CM_NO_LISTENER, CM_PEER_GONE). `words`: the message to send, complete but for
 * the identifiers of the connection and the transaction (REQ and SIDR_REQ have
 * that); needed for CONNECT, LOOKUP, LOAD_PATH and ACCEPT, may give reason and
 * private data of a REJ, and a SIDR_REP. Errors are those of cm_state_step().
 */
int cm_machine_ask(struct cm_machine *m, enum cm_input what,
		   const struct cm_mad *words, uint64_t now_ns,
		   struct cm_output *out);
/* A message. -ENOENT: it is nobody's (see cm_stray_answer); -EPROTO: ignored. */
int cm_machine_hear(struct cm_machine *m, const struct cm_mad *mad,
		    uint64_t now_ns, struct cm_output *out);
/* -EAGAIN: it is not time yet. */
int cm_machine_tick(struct cm_machine *m, uint64_t now_ns, struct cm_output *out);

/* Is the message for this machine? */
bool cm_machine_accepts(const struct cm_machine *m, const struct cm_mad *mad);
/* Does another connection of the peer's QP make this one stale? */
bool cm_machine_holds_qp(const struct cm_machine *m);

/* The answer to a message that no machine takes; -ENOENT: none is due. */
int cm_stray_answer(const struct cm_mad *mad, struct cm_mad *answer);
/* REJ or SIDR_REP to a request that no machine is made for; -EPROTO: no request. */
int cm_refusal(const struct cm_mad *request, int reason, struct cm_mad *answer);

#endif
