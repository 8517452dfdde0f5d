/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stall [ROUNDS [MILLISECONDS]]: two queue pairs of this process, of which one READs from memory on
 * demand. In each round it READs from a page that was never used, and after these milliseconds (1)
 * once more from there. Prints how many milliseconds all rounds took, without what the program
 * slept. The data is checked.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, BYTES = 100 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void need(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && *list, "device");
	context = ibv_open_device(*list);
	need(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	need(pd && cq, "objects");
}

static struct ibv_qp *open_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	need(qp != NULL, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), "INIT");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *to)
{
	/* The smallest RNR delay is 1.28 ms. */
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = to->qp_num,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 14, .max_rd_atomic = 4,
		.timeout = 1, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};

	need(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "ibv_query_gid");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static struct ibv_mr *region(size_t bytes, int access)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	need(at != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(pd, at, bytes, access);
	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void post_read(struct ibv_qp *qp, const struct ibv_mr *to, const struct ibv_mr *from,
		      size_t at)
{
	struct ibv_sge sge = { (uintptr_t)to->addr + at, BYTES, to->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)from->addr + at, from->rkey },
	}, *bad;

	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void finish(unsigned count)
{
	struct ibv_wc wc;

	while (count) {
		int n = ibv_poll_cq(cq, 1, &wc);

		need(n >= 0, "ibv_poll_cq");
		if (n && wc.status != IBV_WC_SUCCESS) {
			printf("completion with %s\n", ibv_wc_status_str(wc.status));
			exit(1);
		}
		count -= (unsigned)n;
	}
}

/* Microseconds, without the time between both. */
static uint64_t round_trip(struct ibv_qp *qp, const struct ibv_mr *to, const struct ibv_mr *from,
			   size_t at, long interval_ms)
{
	const struct timespec interval = { 0, interval_ms * 1000000 };
	uint64_t began_us = now_us(), slept_us;

	memset((char *)from->addr + at, (int)(at / PAGE) + 1, 2 * BYTES);
	post_read(qp, to, from, at);
	slept_us = now_us();
	nanosleep(&interval, NULL);
	slept_us = now_us() - slept_us;
	post_read(qp, to, from, at + BYTES);
	finish(2);
	need(!memcmp((char *)from->addr + at, (char *)to->addr + at, 2 * BYTES), "data");
	return now_us() - began_us - slept_us;
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	long interval_ms = argc > 2 ? atol(argv[2]) : 1;
	struct ibv_mr *to, *from;
	struct ibv_qp *a, *b;
	uint64_t us = 0;

	open_device();
	from = region(rounds * PAGE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	to = region(rounds * PAGE, IBV_ACCESS_LOCAL_WRITE);
	a = open_qp();
	b = open_qp();
	connect_qp(a, b);
	connect_qp(b, a);
	for (size_t i = 0; i < rounds; i++)
		us += round_trip(a, to, from, i * PAGE, interval_ms);
	printf("%ju ms\n", (uintmax_t)(us + 999) / 1000);
	return ibv_destroy_qp(a) || ibv_destroy_qp(b) || ibv_dereg_mr(to) || ibv_dereg_mr(from) ||
	       ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context);
}
