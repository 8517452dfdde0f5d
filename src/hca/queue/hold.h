/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of the data of datagrams that wait in the send queue; see hold.c. */
#ifndef HCA_HOLD_H
#define HCA_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/object/ah.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "util/container_of.h"

/* The ring of a QP's copies, in the order of the send queue. Under sq_lock. */
struct hca_hold {
	size_t size, head, tail; /* size of `data` and offsets in it */
	size_t open;             /* accessible bytes of `data` */
	uint32_t count;
	uint32_t upto; /* if count > 0: entries before this index were copied */
	uint8_t *data;
};

/* What an entry with HCA_SWQE_HELD uses instead of its buffers and its address handle. */
struct hca_held {
	struct hca_ah ah; /* entry.ud.ah points here */
	uint32_t bytes;   /* taken from the ring, including this structure */
	bool refused;     /* a key does not permit reading its buffers */
	uint8_t data[];   /* empty if the entry has its data inline */
};

static inline const struct hca_held *hca_held(const struct hca_swqe *e)
{
	return container_of(e->ud.ah, const struct hca_held, ah);
}

/* The data of an entry with HCA_SWQE_INLINE or HCA_SWQE_HELD. */
static inline const uint8_t *hca_swqe_data(const struct hca_swqe *e)
{
	return e->flags & HCA_SWQE_INLINE ? e->inline_data : hca_held(e)->data;
}

/* Reserves the ring of a UD QP; does nothing for others. 0 or -ENOMEM. */
int hca_hold_init(struct hca_qp *qp);
void hca_hold_fini(struct hca_qp *qp);
/* The send queue is empty: empties the ring. sq_lock is held. */
void hca_hold_clear(struct hca_qp *qp);
/* Copies the data of all waiting entries that are not copied yet. sq_lock is held. */
void hca_hold_waiting(struct hca_qp *qp);
/* `e`, the oldest entry, is about to leave the queue: frees its copy. sq_lock is held. */
void hca_hold_release(struct hca_qp *qp, const struct hca_swqe *e);
/* A key was invalidated: waits until no thread of this process copies memory of it into a ring. */
void hca_hold_fence(void);
void hca_hold_forked(void);

/* At the end of each posting call. sq_lock is held. */
static inline void hca_hold_rest(struct hca_qp *qp)
{
	if (unlikely(qp->sq.next != qp->sq.head) && qp->hold)
		hca_hold_waiting(qp);
}

#endif
