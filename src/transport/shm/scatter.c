/* SPDX-License-Identifier: BSD-2-Clause */
/* The buffers of a posted receive, and copies into them. */
#include <errno.h>
#include <string.h>

#include "hca/limits.h"
#include "hca/pd.h"
#include "hca/process.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/sge.h"
#include "transport/shm/receive.h"
#include "util/container_of.h"

uint64_t shm_room_of(const struct hca_rwqe *e)
{
	uint64_t room = 0;

	for (unsigned i = 0; i < e->num_sge; i++)
		room += e->sge[i].length;
	return room;
}

int shm_sge_iov(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		uint32_t at, uint32_t length, unsigned access, struct iovec *iov,
		bool *kernel)
{
	int n = 0;

	for (unsigned i = 0; i < count && length; i++) {
		const struct ibv_sge *s = &sge[i];
		uint8_t *base;
		uint32_t part;

		if (at >= s->length) {
			at -= s->length;
			continue;
		}
		base = hca_sge_resolve(pd, s, access);
		if (unlikely(!base && kernel)) {
			base = hca_sge_for_kernel(pd, s, access);
			*kernel = true;
		}
		if (unlikely(!base))
			return -EFAULT;
		part = MIN(length, s->length - at);
		iov[n++] = (struct iovec){ base + at, part };
		length -= part;
		at = 0;
	}
	return n;
}

/* shm_copy_in() for all kinds of memory, piece by piece. */
static int copy_in_carefully(const struct hca_qp *qp, const struct hca_rwqe *e,
			     uint32_t at, const uint8_t *from, uint32_t length)
{
	for (unsigned i = 0; i < e->num_sge && length; i++) {
		const struct ibv_sge *s = &e->sge[i];
		uint32_t part;

		if (at >= s->length) {
			at -= s->length;
			continue;
		}
		part = MIN(length, s->length - at);
		if (hca_sge_write(qp->recv_pd, s, at, from, part))
			return -EFAULT;
		from += part;
		length -= part;
		at = 0;
	}
	return 0;
}

int shm_copy_in(const struct hca_qp *qp, const struct hca_rwqe *e,
		   uint32_t at, const uint8_t *from, uint32_t length)
{
	struct iovec iov[HCA_MAX_SGE];
	int n;

	/* The common case: one buffer. */
	if (likely(e->num_sge == 1 && at == 0)) {
		void *to = hca_sge_resolve(qp->recv_pd, &e->sge[0],
					   IBV_ACCESS_LOCAL_WRITE);

		if (unlikely(!to))
			return copy_in_carefully(qp, e, at, from, length);
		memcpy(to, from, length);
		return 0;
	}
	n = shm_sge_iov(qp->recv_pd, e->sge, e->num_sge, at, length,
			IBV_ACCESS_LOCAL_WRITE, iov, NULL);
	if (unlikely(n < 0))
		return copy_in_carefully(qp, e, at, from, length);
	for (int i = 0; i < n; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return 0;
}
