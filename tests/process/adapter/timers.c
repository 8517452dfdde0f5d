/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timers and counters of reliable connections: all codes of the RNR timer
 * and of the local ACK timeout, both retry counters from end to end (InfiniBand
 * specification volume 1, 9.7.5.2.8 and 9.7.6.1.3).
 *
 * The queue pairs of a case wait at the same time, so that each takes as long as
 * the longest of them. What is asserted is the least time, which no load of the
 * machine makes shorter, the order in which they end, and a bound in which the
 * machine may be busy for seconds.
 */
#include <signal.h>
#include <time.h>

#include "pair.h"

enum { SLACK_MS = 4000 };

/* A time code on its side of the connection; in microseconds. */
static const uint32_t rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,
	160,	240,   320,   480,   640,   960,    1280,   1920,
	2560,	3840,  5120,  7680,  10240, 15360,  20480,  30720,
	40960,	61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void open_many(struct pair *p, int count)
{
	pair_open(p, NULL);
	for (int i = 1; i < count; i++) {
		expect_eq(side_qp_create(&p->a, NULL), i);
		expect_eq(side_qp_create(&p->b, NULL), i);
	}
}

static void post_one(struct pair *p, int qp)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, (uint64_t)qp, 0, 8);

	expect_eq(side_post_send(&p->a, qp, &r, 1).ret, 0);
}

struct ended {
	int order[SIDE_QPS];       /* of the queue pairs */
	uint64_t took_us[SIDE_QPS]; /* by queue pair */
};

/* One message on each of the first `count` queue pairs, from number `first` on and around,
 * and how they fail. */
static void run_out_from(struct pair *p, int first, int count, enum ibv_wc_status status,
			 struct ended *e)
{
	uint64_t start[SIDE_QPS];

	for (int k = 0; k < count; k++) {
		int i = (first + k) % count;

		start[i] = now_us();
		post_one(p, i);
	}
	for (int i = 0; i < count; i++) {
		struct ibv_wc wc = side_wait(&p->a, SEND_CQ);
		uint64_t now = now_us();

		if (wc.status != status)
			fail("queue pair %d: '%s'", (int)wc.wr_id,
			     ibv_wc_status_str(wc.status));
		e->order[i] = (int)wc.wr_id;
		e->took_us[wc.wr_id] = now - start[wc.wr_id];
		expect_eq(wc.qp_num, p->a.qpn[wc.wr_id]);
		expect_eq(side_state(&p->a, (int)wc.wr_id), IBV_QPS_ERR);
	}
}

static void run_out(struct pair *p, int count, enum ibv_wc_status status,
		    struct ended *e)
{
	run_out_from(p, 0, count, status, e);
}

static void expect_took(const struct ended *e, int qp, uint64_t least_us,
			uint64_t most_us)
{
	uint64_t took = e->took_us[qp];

	if (took < least_us || took > most_us + SLACK_MS * 1000)
		fail("queue pair %d gave up after %llu us, not %llu to %llu",
		     qp, (unsigned long long)took,
		     (unsigned long long)least_us,
		     (unsigned long long)most_us);
}

/* ---- receiver not ready ---- */

static void every_rnr_timer_code_is_waited_for(struct pair *p)
{
	struct ended e;

	p->conn.rnr_retry = 1;
	open_many(p, 32);
	for (int i = 0; i < 32; i++) {
		struct connection other = p->conn;

		/* The receiver's counts; the sender's is another one. */
		p->conn.min_rnr_timer = (uint8_t)i;
		other.min_rnr_timer = (uint8_t)(31 - i);
		expect_eq(side_to_init(&p->a, i, 0), 0);
		expect_eq(side_to_init(&p->b, i, 0), 0);
		expect_eq(side_to_rtr(&p->a, i, &other, &p->b.gid, p->b.qpn[i],
				      p->conn.psn_b), 0);
		expect_eq(side_to_rtr(&p->b, i, &p->conn, &p->a.gid,
				      p->a.qpn[i], p->conn.psn_a), 0);
		expect_eq(side_to_rts(&p->a, i, &other, p->conn.psn_a), 0);
	}
	/* Code 0 is the longest, and begins last. */
	run_out_from(p, 1, 32, IBV_WC_RNR_RETRY_EXC_ERR, &e);
	for (int i = 0; i < 32; i++)
		expect_took(&e, i, rnr_us[i], rnr_us[i]);
	expect_eq(e.order[31], 0);
}

static void the_rnr_counter_is_how_often_it_is_repeated(struct pair *p)
{
	struct recv_req r = { .wr_id = 1, .num_sge = 1 };
	struct ended e;

	p->conn.min_rnr_timer = 22; /* 20.48 ms */
	open_many(p, 8);
	for (int i = 0; i < 8; i++) {
		p->conn.rnr_retry = (uint8_t)i;
		pair_connect_qp(p, i);
	}
	post_one(p, 7); /* 7: for ever */
	run_out(p, 7, IBV_WC_RNR_RETRY_EXC_ERR, &e);
	for (int i = 0; i < 7; i++) {
		expect_eq(e.order[i], i);
		expect_took(&e, i, (unsigned)i * rnr_us[22],
			    (unsigned)i * rnr_us[22]);
	}
	sleep_ms(100); /* longer than any other count allows */
	expect_eq(side_poll(&p->a, SEND_CQ, 1, 1).count, 0);
	r.sge[0] = side_sge(&p->b, 0, 100);
	expect_eq(side_post_recv(&p->b, 7, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 7);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

static void waiting_for_a_receiver_does_not_use_up_the_retry_counter(struct pair *p)
{
	p->conn.timeout = transport_under_test()->waits ? 18 : 12; /* 1 s, 17 ms in all */
	p->conn.retry_cnt = 0;
	p->conn.min_rnr_timer = 13;
	pair_start(p, NULL);
	side_send(&p->a, 1, 0, 100);
	expect_eq(side_poll(&p->a, SEND_CQ, 1, 150).count, 0);
	side_recv(&p->b, 2, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
}

static void a_changed_timer_code_counts_from_then_on(struct pair *p)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 30 }; /* 328 ms */
	struct ended e;

	p->conn.rnr_retry = 1;
	p->conn.min_rnr_timer = 1;
	pair_start(p, NULL);
	expect_eq(side_modify(&p->b, 0, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	run_out(p, 1, IBV_WC_RNR_RETRY_EXC_ERR, &e);
	expect_took(&e, 0, rnr_us[30], rnr_us[30]);
}

/* ---- nobody answers ---- */

/* Queue pairs of which the other end does not receive. */
static void connect_deaf(struct pair *p, int qp)
{
	expect_eq(side_to_init(&p->a, qp, 0), 0);
	expect_eq(side_to_init(&p->b, qp, 0), 0);
	expect_eq(side_to_rtr(&p->a, qp, &p->conn, &p->b.gid, p->b.qpn[qp],
			      p->conn.psn_b), 0);
	expect_eq(side_to_rts(&p->a, qp, &p->conn, p->conn.psn_a), 0);
}

static uint64_t timeout_us(unsigned code)
{
	return (UINT64_C(4096) << code) / 1000;
}

static void the_retry_counter_is_how_often_it_is_repeated(struct pair *p)
{
	struct ended e;

	p->conn.timeout = 13; /* 34 ms */
	open_many(p, 8);
	for (int i = 0; i < 8; i++) {
		p->conn.retry_cnt = (uint8_t)i;
		connect_deaf(p, i);
	}
	run_out(p, 8, IBV_WC_RETRY_EXC_ERR, &e);
	for (unsigned i = 0; i < 8; i++) {
		expect_eq(e.order[i], i);
		expect_took(&e, (int)i, (i + 1) * timeout_us(13),
			    4 * (i + 1) * timeout_us(13));
	}
}

static void every_timeout_code_is_waited_for(struct pair *p)
{
	enum { CODES = 32, ENDING = 17 }; /* 17: 537 ms */
	struct ended e;

	p->conn.retry_cnt = 0;
	open_many(p, CODES);
	/* Queue pair 0: code 1 ... 16: 17; then those that take longer. */
	for (int i = 0; i < CODES; i++) {
		p->conn.timeout = (uint8_t)((i + 1) % CODES);
		connect_deaf(p, i);
	}
	/* The one that takes a second might end here on a machine that is busy. */
	for (int i = ENDING + 1; i < CODES; i++)
		post_one(p, i);
	run_out(p, ENDING, IBV_WC_RETRY_EXC_ERR, &e);
	for (unsigned i = 0; i < ENDING; i++)
		expect_took(&e, (int)i, timeout_us(i + 1),
			    4 * timeout_us(i + 1));
	expect_eq(e.order[ENDING - 1], ENDING - 1);
	/* Of the others the last has code 0, which is for ever. */
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_state(&p->a, CODES - 1), IBV_QPS_RTS);
}

static void a_timeout_of_0_waits_until_the_peer_is_ready(struct pair *p)
{
	p->conn.timeout = 0;
	p->conn.retry_cnt = 0;
	pair_open(p, NULL);
	connect_deaf(p, 0);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 2, 0, 8);
	expect_eq(side_poll(&p->a, SEND_CQ, 1, 300).count, 0);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, p->a.qpn[0],
			      p->conn.psn_a), 0);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 2);
}

static void retries_count_anew_for_each_message(struct pair *p)
{
	/* Each message waits for longer than half of what there is in all. */
	p->conn.timeout = 19; /* 2.1 s */
	p->conn.retry_cnt = 0;
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 2; i++) {
		expect_eq(side_to_state(&p->b, 0, IBV_QPS_RESET), 0);
		side_send(&p->a, i, 0, 8);
		expect_eq(side_poll(&p->a, SEND_CQ, 1, 1200).count, 0);
		expect_eq(side_to_init(&p->b, 0, 0), 0);
		side_recv(&p->b, i, 0, 100);
		expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid,
				      p->a.qpn[0],
				      p->conn.psn_a + (uint32_t)i), 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
}

/* ---- a killed peer ---- */

static void a_killed_peer_is_given_up_after_the_retries_and_not_before(struct pair *p)
{
	struct ended e;

	p->conn.timeout = 14; /* 67 ms */
	open_many(p, 8);
	for (int i = 0; i < 8; i++) {
		p->conn.retry_cnt = (uint8_t)i;
		pair_connect_qp(p, i);
	}
	side_kill(&p->b);
	run_out(p, 8, IBV_WC_RETRY_EXC_ERR, &e);
	for (unsigned i = 0; i < 8; i++) {
		expect_eq(e.order[i], i);
		expect_took(&e, (int)i, timeout_us(14),
			    4 * (i + 1) * timeout_us(14));
	}
}

static void what_a_killed_peer_left_unanswered_ends_after_the_retries(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	const struct side_options opt = {
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_ATOMIC,
	};
	uint64_t start, took;

	p->conn.timeout = 14;
	p->conn.retry_cnt = 1;
	p->conn.access_b = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	pair_open(p, &opt);
	for (int i = 0; i < 4; i++) {
		if (i) {
			expect_eq(side_qp_create(&p->a, &opt), i);
			expect_eq(side_qp_create(&p->b, &opt), i);
		}
		pair_connect_qp(p, i);
	}
	/* Nothing is answered by a stopped process. */
	side_stop(&p->b);
	for (int i = 0; i < 4; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, ops[i], (uint64_t)i,
					     0, 64, 8);

		expect_eq(side_post_send(&p->a, i, &r, 1).ret, 0);
	}
	start = now_us();
	side_kill(&p->b);
	for (int i = 0; i < 4; i++)
		expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	took = now_us() - start;
	if (took < timeout_us(14) || took > 8 * timeout_us(14) + SLACK_MS * 1000)
		fail("given up after %llu us", (unsigned long long)took);
}

#define RNR "IBTA 9.7.5.2.8"
#define TIMEOUT "IBTA 9.7.6.1.3"

static const struct test_case cases[] = {
	RULE(RNR, every_rnr_timer_code_is_waited_for),
	RULE(RNR, the_rnr_counter_is_how_often_it_is_repeated),
	RULE(RNR, waiting_for_a_receiver_does_not_use_up_the_retry_counter),
	RULE("ibv_modify_qp(3)", a_changed_timer_code_counts_from_then_on),
	RULE(TIMEOUT, the_retry_counter_is_how_often_it_is_repeated),
	RULE(TIMEOUT, every_timeout_code_is_waited_for),
	RULE(TIMEOUT, a_timeout_of_0_waits_until_the_peer_is_ready),
	RULE(TIMEOUT, retries_count_anew_for_each_message),
	RULE_IN(ONLY_TWO_PROCESSES, TIMEOUT,
		a_killed_peer_is_given_up_after_the_retries_and_not_before),
	RULE_IN(ONLY_TWO_PROCESSES, TIMEOUT,
		what_a_killed_peer_left_unanswered_ends_after_the_retries),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
