/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a connection and what leads from one to the next: a pure table.
 *
 * What the application asks for, what the peer says and what time does are
 * inputs; the next state, the message to send and the event to report are the
 * output. After IBA volume 1, 12.9 (active and passive side, time-wait) and
 * 12.11 (SIDR). How long to wait, how often to say a thing again and who is
 * meant by a message is not decided here but in cm_machine.h.
 */
#ifndef RDMACM_CM_STATE_H
#define RDMACM_CM_STATE_H

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
	CM_ANSWERED,       /* for good; the answer is kept for who asks again */
	CM_DONE,           /* ended; only to be destroyed */
	CM_STATES
};

enum cm_input {
	/* the application */
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
	/* the peer */
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
	CM_GOT_STALE,      /* the peer's QP asks for another connection */
	/* the world */
	CM_NO_LISTENER,
	CM_REFUSED,        /* one of the two may not talk to the other */
	CM_PEER_GONE,
	CM_TIMEOUT,        /* and nothing is left to be said again */
	CM_INPUTS
};

/* The step's event has the reason or status that the message carried. */
#define CM_STATUS_OF_MESSAGE 0x10000

enum cm_timer {
	CM_TIMER_KEEP,
	CM_TIMER_OFF,
	CM_TIMER_ASK,      /* for the answer of the peer's library; ask again */
	CM_TIMER_SERVICE,  /* for as long as the peer's MRA says */
	CM_TIMER_THINK,    /* for our application; then the peer is told */
	CM_TIMER_WAIT,     /* for our application, to whom it may take long */
	CM_TIMER_LINGER,   /* for one who asks again */
	CM_TIMER_INSIST,   /* the same, and say it again unasked */
	CM_TIMER_TIMEWAIT,
};

struct cm_step {
	bool valid;
	enum cm_state next;
	enum cm_type send;   /* 0: nothing */
	bool again;          /* the last message once more */
	enum cm_reason reason; /* of a REJ that is sent */
	bool report;         /* an event: */
	int event;           /* enum rdma_cm_event_type */
	int status;          /* CM_STATUS_OF_MESSAGE: what the message says */
	enum cm_timer timer;
	bool qp_error;       /* move the QP to the error state */
};

/*
 * What `input` means in `state`. 0 and `step`, or: -EINVAL for a request of the
 * application that the state does not allow (-EISCONN, -ECONNRESET where that
 * says more), -EPROTO for a message that does not belong there and is ignored.
 * -EALREADY where nothing needs to be done.
 */
int cm_state_step(enum cm_state state, enum cm_input input, struct cm_step *step);

const char *cm_state_name(enum cm_state state);
const char *cm_input_name(enum cm_input input);

/* The input that a decoded message is. */
enum cm_input cm_state_input_of(const struct cm_mad *mad);

#endif
