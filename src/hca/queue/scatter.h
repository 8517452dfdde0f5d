/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk over the scatter/gather entries of a work request, and the copies from and to
 * their buffers: the only place that has it. A range [at, at + length) of the message
 * falls into pieces, one an entry.
 *
 * The keys are checked for each piece. No lock is needed; the caller's transport sees to
 * it that a deregistration waits for the copy (struct hca_fence_ops).
 */
#ifndef HCA_SCATTER_H
#define HCA_SCATTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/container_of.h"

struct hca_pd;
struct hca_qp;
struct hca_rwqe;
struct hca_swqe;

struct hca_walk {
	const struct ibv_sge *sge, *end;
	uint32_t at, length; /* what is left of the range, from *sge on */
};

struct hca_piece {
	const struct ibv_sge *sge;
	uint32_t at, length; /* in its buffer */
};

/* The next piece; false: the range, or the list, is at its end. */
static inline bool hca_walk_next(struct hca_walk *w, struct hca_piece *p)
{
	while (w->sge != w->end && w->at >= w->sge->length)
		w->at -= (w->sge++)->length;
	if (w->sge == w->end || !w->length)
		return false;
	*p = (struct hca_piece){ w->sge, w->at, MIN(w->length, w->sge->length - w->at) };
	w->length -= p->length;
	w->at = 0;
	w->sge++;
	return true;
}

/* Copies a range from or to the buffers, for keys of every kind. 0, or -EFAULT: a key does
 * not permit it, or a page is missing; pieces before that one are copied. */
int hca_sges_read(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		  uint32_t at, void *to, uint32_t length);
int hca_sges_write(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		   uint32_t at, const void *from, uint32_t length);
/*
 * The addresses of the pieces; `iov` has room for `count`. Returns their number, or -EFAULT:
 * a key does not permit `access`. `kernel`, unless it is NULL: pieces that only the kernel
 * may touch, as pages may be missing, are accepted, and it is set when there are any.
 */
int hca_sges_iov(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		 uint32_t at, uint32_t length, unsigned access, struct iovec *iov,
		 bool *kernel);

/* The same of a posted send, whose data may be inline or held (hold.h). sq_lock is held. */
int hca_swqe_read(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at, void *to,
		  uint32_t length);

/* The pieces of [at, at + length) of a posted send's data; pieces whose keys need care are copied
 * into `bounce` (`length` bytes). How many pieces, up to HCA_MAX_SGE, or -EFAULT. To be called, and
 * the pieces used, between hca_copy_begin() and hca_copy_end(). */
int hca_swqe_gather(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		    uint32_t length, struct iovec *iov, uint8_t *bounce);

/* How many bytes a posted receive can take. */
uint64_t hca_rwqe_room(const struct hca_rwqe *e);
/* A range of a message into it. The receive is that of `qp`. */
int hca_rwqe_write(const struct hca_qp *qp, const struct hca_rwqe *e, uint32_t at,
		   const void *from, uint32_t length);

#endif
