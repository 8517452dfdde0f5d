/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of iWARP (struct cma_connector): a TCP connection for each, the frames of MPA on it
 * (engine/iwarp/setup.h), and then the queue pair gets the socket (hca/path/stream.h).
 *
 * From the ground up: call.c (a TCP connection in its set-up), side.c (who waits for it), attach.c
 * (what an identifier has; the queue pair gets the stream, and what is reported of it), listen.c
 * (callers, and children for their requests), connector.c.
 *
 * The port of an identifier is the port of TCP. An initiator that may choose asks for a first message
 * by itself (RTR), so that programs whose responder sends first work; a responder reports ESTABLISHED
 * when the first message has come.
 */
#ifndef RDMACM_MPA_MPA_H
#define RDMACM_MPA_MPA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "engine/iwarp/setup.h"
#include "hca/run/progress.h"
#include "rdmacm/event/event.h"
#include "util/list.h"

/* READs that an end serves, or has under way, at most, as Linux's siw. */
#define MPA_READS_MAX 128
/* Private data of a request that Linux's siw takes, the four bytes of revision 2 not counted. */
#define MPA_PRIVATE_MAX 252

/* ---- call.c: the caller holds a lock ---- */

struct mpa_call {
	int fd;             /* -1: none */
	bool connecting;    /* TCP has no connection yet */
	int result;         /* why the call failed before or in the set-up: a negative errno; 0 */
	uint64_t deadline_ns; /* of TCP; of progress time */
	uint64_t again_ns;    /* nobody listened: when TCP is asked again; 0: it is under way */
	uint64_t patient_until_ns; /* then who listens is waited for no longer */
	struct sockaddr_storage from, to; /* of TCP */
	struct iwarp_setup setup;
};

/* What both sides ask for, by the settings. */
void mpa_params(struct iwarp_setup_params *p, bool initiator);
/* Calls `to` from `from`. 0 or a negative errno. */
int mpa_call_open(struct mpa_call *c, const struct sockaddr *from, const struct sockaddr *to,
		  const struct iwarp_setup_params *p, uint64_t timeout_ns);
/* Takes an accepted socket, which it closes on failure. */
int mpa_call_take(struct mpa_call *c, int fd);
/* Moves what can be moved. True: the state has changed, or it has failed (`result`). */
bool mpa_call_step(struct mpa_call *c);
/* The deadline has passed: as mpa_call_step(). */
bool mpa_call_expire(struct mpa_call *c);
/* What to wait for: EPOLLIN or EPOLLOUT, or 0. */
uint32_t mpa_call_events(const struct mpa_call *c);
/* The next deadline in progress time; 0: none. */
uint64_t mpa_call_deadline(const struct mpa_call *c);
/* Also of one that is closed. Nobody watches it any more. */
void mpa_call_close(struct mpa_call *c);

/* ---- side.c ---- */

enum mpa_state {
	MPA_IDLE,
	MPA_LISTENING,
	MPA_CALLING,   /* TCP connects, the request leaves, the reply comes */
	MPA_ANSWERED,  /* of an initiator: the reply is here, its event waits for the program */
	MPA_CALLED,    /* of a child: the program decides */
	MPA_ATTACHED,  /* the queue pair has the stream */
	MPA_ENDED,
};

/* What an identifier has here; under its lock. */
struct mpa_side {
	struct cma_id *id;
	struct list entry;   /* of all sides, for forked children */
	uint8_t state;       /* enum mpa_state */
	bool reported;       /* ESTABLISHED was reported, or will be */
	bool watched;        /* call.fd is, by the progress thread */
	uint32_t qpn;        /* that has the stream */
	struct mpa_call call;
	struct progress_timer timer; /* of the call; a listener's pause */
	void (*on_events)(void *arg, uint32_t events); /* of its socket; `arg`: this */
	/* listener */
	int listen_fd;       /* -1: none */
	struct list callers; /* struct mpa_caller: they have sent no whole request yet */
	unsigned caller_count;
};

/* NULL: the identifier has never been bound to a device of this connector, nor listened. */
static inline struct mpa_side *mpa_side_of(const struct cma_id *id)
{
	return id->sides[CMA_CONNECTOR_MPA];
}

/* After each step of the call: what is waited for, until when. The lock is held. */
void mpa_side_update(struct mpa_side *s);
/* The call is over: its socket is no longer watched. The lock is held. */
void mpa_side_unwatch(struct mpa_side *s);
/* No callback runs any more. Without the lock. */
void mpa_side_settle(struct mpa_side *s);

/* ---- attach.c ---- */

int mpa_side_open(struct cma_id *id);

/* The initiator's call has moved; the lock is held. */
void mpa_called_back(struct mpa_side *s);
/* The queue pair of the identifier gets the stream of the call. Without the lock, between
 * cma_qp_enter() and cma_qp_leave(). */
int mpa_attach(struct mpa_side *s);

/* ---- listen.c; the lock is held ---- */

int mpa_listen(struct mpa_side *s);
/* Behind a pause. */
void mpa_listen_on(struct mpa_side *s);
/* On the progress thread, or behind mpa_callers_settle(). */
void mpa_unlisten(struct mpa_side *s);
/* In a forked child: it keeps no socket of its parent. */
void mpa_side_forked(struct mpa_side *s);
/* Ends all callers; the listening socket is not watched any more. Without the lock. */
void mpa_callers_settle(struct mpa_side *s);

#endif
