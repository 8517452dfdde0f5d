/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, withdrawing and reading promises; see promise.c. */
#ifndef HCA_PROMISING_H
#define HCA_PROMISING_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/object/promise.h"

struct hca_qp;

/* `close` is the timer's function after the QP has moved to ERR (hca_promise_close): it takes in
 * promised messages that are in the rings and then flushes the receives. */
void hca_promise_init(struct hca_qp *qp, void (*close)(struct progress_timer *t));
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
