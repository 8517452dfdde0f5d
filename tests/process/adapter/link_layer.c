/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BUSBAR_LINK_LAYER: a port that says it is one of InfiniBand, and connections and
 * datagrams of programs that name their peer by its LID, without a global routing header.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_S 30
enum { BYTES = 64, GRH = 40, QKEY = 0x1234 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t buffer[2 * (GRH + BYTES)];
static uint16_t lid;

static void expect_that(int line, const char *what, int holds)
{
	if (holds)
		return;
	printf("%s:%d: failed: %s (%s)\n", __FILE__, line, what, strerror(errno));
	exit(1);
}
#define expect(condition) expect_that(__LINE__, #condition, !!(condition))

static struct ibv_qp *make(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &a);

	expect(qp);
	return qp;
}

static void ready(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	const bool ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
		.path_mtu = IBV_MTU_4096, .dest_qp_num = peer->qp_num,
		.max_rd_atomic = 1, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .dlid = lid, .port_num = 1 },
	};

	expect(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	a.qp_state = IBV_QPS_RTR;
	expect(!ibv_modify_qp(qp, &a, IBV_QP_STATE |
			      (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN) |
			      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	a.qp_state = IBV_QPS_RTS;
	expect(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

static void send_and_receive(struct ibv_qp *from, struct ibv_qp *to, struct ibv_ah *ah)
{
	uint8_t *source = buffer, *target = buffer + GRH + BYTES;
	const uint32_t before = ah ? GRH : 0;
	struct ibv_sge out = { (uintptr_t)source, BYTES, mr->lkey };
	struct ibv_sge in = { (uintptr_t)target, before + BYTES, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	time_t end = time(NULL) + LIMIT_S;
	struct ibv_wc wc;
	int done = 0;

	if (ah) {
		send.wr.ud.ah = ah;
		send.wr.ud.remote_qpn = to->qp_num;
		send.wr.ud.remote_qkey = QKEY;
	}
	memset(source, from->qp_type + 1, BYTES);
	memset(target, 0, before + BYTES);
	expect(!ibv_post_recv(to, &recv, &bad_recv));
	expect(!ibv_post_send(from, &send, &bad_send));
	while (done < 2 && time(NULL) < end) {
		int n = ibv_poll_cq(cq, 1, &wc);

		expect(n == 0 || wc.status == IBV_WC_SUCCESS);
		done += n;
	}
	expect(done == 2);
	expect(!memcmp(source, target + before, BYTES));
}

static void exchange(enum ibv_qp_type type)
{
	struct ibv_ah_attr attr = { .dlid = lid, .port_num = 1 };
	struct ibv_qp *a = make(type), *b = make(type);
	struct ibv_ah *ah = NULL;

	ready(a, b);
	ready(b, a);
	if (type == IBV_QPT_UD)
		expect((ah = ibv_create_ah(pd, &attr)));
	send_and_receive(a, b, ah);
	expect(!ah || !ibv_destroy_ah(ah));
	expect(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_gid_entry gid;
	struct ibv_port_attr port;

	setenv("BUSBAR_LINK_LAYER", "infiniband", 1);
	list = ibv_get_device_list(NULL);
	expect(list && list[0] && (context = ibv_open_device(list[0])));
	expect(!ibv_query_port(context, 1, &port));
	expect(port.link_layer == IBV_LINK_LAYER_INFINIBAND);
	expect(!(port.flags & IBV_QPF_GRH_REQUIRED));
	expect(!(port.port_cap_flags & IBV_PORT_IP_BASED_GIDS));
	lid = port.lid;
	expect(lid > 0 && lid < 0xc000); /* a unicast LID */
	expect(!ibv_query_gid_ex(context, 1, 0, &gid, 0));
	expect(gid.gid_type == IBV_GID_TYPE_IB);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE) : NULL;
	expect(pd && cq && mr);
	exchange(IBV_QPT_RC);
	exchange(IBV_QPT_UC);
	exchange(IBV_QPT_UD);
	expect(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
	expect(!ibv_close_device(context));
	ibv_free_device_list(list);
	return 0;
}
