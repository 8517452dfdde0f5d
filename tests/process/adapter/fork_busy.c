/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() while other threads are inside of the adapter, in all of its parts: none of
 * its locks stays with a thread that the child does not have.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "join.h"
#include "pair.h"

enum { FORKS = 25, BYTES = 4096 };

/* Makes something and takes it away again. */
typedef void turn_fn(struct end *e);

static void region(struct end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buffer, BYTES,
				       IBV_ACCESS_LOCAL_WRITE |
					       IBV_ACCESS_REMOTE_WRITE);

	expect(mr);
	expect_eq(ibv_dereg_mr(mr), 0);
}

static void window(struct end *e)
{
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);

	expect(mw);
	expect_eq(ibv_dealloc_mw(mw), 0);
}

static void device_memory(struct end *e)
{
	struct ibv_alloc_dm_attr a = { .length = BYTES };
	struct ibv_dm *dm = ibv_alloc_dm(e->ctx, &a);
	struct ibv_mr *mr = dm ? ibv_reg_dm_mr(e->pd, dm, 0, BYTES,
					       IBV_ACCESS_ZERO_BASED) : NULL;

	expect(mr);
	expect_eq(ibv_dereg_mr(mr), 0);
	expect_eq(ibv_free_dm(dm), 0);
}

static void target(struct end *e)
{
	struct ibv_xrcd_init_attr x = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(e->ctx, &x);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp *qp = xrcd ? ibv_create_qp_ex(e->ctx, &init) : NULL;

	expect(qp);
	expect_eq(ibv_destroy_qp(qp), 0);
	expect_eq(ibv_close_xrcd(xrcd), 0);
}

static void group(struct end *e)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 7 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = e->cq[0], .recv_cq = e->cq[1],
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
	uint16_t run = (uint16_t)getpid();

	memcpy(gid.raw + 14, &run, sizeof(run));
	expect(qp);
	expect_eq(ibv_attach_mcast(qp, &gid, 0), 0);
	expect_eq(ibv_detach_mcast(qp, &gid, 0), 0);
	expect_eq(ibv_destroy_qp(qp), 0);
}

/* A message over a stream. */
static void stream(struct end *e)
{
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp[2] = { ibv_create_qp(e->pd, &init), ibv_create_qp(e->pd, &init) };
	struct ibv_sge sge = { (uintptr_t)e->buffer, 8, e->mr[0]->lkey };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 };
	const uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc = { 0 };
	int n = 0;

	expect(cq && qp[0] && qp[1]);
	join(qp[0], qp[1]);
	expect_eq(ibv_post_recv(qp[1], &receive, &(struct ibv_recv_wr *){ NULL }), 0);
	expect_eq(ibv_post_send(qp[0], &send, &(struct ibv_send_wr *){ NULL }), 0);
	while (!n && now_ms() < end)
		n = ibv_poll_cq(cq, 1, &wc);
	expect_eq(n, 1);
	expect_status(wc, IBV_WC_SUCCESS);
	expect_eq(ibv_destroy_qp(qp[0]), 0);
	expect_eq(ibv_destroy_qp(qp[1]), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
}

static void device(struct end *e)
{
	struct ibv_context *ctx = ibv_open_device(e->ctx->device);
	union ibv_gid gid;

	expect(ctx);
	expect_eq(ibv_query_gid(ctx, 1, 0, &gid), 0);
	expect_eq(ibv_close_device(ctx), 0);
}

static void queue(struct end *e)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->ctx);
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 4, NULL, ch, 0);
	struct ibv_wc wc;

	expect(ch && cq);
	expect_eq(ibv_req_notify_cq(cq, 0), 0);
	expect_eq(ibv_poll_cq(cq, 1, &wc), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	expect_eq(ibv_destroy_comp_channel(ch), 0);
}

enum { TURNS = 7 };
static turn_fn *const on_any[TURNS] = { region, device_memory, device, queue,
					window, target, group };
static turn_fn *const on_rnic[TURNS] = { region, device_memory, device, queue, stream };

/* At most TURNS, NULL at the end. */
static turn_fn *const *turns(void)
{
	return transport_under_test()->streams ? on_rnic : on_any;
}

struct worker {
	struct end *e;
	turn_fn *turn;
	pthread_t thread;
};

static atomic_bool stop;

static void *work(void *arg)
{
	const struct worker *w = arg;

	while (!stop)
		w->turn(w->e);
	return NULL;
}

static int use_all(void)
{
	static struct end end;
	struct side s = { .end = &end };

	alarm(30);
	memset(&end, 0, sizeof(end));
	side_open(&s, NULL);
	for (int i = 0; i < TURNS && turns()[i]; i++)
		turns()[i](&end);
	side_close(&s);
	return 0;
}

static void a_child_of_a_busy_process_can_use_everything(struct pair *p)
{
	struct worker w[TURNS];
	int count = 0;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	/* Neither lets a child of several threads start any. */
	exit(77);
#endif
	side_open(&p->a, NULL);
	for (; count < TURNS && turns()[count]; count++) {
		w[count] = (struct worker){ p->a.end, turns()[count], 0 };
		expect_eq(pthread_create(&w[count].thread, NULL, work, &w[count]), 0);
	}
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(use_all());
		expect_eq(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail("child %d ended with status 0x%x", i, status);
	}
	stop = true;
	for (int i = 0; i < count; i++)
		pthread_join(w[i].thread, NULL);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS, a_child_of_a_busy_process_can_use_everything),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
