/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that are not made, and not destroyed. */
#include "mistakes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static void queries(void)
{
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	ibv_query_port(context, 2, &port);
	BECAUSE("ibv_query_port", "= EINVAL", "no port 2");
	ibv_query_gid(context, 1, 10000, &gid);
	BECAUSE("ibv_query_gid", "= -1 EINVAL", "GID table of port 1 has");
	ibv_query_gid_ex(context, 1, 10000, &entry, 0);
	BECAUSE("ibv_query_gid_ex", "EINVAL", "GID table of port 1 has");
	ibv_query_pkey(context, 1, 5, &pkey);
	BECAUSE("ibv_query_pkey", "= -1 EINVAL", "P_Key table of port 1 has 1 entries");
}

static void regions(void)
{
	ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_REMOTE_WRITE);
	BECAUSE("ibv_reg_mr", "= NULL EINVAL", "need IBV_ACCESS_LOCAL_WRITE");
	ibv_reg_mr(pd, (void *)16, 4096, IBV_ACCESS_LOCAL_WRITE);
	BECAUSE("ibv_reg_mr", "= NULL EFAULT", "the memory from 0x10 on is not mapped");
	ibv_reg_mr(pd, memory, SIZE_MAX - 1, IBV_ACCESS_LOCAL_WRITE);
	BECAUSE("ibv_reg_mr", "= NULL EINVAL", "beyond the address space");
}

static void completion_queues(void)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 0 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *other, *event_cq;
	void *event_context;

	NEED(channel);
	ibv_create_cq(context, 0, NULL, NULL, 0);
	BECAUSE("ibv_create_cq", "= NULL EINVAL", "cqe is 0", "max_cqe");
	ibv_create_cq(context, 1 << 30, NULL, NULL, 0);
	BECAUSE("ibv_create_cq", "= NULL EINVAL", "cqe is 1073741824", "1 to");
	ibv_create_cq(context, 8, NULL, channel, 9);
	BECAUSE("ibv_create_cq", "= NULL EINVAL", "comp_vector is 9", "the device has 1");
	NEED(!ibv_create_cq_ex(context, &ex));
	BECAUSE("ibv_create_cq_ex", "= NULL EINVAL", "cqe is 0");
	other = ibv_create_cq(context, 8, NULL, channel, 0);
	NEED(other);
	ibv_resize_cq(other, 0);
	BECAUSE("ibv_resize_cq", "= EINVAL", "cqe is 0");
	ibv_destroy_comp_channel(channel);
	BECAUSE("ibv_destroy_comp_channel", "= EBUSY", "still used by completion queue 0x");
	NEED(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	NEED(ibv_get_cq_event(channel, &event_cq, &event_context));
	BECAUSE("ibv_get_cq_event", "= -1 EAGAIN", "non-blocking");
	NEED(!ibv_destroy_cq(other) && !ibv_destroy_comp_channel(channel));
}

static void queue_pairs(void)
{
	const struct ibv_qp_init_attr good = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_init_attr_ex ex = { .send_cq = cq, .recv_cq = cq,
					  .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr a;

#define WRONG(member, value, error, ...)                                       \
	do {                                                                   \
		a = good;                                                      \
		a.member = value;                                              \
		NEED(!ibv_create_qp(pd, &a));                                  \
		BECAUSE("ibv_create_qp", "= NULL " error, __VA_ARGS__);        \
	} while (0)
	NEED(srq);
	WRONG(send_cq, NULL, "EINVAL", "send_cq is NULL");
	WRONG(recv_cq, NULL, "EINVAL", "recv_cq is NULL");
	WRONG(cap.max_send_wr, 1 << 24, "EINVAL", "max_send_wr is 16777216", "max_qp_wr");
	WRONG(cap.max_recv_wr, 1 << 24, "EINVAL", "max_recv_wr is 16777216", "max_qp_wr");
	WRONG(cap.max_send_sge, 1000, "EINVAL", "max_send_sge is 1000", "max_sge");
	WRONG(cap.max_inline_data, 1 << 20, "EINVAL", "max_inline_data is 1048576");
	WRONG(qp_type, IBV_QPT_RAW_PACKET, "EOPNOTSUPP", "RAW_PACKET is not offered");
	a = good;
	a.srq = srq;
	a.qp_type = IBV_QPT_UC;
	NEED(!ibv_create_qp(pd, &a));
	BECAUSE("ibv_create_qp", "= NULL EINVAL", "type UC cannot have a shared");
	NEED(!ibv_create_qp_ex(context, &ex));
	BECAUSE("ibv_create_qp_ex", "= NULL EINVAL", "IBV_QP_INIT_ATTR_PD is missing");
	ex.pd = pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.qp_type = IBV_QPT_UC;
	ex.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	NEED(!ibv_create_qp_ex(context, &ex));
	BECAUSE("ibv_create_qp_ex", "= NULL EOPNOTSUPP", "send_ops_flags", "type UC");
#undef WRONG
	srq_attr.attr.srq_limit = 9;
	ibv_modify_srq(srq, &srq_attr.attr, IBV_SRQ_LIMIT);
	BECAUSE("ibv_modify_srq", "= EINVAL", "srq_limit is 9", "at most 4");
	ibv_modify_srq(srq, &srq_attr.attr, 64);
	BECAUSE("ibv_modify_srq", "= EINVAL", "srq_attr_mask 0x40");
	NEED(!ibv_destroy_srq(srq));
	srq_attr.attr.max_wr = 1 << 24;
	NEED(!ibv_create_srq(pd, &srq_attr));
	BECAUSE("ibv_create_srq", "= NULL EINVAL", "max_wr is 16777216", "max_srq_wr");
}

static void users(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .srq = srq,
				      .qp_type = IBV_QPT_RC, .cap.max_send_wr = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &a), *ud = qp_new(IBV_QPT_UD);
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } }, single = { .raw = { 0xfd } };
	struct ibv_ah_attr address = own_address();
	char number[64];

	NEED(srq && qp);
	snprintf(number, sizeof(number), "queue pair 0x%x", qp->qp_num);
	ibv_destroy_cq(cq);
	BECAUSE("ibv_destroy_cq", "= EBUSY", "still used by", number, "destroyed first");
	ibv_destroy_srq(srq);
	BECAUSE("ibv_destroy_srq", "= EBUSY", "still used by", number);
	ibv_dealloc_pd(pd);
	BECAUSE("ibv_dealloc_pd", "= EBUSY", "still used by", number, "memory region");
	NEED(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq));
	qp = qp_new(IBV_QPT_RC);
	ibv_attach_mcast(qp, &group, 0);
	BECAUSE("ibv_attach_mcast", "= EINVAL", "only a queue pair of type UD", "is RC");
	ibv_attach_mcast(ud, &single, 0);
	BECAUSE("ibv_attach_mcast", "= EINVAL", "fd00::", "no multicast address");
	ibv_detach_mcast(ud, &group, 0);
	BECAUSE("ibv_detach_mcast", "= EINVAL", "not attached");
	NEED(!ibv_attach_mcast(ud, &group, 0));
	ibv_destroy_qp(ud);
	BECAUSE("ibv_destroy_qp", "= EBUSY", "ibv_detach_mcast first");
	NEED(!ibv_detach_mcast(ud, &group, 0));
	NEED(!ibv_destroy_qp(ud) && !ibv_destroy_qp(qp));
	address.grh.sgid_index = 250;
	NEED(!ibv_create_ah(pd, &address));
	BECAUSE("ibv_create_ah", "= NULL EINVAL", "sgid_index is 250");
	address = own_address();
	address.port_num = 4;
	NEED(!ibv_create_ah(pd, &address));
	BECAUSE("ibv_create_ah", "= NULL EINVAL", "no port 4");
}

void mistakes_objects(void)
{
	queries();
	regions();
	completion_queues();
	queue_pairs();
	users();
}
