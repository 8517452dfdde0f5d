/* SPDX-License-Identifier: BSD-2-Clause */
/* The table behind state.h. */
#include "engine/cm/state.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "util/container_of.h"

#define STEP(...) { .valid = true, __VA_ARGS__ }
#define STAY(state, ...) STEP(.next = (state), ##__VA_ARGS__)
#define EVENT(which, with_status) \
	.report = true, .event = RDMA_CM_EVENT_##which, .status = (with_status)
#define FAILED(which, with_status, ...)                                   \
	STEP(.next = CM_DONE, EVENT(which, with_status),                  \
	     .timer = CM_TIMER_OFF, ##__VA_ARGS__)
/* The REJ is kept, to be repeated when the peer repeats its message. */
#define REJECT_WITH(why, ...)                                             \
	STEP(.next = CM_ANSWERED, .send = CM_REJ, .reason = (why),        \
	     .timer = CM_TIMER_LINGER, ##__VA_ARGS__)
/* The same, and repeated unasked: the peer may believe that it is connected. */
#define REJECT_REPEATED(why, ...)                                             \
	STEP(.next = CM_ANSWERED, .send = CM_REJ, .reason = (why),        \
	     .timer = CM_TIMER_REPEAT, ##__VA_ARGS__)
#define CLOSED(with_status, ...)                                          \
	STEP(.next = CM_TIMEWAIT, EVENT(DISCONNECTED, with_status),       \
	     .timer = CM_TIMER_TIMEWAIT, ##__VA_ARGS__)
/* The answer is built from the message that came, not from the last one sent. */
#define ANSWER(state, with) STEP(.next = (state), .send = (with))

static const struct cm_step steps[CM_STATES][CM_INPUTS] = {
	[CM_IDLE] = {
		[CM_DO_LISTEN] = STEP(.next = CM_LISTEN),
		[CM_DO_CONNECT] = STEP(.next = CM_REQ_SENT, .send = CM_REQ,
				       .timer = CM_TIMER_ASK),
		[CM_DO_LOOKUP] = STEP(.next = CM_SIDR_REQ_SENT,
				      .send = CM_SIDR_REQ,
				      .timer = CM_TIMER_ASK),
		[CM_GOT_REQ] = STEP(.next = CM_REQ_RCVD,
				    EVENT(CONNECT_REQUEST, 0),
				    .timer = CM_TIMER_MRA),
		[CM_GOT_SIDR_REQ] = STEP(.next = CM_SIDR_REQ_RCVD,
					 EVENT(CONNECT_REQUEST, 0),
					 .timer = CM_TIMER_LINGER),
		[CM_DO_DESTROY] = STEP(.next = CM_DONE),
	},
	[CM_LISTEN] = {
		[CM_DO_DESTROY] = STEP(.next = CM_DONE),
	},
	[CM_REQ_SENT] = {
		[CM_GOT_MRA] = STAY(CM_REQ_SENT, .timer = CM_TIMER_SERVICE),
		[CM_GOT_REP] = STEP(.next = CM_REP_RCVD,
				    EVENT(CONNECT_RESPONSE, 0),
				    .timer = CM_TIMER_MRA),
		/* Peer to peer: this side becomes passive. */
		[CM_GOT_REQ] = STEP(.next = CM_REQ_RCVD,
				    EVENT(CONNECT_REQUEST, 0),
				    .timer = CM_TIMER_MRA),
		[CM_GOT_REJ] = FAILED(REJECTED, CM_STATUS_OF_MESSAGE),
		[CM_NO_LISTENER] = FAILED(REJECTED, CM_REASON_INVALID_SERVICE_ID),
		[CM_REFUSED] = FAILED(REJECTED, CM_REASON_CONSUMER),
		[CM_PEER_GONE] = FAILED(UNREACHABLE, -ECONNRESET),
		[CM_TIMEOUT] = REJECT_WITH(CM_REASON_TIMEOUT,
					   EVENT(UNREACHABLE, -ETIMEDOUT)),
		[CM_DO_DESTROY] = REJECT_WITH(CM_REASON_TIMEOUT),
	},
	[CM_REP_RCVD] = {
		[CM_DO_ESTABLISH] = STEP(.next = CM_ESTABLISHED, .send = CM_RTU,
					 .timer = CM_TIMER_OFF),
		[CM_DO_REJECT] = REJECT_WITH(CM_REASON_CONSUMER),
		[CM_GOT_REP] = STAY(CM_REP_RCVD, .send = CM_MRA,
				    .timer = CM_TIMER_WAIT),
		[CM_GOT_REJ] = FAILED(REJECTED, CM_STATUS_OF_MESSAGE),
		/* The peer was connected by CM_DO_NOTIFY and disconnects. */
		[CM_GOT_DREQ] = STEP(.next = CM_TIMEWAIT,
				     EVENT(CONNECT_ERROR, -ECONNRESET),
				     .send = CM_DREP,
				     .timer = CM_TIMER_TIMEWAIT,
				     .qp_error = true),
		[CM_GOT_STALE] = REJECT_WITH(CM_REASON_STALE_CONNECTION,
					     EVENT(CONNECT_ERROR, -ECONNRESET),
					     .qp_error = true),
		[CM_PEER_GONE] = FAILED(CONNECT_ERROR, -ECONNRESET),
		[CM_TIMEOUT] = REJECT_WITH(CM_REASON_TIMEOUT,
					   EVENT(CONNECT_ERROR, -ETIMEDOUT),
					   .qp_error = true),
		[CM_DO_DESTROY] = REJECT_WITH(CM_REASON_CONSUMER),
	},
	[CM_REQ_RCVD] = {
		[CM_DO_ACCEPT] = STEP(.next = CM_REP_SENT, .send = CM_REP,
				      .timer = CM_TIMER_ASK),
		[CM_DO_REJECT] = REJECT_WITH(CM_REASON_CONSUMER),
		[CM_GOT_REQ] = STAY(CM_REQ_RCVD, .send = CM_MRA,
				    .timer = CM_TIMER_WAIT),
		[CM_GOT_REJ] = FAILED(REJECTED, CM_STATUS_OF_MESSAGE),
		/* Here and in the states below: this request may be an old one
		 * that came late. The REJ tells the peer's QP, which may wait. */
		[CM_GOT_STALE] = REJECT_WITH(CM_REASON_STALE_CONNECTION,
					     EVENT(REJECTED,
						   CM_REASON_STALE_CONNECTION)),
		[CM_PEER_GONE] = FAILED(REJECTED, CM_REASON_TIMEOUT),
		[CM_TIMEOUT] = REJECT_WITH(CM_REASON_TIMEOUT,
					   EVENT(REJECTED, CM_REASON_TIMEOUT)),
		[CM_DO_DESTROY] = REJECT_WITH(CM_REASON_CONSUMER),
	},
	[CM_REP_SENT] = {
		[CM_GOT_RTU] = STEP(.next = CM_ESTABLISHED, EVENT(ESTABLISHED, 0),
				    .timer = CM_TIMER_OFF),
		[CM_DO_NOTIFY] = STEP(.next = CM_ESTABLISHED,
				      EVENT(ESTABLISHED, 0),
				      .timer = CM_TIMER_OFF),
		[CM_GOT_REQ] = STAY(CM_REP_SENT, .again = true),
		[CM_GOT_MRA] = STAY(CM_REP_SENT, .timer = CM_TIMER_SERVICE),
		[CM_GOT_REJ] = FAILED(REJECTED, CM_STATUS_OF_MESSAGE),
		/* The RTU was lost: the peer was connected and disconnects. */
		[CM_GOT_DREQ] = CLOSED(0, .send = CM_DREP),
		[CM_GOT_STALE] = REJECT_REPEATED(CM_REASON_STALE_CONNECTION,
					     EVENT(UNREACHABLE, -ECONNRESET),
					     .qp_error = true),
		[CM_PEER_GONE] = FAILED(UNREACHABLE, -ECONNRESET,
					.qp_error = true),
		[CM_TIMEOUT] = REJECT_REPEATED(CM_REASON_TIMEOUT,
					   EVENT(UNREACHABLE, -ETIMEDOUT),
					   .qp_error = true),
		[CM_DO_DESTROY] = REJECT_REPEATED(CM_REASON_CONSUMER),
	},
	[CM_ESTABLISHED] = {
		[CM_DO_DISCONNECT] = STEP(.next = CM_DREQ_SENT, .send = CM_DREQ,
					  .timer = CM_TIMER_ASK),
		[CM_DO_LOAD_PATH] = STAY(CM_ESTABLISHED, .send = CM_LAP,
					 .timer = CM_TIMER_ASK),
		/* CM_DO_NOTIFY came before the RTU; the peer may not have the REP. */
		[CM_GOT_REQ] = STAY(CM_ESTABLISHED, .again = true),
		/* The RTU was lost. */
		[CM_GOT_REP] = STAY(CM_ESTABLISHED, .send = CM_RTU),
		[CM_GOT_MRA] = STAY(CM_ESTABLISHED, .timer = CM_TIMER_SERVICE),
		[CM_GOT_LAP] = ANSWER(CM_ESTABLISHED, CM_APR),
		[CM_GOT_APR] = STAY(CM_ESTABLISHED, .timer = CM_TIMER_OFF),
		/* The peer did not receive our RTU in time. */
		[CM_GOT_REJ] = CLOSED(0, .qp_error = true),
		[CM_GOT_DREQ] = CLOSED(0, .send = CM_DREP),
		[CM_GOT_STALE] = STEP(.next = CM_DREQ_SENT, .send = CM_DREQ,
				      .timer = CM_TIMER_ASK, .qp_error = true),
		[CM_PEER_GONE] = CLOSED(0, .qp_error = true),
		/* No APR came for a LAP. */
		[CM_TIMEOUT] = STAY(CM_ESTABLISHED, .timer = CM_TIMER_OFF),
		[CM_DO_DESTROY] = STEP(.next = CM_DREQ_SENT, .send = CM_DREQ,
				       .timer = CM_TIMER_ASK),
	},
	[CM_DREQ_SENT] = {
		[CM_GOT_DREP] = CLOSED(0),
		/* Both sides disconnect at once: the peer's DREQ is answered. */
		[CM_GOT_DREQ] = CLOSED(0, .send = CM_DREP),
		[CM_GOT_REJ] = CLOSED(0),
		[CM_GOT_STALE] = CLOSED(0),
		[CM_PEER_GONE] = CLOSED(0),
		[CM_TIMEOUT] = CLOSED(-ETIMEDOUT),
		[CM_DO_DESTROY] = STAY(CM_DREQ_SENT),
	},
	[CM_TIMEWAIT] = {
		[CM_GOT_DREQ] = ANSWER(CM_TIMEWAIT, CM_DREP),
		[CM_TIMEOUT] = FAILED(TIMEWAIT_EXIT, 0),
		[CM_DO_DESTROY] = STAY(CM_TIMEWAIT),
	},
	[CM_SIDR_REQ_SENT] = {
		[CM_GOT_SIDR_REP] = FAILED(ESTABLISHED, 0),
		[CM_GOT_SIDR_REFUSAL] = FAILED(UNREACHABLE, CM_STATUS_OF_MESSAGE),
		[CM_NO_LISTENER] = FAILED(UNREACHABLE, CM_SIDR_UNSUPPORTED),
		[CM_REFUSED] = FAILED(UNREACHABLE, CM_SIDR_REJECTED),
		[CM_PEER_GONE] = FAILED(UNREACHABLE, -ECONNRESET),
		[CM_TIMEOUT] = FAILED(UNREACHABLE, -ETIMEDOUT),
		[CM_DO_DESTROY] = STEP(.next = CM_DONE, .timer = CM_TIMER_OFF),
	},
	[CM_SIDR_REQ_RCVD] = {
		/* The caller repeats its request and still waits. */
		[CM_GOT_SIDR_REQ] = STAY(CM_SIDR_REQ_RCVD,
					 .timer = CM_TIMER_LINGER),
		[CM_DO_ACCEPT] = STEP(.next = CM_ANSWERED, .send = CM_SIDR_REP,
				      .timer = CM_TIMER_LINGER),
		[CM_DO_REJECT] = STEP(.next = CM_ANSWERED, .send = CM_SIDR_REP,
				      .reason = CM_REASON_CONSUMER,
				      .timer = CM_TIMER_LINGER),
		[CM_DO_DESTROY] = STEP(.next = CM_ANSWERED, .send = CM_SIDR_REP,
				       .reason = CM_REASON_CONSUMER,
				       .timer = CM_TIMER_LINGER),
		/* The caller has given up: no answer is sent. */
		[CM_TIMEOUT] = STEP(.next = CM_DONE, .timer = CM_TIMER_OFF),
	},
	[CM_ANSWERED] = {
		[CM_GOT_REQ] = STAY(CM_ANSWERED, .again = true),
		[CM_GOT_REP] = STAY(CM_ANSWERED, .again = true),
		[CM_GOT_SIDR_REQ] = STAY(CM_ANSWERED, .again = true),
		[CM_GOT_DREQ] = ANSWER(CM_ANSWERED, CM_DREP),
		/* The peer has rejected, too: no repetition is needed. */
		[CM_GOT_REJ] = STEP(.next = CM_DONE, .timer = CM_TIMER_OFF),
		[CM_TIMEOUT] = STEP(.next = CM_DONE, .timer = CM_TIMER_OFF),
		[CM_DO_DESTROY] = STAY(CM_ANSWERED),
	},
	[CM_DONE] = {
		[CM_DO_DESTROY] = STEP(.next = CM_DONE),
	},
};

static bool input_is_request(enum cm_input input)
{
	return input < CM_GOT_REQ;
}

int cm_state_step(enum cm_state state, enum cm_input input, struct cm_step *step)
{
	const struct cm_step *s = &steps[state][input];

	if (s->valid) {
		*step = *s;
		return 0;
	}
	if (!input_is_request(input))
		return -EPROTO;
	if (input == CM_DO_NOTIFY && state == CM_ESTABLISHED)
		return -EISCONN;
	if (input == CM_DO_ACCEPT &&
	    (state == CM_DONE || state == CM_ANSWERED))
		return -ECONNRESET;
	if (input == CM_DO_LOAD_PATH)
		return -EINVAL;
	/* A disconnect of an identifier that is not connected is no error. */
	if (input == CM_DO_DISCONNECT && state > CM_LISTEN)
		return -EALREADY;
	return -EINVAL;
}

const char *cm_state_name(enum cm_state state)
{
	static const char *const names[CM_STATES] = {
		[CM_IDLE] = "idle",
		[CM_LISTEN] = "listen",
		[CM_REQ_SENT] = "req_sent",
		[CM_REP_RCVD] = "rep_received",
		[CM_REQ_RCVD] = "req_received",
		[CM_REP_SENT] = "rep_sent",
		[CM_ESTABLISHED] = "established",
		[CM_DREQ_SENT] = "dreq_sent",
		[CM_TIMEWAIT] = "timewait",
		[CM_SIDR_REQ_SENT] = "sidr_req_sent",
		[CM_SIDR_REQ_RCVD] = "sidr_req_received",
		[CM_ANSWERED] = "answered",
		[CM_DONE] = "done",
	};

	return state < CM_STATES ? names[state] : "unknown";
}

const char *cm_input_name(enum cm_input input)
{
	static const char *const names[CM_INPUTS] = {
		[CM_DO_LISTEN] = "listen",
		[CM_DO_CONNECT] = "connect",
		[CM_DO_LOOKUP] = "lookup",
		[CM_DO_ACCEPT] = "accept",
		[CM_DO_ESTABLISH] = "establish",
		[CM_DO_REJECT] = "reject",
		[CM_DO_DISCONNECT] = "disconnect",
		[CM_DO_NOTIFY] = "notify",
		[CM_DO_LOAD_PATH] = "load path",
		[CM_DO_DESTROY] = "destroy",
		[CM_GOT_REQ] = "REQ",
		[CM_GOT_SIDR_REQ] = "SIDR_REQ",
		[CM_GOT_MRA] = "MRA",
		[CM_GOT_REP] = "REP",
		[CM_GOT_RTU] = "RTU",
		[CM_GOT_REJ] = "REJ",
		[CM_GOT_DREQ] = "DREQ",
		[CM_GOT_DREP] = "DREP",
		[CM_GOT_SIDR_REP] = "SIDR_REP",
		[CM_GOT_SIDR_REFUSAL] = "SIDR_REP with a refusal",
		[CM_GOT_LAP] = "LAP",
		[CM_GOT_APR] = "APR",
		[CM_GOT_STALE] = "another REQ of the peer's QP",
		[CM_NO_LISTENER] = "no listener",
		[CM_REFUSED] = "refused",
		[CM_PEER_GONE] = "peer gone",
		[CM_TIMEOUT] = "timeout",
	};

	return input < CM_INPUTS ? names[input] : "unknown";
}

enum cm_input cm_state_input_of(const struct cm_mad *mad)
{
	switch (mad->type) {
	case CM_REQ:
		return CM_GOT_REQ;
	case CM_MRA:
		return CM_GOT_MRA;
	case CM_REJ:
		return CM_GOT_REJ;
	case CM_REP:
		return CM_GOT_REP;
	case CM_RTU:
		return CM_GOT_RTU;
	case CM_DREQ:
		return CM_GOT_DREQ;
	case CM_DREP:
		return CM_GOT_DREP;
	case CM_SIDR_REQ:
		return CM_GOT_SIDR_REQ;
	case CM_LAP:
		return CM_GOT_LAP;
	case CM_APR:
		return CM_GOT_APR;
	case CM_SIDR_REP:
		break;
	}
	return mad->sidr_rep.status == CM_SIDR_SUCCESS ? CM_GOT_SIDR_REP :
							 CM_GOT_SIDR_REFUSAL;
}
