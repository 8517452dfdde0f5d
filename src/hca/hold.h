/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams that wait in the send queue, with copies of their data (hold.c). */
#ifndef HCA_HOLD_H
#define HCA_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/ah.h"
#include "hca/qp.h"
#include "hca/sq.h"
#include "util/container_of.h"

/* The ring of a QP's copies, oldest first. */
struct hca_hold {
	size_t size, head, tail; /* of `data`, in bytes */
	size_t open;             /* of it, what may be used already */
	uint32_t count;
	uint32_t upto; /* entries below this index are here, if any are */
	uint8_t *data;
};

/* What an entry with HCA_SWQE_HELD has instead of its buffers and its handle. */
struct hca_held {
	struct hca_ah ah; /* entry.ud.ah */
	uint32_t bytes;   /* in the ring, with this */
	bool refused;     /* a key of its buffers does not allow it */
	uint8_t data[];   /* unless the entry has them inline */
};

static inline const struct hca_held *hca_held(const struct hca_swqe *e)
{
	return container_of(e->ud.ah, const struct hca_held, ah);
}

/* The whole data of an entry that needs no key. */
static inline const uint8_t *hca_swqe_data(const struct hca_swqe *e)
{
	return e->flags & HCA_SWQE_INLINE ? e->inline_data : hca_held(e)->data;
}

/* 0 or -ENOMEM; nothing to do for other services than UD. */
int hca_hold_init(struct hca_qp *qp);
void hca_hold_fini(struct hca_qp *qp);
/* sq_lock is held for these; the queue is empty for hca_hold_clear(). */
void hca_hold_clear(struct hca_qp *qp);
void hca_hold_waiting(struct hca_qp *qp);
/* The entry, the oldest one, is about to leave the queue. */
void hca_hold_release(struct hca_qp *qp, const struct hca_swqe *e);
/* A key was invalidated: waits until nobody reads memory through it here. */
void hca_hold_fence(void);
void hca_hold_forked(void);

/* At the end of each posting call. sq_lock is held. */
static inline void hca_hold_rest(struct hca_qp *qp)
{
	if (unlikely(qp->sq.next != qp->sq.head) && qp->hold)
		hca_hold_waiting(qp);
}

#endif
