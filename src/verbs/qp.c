/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and shared receive queues. Posting goes through the context's table of
 * functions and the extended QP.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <string.h>

#include "hca/hca.h"
#include "verbs/abi.h"
#include "verbs/system.h"

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *init)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_create_qp, pd, init);

	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;
	int ret;

	if (!pd || !init)
		return verbs_null(-EINVAL);
	attr = (struct ibv_qp_init_attr_ex){
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	ret = hca_qp_create(pd->context, &attr, &qp);
	if (ret)
		return verbs_null(ret);
	init->cap = attr.cap;
	return qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			 int attr_mask)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_modify_qp, qp, attr,
		      attr_mask);
	if (!qp || !attr)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_qp_modify(qp, attr, attr_mask));
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			int attr_mask, struct ibv_qp_init_attr *init)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_query_qp, qp, attr, attr_mask,
		      init);
	if (!qp || !attr || !init)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_qp_query(qp, attr, attr_mask, init));
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_destroy_qp, qp);
	return verbs_errno(qp ? hca_qp_destroy(qp) : -EINVAL);
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	VERBS_FORWARD(OWNER(qp), verbs_null, ibv_qp_to_qp_ex, qp);
	return qp ? hca_qp_to_ex(qp) : NULL;
}

/*
 * Enhanced connection establishment exchanges vendor options between adapters of one
 * vendor; soft0 has none. `ece` is cleared for callers that ignore the result.
 */
EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_query_ece, qp, ece);
	if (!qp || !ece)
		return verbs_errno(-EINVAL);
	memset(ece, 0, sizeof(*ece));
	return verbs_errno(-EOPNOTSUPP);
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_set_ece, qp, ece);
	return verbs_errno(qp && ece ? -EOPNOTSUPP : -EINVAL);
}

/* soft0 copies in ascending order of addresses, but does not guarantee it. */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
				      uint32_t flags)
{
	VERBS_FORWARD(OWNER(qp), verbs_no, ibv_query_qp_data_in_order, qp, op,
		      flags);
	return 0;
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			    uint16_t lid)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_attach_mcast, qp, gid, lid);
	if (!qp || !gid)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_mcast_attach(qp, gid, lid));
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			    uint16_t lid)
{
	VERBS_FORWARD(OWNER(qp), verbs_errno, ibv_detach_mcast, qp, gid, lid);
	if (!qp || !gid)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_mcast_detach(qp, gid, lid));
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
				      struct ibv_srq_init_attr *init)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_create_srq, pd, init);

	struct ibv_srq *srq;
	int ret = pd && init ? hca_srq_create(pd, init, &srq) : -EINVAL;

	return ret ? verbs_null(ret) : srq;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			  int attr_mask)
{
	VERBS_FORWARD(OWNER(srq), verbs_errno, ibv_modify_srq, srq, attr,
		      attr_mask);
	if (!srq || !attr)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_srq_modify(srq, attr, attr_mask));
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	VERBS_FORWARD(OWNER(srq), verbs_errno, ibv_query_srq, srq, attr);
	if (!srq || !attr)
		return verbs_errno(-EINVAL);
	return verbs_errno(hca_srq_query(srq, attr));
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	VERBS_FORWARD(OWNER(srq), verbs_errno, ibv_destroy_srq, srq);
	return verbs_errno(srq ? hca_srq_destroy(srq) : -EINVAL);
}
