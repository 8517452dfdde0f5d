/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that carry out parts of large copies (copy.c), and the queue pairs that wait for such
 * a thread: which one is next, and waiting until no thread copies.
 */
#ifndef TRANSPORT_SHM_REACH_COPIERS_H
#define TRANSPORT_SHM_REACH_COPIERS_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "util/list.h"

/* A thread that carries out a part. */
struct shm_copier {
	struct list entry;
	struct hca_qp *qp;
	uint64_t number; /* grows with each */
	bool copying;    /* it may use keys and mappings */
};

/* The QP waits for a thread, if it does not yet. A poll of its send completion queue that finds
 * nothing calls `carry_on`. sq_lock is held. */
void shm_copiers_add(struct hca_qp *qp, void (*carry_on)(struct hca_cq *cq));

/* True if copies by parts are under way. */
bool shm_copiers_wanted(void);

/* Gives the next waiting QP to a thread that polls `cq`, or that is the progress thread (NULL).
 * False: there is none. */
bool shm_copier_take(struct shm_copier *c, struct hca_cq *cq);
void shm_copier_set(struct shm_copier *c, bool copying);
/* The part has ended; `more`: the QP waits for a thread again. sq_lock is held. */
void shm_copiers_return(struct hca_qp *qp, bool more);
/* The QP may be destroyed by another thread afterwards. */
void shm_copier_end(struct shm_copier *c);

/* Forgets the polls so far: without a new poll the progress thread copies for the waiting QPs.
 * */
void shm_copiers_forget_polls(void);

/* After a key or mapping is withdrawn: waits for the parts that may use it. */
void shm_copy_fence(void);

/* For a QP that has left the states of transmission: waits until no thread copies for
 * it, and takes it out of the queue. The caller holds no lock that another thread waits
 * for between hca_enter() and hca_leave(). */
void shm_copy_forget(struct hca_qp *qp);
void shm_copiers_forked(void);

#endif
