/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that join and leave multicast groups. */
#include <errno.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/forward/forward.h"
#include "rdmacm/qp/qp.h"

static int join_public(struct rdma_cm_id *cm_id, const struct sockaddr *addr,
		       bool sends_only, void *context)
{
	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	if (!cma_addr_len(addr))
		return cma_result(-EINVAL);
	pthread_mutex_lock(&id->lock);
	ret = cma_group_join(id, addr, sends_only, context);
	pthread_mutex_unlock(&id->lock);
	if (!ret)
		ret = cma_id_complete(id);
	return cma_result(ret);
}

CMA_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
				   void *context)
{
	FORWARD(id, forward_join, rdma_join_multicast, id, addr, context);
	return join_public(id, addr, false, context);
}

CMA_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
				      struct rdma_cm_join_mc_attr_ex *attr,
				      void *context)
{
	FORWARD(id, forward_join_ex, rdma_join_multicast_ex, id, attr, context);

	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
				RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if ((attr->comp_mask & needed) != needed ||
	    attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return cma_result(-EINVAL);
	return join_public(id, attr->addr,
			   attr->join_flags ==
				   RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			   context);
}

CMA_EXPORT int rdma_leave_multicast(struct rdma_cm_id *cm_id,
				    struct sockaddr *addr)
{
	FORWARD(cm_id, forward_leave, rdma_leave_multicast, cm_id, addr);

	struct cma_id *id = cma_id_of(cm_id);
	struct cma_group *g;

	if (!cma_addr_len(addr))
		return cma_result(-EINVAL);
	pthread_mutex_lock(&id->lock);
	g = cma_group_leave(id, addr);
	pthread_mutex_unlock(&id->lock);
	if (!g)
		return cma_result(-EADDRNOTAVAIL);
	cma_group_free(id, g);
	return 0;
}
