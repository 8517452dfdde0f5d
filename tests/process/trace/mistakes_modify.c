/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that do not change their state. */
#include "mistakes.h"

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                              \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |     \
	 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                              \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static struct ibv_qp *qp;
static struct ibv_qp_attr good;

/* One attribute is wrong, the mask is that of `to`. */
#define WRONG(to, mask, member, value, ...)                          \
	do {                                                         \
		struct ibv_qp_attr w = good;                         \
		w.qp_state = to;                                     \
		w.member = value;                                    \
		ibv_modify_qp(qp, &w, mask);                         \
		BECAUSE("ibv_modify_qp", "= EINVAL", __VA_ARGS__);   \
	} while (0)

static void masks(void)
{
	struct ibv_qp_attr a = good;

	a.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &a, TO_RTR);
	BECAUSE("ibv_modify_qp", "= EINVAL", "RESET -> RTR", "from RESET only INIT",
		"RESET -> INIT -> RTR");
	a.qp_state = IBV_QPS_INIT;
	ibv_modify_qp(qp, &a, TO_INIT & ~IBV_QP_PORT);
	BECAUSE("ibv_modify_qp", "= EINVAL", "PORT missing in attr_mask");
	ibv_modify_qp(qp, &a, TO_INIT | IBV_QP_QKEY);
	BECAUSE("ibv_modify_qp", "= EINVAL", "QKEY not allowed", "RESET -> INIT of RC");
	a.cur_qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &a, TO_INIT | IBV_QP_CUR_STATE);
	BECAUSE("ibv_modify_qp", "= EINVAL", "cur_qp_state is RTS", "is in RESET");
	WRONG(IBV_QPS_INIT, TO_INIT, port_num, 3, "port_num is 3", "ports 1 to 1");
	WRONG(IBV_QPS_INIT, TO_INIT, pkey_index, 7, "pkey_index is 7", "1 entries");
	WRONG(IBV_QPS_INIT, TO_INIT, qp_access_flags, 1 << 30, "no access rights");
	WRONG((enum ibv_qp_state)17, IBV_QP_STATE, port_num, 1, "no state");
}

void mistakes_modify(void)
{
	struct ibv_qp *ud = qp_new(IBV_QPT_UD);
	struct ibv_qp_attr a;

	qp = qp_new(IBV_QPT_RC);
	good = (struct ibv_qp_attr){ .port_num = 1, .path_mtu = IBV_MTU_1024,
				     .ah_attr = own_address(), .timeout = 8,
				     .dest_qp_num = qp->qp_num };
	masks();
	qp_to(qp, IBV_QPS_INIT, 0);
	a = good;
	a.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &a, TO_RTR & ~IBV_QP_AV & ~IBV_QP_RQ_PSN);
	BECAUSE("ibv_modify_qp", "= EINVAL", "AV|RQ_PSN missing", "INIT -> RTR of RC");
	WRONG(IBV_QPS_RTR, TO_RTR, path_mtu, 1024, "path_mtu is 1024", "IBV_MTU_4096 (5)");
	WRONG(IBV_QPS_RTR, TO_RTR, dest_qp_num, 1 << 24, "dest_qp_num is 16777216");
	WRONG(IBV_QPS_RTR, TO_RTR, ah_attr.grh.sgid_index, 200, "sgid_index is 200",
	      "GID table");
	WRONG(IBV_QPS_RTR, TO_RTR, ah_attr.port_num, 2, "no port 2");
	WRONG(IBV_QPS_RTR, TO_RTR, min_rnr_timer, 32, "min_rnr_timer is 32", "at most 31");
	WRONG(IBV_QPS_RTR, TO_RTR, max_dest_rd_atomic, 255, "max_dest_rd_atomic is 255",
	      "max_qp_rd_atom");
	WRONG(IBV_QPS_RTS, TO_RTS, timeout, 8, "INIT -> RTS", "RESET -> INIT -> RTR -> RTS");
	qp_to(qp, IBV_QPS_RTR, qp->qp_num);
	WRONG(IBV_QPS_RTS, TO_RTS, timeout, 32, "timeout is 32");
	WRONG(IBV_QPS_RTS, TO_RTS, retry_cnt, 8, "retry_cnt is 8");
	WRONG(IBV_QPS_RTS, TO_RTS, rnr_retry, 9, "rnr_retry is 9", "7: without end");
	WRONG(IBV_QPS_RTS, TO_RTS, max_rd_atomic, 200, "max_rd_atomic is 200");
	a.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &a, TO_RTS | IBV_QP_ALT_PATH);
	BECAUSE("ibv_modify_qp", "= EOPNOTSUPP", "IBV_QP_ALT_PATH", "no alternate paths");
	a.qp_state = IBV_QPS_ERR;
	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &a, TO_RTS);
	BECAUSE("ibv_modify_qp", "= EINVAL", "out of ERR it must go to RESET");
	a.qp_state = IBV_QPS_INIT;
	ibv_modify_qp(ud, &a, TO_INIT);
	BECAUSE("ibv_modify_qp", "= EINVAL", "QKEY missing", "of UD");
	NEED(!ibv_destroy_qp(qp) && !ibv_destroy_qp(ud));
}
