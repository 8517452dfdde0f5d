/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending datagrams: the part that is common to all transports. An entry is checked and
 * passed to the transport of its address handle. It completes when it was sent or is lost.
 */
#include <errno.h>

#include "hca/limits.h"
#include "hca/memory/sge.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/path/path.h"
#include "hca/queue/datagram.h"
#include "hca/queue/hold.h"
#include "hca/queue/post.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/container_of.h"

bool hca_datagram_allowed(const struct hca_qp *qp, const struct hca_swqe *e)
{
	if (e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD))
		return true;
	for (unsigned i = 0; i < e->num_sge; i++)
		if (unlikely(e->sge[i].length &&
			     !hca_sge_resolve(qp->pd, &e->sge[i], 0) &&
			     !hca_sge_for_kernel(qp->pd, &e->sge[i], 0)))
			return false;
	return true;
}

int hca_datagram_lose(struct hca_qp *qp, const struct hca_swqe *e)
{
	HCA_COUNT_RARE(qp, TX_LOST, 1);
	return hca_datagram_allowed(qp, e) ? 0 : -EFAULT;
}

/*
 * By each transport that leads to the group: those of the host bring it to the host's
 * processes, the others to other hosts, and where there is one of the host
 * (hca_local_has_groups()) the others see to it that nothing comes back. Only the first one,
 * that of the address handle, may let it wait; what has no room with another one is lost
 * there.
 */
static __attribute__((noinline, cold)) int send_to_group(struct hca_qp *qp,
							 const struct hca_swqe *e)
{
	const struct hca_destination to = { .ah = &e->ud.ah->attr, .multicast = true,
					    .qpn = e->ud.qpn };
	int ret = e->ud.ah->route->datagram(qp, e);

	for (unsigned i = 0; !ret && i < hca_transports.paths; i++) {
		const struct hca_transport_ops *ops = hca_transports.at[i];

		if (ops != e->ud.ah->route && ops->datagram && ops->reach(&to) >= 0)
			ops->datagram(qp, e);
	}
	return ret;
}

/* 0, -EFAULT, or -EAGAIN: it has to wait (hca_transport_ops.datagram). sq_lock is held. */
static inline int send_one(struct hca_qp *qp, const struct hca_swqe *e)
{
	if (unlikely(e->flags & HCA_SWQE_HELD) && hca_held(e)->refused)
		return -EFAULT;
	if (unlikely(!e->ud.ah->route))
		return hca_datagram_lose(qp, e);
	if (unlikely(e->ud.ah->multicast))
		return send_to_group(qp, e);
	return e->ud.ah->route->datagram(qp, e);
}

void hca_transmit_datagrams(struct hca_qp *qp)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	while (status == IBV_WC_SUCCESS && qp->sq.next != hca_sq_end(qp)) {
		const struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);

		if (unlikely(e->ud.ah->pd_id != qp->pd->id)) {
			/* The handle belongs to another domain (10.2.3). */
			status = IBV_WC_LOC_QP_OP_ERR;
		} else if (unlikely(e->length > HCA_UD_MTU)) {
			status = IBV_WC_LOC_LEN_ERR;
		} else {
			int ret = send_one(qp, e);

			if (unlikely(ret == -EAGAIN))
				return;
			if (unlikely(ret))
				status = IBV_WC_LOC_PROT_ERR;
		}
		qp->sq.next++;
		hca_sq_complete(qp, status);
	}
}
