/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rounds send|write [BYTES [demand]]: one queue pair, connected to itself, posts 8 bytes and polls until
 * that has completed, WARM_ROUNDS times and then COUNTED_CALLS times COUNTED_ROUNDS times
 * in counted(). The work of a call of that function is what instructions.sh counts. With "demand" the
 * program has a region on demand, too, which it does not use.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_ROUNDS = 5000, COUNTED_CALLS = 40, COUNTED_ROUNDS = 100 };

static struct {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	bool send; /* else RDMA WRITE */
	uint32_t size;
	uint8_t bytes[2][64];
} side;

void counted(void);

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_context *context_open(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context;

	if (!list || count < 1)
		fail("no device");
	context = ibv_open_device(list[0]);
	if (!context)
		fail("ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

static void modify(struct ibv_qp_attr attr, int mask)
{
	if (ibv_modify_qp(side.qp, &attr, mask | IBV_QP_STATE))
		fail("ibv_modify_qp");
}

static void qp_connect(struct ibv_context *context)
{
	union ibv_gid gid;

	if (ibv_query_gid(context, 1, 0, &gid))
		fail("ibv_query_gid");
	modify((struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1,
				     .qp_access_flags = IBV_ACCESS_REMOTE_WRITE },
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify((struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_4096,
				     .dest_qp_num = side.qp->qp_num,
				     .min_rnr_timer = 12,
				     .max_dest_rd_atomic = 1,
				     .ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
						  .grh = { .dgid = gid } } },
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify((struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14,
				     .retry_cnt = 7, .rnr_retry = 7,
				     .max_rd_atomic = 1 },
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void open_all(bool demand)
{
	static uint8_t others[8192];
	struct ibv_context *context = context_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1 } };

	side.cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	if (!pd || !side.cq)
		fail("ibv_create_cq");
	side.mr = ibv_reg_mr(pd, side.bytes, sizeof(side.bytes),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!side.mr || (demand && !ibv_reg_mr(pd, others, sizeof(others),
						IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)))
		fail("ibv_reg_mr");
	attr.send_cq = attr.recv_cq = side.cq;
	side.qp = ibv_create_qp(pd, &attr);
	if (!side.qp)
		fail("ibv_create_qp");
	qp_connect(context);
}

static void one_round(void)
{
	struct ibv_sge from = { (uintptr_t)side.bytes[0], side.size, side.mr->lkey };
	struct ibv_sge to = { (uintptr_t)side.bytes[1], side.size, side.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1,
		.opcode = side.send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)side.bytes[1], side.mr->rkey } }, *bad_wr;
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	int wanted = side.send ? 2 : 1;
	struct ibv_wc wc[4];

	if (side.send && ibv_post_recv(side.qp, &recv, &bad_recv))
		fail("ibv_post_recv");
	if (ibv_post_send(side.qp, &wr, &bad_wr))
		fail("ibv_post_send");
	while (wanted > 0) {
		int n = ibv_poll_cq(side.cq, 4, wc);

		for (int i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				fail(ibv_wc_status_str(wc[i].status));
		wanted -= n;
	}
}

__attribute__((noinline)) void counted(void)
{
	for (int i = 0; i < COUNTED_ROUNDS; i++)
		one_round();
}

int main(int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], "send") && strcmp(argv[1], "write"))) {
		fprintf(stderr, "usage: rounds send|write [BYTES [demand]]\n");
		return 2;
	}
	side.send = !strcmp(argv[1], "send");
	side.size = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
	if (side.size > sizeof(side.bytes[0]))
		side.size = sizeof(side.bytes[0]);
	open_all(argc > 3);
	for (int i = 0; i < WARM_ROUNDS; i++)
		one_round();
	for (int i = 0; i < COUNTED_CALLS; i++)
		counted();
	return 0;
}
