/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: each goes up when it should, by how much it should, and no other
 * one does. They are read from outside, as `busbar devices` reads them.
 */
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "look.h"

static const struct side_options atomics = {
	.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

enum { QKEY = 0x11111111, GRH = 40 };

static const char *counter_name(int place)
{
#define NAME(name, at, text) [at] = (text),
	static const char *const names[HCA_QP_COUNTERS] = {
		HCA_QP_COUNTER_LIST(NAME)
	};

	return names[place] ? names[place] : "an unused place";
}

/* Pairs of counter and value, ended by -1; every other counter has to be 0. */
static void expect_counters(const struct side *s, int qp, ...)
{
	struct hca_qp_view q = look_qp(s, qp);
	uint64_t want[HCA_QP_COUNTERS] = { 0 };
	va_list args;
	int place;

	va_start(args, qp);
	while ((place = va_arg(args, int)) >= 0)
		want[place] = va_arg(args, uint64_t);
	va_end(args);
	for (int i = 0; i < HCA_QP_COUNTERS; i++)
		if (q.counters[i] != want[i])
			fail("%s of qp 0x%x is %llu, expected %llu",
			     counter_name(i), q.qpn,
			     (unsigned long long)q.counters[i],
			     (unsigned long long)want[i]);
}
#define IS(counter, value) HCA_##counter, (uint64_t)(value)

static void post(struct side *s, const struct send_req *r)
{
	expect_eq(side_post_send(s, 0, r, 1).ret, 0);
}

static void messages_and_bytes_are_counted_on_both_sides(struct pair *p)
{
	/* In the slot, in the data area, pulled. */
	static const uint32_t lengths[] = { 0, 8, 96, 1000, 40000 };
	uint64_t bytes = 0;

	pair_start(p, NULL);
	for (unsigned i = 0; i < 5; i++) {
		side_recv(&p->b, i, 0, 60000);
		side_send(&p->a, i, 0, lengths[i]);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		bytes += lengths[i];
	}
	expect_counters(&p->a, 0, IS(TX_SENDS, 5), IS(TX_SEND_BYTES, bytes), -1);
	expect_counters(&p->b, 0, IS(RX_SENDS, 5), IS(RX_SEND_BYTES, bytes), -1);
}

static void unsignaled_sends_are_counted_too(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL);
	r = send_req(&p->a, IBV_WR_SEND_WITH_IMM, 1, 0, 100);
	r.flags = 0;
	for (uint64_t i = 0; i < 3; i++) {
		side_recv(&p->b, i, 0, 100);
		post(&p->a, &r);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	side_recv(&p->b, 9, 0, 100);
	side_send(&p->a, 9, 0, 10);
	side_wait_ok(&p->b, RECV_CQ, 9);
	side_wait_ok(&p->a, SEND_CQ, 9);
	expect_counters(&p->a, 0, IS(TX_SENDS_IMM, 3),
			IS(TX_SEND_IMM_BYTES, 300), IS(TX_SENDS, 1),
			IS(TX_SEND_BYTES, 10), -1);
	expect_counters(&p->b, 0, IS(RX_SENDS, 4), IS(RX_SEND_BYTES, 310), -1);
}

static void one_sided_operations_are_counted_at_the_initiator(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE |
					      IBV_ACCESS_REMOTE_READ |
					      IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &atomics);
	side_recv(&p->b, 1, 0, 0);
	for (unsigned i = 0; i < 7; i++) {
		uint32_t length = i < 4 ? 1000 * (i + 1) : 8;
		struct send_req r = rdma_req(&p->a, &p->b, ops[i], i, 0, 0, length);

		post(&p->a, &r);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	side_wait_ok(&p->b, RECV_CQ, 1);
	expect_counters(&p->a, 0, IS(TX_WRITES, 2), IS(TX_WRITE_BYTES, 3000),
			IS(TX_READS, 1), IS(TX_READ_BYTES, 3000),
			IS(TX_WRITES_IMM, 1), IS(TX_WRITE_IMM_BYTES, 4000),
			IS(TX_COMPARE_SWAPS, 1), IS(TX_COMPARE_SWAP_BYTES, 8),
			IS(TX_FETCH_ADDS, 2), IS(TX_FETCH_ADD_BYTES, 16), -1);
	/* The target does not run for WRITE and READ, so it cannot count them. */
	expect_counters(&p->b, 0, IS(RX_WRITES_IMM, 1),
			IS(RX_WRITE_IMM_BYTES, 4000), IS(RX_ATOMICS, 3), -1);
}

static void waiting_for_a_receive_is_counted_as_often_on_both_sides(struct pair *p)
{
	struct hca_qp_view a, b;

	p->conn.min_rnr_timer = 10; /* 480 us */
	pair_start(p, NULL);
	side_send(&p->a, 1, 0, 10);
	side_expect_none(&p->a, SEND_CQ);
	side_recv(&p->b, 1, 0, 100);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
	a = look_qp(&p->a, 0);
	b = look_qp(&p->b, 0);
	expect(b.counters[HCA_RX_RNR_SENT] > 0);
	expect_counters(&p->a, 0, IS(TX_SENDS, 1), IS(TX_SEND_BYTES, 10),
			IS(TX_RNR_RECEIVED, b.counters[HCA_RX_RNR_SENT]),
			IS(TX_REPEATED, a.counters[HCA_TX_RNR_RECEIVED]), -1);
	expect_counters(&p->b, 0, IS(RX_SENDS, 1), IS(RX_SEND_BYTES, 10),
			IS(RX_RNR_SENT, a.counters[HCA_TX_RNR_RECEIVED]), -1);
}

static void giving_up_after_rnr_is_counted_with_the_flushes(struct pair *p)
{
	p->conn.rnr_retry = 2;
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 4; i++)
		side_send(&p->a, i, 0, 10);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RNR_RETRY_EXC_ERR);
	for (int i = 0; i < 3; i++)
		expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(look_qp(&p->a, 0).counters[HCA_TX_RNR_RECEIVED], 3);
	expect_eq(look_qp(&p->a, 0).counters[HCA_TX_GIVEN_UP], 1);
	expect_eq(look_qp(&p->a, 0).counters[HCA_TX_FLUSHED], 3);
	expect_eq(look_qp(&p->a, 0).counters[HCA_TX_SENDS], 0);
	expect_eq(look_qp(&p->b, 0).counters[HCA_RX_RNR_SENT], 3);
	expect_eq(look_qp(&p->b, 0).counters[HCA_RX_SENDS], 0);
}

static void messages_to_a_queue_pair_in_reset_are_retried_and_dropped(struct pair *p)
{
	struct hca_qp_view a;

	p->conn.timeout = 12; /* 17 ms */
	p->conn.retry_cnt = 2;
	pair_start(p, NULL);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_RESET), 0);
	side_send(&p->a, 1, 0, 10);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	a = look_qp(&p->a, 0);
	expect(a.counters[HCA_TX_RETRIES] >= 1);
	expect_counters(&p->a, 0, IS(TX_GIVEN_UP, 1),
			IS(TX_RETRIES, a.counters[HCA_TX_RETRIES]),
			IS(TX_REPEATED, a.counters[HCA_TX_RETRIES]), -1);
	/* The first time, and each repetition. */
	expect_counters(&p->b, 0,
			IS(RX_DROPPED, a.counters[HCA_TX_RETRIES] + 1), -1);
}

static void a_refused_access_is_one_fault_and_one_event(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 100);
	side_recv(&p->b, 2, 0, 100);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	r.rkey++;
	post(&p->a, &r);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	expect_counters(&p->a, 0, IS(TX_NAKS_RECEIVED, 1), -1);
	expect_counters(&p->b, 0, IS(RX_ACCESS_FAULTS, 1), IS(RX_FLUSHED, 2),
			IS(ASYNC_EVENTS, 1), -1);
	expect_eq(look_process(&p->b).counters[HCA_PROCESS_ASYNC_EVENTS], 1);
}

static void a_message_that_is_too_long_is_one_nak(struct pair *p)
{
	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 10);
	side_recv(&p->b, 2, 0, 10);
	side_send(&p->a, 1, 0, 11);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_INV_REQ_ERR);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_LEN_ERR);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_counters(&p->a, 0, IS(TX_NAKS_RECEIVED, 1), -1);
	expect_counters(&p->b, 0, IS(RX_NAKS_SENT, 1), IS(RX_ERRORS, 1),
			IS(RX_FLUSHED, 1), -1);
}

static void a_wrong_lkey_is_a_local_error(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 10);
	r.sge[0].lkey++;
	post(&p->a, &r);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_counters(&p->a, 0, IS(TX_ERRORS, 1), -1);
	expect_counters(&p->b, 0, -1);
}

static struct send_req datagram(struct pair *p, int ah, uint32_t length)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, length, 0, length);

	r.ah = ah;
	r.remote_qpn = p->b.qpn[0];
	r.qkey = QKEY;
	return r;
}

static void datagrams_are_counted_without_their_header(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	struct send_req r;
	int ah;

	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
	ah = side_ah_to(&p->a, &p->b.gid);
	/* Nothing posted; a wrong key; two that arrive. */
	r = datagram(p, ah, 30);
	post(&p->a, &r);
	side_wait_ok(&p->a, SEND_CQ, 30);
	side_expect_none(&p->b, RECV_CQ);
	side_recv(&p->b, 1, 0, GRH + 4096);
	side_recv(&p->b, 2, 0, GRH + 4096);
	r = datagram(p, ah, 31);
	r.qkey++;
	post(&p->a, &r);
	side_wait_ok(&p->a, SEND_CQ, 31);
	for (uint32_t i = 1; i <= 2; i++) {
		r = datagram(p, ah, 1000 * i);
		post(&p->a, &r);
		side_wait_ok(&p->a, SEND_CQ, 1000 * i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	expect_counters(&p->a, 0, IS(TX_SENDS, 4), IS(TX_SEND_BYTES, 3061), -1);
	expect_counters(&p->b, 0, IS(RX_SENDS, 2), IS(RX_SEND_BYTES, 3000),
			IS(RX_DROPPED, 2), -1);
}

static void sends_without_a_peer_are_lost(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC };

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	side_kill(&p->b);
	/* Until the link's end is noticed they go into it. */
	for (uint64_t i = 0; look_process(&p->a).counters[HCA_LINKS_DOWN] == 0; i++) {
		if (i > 1000)
			fail("the end of the link is not counted");
		usleep(5000);
	}
	for (uint64_t i = 0; i < 3; i++) {
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	expect_counters(&p->a, 0, IS(TX_SENDS, 3), IS(TX_SEND_BYTES, 30),
			IS(TX_LOST, 3), -1);
}

static void a_refused_write_of_an_unreliable_connection_is_lost(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC };
	struct send_req r;

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	r.rkey++;
	post(&p->a, &r);
	side_wait_ok(&p->a, SEND_CQ, 1);
	expect_counters(&p->a, 0, IS(TX_WRITES, 1), IS(TX_WRITE_BYTES, 100),
			IS(TX_LOST, 1), -1);
	expect_counters(&p->b, 0, -1);
}

static void datagrams_to_other_hosts_are_lost(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	struct send_req r;
	union ibv_gid far;

	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
	/* 198.51.100.1, which is kept for documents. */
	memset(&far, 0, sizeof(far));
	far.raw[10] = far.raw[11] = 0xff;
	far.raw[12] = 198;
	far.raw[13] = 51;
	far.raw[14] = 100;
	far.raw[15] = 1;
	r = datagram(p, side_ah_to(&p->a, &far), 10);
	post(&p->a, &r);
	side_wait_ok(&p->a, SEND_CQ, 10);
	expect_counters(&p->a, 0, IS(TX_SENDS, 1), IS(TX_SEND_BYTES, 10),
			IS(TX_LOST, 1), -1);
}

static void a_number_that_is_used_again_starts_at_zero(struct pair *p)
{
	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 10);
	side_send(&p->a, 1, 0, 10);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 1);
	/* A reset keeps them; they are the queue pair's. */
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	expect_counters(&p->a, 0, IS(TX_SENDS, 1), IS(TX_SEND_BYTES, 10), -1);
	expect_eq(side_qp_destroy(&p->a, 0), 0);
	expect_eq(look_process(&p->a).totals[HCA_TX_SENDS], 1);
	/* Numbers rest for a while: until the block is through. */
	for (int i = 0; i < 1100; i++) {
		int qp = side_qp_create(&p->a, NULL);
		struct hca_qp_view q;

		expect(qp >= 0);
		if (i % 100 == 0) {
			q = look_qp(&p->a, qp);
			for (int k = 0; k < HCA_QP_COUNTERS; k++)
				expect_eq(q.counters[k], 0);
		}
		expect_eq(side_qp_destroy(&p->a, qp), 0);
	}
	expect_eq(look_process(&p->a).totals[HCA_TX_SENDS], 1);
	expect_eq(look_process(&p->a).totals[HCA_TX_SEND_BYTES], 10);
	expect_eq(look_process(&p->a).counters[HCA_QPS_CREATED],
		  p->two_processes ? 1101 : 1102);
}

static void regions_and_their_bytes_are_what_is_registered(struct pair *p)
{
	uint64_t mrs, bytes, registrations;
	struct hca_process_view v;
	struct region r[2];

	pair_start(p, NULL);
	v = look_process(&p->a);
	mrs = v.counters[HCA_MRS];
	bytes = v.counters[HCA_MR_BYTES];
	registrations = v.counters[HCA_MRS_REGISTERED];
	r[0] = side_reg(&p->a, 0, 1000, IBV_ACCESS_LOCAL_WRITE, 0);
	r[1] = side_reg(&p->a, 0, 2000, IBV_ACCESS_LOCAL_WRITE, 0);
	v = look_process(&p->a);
	expect_eq(v.counters[HCA_MRS] - mrs, 2);
	expect_eq(v.counters[HCA_MR_BYTES] - bytes, 3000);
	/* Of another size now. */
	r[0] = side_rereg(&p->a, r[0].index, IBV_REREG_MR_CHANGE_TRANSLATION, 0,
			  0, 1500, 0);
	v = look_process(&p->a);
	expect_eq(v.counters[HCA_MRS] - mrs, 2);
	expect_eq(v.counters[HCA_MR_BYTES] - bytes, 3500);
	expect_eq(side_dereg(&p->a, r[0].index), 0);
	expect_eq(side_dereg(&p->a, r[1].index), 0);
	v = look_process(&p->a);
	expect_eq(v.counters[HCA_MRS], mrs);
	expect_eq(v.counters[HCA_MR_BYTES], bytes);
	expect_eq(v.counters[HCA_MRS_REGISTERED] - registrations, 3);
}

static void an_overrun_is_counted_once(struct pair *p)
{
	const struct side_options small = { .cqe = 1 };

	side_open(&p->a, NULL);
	side_open(&p->b, &small);
	pair_connect_qp(p, 0);
	for (uint64_t i = 0; i < 20; i++)
		side_recv(&p->b, i, 0, 100);
	expect_eq(look_process(&p->b).counters[HCA_CQ_OVERRUNS], 0);
	for (uint64_t i = 0; i < 20; i++)
		side_send(&p->a, i, 0, 10);
	/* Completions are not fetched there. */
	side_wait_ok(&p->a, SEND_CQ, 0);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_CQ_ERR);
	expect_eq(look_process(&p->b).counters[HCA_CQ_OVERRUNS], 1);
	expect(look_process(&p->b).counters[HCA_PROCESS_ASYNC_EVENTS] >= 1);
}

/* A wake-up is counted there when the thread there has run. */
static void expect_kicks_to_agree(const struct side *from, const struct side *to)
{
	uint64_t sent, received;

	for (int i = 0; i < 1000; i++) {
		sent = look_process(from).counters[HCA_KICKS_SENT];
		received = look_process(to).counters[HCA_KICKS_RECEIVED];
		if (sent == received)
			return;
		usleep(5000);
	}
	fail("%llu wake-ups sent, %llu received", (unsigned long long)sent,
	     (unsigned long long)received);
}

static void a_completion_event_and_what_woke_for_it(struct pair *p)
{
	const struct side_options ev = { .events = true };
	struct hca_process_view a, b;

	pair_start(p, &ev);
	for (uint64_t i = 1; i <= 3; i++) {
		side_recv(&p->b, i, 0, 100);
		expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
		side_send(&p->a, i, 0, 10);
		expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	a = look_process(&p->a);
	b = look_process(&p->b);
	expect_eq(b.counters[HCA_CQ_EVENTS], 3);
	expect(b.counters[HCA_TICKS] > 0);
	if (!p->two_processes)
		return;
	expect_eq(a.counters[HCA_CQ_EVENTS], 0);
	/* Each message to a sleeping process is one wake-up; acknowledgements of sends
	 * whose completion queue has a channel are wake-ups as well. */
	expect(a.counters[HCA_KICKS_SENT] >= 3);
	expect_kicks_to_agree(&p->a, &p->b);
	expect_kicks_to_agree(&p->b, &p->a);
}

static int poll_often(struct end *e, void *arg)
{
	struct ibv_wc wc;

	for (int i = 0; i < *(int *)arg; i++)
		if (ibv_poll_cq(e->cq[RECV_CQ], 1, &wc))
			return 1;
	return 0;
}

/* A peer that was polling a moment ago need not be woken, however many messages wait. Its progress
 * thread may find in time that it has stopped, and ask for wake-ups: then once more. */
static void who_posts_on_does_not_wake_the_peer_each_time(struct pair *p)
{
	enum { MANY = 300 }; /* more than a quarter of the ring */
	const struct side_options deep = { .send_wr = MANY, .recv_wr = MANY, .cqe = 2 * MANY };
	uint64_t woken = MANY;
	int polls = 100000;

	pair_start(p, &deep);
	for (int tries = 0; woken > MANY / 10; tries++) {
		if (tries == 20)
			fail("%llu of %d posts were wake-ups", (unsigned long long)woken, MANY);
		for (uint64_t i = 0; i < MANY; i++)
			side_recv(&p->b, i, 0, 100);
		expect_eq(side_run(&p->b, poll_often, &polls, sizeof(polls)), 0);
		side_stop(&p->b);
		woken = look_process(&p->a).counters[HCA_KICKS_SENT];
		for (uint64_t i = 0; i < MANY; i++)
			side_send(&p->a, i, 0, 10);
		woken = look_process(&p->a).counters[HCA_KICKS_SENT] - woken;
		side_signal(&p->b, SIGCONT);
		for (uint64_t i = 0; i < MANY; i++) {
			side_wait_ok(&p->a, SEND_CQ, i);
			side_wait_ok(&p->b, RECV_CQ, i);
		}
	}
}

static void every_poll_is_counted(struct pair *p)
{
	int few = 100, many = 100000;
	uint64_t before;

	pair_open(p, NULL);
	before = look_process(&p->b).counters[HCA_POLLS];
	expect_eq(side_run(&p->b, poll_often, &few, sizeof(few)), 0);
	expect_eq(look_process(&p->b).counters[HCA_POLLS], before + 100);
	/* Of a process that polls all the time the number comes with the next
	 * tick. */
	expect_eq(side_run(&p->b, poll_often, &many, sizeof(many)), 0);
	for (int i = 0; look_process(&p->b).counters[HCA_POLLS] !=
			before + 100100;
	     i++) {
		if (i > 1000)
			fail("%llu polls",
			     (unsigned long long)look_process(&p->b)
				     .counters[HCA_POLLS]);
		usleep(5000);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(messages_and_bytes_are_counted_on_both_sides),
		CASE(unsignaled_sends_are_counted_too),
		CASE(one_sided_operations_are_counted_at_the_initiator),
		CASE(waiting_for_a_receive_is_counted_as_often_on_both_sides),
		CASE(giving_up_after_rnr_is_counted_with_the_flushes),
		CASE(messages_to_a_queue_pair_in_reset_are_retried_and_dropped),
		CASE(a_refused_access_is_one_fault_and_one_event),
		CASE(a_message_that_is_too_long_is_one_nak),
		CASE(a_wrong_lkey_is_a_local_error),
		CASE(datagrams_are_counted_without_their_header),
		CASE_IN(ONLY_TWO_PROCESSES, sends_without_a_peer_are_lost),
		CASE_IN(ONLY_TWO_PROCESSES, who_posts_on_does_not_wake_the_peer_each_time),
		CASE(a_refused_write_of_an_unreliable_connection_is_lost),
		CASE(datagrams_to_other_hosts_are_lost),
		CASE(a_number_that_is_used_again_starts_at_zero),
		CASE(regions_and_their_bytes_are_what_is_registered),
		CASE(an_overrun_is_counted_once),
		CASE(a_completion_event_and_what_woke_for_it),
		CASE(every_poll_is_counted),
	};

	return RUN_CASES(argc, argv, cases);
}
