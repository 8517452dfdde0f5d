/* SPDX-License-Identifier: BSD-2-Clause */
/* Large one-sided copies, by parts and outside of sq_lock: copy.c says how. */
#ifndef TRANSPORT_SHM_COPY_H
#define TRANSPORT_SHM_COPY_H

#include <stdbool.h>
#include <infiniband/verbs.h>

#include "hca/qp.h"
#include "transport/shm/state.h"
#include "util/container_of.h"

/*
 * What one turn of transmission may copy with sq_lock held: a poller or a poster may
 * wait for that lock. And the largest part: it holds up the thread that copies, and
 * nobody else. In the processor's cache 1 MiB takes 80 us, and each further call of the
 * kernel nearly 2 us: with parts of 256 KiB copies would be a tenth slower, with these a
 * fortieth. Long copies come from memory, where each part takes several times as long.
 */
#define SHM_COPY_AT_ONCE (UINT32_C(1) << 20)
#define SHM_COPY_PART (UINT32_C(1) << 20)
#define SHM_COPY_LONG (UINT32_C(16) << 20)
#define SHM_COPY_PART_OF_LONG (UINT32_C(512) << 10)

/* Has the next entry been copied by parts? Then *status is how that ended. sq_lock is
 * held, here and below. */
bool shm_copy_is_current(const struct hca_qp *qp);
static inline bool shm_copy_ended(const struct hca_qp *qp, enum ibv_wc_status *status)
{
	if (likely(!shm_qp(qp)->copy_ended) || !shm_copy_is_current(qp))
		return false;
	*status = (enum ibv_wc_status)shm_qp(qp)->copy_status;
	return true;
}
/* The next entry, which is the oldest and could be carried out, is copied by parts from
 * here on; transmission waits for its end. */
void shm_copy_start(struct hca_qp *qp);
/* Somebody is about to sleep: copies do not wait for pollers. */
void shm_copy_hurry(void);
/* Waits for the parts that are under way, as a key that they use was withdrawn. */
void shm_copy_fence(void);
/* Of a QP that has left the states of transmission: afterwards nobody copies for it. No
 * lock is held that somebody waits for between hca_enter() and hca_leave(). */
void shm_copy_forget(struct hca_qp *qp);
void shm_copies_start(void);
void shm_copies_stop(void);
void shm_copies_forked(void);

#endif
