/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backlog of a link: queue pairs that wait for room in its ring, for acknowledgements, or
 * until it is up. Each transmits again (hca_sq_run) when the backlog is run.
 */
#ifndef TRANSPORT_SHM_LINK_BACKLOG_H
#define TRANSPORT_SHM_LINK_BACKLOG_H

#include <stdbool.h>

#include "hca/object/qp.h"
#include "transport/shm/link/state.h"
#include "util/list.h"

/* Puts the QP into the link's backlog. False: it is in the backlog of another link
 * already. sq_lock and tx_lock are held. */
bool shm_backlog_add(struct shm_link *l, struct hca_qp *qp);

/* Puts the QP into the link's backlog: it transmits again after the next
 * acknowledgements, or when the link comes up. sq_lock is held; takes tx_lock. */
void shm_backlog_wait(struct shm_link *l, struct hca_qp *qp);

/* In SQD: the same as long as entries are not acknowledged. A program that waits for the end
 * need not poll, and the peer does not wake it for what is unsignaled. `l`: where they were
 * sent; NULL: nothing is done. */
void shm_backlog_drain(struct hca_qp *qp, struct shm_link *l);

/* Runs transmission of the QPs in a list taken from a link's backlog. The caller makes
 * sure (by ack_lock or shm.lock) that none of them is destroyed meanwhile. */
void shm_backlog_run(struct list *waiting);

/* The same for the link's whole backlog. ack_lock is held, so that none is destroyed. */
void shm_backlog_resume(struct shm_link *l);

/* The same for the whole backlog of a link that has come up. shm.lock is held. */
void shm_backlog_open(struct shm_link *l);

#endif
