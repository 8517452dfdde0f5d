/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * both_devices_move_data_from_one_process: usage both DEVICE DEVICE. One thread
 * per device, each with two connected queue pairs on it: SEND, RDMA WRITE and
 * READ, woken by events, posted by both interfaces. Every object is made and
 * unmade, so that every kind of handle finds its owner.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 20
#define BYTES 8192

#define CHECK(side, what)                                                  \
	do {                                                               \
		if (!(what)) {                                             \
			printf("%s: line %d: not so: %s (%s)\n",           \
			       (side)->name, __LINE__, #what,              \
			       strerror(errno));                           \
			exit(1);                                           \
		}                                                          \
	} while (0)

struct side {
	const char *name;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[2];
	union ibv_gid gid;
	uint8_t gid_index;
	unsigned int events;
	char *memory; /* [0, BYTES) is sent, [BYTES, 2 * BYTES) arrives */
};

static pthread_barrier_t both_are_ready;

static void find_address(struct side *s)
{
	struct ibv_gid_entry e;

	/* An IPv4 address that is not the loopback's. */
	for (uint32_t i = 0; !ibv_query_gid_ex(s->context, 1, i, &e, 0); i++) {
		static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

		if (memcmp(e.gid.raw, mapped, 12) || e.gid.raw[12] == 127 ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		s->gid = e.gid;
		s->gid_index = (uint8_t)i;
		return;
	}
	printf("%s has no RoCE v2 address\n", s->name);
	exit(1);
}

static struct ibv_qp *make_qp(struct side *s)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->context, &attr);

	CHECK(s, qp && ibv_qp_to_qp_ex(qp));
	return qp;
}

static void connect_qp(struct side *s, struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_init_attr init;

	CHECK(s, !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						   IBV_QP_PORT |
						   IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = s->gid,
				      .sgid_index = s->gid_index,
				      .hop_limit = 4 } },
	};
	CHECK(s, !ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	CHECK(s, !ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
					IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_MAX_QP_RD_ATOMIC));
	CHECK(s, !ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	CHECK(s, attr.qp_state == IBV_QPS_RTS);
}

static void open_side(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	CHECK(s, list);
	for (size_t i = 0; list[i] && !s->context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), s->name))
			s->context = ibv_open_device(list[i]);
	CHECK(s, s->context);
	ibv_free_device_list(list);
	CHECK(s, !posix_memalign((void **)&s->memory, 4096, 2 * BYTES));
	s->pd = ibv_alloc_pd(s->context);
	s->channel = ibv_create_comp_channel(s->context);
	CHECK(s, s->pd && s->channel);
	s->cq = ibv_create_cq(s->context, 16, s, s->channel, 0);
	s->srq = ibv_create_srq(s->pd, &srq);
	s->mr = ibv_reg_mr(s->pd, s->memory, 2 * BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	CHECK(s, s->cq && s->srq && s->mr);
	find_address(s);
	for (int i = 0; i < 2; i++)
		s->qp[i] = make_qp(s);
	for (int i = 0; i < 2; i++)
		connect_qp(s, s->qp[i], s->qp[!i]->qp_num);
}

static void close_side(struct side *s)
{
	ibv_ack_cq_events(s->cq, s->events);
	for (int i = 0; i < 2; i++)
		CHECK(s, !ibv_destroy_qp(s->qp[i]));
	CHECK(s, !ibv_destroy_srq(s->srq));
	CHECK(s, !ibv_destroy_cq(s->cq));
	CHECK(s, !ibv_destroy_comp_channel(s->channel));
	CHECK(s, !ibv_dereg_mr(s->mr));
	CHECK(s, !ibv_dealloc_pd(s->pd));
	CHECK(s, !ibv_close_device(s->context));
	free(s->memory);
}

/* Sleeps for the first completion, which was asked for, and polls for the rest. */
static void wait_for(struct side *s, int count)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	CHECK(s, !ibv_get_cq_event(s->channel, &cq, &arg));
	CHECK(s, cq == s->cq && arg == s);
	s->events++;
	while (count > 0) {
		int n = ibv_poll_cq(s->cq, 1, &wc);

		CHECK(s, n >= 0);
		if (n == 0) {
			sched_yield();
			continue;
		}
		if (wc.status)
			printf("%s: %s\n", s->name,
			       ibv_wc_status_str(wc.status));
		CHECK(s, wc.status == IBV_WC_SUCCESS);
		count--;
	}
}

/* By ibv_post_send(), or by the builders in every other round. */
static void post(struct side *s, enum ibv_wr_opcode op, bool builders)
{
	uint64_t here = (uintptr_t)s->memory, there = here + BYTES;
	bool read = op == IBV_WR_RDMA_READ;
	struct ibv_sge sge = { read ? there : here, BYTES, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { read ? here : there, s->mr->rkey },
	};
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(s->qp[0]);

	if (!builders) {
		CHECK(s, !ibv_post_send(s->qp[0], &wr, &bad));
		return;
	}
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (op == IBV_WR_SEND)
		ibv_wr_send(qp);
	else if (read)
		ibv_wr_rdma_read(qp, s->mr->rkey, here);
	else
		ibv_wr_rdma_write(qp, s->mr->rkey, there);
	ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
	CHECK(s, !ibv_wr_complete(qp));
}

static void *run(void *arg)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	struct side *s = arg;

	open_side(s);
	pthread_barrier_wait(&both_are_ready);
	for (int i = 0; i < ROUNDS; i++) {
		enum ibv_wr_opcode op = ops[i % 3];
		struct ibv_sge sge = { (uintptr_t)s->memory + BYTES, BYTES,
				       s->mr->lkey };
		struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

		for (int b = 0; b < BYTES; b++)
			s->memory[b] = (char)(b * 7 + i);
		memset(s->memory + BYTES, 0, BYTES);
		if (op == IBV_WR_SEND)
			CHECK(s, !ibv_post_srq_recv(s->srq, &wr, &bad));
		CHECK(s, !ibv_req_notify_cq(s->cq, 0));
		post(s, op, i / 3 % 2);
		wait_for(s, op == IBV_WR_SEND ? 2 : 1);
		CHECK(s, !memcmp(s->memory, s->memory + BYTES, BYTES));
	}
	/* Neither is gone before both have used it. */
	pthread_barrier_wait(&both_are_ready);
	printf("%s: %d messages of %d bytes, %u events\n", s->name, ROUNDS,
	       BYTES, s->events);
	close_side(s);
	return NULL;
}

int main(int argc, char **argv)
{
	struct side side[2] = { 0 };
	pthread_t thread[2];

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(40);
	if (ibv_fork_init()) {
		printf("ibv_fork_init failed\n");
		return 1;
	}
	pthread_barrier_init(&both_are_ready, NULL, 2);
	for (int i = 0; i < 2; i++) {
		side[i].name = argv[1 + i];
		pthread_create(&thread[i], NULL, run, &side[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
