/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises: up to which message of the peer receives are certain; see promise.c. */
#ifndef HCA_PROMISE_H
#define HCA_PROMISE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/run/progress.h"
#include "util/container_of.h"

struct hca_qp;

/* Written by the receiver of a QP: a sequence number, whether it is valid, and in the
 * upper bits the length for which each receive has room. */
struct hca_promise {
	cache_aligned _Atomic uint64_t word;
};

/* The receiver's state; under rq.post_lock. */
struct hca_promising {
	struct hca_promise *word;
	uint32_t step;  /* number of new receives after which the promise is extended */
	_Atomic uint32_t upto;  /* receives before this one have been examined */
	_Atomic uint32_t limit;
	_Atomic uint32_t key;   /* the region in which all of them lie; 0: none yet */
	uint32_t room;
	bool stuck;     /* the receive at `upto` cannot be promised */
	bool ended;     /* no promise is made before the next connection */
	_Atomic bool made; /* a promise was made in this connection */
	/* The QP is in error, and its receives are not flushed yet. */
	_Atomic bool closing;
	struct progress_timer close;
};

void hca_promise_init(struct hca_qp *qp);
/* Extends the promise to the new receives. */
void hca_promise_extend(struct hca_qp *qp);
/* Withdraws the promise. True: there was one, and messages that were promised may be in
 * the rings (hca_take_in). */
bool hca_promise_revoke(struct hca_qp *qp);
/* The same, and no promise is made until the QP is reset. */
bool hca_promise_end(struct hca_qp *qp);
/* The same when the QP has entered the error state. True: promised messages may be in the
 * rings, also if another thread has withdrawn the promise and not taken them yet. */
bool hca_promise_close(struct hca_qp *qp);
void hca_promise_reset(struct hca_qp *qp);
/*
 * Called before and after a message is refused for a reason that may have ended
 * meanwhile: no promise is made in between. Between the two calls the caller checks the
 * reason again and marks the message. No lock of the receive queue is held.
 */
void hca_promise_pause(struct hca_qp *qp);
void hca_promise_resume(struct hca_qp *qp);
/* In the error state: must the message still be received, because it was promised? */
bool hca_promise_kept(const struct hca_qp *qp, uint32_t psn);
/* For the sender, after its message is visible and a fence: is the message promised? */
bool hca_promised(const struct hca_promise *promise, uint32_t psn, uint32_t length);
/* Called before and after a key is withdrawn: no receive in its region is promised. */
void hca_promise_hold(uint32_t key);
void hca_promise_release(void);

#endif
