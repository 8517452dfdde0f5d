/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a connection and the steps between them: a pure table.
 *
 * Inputs are requests of the application, messages of the peer and timeouts;
 * outputs are the next state, the message to send and the event to report. After
 * IBA volume 1, 12.9 (active and passive side, time-wait) and 12.11 (SIDR). The
 * lengths of timeouts, the number of repetitions and the choice of the connection
 * to which a message belongs are in machine.h.
 */
#ifndef ENGINE_CM_STATE_H
#define ENGINE_CM_STATE_H

#include <stdbool.h>

#include "wire/cm.h"

enum cm_state {
	CM_IDLE,
	CM_LISTEN,
	CM_REQ_SENT,
	CM_REP_RCVD,
	CM_REQ_RCVD,
	CM_REP_SENT,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT,
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD,
	CM_ANSWERED,       /* finally; the answer is repeated on a repeated request */
	CM_DONE,           /* ended; only to be destroyed */
	CM_STATES
};

enum cm_input {
	/* requests of the application */
	CM_DO_LISTEN,
	CM_DO_CONNECT,
	CM_DO_LOOKUP,      /* rdma_connect() of a datagram identifier */
	CM_DO_ACCEPT,
	CM_DO_ESTABLISH,   /* the active side's QP is ready */
	CM_DO_REJECT,
	CM_DO_DISCONNECT,
	CM_DO_NOTIFY,      /* data came before the RTU */
	CM_DO_LOAD_PATH,   /* an alternate path for the peer */
	CM_DO_DESTROY,
	/* messages of the peer */
	CM_GOT_REQ,
	CM_GOT_SIDR_REQ,
	CM_GOT_MRA,
	CM_GOT_REP,
	CM_GOT_RTU,
	CM_GOT_REJ,
	CM_GOT_DREQ,
	CM_GOT_DREP,
	CM_GOT_SIDR_REP,   /* status success */
	CM_GOT_SIDR_REFUSAL,
	CM_GOT_LAP,
	CM_GOT_APR,
	CM_GOT_STALE,      /* a new REQ of the QP that this connection uses */
	/* other inputs */
	CM_NO_LISTENER,
	CM_REFUSED,        /* BUSBAR_PEERS, here or at the peer, forbids it */
	CM_PEER_GONE,      /* the link to the peer's process has ended */
	CM_TIMEOUT,        /* the deadline, after the last repetition */
	CM_INPUTS
};

/* Stands for the reason or status in the message that came. */
#define CM_STATUS_OF_MESSAGE 0x10000

enum cm_timer {
	CM_TIMER_KEEP,
	CM_TIMER_OFF,
	CM_TIMER_ASK,      /* waits for the peer's answer; repeats the message */
	CM_TIMER_SERVICE,  /* waits as long as the peer's MRA says */
	CM_TIMER_MRA,    /* waits for the application, then sends an MRA */
	CM_TIMER_WAIT,     /* waits for the application, after an MRA */
	CM_TIMER_LINGER,   /* waits for repeated messages of the peer */
	CM_TIMER_REPEAT,   /* the same, and repeats the last message unasked */
	CM_TIMER_TIMEWAIT,
};

struct cm_step {
	bool valid;
	enum cm_state next;
	enum cm_type send;   /* 0: nothing */
	bool again;          /* repeat the last message */
	enum cm_reason reason; /* of a REJ that is sent */
	bool report;         /* report the event: */
	int event;           /* enum rdma_cm_event_type */
	int status;          /* or CM_STATUS_OF_MESSAGE */
	enum cm_timer timer;
	bool qp_error;       /* move the QP to the error state */
};

/*
 * The step for `input` in `state`: 0 and `step`. A request of the application that
 * the state does not allow is -EINVAL, -EISCONN (NOTIFY when connected) or
 * -ECONNRESET (ACCEPT after the end); -EALREADY: DISCONNECT without a connection,
 * nothing is to be done. Any other input without a step is -EPROTO, to be ignored.
 */
int cm_state_step(enum cm_state state, enum cm_input input, struct cm_step *step);

const char *cm_state_name(enum cm_state state);
const char *cm_input_name(enum cm_input input);

/* The input for a decoded message. */
enum cm_input cm_state_input_of(const struct cm_mad *mad);

#endif
