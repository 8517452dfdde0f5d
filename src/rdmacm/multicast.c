/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups by the communication manager: not supported yet. The calls
 * check their arguments as rdma_join_multicast(3) demands and then say so.
 */
#include "rdmacm/cma.h"

CMA_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
				   void *context)
{
	if (!cma_addr_len(addr))
		return cma_result(-EINVAL);
	return cma_result(-EOPNOTSUPP);
}

CMA_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
				      struct rdma_cm_join_mc_attr_ex *mc_join_attr,
				      void *context)
{
	if (!(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
	    !cma_addr_len(mc_join_attr->addr))
		return cma_result(-EINVAL);
	return cma_result(-EOPNOTSUPP);
}

CMA_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	/* Nothing was ever joined. */
	return cma_result(cma_addr_len(addr) ? -EADDRNOTAVAIL : -EINVAL);
}
