/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter of an end: its context, port, GID, queues; making the queue pair; and connecting
 * without connection management (connect = plain). */
#define LOG_ROOM "bench/hca"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/hca/end.h"

#define PORT 1
#define DEPTH_MIN 16
#define PSN 0x6bb5b5u
#define ACK_TIMEOUT 14 /* 67 ms */
#define RETRIES 7
#define RNR_TIMER 1    /* 10 us, the shortest */
#define HOPS 64

int bench_hca_device_open(struct hca_end *e)
{
	const char *name = e->c->device[e->side];
	struct ibv_device **list = ibv_get_device_list(NULL);
	int err = 0;

	for (int i = 0; list && list[i] && !e->verbs && !err; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		e->verbs = ibv_open_device(list[i]);
		err = e->verbs ? 0 : errno;
	}
	if (list)
		ibv_free_device_list(list);
	if (!e->verbs)
		return log_fail(err ? -err : -ENODEV, "device = %s: %s; 'busbar devices' lists all",
				name, err ? strerror(err) : "there is none");
	e->verbs_own = true;
	return 0;
}

/* The address by which the control connection leaves: as a GID has it. */
static bool control_address(const struct hca_end *e, union ibv_gid *gid)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	memset(gid, 0, sizeof(*gid));
	if (!e->c->remote || getsockname(e->fd, (struct sockaddr *)&a, &len))
		return false;
	if (a.ss_family == AF_INET6) {
		memcpy(gid, &((struct sockaddr_in6 *)&a)->sin6_addr, 16);
		return true;
	}
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &((struct sockaddr_in *)&a)->sin_addr, 4);
	return a.ss_family == AF_INET;
}

/* How well an entry fits: RoCE v2 before others, addresses of IPv4 before IPv6. */
static int fitness(const struct ibv_gid_entry *entry, const union ibv_gid *wanted)
{
	if (wanted && !memcmp(&entry->gid, wanted, sizeof(*wanted)))
		return 10 + (entry->gid_type == IBV_GID_TYPE_ROCE_V2);
	return 1 + 4 * (entry->gid_type == IBV_GID_TYPE_ROCE_V2) +
	       2 * IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)&entry->gid);
}

static int choose_gid(struct hca_end *e)
{
	union ibv_gid control;
	bool wanted = control_address(e, &control);
	int best = 0;

	e->gid_index = e->c->gid_index;
	for (int i = 0; e->c->gid_index < 0 && i < e->port_attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		int fits;

		if (ibv_query_gid_ex(e->verbs, e->port, (uint32_t)i, &entry, 0))
			continue;
		fits = fitness(&entry, wanted ? &control : NULL);
		if (fits > best) {
			best = fits;
			e->gid_index = i;
		}
	}
	if (e->gid_index >= 0 && !ibv_query_gid(e->verbs, e->port, e->gid_index, &e->gid))
		return 0;
	return log_fail(-ENODEV, "gid = %d: the adapter has no such GID", e->gid_index);
}

int bench_hca_device_query(struct hca_end *e)
{
	int err;

	strncpy(e->report->device, ibv_get_device_name(e->verbs->device),
		sizeof(e->report->device) - 1);
	if (!e->port)
		e->port = PORT;
	err = ibv_query_port(e->verbs, e->port, &e->port_attr);
	if (err)
		return log_fail(-err, "cannot query port %u of %s: %s", e->port, e->report->device,
				strerror(err));
	if (e->port_attr.state != IBV_PORT_ACTIVE)
		return log_fail(-ENETDOWN, "port %u of %s is not active", e->port,
				e->report->device);
	return choose_gid(e);
}

int bench_hca_device_prepare(struct hca_end *e)
{
	e->pd = ibv_alloc_pd(e->verbs);
	if (!e->pd)
		return log_fail(-errno, "cannot allocate a protection domain: %s", strerror(errno));
	return hca_buffers_make(e) ?:
	       hca_queue_open(e, &e->send, e->c->poll_send, (int)e->send_depth + 1) ?:
	       hca_queue_open(e, &e->recv, e->c->poll_recv, (int)e->recv_depth + 1);
}

void bench_hca_device_close(struct hca_end *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	hca_queue_close(&e->send);
	hca_queue_close(&e->recv);
	hca_buffers_free(e);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->verbs_own)
		ibv_close_device(e->verbs);
}

int hca_address_handle(struct hca_end *e, const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr copy = *attr;

	e->ah = ibv_create_ah(e->pd, &copy);
	if (e->ah)
		return 0;
	return log_fail(-errno, "cannot make an address handle: %s", strerror(errno));
}

/* ---- the queue pair ---- */

/* The attributes of the queue pair to make. */
static void fill_attributes(const struct hca_end *e, struct ibv_qp_init_attr *attr)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

	*attr = (struct ibv_qp_init_attr){
		.send_cq = e->send.cq,
		.recv_cq = e->recv.cq,
		.qp_type = types[e->c->type],
		.cap = {
			.max_send_wr = e->send_depth,
			.max_recv_wr = e->recv_depth,
			.max_send_sge = e->c->sges,
			.max_recv_sge = e->c->sges,
			.max_inline_data = e->c->send_inline ? e->c->size : 0,
		},
	};
}

/* What the adapter granted. */
static int check_made(struct hca_end *e, const struct ibv_qp_init_attr *attr)
{
	if (e->c->send_inline && attr->cap.max_inline_data < e->c->size)
		return log_fail(-EOPNOTSUPP,
				"inline: the adapter sends at most %u bytes inline, size is %u",
				attr->cap.max_inline_data, e->c->size);
	e->report->depth = e->send_depth;
	e->report->buffers = e->buffers;
	return 0;
}

static bool make(struct hca_end *e, struct ibv_qp_init_attr *attr)
{
	if (!e->cm_id)
		e->qp = ibv_create_qp(e->pd, attr);
	else
		e->qp = rdma_create_qp(e->cm_id, e->pd, attr) ? NULL : e->cm_id->qp;
	return e->qp;
}

int bench_hca_qp_create(struct hca_end *e)
{
	struct ibv_qp_init_attr attr;
	uint32_t wanted = e->send_depth;
	int err;

	fill_attributes(e, &attr);
	/* Requests with inline data are larger, so some adapters have room for fewer. */
	while (!make(e, &attr)) {
		err = errno;
		if (e->send_depth / 2 < MAX(DEPTH_MIN, e->c->batch))
			return log_fail(e->c->send_inline ? -EOPNOTSUPP : -err, "cannot create a queue pair of %u requests, %u bytes of inline data each: %s",
					wanted, e->c->send_inline ? e->c->size : 0, strerror(err));
		e->send_depth /= 2;
		fill_attributes(e, &attr);
	}
	return check_made(e, &attr);
}

void bench_hca_qp_destroy(struct hca_end *e)
{
	if (!e->qp)
		return;
	if (e->cm_id)
		rdma_destroy_qp(e->cm_id);
	else
		ibv_destroy_qp(e->qp);
	e->qp = NULL;
}

static int change(struct hca_end *e, struct ibv_qp_attr *attr, int mask, const char *state)
{
	int err = ibv_modify_qp(e->qp, attr, mask);

	return err ? log_fail(-err, "cannot move the queue pair to %s: %s", state, strerror(err)) :
		     0;
}

static int to_init(struct hca_end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = e->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.qkey = HCA_QKEY,
	};

	return change(e, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		      (e->c->type == HCA_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS), "INIT");
}

static struct ibv_ah_attr address_of_peer(const struct hca_end *e)
{
	struct ibv_ah_attr ah = {
		.port_num = e->port,
		.dlid = e->theirs.lid,
		.is_global = e->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET,
	};

	if (!ah.is_global)
		return ah;
	memcpy(&ah.grh.dgid, e->theirs.gid, sizeof(ah.grh.dgid));
	ah.grh.sgid_index = (uint8_t)e->gid_index;
	ah.grh.hop_limit = HOPS;
	return ah;
}

enum ibv_mtu hca_mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= bytes)
		mtu++;
	return mtu;
}

static int to_rtr(struct hca_end *e)
{
	uint32_t mtu = MIN(e->mine.mtu, e->theirs.mtu);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = address_of_peer(e),
		.path_mtu = hca_mtu_of(e->c->mtu ?: mtu),
		.dest_qp_num = e->theirs.qpn,
		.rq_psn = e->theirs.psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
	};
	int mask = IBV_QP_STATE;

	if (e->c->mtu > mtu)
		return log_fail(-EOPNOTSUPP, "mtu = %u: the adapters allow %u", e->c->mtu, mtu);
	if (e->c->type != HCA_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (e->c->type == HCA_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return change(e, &attr, mask, "RTR");
}

static int to_rts(struct hca_end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = e->mine.psn,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.max_rd_atomic = 1,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->c->type == HCA_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return change(e, &attr, mask, "RTS");
}

int hca_plain_connect(struct hca_end *e)
{
	struct ibv_ah_attr ah;
	int ret = bench_hca_device_open(e) ?: bench_hca_device_query(e);

	if (!ret && hca_end_is_iwarp(e))
		ret = log_fail(-EOPNOTSUPP, "device = %s: iWARP has connections by the connection manager only: connect = cm",
			       e->report->device);
	ret = ret ?: bench_hca_device_prepare(e) ?: bench_hca_qp_create(e) ?: to_init(e);
	if (ret)
		return ret;
	e->mine.qpn = e->qp->qp_num;
	e->mine.psn = PSN + e->side;
	e->mine.lid = e->port_attr.lid;
	e->mine.qkey = HCA_QKEY;
	e->mine.mtu = 128u << e->port_attr.active_mtu;
	memcpy(e->mine.gid, &e->gid, sizeof(e->mine.gid));
	ret = hca_control_hello(e) ?: to_rtr(e) ?: to_rts(e);
	if (ret || e->c->type != HCA_UD)
		return ret;
	e->remote_qpn = e->theirs.qpn;
	e->remote_qkey = e->theirs.qkey;
	ah = address_of_peer(e);
	return hca_address_handle(e, &ah);
}
