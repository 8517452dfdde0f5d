/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that complete before the receiver's program does anything: an adapter
 * acknowledges what is in the receiver's memory (InfiniBand specification volume 1,
 * 9.7.5.1.1). A stopped process does nothing at all. What was completed is received,
 * whatever happens afterwards.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "pair.h"

enum { FLAG = 60000, LENGTH = 64, SENDS = 3, RECEIVES = 8 };

static const struct side_options few = { .recv_wr = RECEIVES };

static void post_receives(struct side *s, uint32_t length)
{
	for (uint64_t i = 0; i < RECEIVES; i++)
		side_recv(s, i, i * 100, length);
}

static void start(struct pair *p, uint32_t length)
{
	pair_start(p, &few);
	post_receives(&p->b, length);
}

/* `b` must be stopped. */
static void send_and_complete(struct pair *p)
{
	for (uint64_t i = 0; i < SENDS; i++) {
		side_fill(&p->a, 0, LENGTH, i);
		side_send(&p->a, i, 0, LENGTH);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void expect_received(struct pair *p)
{
	for (uint64_t i = 0; i < SENDS; i++) {
		side_wait_ok(&p->b, RECV_CQ, i);
		side_check(&p->b, i * 100, LENGTH, i);
	}
}

static void a_small_send_completes_though_the_receiver_is_stopped(struct pair *p)
{
	start(p, LENGTH);
	side_stop(&p->b);
	send_and_complete(p);
	side_signal(&p->b, SIGCONT);
	expect_received(p);
}

static void receives_that_are_posted_again_are_good_for_more(struct pair *p)
{
	start(p, LENGTH);
	for (uint64_t i = 0; i < 40; i++) {
		side_stop(&p->b);
		side_send(&p->a, i, 0, LENGTH);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_signal(&p->b, SIGCONT);
		side_wait_ok(&p->b, RECV_CQ, i % RECEIVES);
		side_recv(&p->b, i % RECEIVES, 0, LENGTH);
	}
}

static void what_was_completed_is_received_though_its_sender_has_gone(struct pair *p)
{
	pair_start(p, &few);
	post_receives(&p->a, LENGTH);
	for (uint64_t i = 0; i < SENDS; i++) {
		side_fill(&p->b, 0, LENGTH, i);
		side_send(&p->b, i, 0, LENGTH);
		side_wait_ok(&p->b, SEND_CQ, i);
	}
	side_kill(&p->b);
	for (uint64_t i = 0; i < SENDS; i++) {
		side_wait_ok(&p->a, RECV_CQ, i);
		side_check(&p->a, i * 100, LENGTH, i);
	}
}

static void no_more_complete_than_there_are_receives(struct pair *p)
{
	start(p, LENGTH);
	side_stop(&p->b);
	for (uint64_t i = 0; i < RECEIVES + 2; i++)
		side_send(&p->a, i, 0, LENGTH);
	for (uint64_t i = 0; i < RECEIVES; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	for (uint64_t i = 0; i < RECEIVES; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	side_expect_none(&p->a, SEND_CQ);
	side_recv(&p->b, 100, 0, LENGTH);
	side_recv(&p->b, 101, 0, LENGTH);
	side_wait_ok(&p->a, SEND_CQ, RECEIVES);
	side_wait_ok(&p->a, SEND_CQ, RECEIVES + 1);
}

static void a_send_that_does_not_fit_waits_for_its_refusal(struct pair *p)
{
	start(p, LENGTH - 1);
	side_stop(&p->b);
	side_send(&p->a, 1, 0, LENGTH - 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_send(&p->a, 2, 0, LENGTH);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	side_wait_ok(&p->b, RECV_CQ, 0);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_LEN_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_INV_REQ_ERR);
}

static void one_without_rights_waits_for_its_refusal(struct pair *p)
{
	struct recv_req r = { .wr_id = 1, .num_sge = 1 };
	struct region read_only;

	pair_start(p, &few);
	read_only = side_reg(&p->b, 0, 4096, 0, 0);
	r.sge[0] = (struct ibv_sge){ read_only.addr, LENGTH, read_only.lkey };
	expect_eq(side_post_recv(&p->b, 0, &r, 1).ret, 0);
	side_stop(&p->b);
	side_send(&p->a, 1, 0, LENGTH);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_PROT_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_OP_ERR);
}

static void another_queue_pair_than_the_connected_one_has_no_promise(struct pair *p)
{
	struct connection c;
	struct send_req r;

	start(p, LENGTH);
	c = p->conn;
	c.timeout = 8; /* 1 ms */
	c.retry_cnt = 1;
	expect_eq(side_qp_create(&p->a, &few), 1);
	expect_eq(side_to_init(&p->a, 1, c.access_a), 0);
	expect_eq(side_to_rtr(&p->a, 1, &c, &p->b.gid, p->b.qpn[0], c.psn_b), 0);
	expect_eq(side_to_rts(&p->a, 1, &c, c.psn_a), 0);
	side_stop(&p->b);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, LENGTH);
	expect_eq(side_post_send(&p->a, 1, &r, 1).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	side_expect_none(&p->b, RECV_CQ);
	send_and_complete(p);
	expect_received(p);
}

static void a_write_behind_a_completed_send_comes_after_it(struct pair *p)
{
	struct send_req w;

	start(p, LENGTH);
	side_stop(&p->b);
	send_and_complete(p);
	side_set(&p->a, 0, LENGTH, 77);
	w = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 9, 0, 0, LENGTH);
	expect_eq(side_post_send(&p->a, 0, &w, 1).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	side_wait_ok(&p->a, SEND_CQ, 9);
	for (uint64_t i = 0; i < SENDS; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	for (unsigned i = 0; i < LENGTH; i++) {
		uint8_t byte;

		side_peek(&p->b, i, &byte, 1);
		expect_eq(byte, 77);
	}
}

/* Both wait for a flag that the other side's WRITE sets, without a call that could
 * take messages in. */
static int wait_for_flag(const struct end *e)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!__atomic_load_n(e->buffer + FLAG, __ATOMIC_ACQUIRE)) {
		if (now_ms() > end)
			return -1;
		sched_yield();
	}
	return 0;
}

static int fail_own_send(struct end *e, void *arg)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 8, 0xdead };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
					.num_sge = 1, .wr_id = 50 };

	return wait_for_flag(e) ? -1 : ibv_post_send(e->qp[0], &wr, &bad);
}

static int end_region(struct end *e, void *arg)
{
	int ret = wait_for_flag(e) ? -1 : ibv_dereg_mr(e->mr[1]);

	e->mr[1] = NULL;
	return ret;
}

static int reset(struct end *e, void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return wait_for_flag(e) ? -1 :
				  ibv_modify_qp(e->qp[0], &attr, IBV_QP_STATE);
}

/* Sends while `b` is stopped, then lets it do `what`. */
static void send_then(struct pair *p, int (*what)(struct end *e, void *arg))
{
	struct send_req w;

	expect_eq(side_qp_create(&p->a, &few), 1);
	expect_eq(side_qp_create(&p->b, &few), 1);
	pair_connect_qp(p, 1);
	side_set(&p->b, FLAG, 1, 0);
	side_set(&p->a, FLAG, 1, 1);
	side_start(&p->b, what, NULL, 0);
	side_stop(&p->b);
	send_and_complete(p);
	w = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 7, FLAG, FLAG, 1);
	expect_eq(side_post_send(&p->a, 1, &w, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 7);
	side_signal(&p->b, SIGCONT);
	expect_eq(side_join(&p->b, NULL, 0), 0);
}

static void an_error_of_the_receiver_comes_after_what_was_completed(struct pair *p)
{
	start(p, LENGTH);
	send_then(p, fail_own_send);
	expect_received(p);
	for (uint64_t i = SENDS; i < RECEIVES; i++) {
		struct ibv_wc wc = side_wait(&p->b, RECV_CQ);

		expect_eq(wc.wr_id, i);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	}
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	side_recv(&p->b, 60, 0, LENGTH);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
}

static void a_region_ends_after_what_was_completed(struct pair *p)
{
	struct region r;

	pair_start(p, &few);
	r = side_reg(&p->b, 0, 4096, IBV_ACCESS_LOCAL_WRITE, 0);
	expect_eq(r.index, 1);
	for (uint64_t i = 0; i < RECEIVES; i++) {
		struct recv_req q = { .wr_id = i, .num_sge = 1 };

		q.sge[0] = (struct ibv_sge){ r.addr + i * 100, LENGTH, r.lkey };
		expect_eq(side_post_recv(&p->b, 0, &q, 1).ret, 0);
	}
	send_then(p, end_region);
	expect_received(p);
	/* The next one is refused, and is told so. */
	side_send(&p->a, 20, 0, LENGTH);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_OP_ERR);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_PROT_ERR);
}

static void a_reset_comes_after_the_data_of_what_was_completed(struct pair *p)
{
	start(p, LENGTH);
	send_then(p, reset);
	for (uint64_t i = 0; i < SENDS; i++)
		side_check(&p->b, i * 100, LENGTH, i);
	side_expect_none(&p->b, RECV_CQ);
}

/* On a busy machine that thread may have no processor for seconds. */
static void who_polls_gets_flushed_receives_without_the_progress_thread(struct pair *p)
{
	struct send_req w;
	int status;
	pid_t thread;

	start(p, LENGTH);
	thread = thread_named(p->b.pid, "busbar-progress");
	expect(thread);
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL)) {
		printf("    not tried: ptrace: %s\n", strerror(errno));
		return;
	}
	expect_eq(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
	expect_eq(waitpid(thread, &status, __WALL), thread);
	w = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 8);
	w.rkey++;
	expect_eq(side_post_send(&p->a, 0, &w, 1).ret, 0);
	for (uint64_t i = 0; i < RECEIVES; i++) {
		struct ibv_wc wc = side_wait(&p->b, RECV_CQ);

		expect_eq(wc.wr_id, i);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	}
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	expect_eq(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.5.1.1",
		a_small_send_completes_though_the_receiver_is_stopped),
	CASE_IN(ONLY_TWO_PROCESSES, receives_that_are_posted_again_are_good_for_more),
	CASE_IN(ONLY_TWO_PROCESSES,
		what_was_completed_is_received_though_its_sender_has_gone),
	CASE_IN(ONLY_TWO_PROCESSES, no_more_complete_than_there_are_receives),
	CASE_IN(ONLY_TWO_PROCESSES, a_send_that_does_not_fit_waits_for_its_refusal),
	CASE_IN(ONLY_TWO_PROCESSES, one_without_rights_waits_for_its_refusal),
	CASE_IN(ONLY_TWO_PROCESSES,
		another_queue_pair_than_the_connected_one_has_no_promise),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.5",
		a_write_behind_a_completed_send_comes_after_it),
	CASE_IN(ONLY_TWO_PROCESSES,
		an_error_of_the_receiver_comes_after_what_was_completed),
	CASE_IN(ONLY_TWO_PROCESSES, a_region_ends_after_what_was_completed),
	CASE_IN(ONLY_TWO_PROCESSES,
		a_reset_comes_after_the_data_of_what_was_completed),
	CASE_IN(ONLY_TWO_PROCESSES,
		who_polls_gets_flushed_receives_without_the_progress_thread),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
