/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receivers that are not ready, not there or not in step: when a send is
 * repeated, when it is given up, and with which status (InfiniBand
 * specification volume 1, 9.7.5.2.8 and 9.9.2).
 */
#include <time.h>

#include "pair.h"

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void expect_error_then_flushes(struct side *s, uint64_t wr_id,
				      uint64_t last, enum ibv_wc_status status)
{
	struct ibv_wc wc = side_wait(s, SEND_CQ);

	if (wc.status != status)
		fail("'%s' instead of '%s'", ibv_wc_status_str(wc.status),
		     ibv_wc_status_str(status));
	expect_eq(wc.wr_id, wr_id);
	expect_eq(wc.qp_num, s->qpn[0]);
	while (wr_id++ < last) {
		wc = side_wait(s, SEND_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, wr_id);
	}
	side_expect_none(s, SEND_CQ);
	expect_eq(side_state(s, 0), IBV_QPS_ERR);
}

static void receiver_without_a_posted_receive_gets_the_message_after_rnr_wait(struct pair *p)
{
	static const uint32_t lengths[] = { 8, 1000, 40000 };

	pair_start(p, NULL);
	for (unsigned i = 0; i < 3; i++) {
		side_fill(&p->a, 0, lengths[i], i);
		side_send(&p->a, i, 0, lengths[i]);
		side_expect_none(&p->a, SEND_CQ);
		side_expect_none(&p->b, RECV_CQ);
		side_recv(&p->b, i, 0, 60000);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->b, 0, lengths[i], i);
	}
}

static void many_messages_wait_for_one_receive_after_the_other(struct pair *p)
{
	pair_start(p, NULL);
	side_fill(&p->a, 0, 2000, 1);
	for (uint64_t i = 0; i < 40; i++)
		side_send(&p->a, i, i, (uint32_t)(i * 40));
	for (uint64_t i = 0; i < 40; i++) {
		side_recv(&p->b, 100 + i, 0, 4096);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 100 + i).byte_len,
			  i * 40);
	}
	for (uint64_t i = 0; i < 40; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
}

static void a_repeated_message_is_what_was_posted(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,
						  IBV_WR_SEND_WITH_IMM };
	static const uint32_t lengths[] = { 0, 1, 64, 96, 97, 200 };
	const struct side_options opt = { .inline_bytes = 200 };
	uint64_t id = 1;

	pair_start(p, &opt);
	for (unsigned i = 0; i < 24; i++) {
		bool with_inline = i % 2, imm = i / 2 % 2;
		uint32_t length = lengths[i / 4];
		struct send_req r[2];
		struct ibv_wc wc;

		/* A list of two, each of one buffer, and nobody receives. */
		side_fill(&p->a, 0, 400, i);
		for (unsigned k = 0; k < 2; k++) {
			r[k] = send_req(&p->a, ops[imm], id + k, 0, length);
			r[k].imm = 0x100 + (uint32_t)id + k;
			if (with_inline)
				r[k].flags |= IBV_SEND_INLINE;
		}
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_expect_none(&p->b, RECV_CQ);
		/* What is inline was copied, what is not is still the program's. */
		if (with_inline)
			side_set(&p->a, 0, 400, 0);
		for (unsigned k = 0; k < 2; k++) {
			side_set(&p->b, 0, 400, 0);
			side_recv(&p->b, 1000 + k, 0, 400);
			wc = side_wait_ok(&p->b, RECV_CQ, 1000 + k);
			expect_eq(wc.byte_len, length);
			expect_eq(wc.wc_flags, imm ? IBV_WC_WITH_IMM : 0);
			if (imm)
				expect_eq(wc.imm_data, 0x100 + id + k);
			side_check(&p->b, 0, length, i);
		}
		for (unsigned k = 0; k < 2; k++)
			side_wait_ok(&p->a, SEND_CQ, id++);
	}
}

static void a_sender_that_does_not_poll_repeats_after_rnr(struct pair *p)
{
	struct send_req r;

	/* Unsignaled, and nobody polls at the sender for a while. */
	pair_start(p, NULL);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);
	r.flags = 0;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	sleep_ms(50);
	side_recv(&p->b, 2, 0, 100);
	side_wait_ok(&p->b, RECV_CQ, 2);
}

static int receive_late_and_answer(struct end *e, void *arg)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 100, e->mr[0]->lkey };
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *bad_r;
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				   .num_sge = 1 }, *bad_s;
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n = 0;

	sleep_ms(30);
	if (ibv_post_recv(e->qp[0], &rwr, &bad_r))
		return -1;
	while (now_ms() < end && n == 0)
		n = ibv_poll_cq(e->cq[RECV_CQ], 1, &wc);
	if (n != 1 || wc.status)
		return -2;
	return ibv_post_send(e->qp[0], &swr, &bad_s);
}

static void a_sender_that_only_polls_for_receives_repeats_after_rnr(struct pair *p)
{
	/* As a client does that waits for the answer to its request. */
	pair_start(p, NULL);
	side_recv(&p->a, 3, 1000, 100);
	side_start(&p->b, receive_late_and_answer, NULL, 0);
	side_send(&p->a, 1, 0, 100);
	side_wait_ok(&p->a, RECV_CQ, 3);
	expect_eq(side_join(&p->b, NULL, 0), 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void rnr_retries_end_in_an_error_and_later_sends_are_flushed(struct pair *p)
{
	uint64_t start;

	p->conn.rnr_retry = 2;
	p->conn.min_rnr_timer = 23; /* 30.72 ms */
	pair_start(p, NULL);
	start = now_ms();
	for (uint64_t i = 0; i < 5; i++)
		side_send(&p->a, i, 0, 100);
	expect_error_then_flushes(&p->a, 0, 4, IBV_WC_RNR_RETRY_EXC_ERR);
	expect(now_ms() - start >= 2 * 30);
	/* The receiver saw nothing that would be an error of its own. */
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	side_recv(&p->b, 1, 0, 100);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_async(&p->b, 0), -1);
}

static void without_rnr_retries_the_first_refusal_is_final(struct pair *p)
{
	p->conn.rnr_retry = 0;
	p->conn.min_rnr_timer = 0; /* 655 ms, not waited for */
	pair_start(p, NULL);
	side_send(&p->a, 1, 0, 100);
	expect_error_then_flushes(&p->a, 1, 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

static void rnr_retries_count_anew_for_each_message(struct pair *p)
{
	p->conn.rnr_retry = 1;
	p->conn.min_rnr_timer = 0; /* 655 ms: time to post */
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 2; i++) {
		side_send(&p->a, i, 0, 100);
		sleep_ms(5);
		side_recv(&p->b, i, 0, 100);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
}

static void a_write_with_immediate_waits_for_a_receive_too(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL);
	side_fill(&p->a, 0, 5000, 4);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 8192, 5000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	side_recv(&p->b, 2, 0, 0);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).opcode,
		  IBV_WC_RECV_RDMA_WITH_IMM);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, 8192, 5000, 4);
}

/* retry_cnt repetitions, each after 1 to 4 times the configured time. */
static void expect_given_up_in_time(struct pair *p, struct side *s)
{
	uint64_t timeout_ms = (UINT64_C(4096) << p->conn.timeout) / 1000000;
	uint64_t repeats = p->conn.retry_cnt + 1u;
	uint64_t start = now_ms(), took;

	for (uint64_t i = 0; i < 4; i++)
		side_send(s, i, 0, 100);
	expect_error_then_flushes(s, 0, 3, IBV_WC_RETRY_EXC_ERR);
	took = now_ms() - start;
	if (took < timeout_ms || took > 4 * timeout_ms * repeats + WAIT_MS / 2)
		fail("given up after %llu ms, timeout %llu ms, %llu tries",
		     (unsigned long long)took, (unsigned long long)timeout_ms,
		     (unsigned long long)repeats);
}

static void a_wrong_sequence_number_ends_in_retries_exceeded(struct pair *p)
{
	p->conn.timeout = 13; /* 34 ms */
	p->conn.retry_cnt = 2;
	pair_open(p, NULL);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	expect_eq(side_to_init(&p->b, 0, 0), 0);
	side_recv(&p->b, 1, 0, 100);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0], 1), 0);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, p->a.qpn[0], 500), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 400), 0);
	expect_given_up_in_time(p, &p->a);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTR);
}

static const struct side_options all_rights = {
	.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

static void a_wrong_sequence_number_stops_one_sided_work_too(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	const unsigned access = IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC;

	p->conn.timeout = 13;
	p->conn.retry_cnt = 1;
	pair_open(p, &all_rights);
	side_set(&p->a, 0, 8, 0x55);
	side_set(&p->b, 0, 8, 0x11);
	for (unsigned i = 0; i < 3; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, ops[i], i, 0, 0, 8);
		uint64_t word;

		expect_eq(side_to_init(&p->a, 0, 0), 0);
		expect_eq(side_to_init(&p->b, 0, access), 0);
		expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid,
				      p->b.qpn[0], 1), 0);
		expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid,
				      p->a.qpn[0], 500), 0);
		expect_eq(side_to_rts(&p->a, 0, &p->conn, 600), 0);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_error_then_flushes(&p->a, i, i, IBV_WC_RETRY_EXC_ERR);
		side_peek(&p->b, 0, &word, sizeof(word));
		expect_eq(word, 0x1111111111111111);
		side_peek(&p->a, 0, &word, sizeof(word));
		expect_eq(word, 0x5555555555555555);
		pair_reset_qp(p, 0);
	}
}

/* Only the initiator begins anew, with the number that is expected next. */
static void one_sided_work_goes_on_after_the_initiators_reset(struct pair *p)
{
	const uint32_t next = (p->conn.psn_a + 3) & 0xffffff;

	p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &all_rights);
	for (uint64_t i = 0; i < 3; i++) {
		side_recv(&p->b, i, 0, 100);
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	expect_eq(side_to_init(&p->a, 0, p->conn.access_a), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0],
			      p->conn.psn_b), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, next), 0);
	side_fill(&p->a, 0, 9000, 7);
	for (uint64_t i = 0; i < 3; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i,
					     0, 16384 * i, 9000);

		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->b, 16384 * i, 9000, 7);
	}
	side_recv(&p->b, 9, 0, 100);
	side_send(&p->a, 9, 0, 10);
	side_wait_ok(&p->b, RECV_CQ, 9);
}

static void a_peer_that_is_not_there_ends_in_retries_exceeded(struct pair *p)
{
	static const uint32_t nobody[] = { 0x0, 0x5, 0xffffff, 0x400123 };

	p->conn.timeout = 13;
	p->conn.retry_cnt = 1;
	side_open(&p->a, NULL);
	for (unsigned i = 0; i < 4; i++) {
		if (nobody[i] >> 10 == p->a.qpn[0] >> 10)
			continue;
		expect_eq(side_to_init(&p->a, 0, 0), 0);
		expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->a.gid, nobody[i],
				      1), 0);
		expect_eq(side_to_rts(&p->a, 0, &p->conn, 1), 0);
		expect_given_up_in_time(p, &p->a);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	}
}

static void a_destroyed_queue_pair_ends_in_retries_exceeded(struct pair *p)
{
	pair_end_soon(p, 13, 1);
	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 1);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	expect_given_up_in_time(p, &p->a);
}

static void one_sided_work_on_a_destroyed_queue_pair_ends_in_retries_exceeded(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM
	};
	struct send_req r;

	p->conn.timeout = 12;
	p->conn.retry_cnt = 1;
	pair_start(p, NULL);
	for (unsigned i = 0; i < 3; i++) {
		expect_eq(side_to_state(&p->b, 0, IBV_QPS_RESET), 0);
		r = rdma_req(&p->a, &p->b, ops[i], 7, 0, 0, 100);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_error_then_flushes(&p->a, 7, 7, IBV_WC_RETRY_EXC_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static void a_peer_that_becomes_ready_in_time_gets_the_message(struct pair *p)
{
	p->conn.timeout = 18; /* 1 s: long enough on a loaded machine */
	pair_open(p, NULL);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	expect_eq(side_to_init(&p->b, 0, 0), 0);
	side_recv(&p->b, 5, 0, 100);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0], 1), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 50), 0);
	side_send(&p->a, 1, 0, 100);
	sleep_ms(40);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, p->a.qpn[0], 50), 0);
	side_wait_ok(&p->b, RECV_CQ, 5);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void a_message_longer_than_the_receive_buffer_fails_on_both_sides(struct pair *p)
{
	static const uint32_t lengths[] = { 2, 90, 97, 5000, 17000, 60000 };
	struct ibv_wc wc;

	pair_start(p, NULL);
	for (unsigned i = 0; i < 6; i++) {
		side_set(&p->b, 0, 65536, 9);
		side_recv(&p->b, 1, 0, lengths[i] - 1);
		side_recv(&p->b, 2, 0, 65000);
		for (uint64_t k = 0; k < 3; k++)
			side_send(&p->a, k, 0, lengths[i]);
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_LOC_LEN_ERR);
		expect_eq(wc.wr_id, 1);
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, 2);
		expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
		expect_error_then_flushes(&p->a, 0, 2, IBV_WC_REM_INV_REQ_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static void each_queue_pair_fails_alone(struct pair *p)
{
	struct recv_req rr;
	struct send_req r;

	p->conn.rnr_retry = 0;
	pair_start(p, NULL);
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
	side_send(&p->a, 1, 0, 100); /* RNR, final */
	expect_error_then_flushes(&p->a, 1, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	rr = (struct recv_req){ .wr_id = 4, .num_sge = 1,
				.sge = { side_sge(&p->b, 0, 100) } };
	expect_eq(side_post_recv(&p->b, 1, &rr, 1).ret, 0);
	r = send_req(&p->a, IBV_WR_SEND, 3, 0, 100);
	expect_eq(side_post_send(&p->a, 1, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_wait_ok(&p->b, RECV_CQ, 4);
}

static const struct test_case cases[] = {
	RULE("IBTA 9.7.5.2.8",
	     receiver_without_a_posted_receive_gets_the_message_after_rnr_wait),
	RULE("IBTA 9.7.5.2.8",
	     many_messages_wait_for_one_receive_after_the_other),
	RULE("IBTA 9.7.5.2.8", a_repeated_message_is_what_was_posted),
	RULE("IBTA 9.7.5.2.8", a_sender_that_does_not_poll_repeats_after_rnr),
	RULE("IBTA 9.7.5.2.8",
	     a_sender_that_only_polls_for_receives_repeats_after_rnr),
	RULE("IBTA 9.7.5.2.8",
	     rnr_retries_end_in_an_error_and_later_sends_are_flushed),
	RULE("IBTA 9.7.5.2.8", without_rnr_retries_the_first_refusal_is_final),
	RULE("IBTA 9.7.5.2.8", rnr_retries_count_anew_for_each_message),
	RULE("IBTA 9.7.5.2.8", a_write_with_immediate_waits_for_a_receive_too),
	RULE("IBTA 9.9.2", a_wrong_sequence_number_ends_in_retries_exceeded),
	RULE("IBTA 9.9.2", a_wrong_sequence_number_stops_one_sided_work_too),
	RULE("IBTA 9.7.1", one_sided_work_goes_on_after_the_initiators_reset),
	RULE_IN(ONLY_ONE_PROCESS, "IBTA 9.7.6.1.3",
		a_peer_that_is_not_there_ends_in_retries_exceeded),
	RULE("IBTA 9.7.6.1.3", a_destroyed_queue_pair_ends_in_retries_exceeded),
	RULE("IBTA 9.7.6.1.3",
	     one_sided_work_on_a_destroyed_queue_pair_ends_in_retries_exceeded),
	RULE("IBTA 9.7.6.1.3",
	     a_peer_that_becomes_ready_in_time_gets_the_message),
	RULE("IBTA 9.7.4.1",
	     a_message_longer_than_the_receive_buffer_fails_on_both_sides),
	CASE(each_queue_pair_fails_alone),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
