/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk over scatter/gather entries; see scatter.h. */
#include "hca/queue/scatter.h"

#include <errno.h>
#include <string.h>

#include "hca/memory/sge.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/queue/hold.h"
#include "hca/run/dma.h"
#include "hca/run/touch.h"
#include "hca/share/process.h"

int hca_sges_read(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		  uint32_t at, void *to, uint32_t length)
{
	struct hca_walk w = { sge, sge + count, at, length };
	struct hca_piece p;
	uint8_t *next = to;

	while (hca_walk_next(&w, &p)) {
		const uint8_t *base = hca_sge_resolve(pd, p.sge, 0);

		if (likely(base)) {
			if (unlikely(!hca_touch_read(base + p.at, p.length)))
				return -EFAULT;
			memcpy(next, base + p.at, p.length);
		} else if (hca_sge_read(pd, p.sge, p.at, next, p.length)) {
			return -EFAULT;
		}
		next += p.length;
	}
	return 0;
}

int hca_sges_write(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		   uint32_t at, const void *from, uint32_t length)
{
	struct hca_walk w = { sge, sge + count, at, length };
	const uint8_t *next = from;
	struct hca_piece p;

	while (hca_walk_next(&w, &p)) {
		uint8_t *base = hca_sge_resolve(pd, p.sge, IBV_ACCESS_LOCAL_WRITE);

		if (likely(base)) {
			if (unlikely(!hca_touch_write(base + p.at, p.length)))
				return -EFAULT;
			hca_dma_copy(base + p.at, next, p.length);
		} else if (hca_sge_write(pd, p.sge, p.at, next, p.length)) {
			return -EFAULT;
		}
		next += p.length;
	}
	return 0;
}

int hca_sges_iov(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		 uint32_t at, uint32_t length, unsigned access, struct iovec *iov,
		 bool *kernel)
{
	struct hca_walk w = { sge, sge + count, at, length };
	struct hca_piece p;
	int n = 0;

	while (hca_walk_next(&w, &p)) {
		uint8_t *base = hca_sge_resolve(pd, p.sge, access);

		if (unlikely(!base && kernel)) {
			base = hca_sge_for_kernel(pd, p.sge, access);
			*kernel = true;
		}
		if (unlikely(!base))
			return -EFAULT;
		iov[n++] = (struct iovec){ base + p.at, p.length };
	}
	return n;
}

int hca_swqe_read(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at, void *to,
		  uint32_t length)
{
	if (!(e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD)))
		return hca_sges_read(qp->pd, e->sge, e->num_sge, at, to, length);
	memcpy(to, hca_swqe_data(e) + at, length);
	return 0;
}

int hca_swqe_gather(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		    uint32_t length, struct iovec *iov, uint8_t *bounce)
{
	struct hca_walk w = { e->sge, e->sge + e->num_sge, at, length };
	struct hca_piece p;
	int n = 0;

	if (e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD)) {
		iov[0] = (struct iovec){ (void *)(uintptr_t)(hca_swqe_data(e) + at),
					 length };
		return length > 0;
	}
	while (hca_walk_next(&w, &p)) {
		uint8_t *base = hca_sge_resolve(qp->pd, p.sge, 0);

		if (likely(base)) {
			base += p.at;
			/* A sum over it reads it, and then the kernel. */
			if (unlikely(!hca_touch_read(base, p.length)))
				return -EFAULT;
		} else {
			if (hca_sge_read(qp->pd, p.sge, p.at, bounce, p.length))
				return -EFAULT;
			base = bounce;
			bounce += p.length;
		}
		iov[n++] = (struct iovec){ base, p.length };
	}
	return n;
}

uint64_t hca_rwqe_room(const struct hca_rwqe *e)
{
	uint64_t room = 0;

	for (unsigned i = 0; i < e->num_sge; i++)
		room += e->sge[i].length;
	return room;
}

int hca_rwqe_write(const struct hca_qp *qp, const struct hca_rwqe *e, uint32_t at,
		   const void *from, uint32_t length)
{
	/* The common case: one buffer. */
	if (likely(e->num_sge == 1 && at == 0)) {
		void *to = hca_sge_resolve(qp->recv_pd, &e->sge[0],
					   IBV_ACCESS_LOCAL_WRITE);

		if (likely(to)) {
			if (unlikely(!hca_touch_write(to, length)))
				return -EFAULT;
			memcpy(to, from, length);
			return 0;
		}
	}
	return hca_sges_write(qp->recv_pd, e->sge, e->num_sge, at, from, length);
}
