/* SPDX-License-Identifier: BSD-2-Clause */
/* Which messages of the peer will be received for certain; see promise.c. */
#ifndef HCA_PROMISE_H
#define HCA_PROMISE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/progress.h"
#include "util/container_of.h"

struct hca_qp;

/* Written by the receiver of a QP, see promise.c: a sequence number, whether it is
 * valid, and above them the length that each receive has room for. */
struct hca_promise {
	cache_aligned _Atomic uint64_t word;
};

/* The receiver's own part; under rq.post_lock. */
struct hca_promising {
	struct hca_promise *word;
	uint32_t step;  /* extended when so many receives are new */
	_Atomic uint32_t upto;  /* receives before this one have been looked at */
	_Atomic uint32_t limit;
	_Atomic uint32_t key;   /* all of them lie in its region; 0: none yet */
	uint32_t room;
	bool stuck;     /* the one at `upto` cannot be promised */
	bool ended;     /* nothing is promised before the next connection */
	_Atomic bool made; /* anything was, in this connection */
	/* The QP is in error, and its receives are not flushed yet. */
	_Atomic bool closing;
	struct progress_timer close;
};

void hca_promise_init(struct hca_qp *qp);
/* Promises the receives that are new. */
void hca_promise_extend(struct hca_qp *qp);
/* Takes back what is promised; true if there was anything: then messages that
 * are promised may be in the rings (hca_take_in). */
bool hca_promise_revoke(struct hca_qp *qp);
/* The same for good, until the QP is reset. */
bool hca_promise_end(struct hca_qp *qp);
/* The same when the QP has entered the error state; true if there may be messages on
 * the way that are promised, also when it was taken back by another thread, which
 * has not taken them in yet. */
bool hca_promise_close(struct hca_qp *qp);
void hca_promise_reset(struct hca_qp *qp);
/*
 * Around the refusal of a message for a reason that may have ended just now: no promise
 * is made in between. The reason is looked at once more and the message marked before
 * the second. No lock of the receive queue is held.
 */
void hca_promise_pause(struct hca_qp *qp);
void hca_promise_resume(struct hca_qp *qp);
/* In error: is the message to be received all the same? */
bool hca_promise_kept(const struct hca_qp *qp, uint32_t psn);
/* At the sender, behind a fence after the message became visible. */
bool hca_promised(const struct hca_promise *promise, uint32_t psn, uint32_t length);
/* Around the withdrawal of a key: nothing in its region is promised. */
void hca_promise_hold(uint32_t key);
void hca_promise_release(void);

#endif
