/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are killed, leave, stop for a while, or come back. Whatever is
 * outstanding ends with an error within the retry time; nothing hangs and
 * nothing is left behind.
 */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "pair.h"

static const struct side_options deep = { .send_wr = 1024, .recv_wr = 1024,
					  .cqe = 4096, .events = true,
					  .bytes = 1 << 20 };

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void short_retries(struct pair *p)
{
	p->conn.timeout = 14; /* 67 ms */
	p->conn.retry_cnt = 2;
}

/* Everything that was posted, in order: successes, one error, flushes. */
static void expect_end(struct pair *p, uint64_t first, uint64_t count)
{
	uint64_t start = now_ms();
	uint64_t limit = 4 * 67 * (p->conn.retry_cnt + 1u) + 2000;
	bool failed = false;

	for (uint64_t i = first; i < first + count; i++) {
		struct ibv_wc wc = side_wait(&p->a, SEND_CQ);

		expect_eq(wc.wr_id, i);
		/* A stream that the kernel ends for a dead process looks like one that was closed. */
		if (failed || (transport_under_test()->streams &&
			       wc.status == IBV_WC_WR_FLUSH_ERR)) {
			expect_status(wc, IBV_WC_WR_FLUSH_ERR);
			failed = true;
		} else if (transport_under_test()->streams &&
			   wc.status == IBV_WC_RNR_RETRY_EXC_ERR) {
			failed = true; /* the receives were used up before the death */
		} else if (wc.status != IBV_WC_SUCCESS) {
			expect_status(wc, IBV_WC_RETRY_EXC_ERR);
			failed = true;
		}
	}
	expect(failed);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	if (now_ms() - start > limit)
		fail("took %llu ms, more than %llu",
		     (unsigned long long)(now_ms() - start),
		     (unsigned long long)limit);
	side_expect_none(&p->a, SEND_CQ);
}

static void kill_with(struct pair *p, enum ibv_wr_opcode op, uint32_t length,
		      bool receives)
{
	short_retries(p);
	pair_start(p, &deep);
	for (uint64_t i = 0; receives && i < 3; i++)
		side_recv(&p->b, i, 0, 1 << 20);
	for (uint64_t i = 0; i < 200; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, op, i, 0, 0, length);

		if (i == 100)
			side_kill(&p->b);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	}
	expect_end(p, 0, 200);
}

static void small_sends_to_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_SEND, 16, true);
}

static void middle_sends_to_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_SEND, 16384, true);
}

static void large_sends_to_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_SEND, 1 << 20, true);
}

static void waiting_sends_to_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_SEND, 100, false);
}

static void writes_to_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_RDMA_WRITE, 4096, false);
}

static void reads_from_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_RDMA_READ, 4096, false);
}

static void writes_with_immediate_to_a_killed_peer_end_in_time(struct pair *p)
{
	kill_with(p, IBV_WR_RDMA_WRITE_WITH_IMM, 4096, false);
}

static void a_sleeping_sender_learns_of_the_death_by_an_event(struct pair *p)
{
	const bool streams = transport_under_test()->streams;
	struct send_req r;

	short_retries(p);
	pair_start(p, &deep);
	expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
	/* It waits: for a receive, or for the response of a process that stands still. */
	r = rdma_req(&p->a, &p->b, streams ? IBV_WR_RDMA_READ : IBV_WR_SEND, 0, 0, 0, 100);
	if (streams)
		side_stop(&p->b);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_kill(&p->b);
	expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
	expect_end(p, 0, 1);
}

static void a_receiver_is_not_disturbed_by_the_death_of_its_sender(struct pair *p)
{
	need_no_rnic("the end of a process is that of its streams");
	pair_start(p, &deep);
	side_recv(&p->a, 1, 0, 100);
	side_recv(&p->a, 2, 0, 100);
	side_send(&p->b, 3, 0, 100);
	side_wait_ok(&p->a, RECV_CQ, 1);
	side_kill(&p->b);
	side_expect_none(&p->a, RECV_CQ);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	expect_eq(side_async(&p->a, 0), -1);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	expect_status(side_wait(&p->a, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
}

enum { FLOOD = 200 };

static int flood(struct end *e, void *arg)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, *(uint32_t *)arg,
			       e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc[8];

	for (int posted = 0;;) {
		while (posted < FLOOD && !ibv_post_send(e->qp[0], &wr, &bad))
			posted++;
		ibv_poll_cq(e->cq[SEND_CQ], 8, wc);
	}
	return 0;
}

/* What is left of FLOOD receives when `done` were complete, of messages of `length` bytes: whole
 * messages; and then the end of the connection, where the receiver learns of it. */
static void expect_whole(struct pair *p, int done, uint32_t length)
{
	const bool streams = transport_under_test()->streams;
	bool flushed = false;

	while (done < FLOOD) {
		struct polled polled = side_poll(&p->a, RECV_CQ, streams ? 1 : 50,
						 streams ? WAIT_MS : QUIET_MS);

		if (polled.count <= 0)
			break;
		for (int k = 0; k < polled.count; k++, done++) {
			flushed |= streams && polled.wc[k].status == IBV_WC_WR_FLUSH_ERR;
			if (flushed) {
				expect_status(polled.wc[k], IBV_WC_WR_FLUSH_ERR);
				continue;
			}
			expect_status(polled.wc[k], IBV_WC_SUCCESS);
			expect_eq(polled.wc[k].byte_len, length);
		}
	}
	expect(!streams || done == FLOOD);
}

static void a_sender_killed_in_the_middle_leaves_only_whole_messages(struct pair *p)
{
	static const uint32_t lengths[] = { 50, 5000, 700000 };

	for (unsigned i = 0; i < 3; i++) {
		uint64_t posted = 0;

		pair_start(p, &deep);
		for (; posted < FLOOD; posted++)
			side_recv(&p->a, posted, 0, 1 << 20);
		side_fill(&p->b, 0, lengths[i], i);
		side_start(&p->b, flood, &lengths[i], sizeof(lengths[i]));
		for (uint64_t k = 0; k < 20; k++)
			expect_eq(side_wait_ok(&p->a, RECV_CQ, k).byte_len,
				  lengths[i]);
		side_kill(&p->b);
		free(p->b.thread);
		p->b.thread = NULL;
		expect_whole(p, 20, lengths[i]);
		/* All went to the same place, the last one too. */
		side_check(&p->a, 0, lengths[i], i);
		side_close(&p->a);
		pair_respawn(p);
	}
}

static void a_peer_that_starts_again_is_connected_with_new_queue_pairs(struct pair *p)
{
	short_retries(p);
	pair_start(p, &deep);
	for (uint64_t i = 0; i < 3; i++) {
		side_recv(&p->b, i, 0, 100);
		side_send(&p->a, i, 0, 100);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		/* It waits for a receive, where senders wait. */
		if (!transport_under_test()->streams)
			side_send(&p->a, 0, 0, 100);
		side_kill(&p->b);
		pair_respawn(p);
		side_open(&p->b, &deep);
		if (transport_under_test()->streams) {
			side_wait_state(&p->a, 0, IBV_QPS_ERR);
			side_send(&p->a, 0, 0, 100);
		}
		expect_end(p, 0, 1);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
		pair_connect_qp(p, 0);
	}
	side_recv(&p->b, 9, 0, 100);
	side_send(&p->a, 8, 0, 100);
	side_wait_ok(&p->b, RECV_CQ, 9);
	side_wait_ok(&p->a, SEND_CQ, 8);
}

static void a_peer_that_closes_its_device_looks_dead_and_can_return(struct pair *p)
{
	short_retries(p);
	pair_start(p, &deep);
	for (uint64_t i = 0; i < 3; i++) {
		side_recv(&p->b, i, 0, 100);
		side_send(&p->a, i, 0, 100);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_close(&p->b);
		/* What is sent before the end of the stream is known is complete when TCP has it. */
		if (transport_under_test()->streams)
			side_wait_state(&p->a, 0, IBV_QPS_ERR);
		side_send(&p->a, 5, 0, 100);
		expect_end(p, 5, 1);
		side_open(&p->b, &deep);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
		pair_connect_qp(p, 0);
	}
}

static void a_peer_that_stops_for_a_while_loses_nothing(struct pair *p)
{
	/* Stopped, not dead: no acknowledgement for longer than the timeout
	 * of a try would be, but within all tries. */
	p->conn.timeout = 18;
	pair_start(p, &deep);
	for (uint64_t i = 0; i < 600; i++)
		side_recv(&p->b, i, 0, 1000);
	side_stop(&p->b);
	for (uint64_t i = 0; i < 600; i++)
		side_send(&p->a, i, 0, 1000);
	sleep_ms(200);
	side_signal(&p->b, SIGCONT);
	for (uint64_t i = 0; i < 600; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	for (uint64_t i = 0; i < 600; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
}

#define CASE_SPARES(fn_) \
	{ .name = #fn_, .fn = fn_, .where = ONLY_TWO_PROCESSES, .spares = 3 }

static const struct test_case cases[] = {
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		small_sends_to_a_killed_peer_end_in_time),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		middle_sends_to_a_killed_peer_end_in_time),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		large_sends_to_a_killed_peer_end_in_time),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		waiting_sends_to_a_killed_peer_end_in_time),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		writes_to_a_killed_peer_end_in_time),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		reads_from_a_killed_peer_end_in_time),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.7.6.1.3",
		writes_with_immediate_to_a_killed_peer_end_in_time),
	CASE_IN(ONLY_TWO_PROCESSES,
		a_sleeping_sender_learns_of_the_death_by_an_event),
	CASE_IN(ONLY_TWO_PROCESSES,
		a_receiver_is_not_disturbed_by_the_death_of_its_sender),
	CASE_SPARES(a_sender_killed_in_the_middle_leaves_only_whole_messages),
	CASE_SPARES(a_peer_that_starts_again_is_connected_with_new_queue_pairs),
	CASE_IN(ONLY_TWO_PROCESSES,
		a_peer_that_closes_its_device_looks_dead_and_can_return),
	CASE_IN(ONLY_TWO_PROCESSES, a_peer_that_stops_for_a_while_loses_nothing),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
