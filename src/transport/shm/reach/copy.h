/* SPDX-License-Identifier: BSD-2-Clause */
/* Large one-sided copies, by parts and outside of sq_lock (copy.c). */
#ifndef TRANSPORT_SHM_REACH_COPY_H
#define TRANSPORT_SHM_REACH_COPY_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "hca/object/qp.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"

/*
 * SHM_COPY_AT_ONCE: what one run of transmission may copy with sq_lock held; a poller or
 * a poster may wait for that lock. SHM_COPY_PART: the largest part of a copy by parts,
 * which delays the copying thread only. 1 MiB in the processor's cache takes 80 us, and
 * each further system call nearly 2 us: parts of 256 KiB would make copies a tenth
 * slower, parts of 1 MiB a fortieth. Copies of more than SHM_COPY_LONG do not fit into
 * the cache, so that a part takes several times as long: their parts are smaller.
 */
#define SHM_COPY_AT_ONCE (UINT32_C(1) << 20)
#define SHM_COPY_PART (UINT32_C(1) << 20)
#define SHM_COPY_LONG (UINT32_C(16) << 20)
#define SHM_COPY_PART_OF_LONG (UINT32_C(512) << 10)

/* True if the QP's copy fields are about its next entry. sq_lock is held, here and
 * below as far as shm_copy_start(). */
bool shm_copy_is_current(const struct hca_qp *qp);

/* True if the copy of the next entry by parts has ended; *status is its result. */
static inline bool shm_copy_ended(const struct hca_qp *qp, enum ibv_wc_status *status)
{
	if (likely(!shm_qp(qp)->copy_ended) || !shm_copy_is_current(qp))
		return false;
	*status = (enum ibv_wc_status)shm_qp(qp)->copy_status;
	return true;
}

/* Starts the copy of the next entry by parts. The entry is the oldest one and has passed
 * the checks of shm_onesided(). Transmission of the QP waits for its end. */
void shm_copy_start(struct hca_qp *qp);

/* A thread is about to sleep: the progress thread carries on the copies at once instead
 * of waiting for pollers. */
void shm_copy_hurry(void);

void shm_copies_start(void);
void shm_copies_stop(void);

#endif
