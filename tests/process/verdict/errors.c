/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errors MODE: a program that meets an error of RDMA, and handles it well or badly, for
 * `busbar exec --verdict`. Two queue pairs of this process are connected (in mode deaf: one of this
 * process and one of its child); a request with a key that does not exist fails with 'remote access
 * error'.
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64, RECEIVES = 3 };

struct place {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp, *other;
static _Alignas(64) char memory[4096];

static void need(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(9);
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
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	need(pd && cq && mr, "objects");
}

static struct ibv_qp *open_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 32, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	need(made != NULL, "ibv_create_qp");
	need(!ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS), "INIT");
	return made;
}

static void connect_qp(struct ibv_qp *of, uint32_t to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = to,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 1, .max_rd_atomic = 4,
		.timeout = 14, .retry_cnt = 1, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};

	need(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "ibv_query_gid");
	need(!ibv_modify_qp(of, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(of, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static void open_pair(void)
{
	qp = open_qp();
	other = open_qp();
	connect_qp(qp, other->qp_num);
	connect_qp(other, qp->qp_num);
}

static void close_pair(void)
{
	need(!ibv_destroy_qp(qp) && !ibv_destroy_qp(other), "ibv_destroy_qp");
}

static void post(struct ibv_qp *to, enum ibv_wr_opcode opcode, uint64_t wr_id, uint64_t addr,
		 uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)memory + BYTES, BYTES, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	need(!ibv_post_send(to, &wr, &bad), "ibv_post_send");
}

static void post_read(uint64_t wr_id, bool good)
{
	post(qp, IBV_WR_RDMA_READ, wr_id, (uintptr_t)memory, good ? mr->rkey : ~mr->rkey);
}

/* The status of the next completion. */
static enum ibv_wc_status wait_one(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	need(n == 1, "ibv_poll_cq");
	return wc.status;
}

static void need_status(enum ibv_wc_status status)
{
	enum ibv_wc_status is = wait_one();

	if (is == status)
		return;
	printf("status %d, not %d\n", is, status);
	exit(9);
}

static void wait_for_error_state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	do
		need(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	while (attr.qp_state != IBV_QPS_ERR);
}

/* A good request, and then one that fails. */
static void fail(void)
{
	post_read(1, true);
	need_status(IBV_WC_SUCCESS);
	post_read(2, false);
}

static void recover(void)
{
	close_pair();
	open_pair();
	post_read(3, true);
	need_status(IBV_WC_SUCCESS);
}

/* ---- the modes ---- */

static int no_error(void)
{
	post_read(1, true);
	need_status(IBV_WC_SUCCESS);
	close_pair();
	return 0;
}

static int handles(void)
{
	fail();
	need_status(IBV_WC_REM_ACCESS_ERR);
	close_pair();
	return 3;
}

static int hides(void)
{
	fail();
	wait_one();
	return 0;
}

static int leaves(void)
{
	fail();
	wait_one();
	_exit(0);
}

static int aborts(void)
{
	fail();
	wait_one();
	abort();
}

static int never_polls(void)
{
	fail();
	wait_for_error_state();
	return 0;
}

static int posts_on(void)
{
	fail();
	need_status(IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 0; i < 5; i++)
		post_read(10 + i, true);
	for (unsigned i = 0; i < 5; i++)
		need_status(IBV_WC_WR_FLUSH_ERR);
	return 0;
}

static int repeats(void)
{
	post(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 7, (uintptr_t)memory, ~mr->rkey);
	need_status(IBV_WC_REM_ACCESS_ERR);
	close_pair();
	open_pair();
	post(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, (uintptr_t)memory, mr->rkey);
	need_status(IBV_WC_SUCCESS);
	return 0;
}

static int recovers(void)
{
	fail();
	need_status(IBV_WC_REM_ACCESS_ERR);
	recover();
	return 0;
}

/* Nothing that is sent arrives (BUSBAR_FAULTS). */
static int is_partitioned(void)
{
	post_read(1, true);
	need_status(IBV_WC_RETRY_EXC_ERR);
	return 0;
}

/* A queue pair that is not connected takes no requests. */
static int is_refused(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	need(ibv_post_send(open_qp(), &wr, &bad) != 0, "a refused request");
	return 1;
}

/* Until a signal ends it. */
_Noreturn static int hangs(void)
{
	fail();
	need_status(IBV_WC_REM_ACCESS_ERR);
	puts("waits");
	fflush(stdout);
	for (;;)
		pause();
}

static int tells_late(void)
{
	const struct timespec more_than_ten = { 10, 200000000 };

	fail();
	need_status(IBV_WC_REM_ACCESS_ERR);
	nanosleep(&more_than_ten, NULL);
	return 1;
}

/* The event of the responder's queue pair. */
static int reads_event_first(void)
{
	struct ibv_async_event event;

	fail();
	need(!ibv_get_async_event(context, &event), "ibv_get_async_event");
	ibv_ack_async_event(&event);
	need_status(IBV_WC_REM_ACCESS_ERR);
	return 1;
}

static int fetches_all_at_once(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc[8];

	post_read(1, false);
	for (unsigned i = 0; i < 4; i++)
		post_read(2 + i, true);
	wait_for_error_state();
	/* When the call returns all flushes are there. */
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ERR");
	need(ibv_poll_cq(cq, 8, wc) == 5, "all completions in one call");
	return 1;
}

/* A queue pair that is not concerned goes on. */
static int others_go_on(void)
{
	struct ibv_qp *first = qp, *second;

	second = other;
	open_pair();
	post(first, IBV_WR_RDMA_READ, 2, (uintptr_t)memory, ~mr->rkey);
	need_status(IBV_WC_REM_ACCESS_ERR);
	need(!ibv_destroy_qp(first) && !ibv_destroy_qp(second), "ibv_destroy_qp");
	for (unsigned i = 0; i < 3; i++) {
		post_read(3 + i, true);
		need_status(IBV_WC_SUCCESS);
	}
	return 0;
}

/* ---- two processes ---- */

static void exchange(int in, int out, struct place *theirs)
{
	struct place mine = { qp->qp_num, mr->rkey, (uintptr_t)memory };

	need(write(out, &mine, sizeof(mine)) == sizeof(mine), "write");
	need(read(in, theirs, sizeof(*theirs)) == sizeof(*theirs), "read");
	connect_qp(qp, theirs->qpn);
}

static void post_receives(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (unsigned i = 0; i < RECEIVES; i++)
		need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Waits for messages, and for the other process to go. */
static int receiver(int in, int out)
{
	struct place theirs;
	char byte;

	open_device();
	qp = open_qp();
	post_receives();
	exchange(in, out, &theirs);
	need(write(out, "r", 1) == 1, "write");
	return (int)read(in, &byte, 1);
}

static int deaf(void)
{
	int to[2], from[2], status;
	struct place theirs;
	pid_t child;
	char ready;

	need(!pipe(to) && !pipe(from), "pipe");
	child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		close(to[1]);
		exit(receiver(to[0], from[1]));
	}
	open_device();
	qp = open_qp();
	exchange(from[0], to[1], &theirs);
	need(read(from[0], &ready, 1) == 1, "read");
	post(qp, IBV_WR_RDMA_READ, 2, theirs.addr, ~theirs.rkey);
	need_status(IBV_WC_REM_ACCESS_ERR);
	close(to[1]);
	need(waitpid(child, &status, 0) == child && !status, "the receiver");
	return 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} modes[] = {
		{ "no-error", no_error }, { "handles", handles },   { "hides", hides },
		{ "leaves", leaves },     { "aborts", aborts },     { "never-polls", never_polls },
		{ "posts-on", posts_on }, { "repeats", repeats },   { "recovers", recovers },
		{ "hangs", hangs },       { "tells-late", tells_late },
		{ "event-first", reads_event_first }, { "all-at-once", fetches_all_at_once },
		{ "others-go-on", others_go_on },     { "deaf", deaf },
		{ "refused", is_refused }, { "partitioned", is_partitioned },
	};

	for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		if (modes[i].run != deaf) {
			open_device();
			open_pair();
		}
		return modes[i].run();
	}
	fprintf(stderr, "usage: errors MODE\n");
	return 9;
}
