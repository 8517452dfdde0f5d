/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that ends by exit(), without destroying anything, behind a message that it has
 * received: its acknowledgement, which waits for a later poll, leaves all the same. The
 * sender repeats nothing (a timeout of 0), so it would wait for ever.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 12, BYTES = 100, LIMIT_MS = 8000 };

#define must(cond) \
	((cond) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond), \
			     _exit(1)))

struct end {
	struct ibv_context *ctx;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t bytes[BYTES];
};

struct hello {
	uint32_t qpn;
	union ibv_gid gid;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void open_end(struct end *e, int peer, enum ibv_qp_state last)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					 .cap = { .max_send_wr = 1, .max_recv_wr = 1,
						  .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .path_mtu = IBV_MTU_1024,
				 .ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
					      .grh.hop_limit = 64 } };
	struct hello mine, theirs;
	struct ibv_pd *pd;

	must(list && list[0]);
	e->ctx = ibv_open_device(list[0]);
	must(e->ctx);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4, NULL, NULL, 0);
	must(pd && e->cq);
	e->mr = ibv_reg_mr(pd, e->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &init);
	must(e->mr && e->qp);
	must(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS));
	mine.qpn = e->qp->qp_num;
	must(!ibv_query_gid(e->ctx, 1, 0, &mine.gid));
	must(write(peer, &mine, sizeof(mine)) == sizeof(mine));
	must(read(peer, &theirs, sizeof(theirs)) == sizeof(theirs));
	a.qp_state = IBV_QPS_RTR;
	a.dest_qp_num = theirs.qpn;
	a.ah_attr.grh.dgid = theirs.gid;
	must(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	if (last == IBV_QPS_RTS)
		must(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
					       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC));
}

static void wait_for_one(struct end *e)
{
	uint64_t end = now_ms() + LIMIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		must(now_ms() < end);
	must(n == 1 && wc.status == IBV_WC_SUCCESS);
}

_Noreturn static void receiver(int peer)
{
	static struct end e;
	struct ibv_sge sge;
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	open_end(&e, peer, IBV_QPS_RTR);
	sge = (struct ibv_sge){ (uintptr_t)e.bytes, BYTES, e.mr->lkey };
	must(!ibv_post_recv(e.qp, &wr, &bad));
	must(write(peer, "", 1) == 1);
	wait_for_one(&e);
	exit(0);
}

_Noreturn static void sender(int peer)
{
	static struct end e;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1,
					.opcode = IBV_WR_SEND };
	char ready;

	open_end(&e, peer, IBV_QPS_RTS);
	sge = (struct ibv_sge){ (uintptr_t)e.bytes, BYTES, e.mr->lkey };
	must(read(peer, &ready, 1) == 1);
	must(!ibv_post_send(e.qp, &wr, &bad));
	wait_for_one(&e);
	_exit(0);
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fds[2], status;
		pid_t pids[2];

		must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
		for (int k = 0; k < 2; k++) {
			pids[k] = fork();
			must(pids[k] >= 0);
			if (!pids[k])
				k ? receiver(fds[1]) : sender(fds[0]);
		}
		close(fds[0]);
		close(fds[1]);
		for (int k = 0; k < 2; k++) {
			must(waitpid(pids[k], &status, 0) == pids[k]);
			must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		}
	}
	return 0;
}
