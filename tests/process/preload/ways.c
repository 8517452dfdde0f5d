/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ways: posts requests in each way and polls their completions in each way, between two queue pairs
 * of this process. It checks that each completion that is not to be hidden comes once and in its
 * turn, and writes what a library has heard of it. With "hides" it has such libraries.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE = 16, BYTES = 256, HIDE = 3 };

struct way {
	bool builders, extended, all;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char memory[2][BYTES];
static bool hides;
static uint64_t posted, refused, signaled, bytes, sum, seen, made, next_id = 1, next_seen = 1;

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "failed: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && *list, "device");
	context = ibv_open_device(*list);
	need(context, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	need(pd, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(mr, "ibv_reg_mr");
}

static struct ibv_cq *make_cq(bool extended)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };

	return extended ? ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &attr)) :
			  ibv_create_cq(context, 64, NULL, NULL, 0);
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, struct way way)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .pd = pd, .sq_sig_all = way.all,
		.cap = { .max_send_wr = QUEUE, .max_recv_wr = 1, .max_send_sge = 2, .max_recv_sge = 1,
			 .max_inline_data = 32 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_qp_init_attr told;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	if (!way.builders)
		init.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qp = ibv_create_qp_ex(context, &init);
	need(qp, "ibv_create_qp_ex");
	made++;
	need(!ibv_query_qp(qp, &attr, IBV_QP_CAP, &told), "ibv_query_qp");
	need(init.cap.max_send_wr == QUEUE && told.cap.max_send_wr == QUEUE &&
		     attr.cap.max_send_wr == QUEUE, "the capacity that was asked for");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.dest_qp_num = to->qp_num, .max_dest_rd_atomic = 1, .max_rd_atomic = 1,
		.min_rnr_timer = 1, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};

	need(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "ibv_query_gid");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* ---- posting ---- */

/* Every HIDE-th one is to be hidden. */
static uint64_t new_id(void)
{
	uint64_t id = next_id++;

	return id % HIDE || !hides ? id : id | UINT64_C(1) << 32;
}

/* A WRITE of two pieces or, by its turn, of inline data. */
static struct ibv_send_wr request(uint64_t id, struct ibv_sge sges[2])
{
	sges[0] = (struct ibv_sge){ (uintptr_t)memory[0], 8, mr->lkey };
	sges[1] = (struct ibv_sge){ (uintptr_t)memory[0] + 16, (uint32_t)(id % 8 + 1), mr->lkey };
	return (struct ibv_send_wr){
		.wr_id = id, .sg_list = sges, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | (id % 4 ? 0 : IBV_SEND_INLINE),
		.wr.rdma = { (uintptr_t)memory[1], mr->rkey },
	};
}

static void account(const struct ibv_send_wr *wr)
{
	signaled++;
	bytes += wr->sg_list[0].length + wr->sg_list[1].length;
	sum += (unsigned)wr->opcode + wr->wr_id * 3 + wr->wr.rdma.remote_addr * 5 +
	       wr->wr.rdma.rkey * UINT64_C(7);
	for (int i = 0; i < 2 && !(wr->send_flags & IBV_SEND_INLINE); i++)
		sum += wr->sg_list[i].addr * 11 + wr->sg_list[i].length * UINT64_C(13) +
		       wr->sg_list[i].lkey * UINT64_C(17);
}

/* `count` requests in one call. Returns its result. */
static int post_plain(struct ibv_qp *qp, unsigned count)
{
	struct ibv_sge sges[2 * QUEUE][2];
	struct ibv_send_wr wr[2 * QUEUE], *bad = NULL;
	int ret;

	for (unsigned i = 0; i < count; i++) {
		wr[i] = request(new_id(), sges[i]);
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
	}
	ret = ibv_post_send(qp, wr, &bad);
	for (unsigned i = 0; i < count && (!ret || &wr[i] != bad); i++, posted++)
		account(&wr[i]);
	for (; ret && bad; bad = bad->next, posted++, refused++)
		next_id--;
	return ret;
}

static void build(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[2];

	for (int i = 0; i < 2; i++)
		buf[i] = (struct ibv_data_buf){ (void *)(uintptr_t)wr->sg_list[i].addr,
						wr->sg_list[i].length };
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags & IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(ex, 2, buf);
	else
		ibv_wr_set_sge_list(ex, 2, wr->sg_list);
}

static int post_built(struct ibv_qp *qp, unsigned count)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_sge sges[2];
	struct ibv_send_wr wr;
	uint64_t first = next_id;
	int ret;

	/* What is taken back was never posted. */
	ibv_wr_start(ex);
	wr = request(77, sges);
	build(ex, &wr);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	for (unsigned i = 0; i < count; i++) {
		wr = request(new_id(), sges);
		build(ex, &wr);
	}
	ret = ibv_wr_complete(ex);
	posted += count;
	if (ret) {
		refused += count;
		next_id = first;
		return ret;
	}
	next_id = first;
	for (unsigned i = 0; i < count; i++) {
		wr = request(new_id(), sges);
		account(&wr);
	}
	return 0;
}

/* ---- polling ---- */

static void see(uint64_t id, enum ibv_wc_status status)
{
	need(status == IBV_WC_SUCCESS, "a completion without error");
	if (hides && !(next_seen % HIDE))
		next_seen++;
	need(id == next_seen, "each completion in its turn");
	next_seen++;
	seen++;
}

static void poll_plain(struct ibv_cq *cq)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(cq, 4, wc);

	need(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		see(wc[i].wr_id, wc[i].status);
}

static void poll_extended(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int ret = ibv_start_poll(cq, &attr);

	if (ret == ENOENT)
		return;
	while (!ret) {
		see(cq->wr_id, cq->status);
		ret = ibv_next_poll(cq);
	}
	need(ret == ENOENT, "ibv_next_poll");
	ibv_end_poll(cq);
}

static void finish(struct ibv_cq *cq, bool extended)
{
	/* The last one may be a hidden one. */
	uint64_t end = hides && !((next_id - 1) % HIDE) ? next_id - 1 : next_id;

	while (next_seen < end)
		if (extended)
			poll_extended((struct ibv_cq_ex *)cq);
		else
			poll_plain(cq);
}

static void try(struct way way)
{
	struct ibv_cq *cq = make_cq(way.extended);
	struct ibv_qp *a, *b;
	int (*post)(struct ibv_qp *, unsigned) = way.builders ? post_built : post_plain;

	need(cq, "completion queue");
	a = make_qp(cq, way);
	b = make_qp(cq, way);
	connect_qp(a, b);
	connect_qp(b, a);
	for (unsigned count = 1; count <= QUEUE; count++) {
		need(!post(a, count), "posting");
		finish(cq, way.extended);
	}
	need(!hides ? post(a, QUEUE + 1) == ENOMEM : post(a, 2 * QUEUE) == ENOMEM,
	     "more than the queue takes is refused");
	finish(cq, way.extended);
	need(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq), "the end");
}

int main(int argc, char **argv)
{
	hides = argc > 1 && !strcmp(argv[1], "hides");
	open_device();
	for (int i = 0; i < 8; i++)
		try((struct way){ i & 1, i & 2, i & 4 });
	need(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context), "the end");
	fprintf(stderr, "program: %ju posted, %ju refused, %ju signaled, %ju bytes, sum %jx, %ju seen, %ju queue pairs, %ju gone\n",
		(uintmax_t)posted, (uintmax_t)refused, (uintmax_t)signaled, (uintmax_t)bytes,
		(uintmax_t)sum, (uintmax_t)seen, (uintmax_t)made, (uintmax_t)made);
	return 0;
}
