/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What peers can do with the keys of the pool (src/ripc/pool.h): read a source, write a
 * sink, nothing else, and with a memory window on its memory only the one peer, within
 * the window, until it is taken back.
 *
 *     ripc_pool_keys [COUNT]     also shows what binding and taking back take
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "pool_help.h"

#define BYTES 8192
#define AT 4096 /* of the window in the buffer */
#define LIMIT_S 20

/* A connection to a peer, whose memory is of this process, too. */
struct link {
	struct ibv_qp *own, *peer;
};

static struct ground g;
static struct ibv_cq *cq;
static union ibv_gid gid;
static uint8_t local[64];
static struct ibv_mr *local_mr;
static struct link first, second;

/* ---- connections ---- */

static struct ibv_qp *make(void)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(g.pd, &a);

	check(qp);
	return qp;
}

static void ready(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RESET, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num,
		.max_rd_atomic = 1, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = gid },
	};

	check(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_INIT;
	check(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_MAX_QP_RD_ATOMIC));
}

static void link_ready(struct link *l)
{
	if (!l->own) {
		l->own = make();
		l->peer = make();
	}
	ready(l->own, l->peer);
	ready(l->peer, l->own);
}

static enum ibv_wc_status outcome(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	const time_t end = time(NULL) + LIMIT_S;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	check_eq(ibv_post_send(qp, wr, &bad), 0);
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		check(time(NULL) < end);
	check_eq(n, 1);
	return wc.status;
}

/* 64 bytes by the peer of a link. */
static enum ibv_wc_status reach(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey,
				const void *at)
{
	struct ibv_sge sge = { (uintptr_t)local, sizeof(local), local_mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { (uintptr_t)at, rkey } };

	return outcome(l->peer, &wr);
}

static void reaches(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey, const void *at)
{
	check_eq(reach(l, opcode, rkey, at), IBV_WC_SUCCESS);
}

static void is_refused(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey,
		       const void *at)
{
	check_eq(reach(l, opcode, rkey, at), IBV_WC_REM_ACCESS_ERR);
	link_ready(l);
}

/* ---- keys of the pool ---- */

static void a_source_is_read_and_a_sink_is_written(void)
{
	uint8_t *b = pool_alloc(g.pool, 1 << 20);
	struct pool_ref source, sink, use;

	/* Used locally before, so that its registration has no remote rights. */
	check_eq(pool_get(g.pool, b, 1 << 20, POOL_LOCAL, &use), 0);
	is_refused(&first, IBV_WR_RDMA_READ, use.rkey, b);
	is_refused(&first, IBV_WR_RDMA_WRITE, use.rkey, b);
	check_eq(pool_get(g.pool, b, 1 << 20, POOL_SOURCE, &source), 0);
	check_eq(pool_get(g.pool, b, 1 << 20, POOL_SINK, &sink), 0);
	memset(b + 100, 0x5a, 64);
	reaches(&first, IBV_WR_RDMA_READ, source.rkey, b + 100);
	check_eq(local[0], 0x5a);
	check_eq(local[63], 0x5a);
	is_refused(&first, IBV_WR_RDMA_WRITE, source.rkey, b);
	memset(local, 0x33, sizeof(local));
	reaches(&first, IBV_WR_RDMA_WRITE, sink.rkey, b + 200);
	check_eq(b[200], 0x33);
	check_eq(b[263], 0x33);
	is_refused(&first, IBV_WR_RDMA_READ, sink.rkey, b);
	is_refused(&first, IBV_WR_RDMA_WRITE, sink.rkey, b + (1 << 20) - 63);
	pool_put(g.pool, &use);
	pool_put(g.pool, &source);
	pool_put(g.pool, &sink);
	check_eq(pool_free(g.pool, b), 0);
	pool_trim(g.pool, 0);
	/* What went with the memory is no key any more. */
	is_refused(&first, IBV_WR_RDMA_WRITE, sink.rkey, b);
}

/* ---- windows ---- */

static uint32_t bind(struct link *l, struct ibv_mw *mw, const struct pool_ref *ref,
		     const void *at, uint64_t bytes)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = { ref->mr, (uintptr_t)at, bytes,
					    IBV_ACCESS_REMOTE_WRITE } },
	};

	check_eq(outcome(l->own, &wr), IBV_WC_SUCCESS);
	mw->rkey = wr.bind_mw.rkey;
	return mw->rkey;
}

static void take_back(struct link *l, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey };

	check_eq(outcome(l->own, &wr), IBV_WC_SUCCESS);
}

static void a_window_is_for_one_peer_until_it_is_taken_back(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(g.pd, IBV_MW_TYPE_2);
	uint8_t *b = pool_alloc(g.pool, BYTES);
	struct pool_ref ref;
	uint32_t rkey, next;

	check(mw && b);
	check_eq(pool_get(g.pool, b, BYTES, POOL_LOCAL, &ref), 0);
	memset(b, 0, BYTES);
	rkey = bind(&first, mw, &ref, b + AT, 1024);
	reaches(&first, IBV_WR_RDMA_WRITE, rkey, b + AT);
	reaches(&first, IBV_WR_RDMA_WRITE, rkey, b + AT + 1024 - 64);
	check(!memcmp(b + AT, local, 64));
	/* Nothing but that. */
	is_refused(&second, IBV_WR_RDMA_WRITE, rkey, b + AT);
	is_refused(&first, IBV_WR_RDMA_WRITE, rkey, b + AT - 1);
	is_refused(&first, IBV_WR_RDMA_WRITE, rkey, b + AT + 1024 - 63);
	is_refused(&first, IBV_WR_RDMA_READ, rkey, b + AT);
	is_refused(&first, IBV_WR_RDMA_WRITE, ref.rkey, b + AT);
	check_eq(b[AT - 1], 0);
	check_eq(b[AT + 1024], 0);
	/* The error state of its queue pair did not end it, as it has to be invalidated. */
	reaches(&first, IBV_WR_RDMA_WRITE, rkey, b + AT);
	take_back(&first, rkey);
	memset(b + AT, 0, 1024);
	is_refused(&first, IBV_WR_RDMA_WRITE, rkey, b + AT);
	check_eq(b[AT], 0);
	/* The next one has another key, and the former stays void. */
	next = bind(&first, mw, &ref, b + AT, 1024);
	check(next != rkey);
	reaches(&first, IBV_WR_RDMA_WRITE, next, b + AT);
	is_refused(&first, IBV_WR_RDMA_WRITE, rkey, b + AT);
	take_back(&first, next);
	/* For the other peer it can be used then. */
	rkey = bind(&second, mw, &ref, b, 64);
	reaches(&second, IBV_WR_RDMA_WRITE, rkey, b);
	is_refused(&first, IBV_WR_RDMA_WRITE, rkey, b);
	check_eq(ibv_dealloc_mw(mw), 0);
	is_refused(&second, IBV_WR_RDMA_WRITE, rkey, b);
	pool_put(g.pool, &ref);
	check_eq(pool_free(g.pool, b), 0);
}

static void a_window_ends_with_its_queue_pair(void)
{
	struct link third = { .own = NULL };
	struct ibv_mw *mw = ibv_alloc_mw(g.pd, IBV_MW_TYPE_2);
	uint8_t *b = pool_alloc(g.pool, BYTES);
	struct pool_ref ref;
	uint32_t rkey;

	link_ready(&third);
	check_eq(pool_get(g.pool, b, BYTES, POOL_LOCAL, &ref), 0);
	rkey = bind(&third, mw, &ref, b, BYTES);
	reaches(&third, IBV_WR_RDMA_WRITE, rkey, b);
	check_eq(ibv_destroy_qp(third.own), 0);
	check_eq(ibv_destroy_qp(third.peer), 0);
	is_refused(&first, IBV_WR_RDMA_WRITE, rkey, b);
	/* It keeps the registration until it is given back; it cannot be bound again. */
	check_eq(ibv_dereg_mr(ref.mr), EBUSY);
	check_eq(ibv_dealloc_mw(mw), 0);
	pool_put(g.pool, &ref);
	check_eq(pool_free(g.pool, b), 0);
}

static void memory_with_a_window_stays_registered(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(g.pd, IBV_MW_TYPE_2);
	uint8_t *own = aligned_alloc(4096, BYTES);
	struct pool_ref ref;
	uint32_t rkey;

	check_eq(pool_register(g.pool, own, BYTES), 0);
	check_eq(pool_get(g.pool, own, BYTES, POOL_LOCAL, &ref), 0);
	rkey = bind(&first, mw, &ref, own, BYTES);
	pool_put(g.pool, &ref);
	check_eq(pool_unregister(g.pool, own), -EBUSY);
	reaches(&first, IBV_WR_RDMA_WRITE, rkey, own);
	take_back(&first, rkey);
	check_eq(pool_unregister(g.pool, own), 0);
	check_eq(ibv_dealloc_mw(mw), 0);
	free(own);
}

/* A bind, then a message that tells the key, then the peer's write: the order of the posts
 * is enough. */
static void show_cost(unsigned count)
{
	struct ibv_mw *mw = ibv_alloc_mw(g.pd, IBV_MW_TYPE_2);
	uint8_t *b = pool_alloc(g.pool, BYTES);
	struct timespec t[2];
	struct pool_ref ref;

	check_eq(pool_get(g.pool, b, BYTES, POOL_LOCAL, &ref), 0);
	clock_gettime(CLOCK_MONOTONIC, &t[0]);
	for (unsigned i = 0; i < count; i++)
		take_back(&first, bind(&first, mw, &ref, b, BYTES));
	clock_gettime(CLOCK_MONOTONIC, &t[1]);
	printf("bind and take back: %.0f ns\n",
	       ((double)(t[1].tv_sec - t[0].tv_sec) * 1e9 +
		(double)(t[1].tv_nsec - t[0].tv_nsec)) / count);
	pool_put(g.pool, &ref);
	check_eq(pool_free(g.pool, b), 0);
	check_eq(ibv_dealloc_mw(mw), 0);
}

int main(int argc, char **argv)
{
	ground_open(&g, 16 << 20);
	cq = ibv_create_cq(g.ctx, 64, NULL, NULL, 0);
	check(cq && !ibv_query_gid(g.ctx, 1, 0, &gid));
	local_mr = ibv_reg_mr(g.pd, local, sizeof(local), IBV_ACCESS_LOCAL_WRITE);
	check(local_mr);
	link_ready(&first);
	link_ready(&second);
	a_source_is_read_and_a_sink_is_written();
	a_window_is_for_one_peer_until_it_is_taken_back();
	a_window_ends_with_its_queue_pair();
	memory_with_a_window_stays_registered();
	if (argc > 1)
		show_cost((unsigned)atoi(argv[1]));
	check(!ibv_destroy_qp(first.own) && !ibv_destroy_qp(first.peer));
	check(!ibv_destroy_qp(second.own) && !ibv_destroy_qp(second.peer));
	check(!ibv_dereg_mr(local_mr) && !ibv_destroy_cq(cq));
	ground_close(&g);
	return 0;
}
