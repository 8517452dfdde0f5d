/* SPDX-License-Identifier: BSD-2-Clause */
#include "join.h"

#include <pthread.h>

#include "pair.h"
#include "stream.h"

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	expect_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
						IBV_QP_ACCESS_FLAGS), 0);
}

static void to_rts(struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = to,
		.min_rnr_timer = 1,
		.ah_attr = { .port_num = 1, .is_global = 1, .dlid = 1, .grh.hop_limit = 64 },
	};

	expect_eq(ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid), 0);
	expect_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC |
						IBV_QP_MIN_RNR_TIMER), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7,
				  .rnr_retry = 7 };
	expect_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

/* A thread that is cancelled meanwhile has connected them before it ends. */
static void over_stream(struct ibv_qp *a, struct ibv_qp *b)
{
	struct end e = { .qp = { a, b } };
	int fd[2], before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	stream_sockets(fd);
	expect_eq(stream_attach(&e, 0, fd[0], &(struct stream_how){ .initiator = true }), 0);
	expect_eq(stream_attach(&e, 1, fd[1], &(struct stream_how){ 0 }), 0);
	pthread_setcancelstate(before, NULL);
}

void join(struct ibv_qp *a, struct ibv_qp *b)
{
	to_init(a);
	if (b != a)
		to_init(b);
	if (transport_under_test()->streams) {
		over_stream(a, b);
		return;
	}
	to_rts(a, b->qp_num);
	if (b != a)
		to_rts(b, a->qp_num);
}
