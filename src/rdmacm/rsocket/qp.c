/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair of a socket, its completion queue, and its registered buffers. */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rdmacm/rsocket/rs.h"
#include "util/log.h"

#define SLOT_SIZE_MAX 65536u
/* Gap between slots, so that their first bytes lie in different sets of the
 * processor's cache. */
#define SLOT_GAP 64u
#define GRH_SIZE 40
#define DGRAM_SLOTS_MIN 512u

static uint32_t round_up(uint32_t value, uint32_t to)
{
	return (value + to - 1) / to * to;
}

static int channel_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static void *memory_get(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static size_t slots_bytes(const struct rs *rs)
{
	return (size_t)rs->rx.slot_count * rs->rx.slot_stride;
}

static size_t ring_bytes(const struct rs *rs)
{
	return rs->opt.send_size + (size_t)RS_CONTROL_PLACES * RS_CONTROL_SIZE;
}

static int buffers_create(struct rs *rs, struct ibv_pd *pd)
{
	struct rs_rx *rx = &rs->rx;
	struct rs_tx *tx = &rs->tx;

	rx->slot_stride = round_up(rx->slot_size, 64) + SLOT_GAP;
	rx->slots = memory_get(slots_bytes(rs));
	rx->ready = calloc(rx->slot_count, sizeof(*rx->ready));
	rx->unposted = calloc(rx->slot_count, sizeof(*rx->unposted));
	tx->ring = memory_get(ring_bytes(rs));
	tx->sent = calloc(tx->sq_entries + RS_SQ_SPARE, sizeof(*tx->sent));
	if (!rx->slots || !rx->ready || !rx->unposted || !tx->ring || !tx->sent)
		return -ENOMEM;
	rx->mr = ibv_reg_mr(pd, rx->slots, slots_bytes(rs), IBV_ACCESS_LOCAL_WRITE);
	tx->mr = ibv_reg_mr(pd, tx->ring, ring_bytes(rs), IBV_ACCESS_LOCAL_WRITE);
	return rx->mr && tx->mr ? 0 : -errno;
}

static int cq_create(struct rs *rs, struct ibv_context *verbs)
{
	int size = (int)(rs->rx.slot_count + rs->tx.sq_entries + RS_SQ_SPARE);

	rs->comp = ibv_create_comp_channel(verbs);
	if (!rs->comp || channel_set_nonblocking(rs->comp->fd))
		return -errno;
	rs->cq = ibv_create_cq(verbs, size, NULL, rs->comp, 0);
	return rs->cq ? 0 : -errno;
}

/* The QP of a connection is made by the identifier, one for datagrams directly. */
static struct ibv_qp *qp_try(struct rdma_cm_id *id, struct ibv_qp_init_attr *attr)
{
	if (attr->qp_type == IBV_QPT_UD)
		return ibv_create_qp(id->pd, attr);
	return rdma_create_qp(id, NULL, attr) ? NULL : id->qp;
}

static int qp_create(struct rs *rs, struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct rs_tx *tx = &rs->tx;
	struct ibv_qp_init_attr attr = {
		.send_cq = rs->cq,
		.recv_cq = rs->cq,
		.qp_type = type,
		.cap = {
			.max_send_wr = tx->sq_entries + RS_SQ_SPARE,
			.max_recv_wr = rs->rx.slot_count,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = MAX(rs->opt.inline_size, 64u),
		},
	};

	/* With less inline data if the adapter refuses that much. */
	while (!(rs->qp = qp_try(id, &attr))) {
		if (!attr.cap.max_inline_data || errno == ENOMEM)
			return -errno;
		attr.cap.max_inline_data /= 2;
	}
	tx->inline_cap = attr.cap.max_inline_data;
	tx->inline_max = MIN(tx->inline_cap, rs->opt.inline_size);
	return 0;
}

static int dgram_qp_ready(struct rs *rs)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = rs->port_num,
				    .qkey = RDMA_UDP_QKEY };
	int ret = ibv_modify_qp(rs->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!ret)
		ret = ibv_modify_qp(rs->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!ret)
		ret = ibv_modify_qp(rs->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -ret;
}

int rs_inline_set(struct rs *rs, uint32_t size)
{
	rs->opt.inline_size = size;
	rs->tx.inline_max = MIN(rs->tx.inline_cap, size);
	return 0;
}

int rs_post_recv(struct rs *rs, const uint32_t *slots, uint32_t count)
{
	enum { BATCH = 16 };
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	while (count) {
		uint32_t n = MIN(count, (uint32_t)BATCH);
		int ret;

		for (uint32_t i = 0; i < n; i++) {
			sge[i] = (struct ibv_sge){
				.addr = (uintptr_t)rs_slot(rs, slots[i]),
				.length = rs->rx.slot_size,
				.lkey = rs->rx.mr->lkey,
			};
			wr[i] = (struct ibv_recv_wr){
				.wr_id = RS_WR_RECV | slots[i],
				.next = i + 1 < n ? &wr[i + 1] : NULL,
				.sg_list = &sge[i],
				.num_sge = 1,
			};
		}
		ret = ibv_post_recv(rs->qp, wr, &bad);
		if (ret)
			return -ret;
		slots += n;
		count -= n;
	}
	return 0;
}

static int post_all(struct rs *rs)
{
	for (uint32_t i = 0; i < rs->rx.slot_count; i++) {
		int ret = rs_post_recv(rs, &i, 1);

		if (ret)
			return ret;
	}
	return 0;
}

/* Chooses number and size of the receive slots by the options. */
static void sizes_choose(struct rs *rs)
{
	const struct ibv_context *verbs = rs->id->verbs;
	struct rs_options *o = &rs->opt;
	struct ibv_device_attr dev;
	uint32_t limit = 16384, size;

	if (verbs && !ibv_query_device(rs->id->verbs, &dev))
		limit = (uint32_t)MIN(dev.max_qp_wr, 16384);
	o->rq_size = MIN(o->rq_size, limit - RS_SPARE_SLOTS);
	o->sq_size = MIN(o->sq_size, limit - RS_SQ_SPARE);
	size = o->recv_size / o->rq_size;
	size = MIN(MAX(size, RS_SLOT_SIZE_MIN), SLOT_SIZE_MAX);
	rs->rx.slot_size = round_up(size, 8);
	rs->rx.slot_count = o->rq_size + RS_SPARE_SLOTS;
	rs->tx.sq_entries = o->sq_size;
}

int rs_stream_qp_create(struct rs *rs)
{
	int ret;

	sizes_choose(rs);
	ret = cq_create(rs, rs->id->verbs);
	if (!ret)
		ret = buffers_create(rs, rs->id->pd);
	if (!ret)
		ret = qp_create(rs, rs->id, IBV_QPT_RC);
	if (!ret)
		ret = post_all(rs);
	if (ret)
		log_error("socket %d: no queue pair: %s", rs->fd, strerror(-ret));
	rs->rx.granted = rs->rx.told = rs->opt.rq_size;
	return ret;
}

void rs_stream_hello(const struct rs *rs, struct rs_hello *hello)
{
	rs_hello_encode(hello, RS_KIND_STREAM, rs->opt.rq_size, rs->rx.slot_size,
			rs->opt.map_count);
}

void rs_stream_meet(struct rs *rs, const struct rs_hello *peer)
{
	struct rs_tx *tx = &rs->tx;
	uint32_t room = rs->opt.send_size / 4;

	tx->peer_slots = tx->granted = peer->slots;
	/* A message must fit into a slot of the peer, and several into our ring. */
	tx->payload_max = MIN(peer->slot_size, room) -
			  (uint32_t)sizeof(struct rs_header);
	rs->ours_count = peer->maps;
}

int rs_dgram_qp_create(struct rs *rs, struct rdma_cm_id *id)
{
	struct ibv_port_attr port;
	struct rs_options *o = &rs->opt;
	int ret;

	if (ibv_query_port(id->verbs, id->port_num, &port))
		return -EIO;
	/* As long as can be: UDP, too, cuts what a network does not take whole. */
	rs->mtu = 128u << port.max_mtu;
	rs->rx.slot_size = rs->mtu + GRH_SIZE;
	/* Small datagrams need a slot each: about as many as a kernel's socket holds. */
	rs->rx.slot_count = MIN(MAX(o->recv_size / rs->rx.slot_size, DGRAM_SLOTS_MIN),
				4096u);
	rs->tx.sq_entries = MIN(o->sq_size, MAX(o->send_size / rs->mtu, 8u));
	/* The ring has one place of `mtu` bytes for each entry of the send queue. */
	o->send_size = rs->tx.sq_entries * rs->mtu;
	rs->port_num = id->port_num;
	ret = cq_create(rs, id->verbs);
	if (!ret)
		ret = buffers_create(rs, id->pd);
	if (!ret)
		ret = qp_create(rs, id, IBV_QPT_UD);
	if (!ret)
		ret = dgram_qp_ready(rs);
	if (!ret)
		ret = post_all(rs);
	if (ret)
		log_error("socket %d: no queue pair: %s", rs->fd, strerror(-ret));
	return ret;
}

void rs_qp_destroy(struct rs *rs)
{
	struct rs_rx *rx = &rs->rx;
	struct rs_tx *tx = &rs->tx;

	if (rs->qp && rs_is_stream(rs))
		rdma_destroy_qp(rs->id);
	else if (rs->qp)
		ibv_destroy_qp(rs->qp);
	if (rs->cq)
		ibv_destroy_cq(rs->cq);
	if (rs->comp)
		ibv_destroy_comp_channel(rs->comp);
	if (rx->mr)
		ibv_dereg_mr(rx->mr);
	if (tx->mr)
		ibv_dereg_mr(tx->mr);
	if (rx->slots)
		munmap(rx->slots, slots_bytes(rs));
	if (tx->ring)
		munmap(tx->ring, ring_bytes(rs));
	free(rx->ready);
	free(rx->unposted);
	free(tx->sent);
	rs->qp = NULL;
	rs->cq = NULL;
	rs->comp = NULL;
	memset(rx, 0, sizeof(*rx));
	memset(tx, 0, sizeof(*tx));
}
