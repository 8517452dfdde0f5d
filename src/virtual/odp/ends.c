/* SPDX-License-Identifier: BSD-2-Clause */
/* See ends.h. */
#include "virtual/odp/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/container_of.h"
#include "virtual/fail.h"
#include "virtual/net.h"

static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_WRITE;

/* ---- memory ---- */

static uint8_t pattern(uint64_t i, uint64_t at)
{
	return (uint8_t)(i * 37 + at * 7 + (i >> 8) + 1);
}

/* The end that an operation's bytes come from. */
static unsigned source_of(const struct odp_point *p, uint64_t i)
{
	return odp_opcode(p, i) == IBV_WR_RDMA_READ ? ODP_END_SERVER : ODP_END_CLIENT;
}

static void fill(struct odp_ends *e)
{
	const struct odp_point *p = e->point;

	for (uint64_t i = 0; i < p->num_ops; i++) {
		uint8_t *to = e->end[source_of(p, i)].memory + odp_offset(p, i);

		for (uint64_t at = 0; at < p->size; at++)
			to[at] = pattern(i, at);
	}
}

bool odp_ends_are_right(const struct odp_ends *e, uint64_t i)
{
	const struct odp_point *p = e->point;
	const uint8_t *got = e->end[!source_of(p, i)].memory + odp_offset(p, i);

	for (uint64_t at = 0; at < p->size; at++)
		if (got[at] != pattern(i, at))
			return false;
	return true;
}

static void allocate(struct odp_end *end, uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	expect(memory != MAP_FAILED);
	end->memory = memory;
}

static void register_memory(struct odp_end *end, uint64_t bytes, bool paged)
{
	end->mr = ibv_reg_mr(virtual_pd, end->memory, bytes,
			     rights | (paged ? IBV_ACCESS_ON_DEMAND : 0));
	expect(end->mr);
}

/* Has the adapter bring pages before. */
static void touch(const struct odp_end *end, const struct odp_point *p)
{
	uint64_t from = 0, bytes = odp_bytes(p);
	struct ibv_sge sge = { .lkey = end->mr->lkey };

	if (p->pre_touch == ODP_TOUCH_LATER)
		from = (odp_offset(p, MIN(p->num_qps, p->num_ops) - 1) + p->size + ODP_PAGE - 1) /
		       ODP_PAGE * ODP_PAGE;
	if (p->pre_touch == ODP_TOUCH_NONE || from >= bytes)
		return;
	sge.addr = (uintptr_t)end->memory + from;
	sge.length = (uint32_t)(bytes - from);
	expect_eq(ibv_advise_mr(virtual_pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
}

/* ---- queue pairs ---- */

static uint32_t depth_of(const struct odp_point *p)
{
	return (uint32_t)((p->num_ops + p->num_qps - 1) / p->num_qps);
}

/* Room for dummies. */
#define DUMMIES 64u

static void open_qp(struct odp_end *end, unsigned host, unsigned number, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = end->cq, .recv_cq = end->cq,
		.sq_sig_all = 1, .qp_context = &virtual_hosts[host],
		.cap = { .max_send_wr = depth + DUMMIES, .max_recv_wr = depth,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = (unsigned)rights };

	end->qp[number] = ibv_create_qp(virtual_pd, &init);
	expect(end->qp[number]);
	expect_eq(ibv_modify_qp(end->qp[number], &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS), 0);
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer, unsigned peer_host,
		       const struct odp_point *p)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = (uint8_t)p->max_rd_atomic,
		.min_rnr_timer = (uint8_t)p->rnr_code,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};

	virtual_gid(peer_host, &attr.ah_attr.grh.dgid);
	expect_eq(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = (uint8_t)p->ack_code;
	attr.retry_cnt = (uint8_t)p->retry;
	attr.rnr_retry = (uint8_t)p->rnr_retry;
	attr.max_rd_atomic = (uint8_t)p->max_rd_atomic;
	expect_eq(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void open_end(struct odp_ends *e, unsigned number, bool paged)
{
	const struct odp_point *p = e->point;
	struct odp_end *end = &e->end[number];

	register_memory(end, odp_bytes(p), paged);
	end->cq = ibv_create_cq(virtual_ctx, (int)p->num_ops * 2 + 1 + (int)(DUMMIES * p->num_qps), &virtual_hosts[number], NULL,
				0);
	expect(end->cq);
	for (unsigned i = 0; i < odp_qps(p); i++)
		open_qp(end, number, i, depth_of(p));
	if (paged)
		touch(end, p);
}

/* ---- posting ---- */

static struct ibv_sge piece(const struct odp_end *end, const struct odp_point *p, uint64_t i)
{
	return (struct ibv_sge){ (uintptr_t)end->memory + odp_offset(p, i), (uint32_t)p->size,
				 end->mr->lkey };
}

static void post_receives(struct odp_ends *e)
{
	const struct odp_point *p = e->point;
	struct odp_end *server = &e->end[ODP_END_SERVER];

	for (uint64_t i = 0; i < p->num_ops; i++) {
		struct ibv_sge sge = piece(server, p, i);
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (odp_opcode(p, i) == IBV_WR_SEND)
			expect_eq(ibv_post_recv(server->qp[i % p->num_qps], &wr, &bad), 0);
	}
}

void odp_ends_post(struct odp_ends *e, uint64_t i)
{
	const struct odp_point *p = e->point;
	const struct odp_end *client = &e->end[ODP_END_CLIENT];
	const struct odp_end *server = &e->end[ODP_END_SERVER];
	struct ibv_sge sge = piece(client, p, i);
	struct ibv_send_wr wr = {
		.wr_id = i, .opcode = odp_opcode(p, i), .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (uintptr_t)server->memory + odp_offset(p, i), server->mr->rkey },
	}, *bad;

	expect_eq(ibv_post_send(client->qp[i % p->num_qps], &wr, &bad), 0);
}

void odp_ends_post_dummy(struct odp_ends *e, unsigned qp)
{
	const struct odp_end *server = &e->end[ODP_END_SERVER];
	struct ibv_send_wr wr = {
		.wr_id = ODP_WR_DUMMY, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)server->memory, server->mr->rkey },
	}, *bad;
	int ret = ibv_post_send(e->end[ODP_END_CLIENT].qp[qp], &wr, &bad);

	expect(!ret || ret == ENOMEM);
}

static void allocate_spare(struct odp_ends *e)
{
	struct odp_end spare;

	allocate(&spare, odp_bytes(e->point));
	register_memory(&spare, odp_bytes(e->point), false);
	e->spare = spare.memory;
	e->spare_mr = spare.mr;
}

void odp_ends_reissue(struct odp_ends *e, uint64_t i)
{
	const struct odp_point *p = e->point;
	const struct odp_end *server = &e->end[ODP_END_SERVER];
	struct ibv_sge sge = { (uintptr_t)e->spare + odp_offset(p, i), (uint32_t)p->size,
			       e->spare_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = ODP_WR_REISSUED | i, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { (uintptr_t)server->memory + odp_offset(p, i), server->mr->rkey },
	}, *bad;

	expect_eq(ibv_post_send(e->end[ODP_END_CLIENT].qp[p->num_qps], &wr, &bad), 0);
}

void odp_ends_take_reissued(struct odp_ends *e, uint64_t i)
{
	const uint64_t at = odp_offset(e->point, i);

	memcpy(e->end[ODP_END_CLIENT].memory + at, e->spare + at, e->point->size);
}

/* ---- both ---- */

static int by_qpn(const void *a, const void *b)
{
	const struct odp_name *x = a, *y = b;

	return x->qpn < y->qpn ? -1 : x->qpn > y->qpn;
}

static void name_all(struct odp_ends *e)
{
	const unsigned qps = odp_qps(e->point);

	for (unsigned i = 0; i < 2 * qps; i++)
		e->names[i] = (struct odp_name){ e->end[i / qps].qp[i % qps]->qp_num, i % qps };
	qsort(e->names, 2 * (size_t)qps, sizeof(*e->names), by_qpn);
}

unsigned odp_ends_number(const struct odp_ends *e, uint32_t qpn)
{
	const struct odp_name key = { .qpn = qpn };
	const struct odp_name *n = bsearch(&key, e->names, 2 * (size_t)odp_qps(e->point),
					   sizeof(*n), by_qpn);

	expect(n);
	return n->number;
}

void odp_ends_open(struct odp_ends *e, const struct odp_point *point)
{
	*e = (struct odp_ends){ .point = point };
	for (unsigned i = 0; i < 2; i++)
		allocate(&e->end[i], odp_bytes(point));
	fill(e);
	open_end(e, ODP_END_CLIENT, point->paged & ODP_CLIENT);
	open_end(e, ODP_END_SERVER, point->paged & ODP_SERVER);
	if (odp_qps(point) > point->num_qps)
		allocate_spare(e);
	for (unsigned i = 0; i < odp_qps(point); i++) {
		struct ibv_qp *client = e->end[ODP_END_CLIENT].qp[i];
		struct ibv_qp *server = e->end[ODP_END_SERVER].qp[i];

		connect_qp(client, server, ODP_END_SERVER, point);
		connect_qp(server, client, ODP_END_CLIENT, point);
	}
	name_all(e);
	post_receives(e);
}

static void close_end(struct odp_end *end, const struct odp_point *p)
{
	for (unsigned i = 0; i < odp_qps(p); i++)
		expect_eq(ibv_destroy_qp(end->qp[i]), 0);
	expect_eq(ibv_destroy_cq(end->cq), 0);
	expect_eq(ibv_dereg_mr(end->mr), 0);
	munmap(end->memory, odp_bytes(p));
}

void odp_ends_close(struct odp_ends *e)
{
	for (unsigned i = 0; i < 2; i++)
		close_end(&e->end[i], e->point);
	if (!e->spare)
		return;
	expect_eq(ibv_dereg_mr(e->spare_mr), 0);
	munmap(e->spare, odp_bytes(e->point));
}
