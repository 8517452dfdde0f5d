/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that bind and resolve addresses and routes. */
#include <errno.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/forward/forward.h"
#include "rdmacm/resolve/resolve.h"

CMA_EXPORT int rdma_bind_addr(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	FORWARD_INSIDE(rdma_bind_addr, cm_id, addr);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	if (!cma_addr_len(addr))
		return cma_result(-EINVAL);
	ret = forward_bind(id, addr);
	if (ret != FORWARD_OURS)
		return cma_result(ret);
	pthread_mutex_lock(&id->lock);
	ret = cma_bind(id, addr);
	pthread_mutex_unlock(&id->lock);
	return cma_result(ret);
}

CMA_EXPORT int rdma_resolve_addr(struct rdma_cm_id *cm_id,
				 struct sockaddr *src_addr,
				 struct sockaddr *dst_addr, int timeout_ms)
{
	FORWARD_INSIDE(rdma_resolve_addr, cm_id, src_addr, dst_addr, timeout_ms);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	if (!cma_addr_len(dst_addr) || (src_addr && !cma_addr_len(src_addr)))
		return cma_result(-EINVAL);
	ret = forward_resolve(id, src_addr, dst_addr, timeout_ms);
	if (ret != FORWARD_OURS)
		return cma_result(ret);
	pthread_mutex_lock(&id->lock);
	ret = cma_addr_resolve(id, src_addr, dst_addr);
	pthread_mutex_unlock(&id->lock);
	CANCEL_BACK;
	if (!ret)
		ret = cma_id_complete(id);
	return cma_result(ret);
}

CMA_EXPORT int rdma_resolve_route(struct rdma_cm_id *cm_id, int timeout_ms)
{
	FORWARD(cm_id, forward_resolve_route, rdma_resolve_route, cm_id, timeout_ms);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	pthread_mutex_lock(&id->lock);
	ret = cma_route_resolve(id);
	pthread_mutex_unlock(&id->lock);
	CANCEL_BACK;
	if (!ret)
		ret = cma_id_complete(id);
	return cma_result(ret);
}
