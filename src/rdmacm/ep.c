/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: an identifier, its addresses and its QP in one call. */
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "rdmacm/id/id.h"
#include "rdmacm/system/system.h"
#include "rdmacm/base/base.h"

static int ep_passive(struct cma_id *id, struct rdma_addrinfo *res,
		      struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return -errno;
	if (pd)
		id->pub.pd = pd;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return -ENOMEM;
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

/* Keeps ai_connect, which precedes the private data of rdma_connect(). */
static int connect_data_take(struct cma_id *id, const struct rdma_addrinfo *res)
{
	/* A real device has the limits of InfiniBand, too. */
	const struct cma_connector *c = id->connector ? id->connector :
							cma_connectors[CMA_CONNECTOR_CM];

	if (!res->ai_connect_len)
		return 0;
	if (res->ai_connect_len > c->room(id, CMA_REQUEST))
		return -EINVAL;
	id->connect_data = malloc(res->ai_connect_len);
	if (!id->connect_data)
		return -ENOMEM;
	memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_len = res->ai_connect_len;
	return 0;
}

static int ep_active(struct cma_id *id, struct rdma_addrinfo *res,
		     struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	enum { RESOLVE_MS = 2000 };
	int ret;

	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr,
			      RESOLVE_MS))
		return -errno;
	if (res->ai_route_len ?
		    rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
				    res->ai_route, (size_t)res->ai_route_len) :
		    rdma_resolve_route(&id->pub, RESOLVE_MS))
		return -errno;
	/* Before the QP is made, because that changes the caller's `attr`. */
	ret = connect_data_take(id, res);
	if (ret)
		return ret;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->pub, pd, attr))
			return -errno;
	}
	return 0;
}

CMA_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
			      struct ibv_pd *pd,
			      struct ibv_qp_init_attr *qp_init_attr)
{
	FORWARD_INSIDE(rdma_create_ep, id, res, pd, qp_init_attr);

	struct cma_id *made;
	int ret = cma_devices_init();

	if (!ret)
		ret = cma_id_create(NULL, NULL,
				    (enum rdma_port_space)res->ai_port_space,
				    (enum ibv_qp_type)res->ai_qp_type, &made);
	if (ret)
		return cma_result(ret);
	if (res->ai_flags & RAI_PASSIVE)
		ret = ep_passive(made, res, pd, qp_init_attr);
	else
		ret = ep_active(made, res, pd, qp_init_attr);
	if (ret) {
		rdma_destroy_ep(&made->pub);
		return cma_result(ret);
	}
	*id = &made->pub;
	return 0;
}

CMA_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	FORWARD_INSIDE(rdma_destroy_ep, id);
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
