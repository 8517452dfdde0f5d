/* SPDX-License-Identifier: BSD-2-Clause */
/* Two queue pairs that are connected to each other; see touch_pair.h. By the functions of the
 * program's libibverbs, as the program does not know of these objects. */
#include "shield/touch_pair.h"

#include <string.h>
#include <sys/mman.h>

#include "preload/real.h"

#undef ibv_query_port

#define SINK_BYTES 4096u
#define MIN(a, b) ((a) < (b) ? (a) : (b))

static struct ibv_qp *open_qp(struct touch_pair *p, struct ibv_pd *pd)
{
	struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
		real_find("ibv_create_qp", "IBVERBS_1.1");
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = p->cq, .recv_cq = p->cq,
		.cap = { .max_send_wr = TOUCH_REQUESTS, .max_recv_wr = 1, .max_send_sge = p->pieces,
			 .max_recv_sge = 1 },
	};

	return create(pd, &init);
}

/* The first GID that is in use. */
static bool own_gid(struct ibv_context *context, const struct ibv_port_attr *attr,
		    struct ibv_ah_attr *to)
{
	int (*query)(struct ibv_context *, uint8_t, int, union ibv_gid *) =
		real_find("ibv_query_gid", "IBVERBS_1.1");
	static const union ibv_gid none;

	for (int i = 0; i < attr->gid_tbl_len && i <= UINT8_MAX; i++)
		if (!query(context, to->port_num, i, &to->grh.dgid) &&
		    memcmp(&to->grh.dgid, &none, sizeof(none))) {
			to->grh.sgid_index = (uint8_t)i;
			return true;
		}
	return false;
}

/* By the LID, or where there is none by the first GID of the port. */
static bool own_address(struct ibv_context *context, uint8_t port, struct ibv_ah_attr *to,
			enum ibv_mtu *mtu)
{
	/* The exported function, which fills in the beginning. */
	int (*query)(struct ibv_context *, uint8_t, struct ibv_port_attr *) =
		real_find("ibv_query_port", "IBVERBS_1.1");
	struct ibv_port_attr attr = { 0 };

	if (query(context, port, &attr) || attr.state != IBV_PORT_ACTIVE)
		return false;
	*mtu = attr.active_mtu;
	*to = (struct ibv_ah_attr){ .port_num = port, .dlid = attr.lid };
	if (attr.link_layer != IBV_LINK_LAYER_ETHERNET && attr.lid)
		return true;
	to->is_global = 1;
	to->grh.hop_limit = 1;
	return own_gid(context, &attr, to);
}

static bool connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer, const struct ibv_ah_attr *to,
		       enum ibv_mtu mtu)
{
	int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		real_find("ibv_modify_qp", "IBVERBS_1.1");
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = to->port_num, .ah_attr = *to, .path_mtu = mtu,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 1, .max_rd_atomic = 1, .min_rnr_timer = 1, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7,
	};

	if (modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return false;
	attr.qp_state = IBV_QPS_RTR;
	if (modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return false;
	attr.qp_state = IBV_QPS_RTS;
	return !modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool connect_both(struct touch_pair *p, struct ibv_context *context, uint8_t ports)
{
	struct ibv_ah_attr to;
	enum ibv_mtu mtu;

	for (uint8_t port = 1; port && port <= ports; port++)
		if (own_address(context, port, &to, &mtu))
			return connect_qp(p->from, p->to, &to, mtu) &&
			       connect_qp(p->to, p->from, &to, mtu);
	return false;
}

static bool open_memory(struct touch_pair *p, struct ibv_pd *pd)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) =
		real_find("ibv_reg_mr", "IBVERBS_1.1");

	p->page = mmap(NULL, SINK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->page == MAP_FAILED) {
		p->page = NULL;
		return false;
	}
	p->sink = reg(pd, p->page, SINK_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return p->sink != NULL;
}

bool touch_pair_open(struct touch_pair *p, struct ibv_pd *pd)
{
	struct ibv_cq *(*create)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int) =
		real_find("ibv_create_cq", "IBVERBS_1.1");
	int (*query)(struct ibv_context *, struct ibv_device_attr *) =
		real_find("ibv_query_device", "IBVERBS_1.1");
	struct ibv_device_attr device;

	*p = (struct touch_pair){ 0 };
	if (pd->context->device->transport_type == IBV_TRANSPORT_IWARP ||
	    query(pd->context, &device) || !open_memory(p, pd))
		goto close;
	p->pieces = device.max_sge > 0 ? MIN((uint32_t)device.max_sge, TOUCH_PIECES) : 1;
	p->cq = create(pd->context, 2 * TOUCH_REQUESTS, NULL, NULL, 0);
	p->from = p->cq ? open_qp(p, pd) : NULL;
	p->to = p->from ? open_qp(p, pd) : NULL;
	if (p->to && connect_both(p, pd->context, device.phys_port_cnt))
		return true;
close:
	touch_pair_close(p);
	return false;
}

void touch_pair_close(struct touch_pair *p)
{
	int (*destroy_qp)(struct ibv_qp *) = real_find("ibv_destroy_qp", "IBVERBS_1.1");
	int (*destroy_cq)(struct ibv_cq *) = real_find("ibv_destroy_cq", "IBVERBS_1.1");
	int (*dereg)(struct ibv_mr *) = real_find("ibv_dereg_mr", "IBVERBS_1.1");

	if (p->from)
		destroy_qp(p->from);
	if (p->to)
		destroy_qp(p->to);
	if (p->cq)
		destroy_cq(p->cq);
	if (p->sink)
		dereg(p->sink);
	if (p->page)
		munmap(p->page, SINK_BYTES);
	*p = (struct touch_pair){ 0 };
}
