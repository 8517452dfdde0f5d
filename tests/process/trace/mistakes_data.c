/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that are refused, and completions that tell of a failure. */
#include "mistakes.h"

static struct ibv_sge sge[3];

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, int num_sge, unsigned flags)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = opcode, .sg_list = sge,
				  .num_sge = num_sge,
				  .send_flags = flags | IBV_SEND_SIGNALED,
				  .wr.rdma.rkey = 0xabcdef };
	struct ibv_send_wr *bad;

	ibv_post_send(qp, &wr, &bad);
}

static void post_receive(struct ibv_qp *qp, int num_sge)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = num_sge }, *bad;

	ibv_post_recv(qp, &wr, &bad);
}

static void complete(void)
{
	struct ibv_wc wc;
	int found;

	while (!(found = ibv_poll_cq(cq, 1, &wc)))
		;
	NEED(found == 1);
}

static void refused(void)
{
	struct ibv_qp *rc = qp_new(IBV_QPT_RC), *ud = qp_new(IBV_QPT_UD);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_recv_wr recv = { .sg_list = sge, .num_sge = 2 }, *bad;

	post(rc, IBV_WR_SEND, 1, 0);
	BECAUSE("ibv_post_send", "= EINVAL", "is in RESET", "sending needs RTS");
	post_receive(rc, 1);
	BECAUSE("ibv_post_recv", "= EINVAL", "is in RESET", "from INIT on");
	qp_to(rc, IBV_QPS_RTS, rc->qp_num);
	qp_to(ud, IBV_QPS_RTS, 0);
	post(rc, IBV_WR_SEND, 3, 0);
	BECAUSE("ibv_post_send", "= EINVAL", "num_sge is 3", "max_send_sge 2");
	sge[0].length = sizeof(memory);
	post(rc, IBV_WR_SEND, 1, IBV_SEND_INLINE);
	BECAUSE("ibv_post_send", "= ", "65536 bytes with IBV_SEND_INLINE", "max_inline_data");
	sge[0].length = 8;
	post(ud, IBV_WR_RDMA_READ, 1, 0);
	BECAUSE("ibv_post_send", "= E", "RDMA_READ is not possible", "type UD", "only SEND");
	post(ud, IBV_WR_SEND, 1, 0);
	BECAUSE("ibv_post_send", "= EINVAL", "wr.ud.ah is NULL");
	post_receive(rc, 3);
	BECAUSE("ibv_post_recv", "= EINVAL", "num_sge is 3", "at most 2");
	for (int i = 0; i < 5; i++)
		post_receive(rc, 1);
	BECAUSE("ibv_post_recv", "= ENOMEM", "receive queue is full (4");
	NEED(srq);
	ibv_post_srq_recv(srq, &recv, &bad);
	BECAUSE("ibv_post_srq_recv", "= EINVAL", "num_sge is 2", "shared receive queue");
	NEED(!ibv_destroy_srq(srq) && !ibv_destroy_qp(rc) && !ibv_destroy_qp(ud));
}

static struct ibv_qp *pair[2];

static void pair_start(void)
{
	pair[0] = qp_new(IBV_QPT_RC);
	pair[1] = qp_new(IBV_QPT_RC);
	qp_to(pair[0], IBV_QPS_RTS, pair[1]->qp_num);
	qp_to(pair[1], IBV_QPS_RTS, pair[0]->qp_num);
}

static void pair_end(void)
{
	NEED(!ibv_destroy_qp(pair[0]) && !ibv_destroy_qp(pair[1]));
}

static void completions(void)
{
	pair_start();
	for (int i = 0; i < 5; i++)
		post(pair[0], IBV_WR_SEND, 1, 0); /* nobody receives */
	BECAUSE("ibv_post_send", "= ENOMEM", "send queue is full (max_send_wr 4)");
	complete();
	BECAUSE("ibv_poll_cq", "= 1", "wr_id 0x7", "RNR_RETRY_EXC_ERR",
		"no receive posted within rnr_retry");
	complete();
	BECAUSE("ibv_poll_cq", "= 1", "WR_FLUSH_ERR", "first completion that failed");
	pair_end();
	pair_start();
	post(pair[0], IBV_WR_RDMA_WRITE, 1, 0);
	complete();
	BECAUSE("ibv_poll_cq", "= 1", "REM_ACCESS_ERR", "rkey wrong");
	pair_end();
	pair_start();
	sge[0].lkey = 0xdead00;
	post_receive(pair[1], 1);
	post(pair[0], IBV_WR_SEND, 1, 0);
	complete();
	BECAUSE("ibv_poll_cq", "= 1", "LOC_PROT_ERR", "wrong lkey");
	sge[0].lkey = mr->lkey;
	pair_end();
	/* The other queue pair is not ready. */
	pair[0] = qp_new(IBV_QPT_RC);
	pair[1] = qp_new(IBV_QPT_RC);
	qp_to(pair[0], IBV_QPS_RTS, pair[1]->qp_num);
	post(pair[0], IBV_WR_SEND, 1, 0);
	complete();
	BECAUSE("ibv_poll_cq", "= 1", "RETRY_EXC_ERR", "not in RTR or RTS");
	pair_end();
}

void mistakes_data(void)
{
	for (int i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)memory, .length = 8,
					   .lkey = mr->lkey };
	refused();
	completions();
}
