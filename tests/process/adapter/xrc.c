/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections: what is sent, to which queue, in which order
 * (InfiniBand specification volume 1, annex A14). Refusals are in xrc_errors.c.
 */
#include <errno.h>
#include <string.h>

#include "xrc_help.h"

enum { AT = 1 << 20, LONG = 200 << 10, WORD = 3 << 20 };

static uint32_t longer(uint32_t length)
{
	return length ? length : 1;
}

/* One message of `from` into the queue, of which everything is looked at. */
static void exchange(struct x *from, struct x *target, struct x *to, int srq,
		     uint32_t length, uint64_t id, bool build)
{
	struct x_send s = { .opcode = IBV_WR_SEND_WITH_IMM, .wr_id = id,
			    .length = length, .srqn = to->srqn[srq],
			    .imm = (uint32_t)(0x1000 + id), .build = build };
	struct ibv_wc wc;

	side_fill(from->side, 0, longer(length), id);
	side_set(to->side, AT, longer(length), 0);
	x_recv(to, srq, 100 + id, AT, longer(length));
	expect_eq(x_post(from, &s), 0);
	wc = side_wait_ok(to->side, RECV_CQ, 100 + id);
	expect_eq(wc.byte_len, length);
	expect_eq(wc.qp_num, target->tgt);
	expect_eq(wc.opcode, IBV_WC_RECV);
	expect(wc.wc_flags & IBV_WC_WITH_IMM);
	expect_eq(wc.imm_data, s.imm);
	side_check(to->side, AT, length, id);
	wc = side_wait_ok(from->side, SEND_CQ, id);
	expect_eq(wc.qp_num, from->ini);
	expect_eq(wc.opcode, IBV_WC_SEND);
}

static const uint32_t lengths[] = { 0, 1, 8, 96, 97, 4096, 16384, 16385, LONG };

static void messages_reach_the_queue_that_they_name(struct pair *p)
{
	struct x a, b;
	uint64_t id = 1;

	x_start(p, &a, &b);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		exchange(&a, &b, &b, 0, lengths[i], id++, false);
		exchange(&a, &b, &b, 1, lengths[i], id++, true);
		exchange(&b, &a, &a, (int)(i % 2), lengths[i], id++, false);
	}
	x_end(&a, &b);
}

/* Every one-sided operation and both atomics, on memory of `to`. */
static void operate(struct x *from, struct x *target, struct x *to, bool build)
{
	struct x_send s = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1,
			    .length = LONG, .srqn = to->srqn[0],
			    .rkey = to->side->rkey,
			    .remote_addr = to->side->addr + AT, .build = build };
	uint64_t word;
	struct ibv_wc wc;

	side_fill(from->side, 0, LONG, 7);
	expect_eq(x_post(from, &s), 0);
	expect_eq(side_wait_ok(from->side, SEND_CQ, 1).opcode, IBV_WC_RDMA_WRITE);
	side_check(to->side, AT, LONG, 7);
	s.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	s.imm = 0x77;
	s.wr_id = 2;
	s.length = 100;
	x_recv(to, 0, 22, 0, 0);
	expect_eq(x_post(from, &s), 0);
	wc = side_wait_ok(to->side, RECV_CQ, 22);
	expect_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	expect_eq(wc.imm_data, 0x77);
	expect_eq(wc.byte_len, 100);
	expect_eq(wc.qp_num, target->tgt);
	side_wait_ok(from->side, SEND_CQ, 2);
	s.opcode = IBV_WR_RDMA_READ;
	s.wr_id = 3;
	s.length = LONG;
	side_fill(to->side, AT, LONG, 8);
	expect_eq(x_post(from, &s), 0);
	side_wait_ok(from->side, SEND_CQ, 3);
	side_check(from->side, 0, LONG, 8);
	/* Memory that nobody touches but by atomics. */
	s.remote_addr = to->side->addr + WORD;
	side_set(to->side, WORD, 8, 0);
	s.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	s.wr_id = 4;
	s.length = 8;
	s.compare_add = 5;
	expect_eq(x_post(from, &s), 0);
	side_wait_ok(from->side, SEND_CQ, 4);
	s.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	s.wr_id = 5;
	s.swap = 9;
	expect_eq(x_post(from, &s), 0);
	side_wait_ok(from->side, SEND_CQ, 5);
	side_peek(from->side, 0, &word, sizeof(word));
	expect_eq(word, 5);
	side_peek(to->side, WORD, &word, sizeof(word));
	expect_eq(word, 9);
}

static void all_operations_reach_the_memory_of_the_queues_domain(struct pair *p)
{
	struct x a, b;

	x_start(p, &a, &b);
	operate(&a, &b, &b, false);
	operate(&a, &b, &b, true);
	operate(&b, &a, &a, false);
	x_end(&a, &b);
}

/* One end, the other one or both. */
static void without_a_grh_it_is_this_host(struct pair *p)
{
	struct x a, b;

	for (unsigned i = 1; i < 4; i++) {
		p->conn.by_lid_a = i & 1;
		p->conn.by_lid_b = i & 2;
		x_start(p, &a, &b);
		exchange(&a, &b, &b, 0, LONG, 10 * i, false);
		operate(&a, &b, &b, false);
		x_end(&a, &b);
		side_close(&p->a);
		side_close(&p->b);
	}
}

/* Both sides open one domain; a's initiator is connected with a's target, which
 * then serves b's queues: with two processes target and queue are apart. */
static void start_shared(struct pair *p, struct x_file *f, struct x *a,
			 struct x *b)
{
	const struct side_options opt = { .bytes = 4 << 20, .mr_access = X_ALL };

	x_file_make(f);
	pair_open(p, &opt);
	x_open(p, &p->a, a, f->path);
	x_open(p, &p->b, b, f->path);
	x_connect(p, a, a, X_ALL);
}

static void end_shared(struct x_file *f, struct x *a, struct x *b)
{
	x_end(a, b);
	x_file_end(f);
}

static void a_target_serves_the_queues_of_other_processes(struct pair *p)
{
	struct x_file f;
	struct x a, b;
	uint64_t id = 1;

	start_shared(p, &f, &a, &b);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		exchange(&a, &a, &b, 0, lengths[i], id++, false);
		exchange(&a, &a, &b, 1, lengths[i], id++, true);
	}
	operate(&a, &a, &b, false);
	end_shared(&f, &a, &b);
}

/* Initiator, target and queue in a process each; and the queue beside the
 * initiator, the target elsewhere. */
static void three_processes_may_have_a_part_each(struct pair *p)
{
	const struct side_options opt = { .bytes = 4 << 20, .mr_access = X_ALL };
	struct side *third = &p->spare[0];
	struct x_file f;
	struct x a, b, c;

	x_file_make(&f);
	pair_open(p, &opt);
	side_open(third, &opt);
	x_open(p, &p->a, &a, f.path);
	x_open(p, &p->b, &b, f.path);
	x_open(p, third, &c, f.path);
	x_connect(p, &a, &b, X_ALL);
	for (uint64_t id = 1; id < 40; id += 4) {
		exchange(&a, &b, &c, 0, 100, id, false);
		exchange(&a, &b, &a, 1, 20000, id + 1, false);
		exchange(&a, &b, &c, 1, LONG, id + 2, true);
		exchange(&a, &b, &b, 0, 0, id + 3, false);
	}
	operate(&a, &b, &c, false);
	/* The target's process is told what the queue's refused. */
	x_recv(&c, 0, 9, AT, 50);
	x_send(&a, c.srqn[0], 1, 0, 51);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_INV_REQ_ERR);
	expect_status(side_wait(third, RECV_CQ), IBV_WC_LOC_LEN_ERR);
	for (uint64_t end = now_ms() + WAIT_MS;
	     x_state(&b, X_TGT) != IBV_QPS_ERR;)
		expect(now_ms() < end);
	x_close(&c);
	x_end(&a, &b);
	side_close(third);
	x_file_end(&f);
}

static void messages_to_several_processes_keep_their_order(struct pair *p)
{
	struct x_file f;
	struct x a, b;

	start_shared(p, &f, &a, &b);
	for (uint64_t i = 0; i < 12; i++) {
		side_fill(&p->a, i * 1000, 1000, i);
		x_recv(i % 2 ? &a : &b, (int)(i / 2 % 2), i, AT + i * 1000, 1000);
	}
	for (uint64_t i = 0; i < 12; i++)
		x_send(&a, (i % 2 ? &a : &b)->srqn[i / 2 % 2], i, i * 1000, 1000);
	for (uint64_t i = 0; i < 12; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	for (uint64_t i = 0; i < 12; i += 2)
		side_wait_ok(&p->b, RECV_CQ, i);
	for (uint64_t i = 1; i < 12; i += 2)
		side_wait_ok(&p->a, RECV_CQ, i);
	for (uint64_t i = 0; i < 12; i++)
		side_check(i % 2 ? &p->a : &p->b, AT + i * 1000, 1000, i);
	end_shared(&f, &a, &b);
}

/* The first message finds no receive; those behind it have one, in another queue
 * and in another process, and still come after it. */
static void an_empty_queue_holds_up_what_follows(struct pair *p)
{
	struct x_file f;
	struct x a, b;

	start_shared(p, &f, &a, &b);
	x_recv(&b, 1, 2, AT, 100);
	x_recv(&a, 0, 3, AT, 100);
	x_send(&a, b.srqn[0], 1, 0, 100);
	x_send(&a, b.srqn[1], 2, 0, 100);
	x_send(&a, a.srqn[0], 3, 0, 100);
	side_expect_none(&p->b, RECV_CQ);
	side_expect_none(&p->a, RECV_CQ);
	side_expect_none(&p->a, SEND_CQ);
	x_recv(&b, 0, 1, AT, 100);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_wait_ok(&p->a, RECV_CQ, 3);
	for (uint64_t i = 1; i <= 3; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	end_shared(&f, &a, &b);
}

/* More pieces than the receiver pulls: through the data area, in fragments. */
static void long_messages_of_two_initiators_do_not_mix(struct pair *p)
{
	struct x_file f;
	struct x a, b;
	struct x_send s = { .opcode = IBV_WR_SEND, .length = 1 << 20,
			    .pieces = 8 };

	start_shared(p, &f, &a, &b);
	x_connect(p, &b, &b, X_ALL);
	s.srqn = b.srqn[0];
	for (int round = 0; round < 5; round++) {
		side_fill(&p->a, 0, s.length, 1);
		side_fill(&p->b, 0, s.length, 2);
		x_recv(&b, 0, 10, 1 << 20, s.length);
		x_recv(&b, 0, 11, 2 << 20, s.length);
		expect_eq(x_post(&a, &s), 0);
		expect_eq(x_post(&b, &s), 0);
		for (int i = 0; i < 2; i++) {
			struct ibv_wc wc = side_wait(&p->b, RECV_CQ);

			expect_status(wc, IBV_WC_SUCCESS);
			expect_eq(wc.byte_len, s.length);
			side_check(&p->b, (wc.wr_id - 9) << 20, s.length,
				   wc.qp_num == a.tgt ? 1 : 2);
		}
		side_wait_ok(&p->a, SEND_CQ, 0);
		side_wait_ok(&p->b, SEND_CQ, 0);
	}
	end_shared(&f, &a, &b);
}

static void a_full_ring_of_messages_goes_through(struct pair *p)
{
	struct x a, b;
	uint64_t sent = 0, seen = 0, done = 0;

	x_start(p, &a, &b);
	while (done < 2000) {
		struct polled polled;

		for (int i = 0; i < 8; i++)
			x_recv(&b, 0, 7, AT, 64);
		for (int i = 0; i < 8; i++)
			x_send(&a, b.srqn[0], sent++, 0, 64);
		polled = side_poll(&p->b, RECV_CQ, 8, WAIT_MS);
		expect_eq(polled.count, 8);
		seen += 8;
		polled = side_poll(&p->a, SEND_CQ, 8, WAIT_MS);
		expect_eq(polled.count, 8);
		for (int i = 0; i < 8; i++)
			expect_eq(polled.wc[i].wr_id, done++);
	}
	expect_eq(seen, sent);
	x_end(&a, &b);
}

static void a_reset_connection_starts_again(struct pair *p)
{
	struct x a, b;

	x_start(p, &a, &b);
	for (uint64_t round = 0; round < 5; round++) {
		exchange(&a, &b, &b, 0, 100, round, false);
		/* One that is in flight for want of a receive. */
		x_send(&a, b.srqn[1], 50, 0, 100);
		expect_eq(x_to_state(&a, X_INI, IBV_QPS_RESET), 0);
		expect_eq(x_to_state(&b, X_TGT, IBV_QPS_RESET), 0);
		p->conn.psn_a += 0x1111;
		x_connect(p, &a, &b, X_ALL);
		exchange(&a, &b, &b, 0, 100, 60 + round, false);
	}
	x_end(&a, &b);
}

static void events_wake_who_sleeps(struct pair *p)
{
	const struct side_options opt = { .bytes = 4 << 20, .events = true,
					  .mr_access = X_ALL };
	struct x a, b;

	pair_open(p, &opt);
	x_open(p, &p->a, &a, NULL);
	x_open(p, &p->b, &b, NULL);
	x_connect(p, &a, &b, X_ALL);
	x_recv(&b, 0, 1, AT, 100);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
	x_send(&a, b.srqn[0], 1, 0, 100);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
	x_end(&a, &b);
}

static void a_queue_has_its_limit_and_may_grow(struct pair *p)
{
	const struct ibv_srq_attr attr = { .max_wr = 2 * X_DEPTH,
					   .srq_limit = 2 * X_DEPTH };
	struct x a, b;

	x_start(p, &a, &b);
	for (uint64_t i = 0; i < X_DEPTH; i++)
		x_recv(&b, 0, i, AT, 100);
	expect_eq(x_srq_modify(&b, 0, &attr, IBV_SRQ_MAX_WR), 0);
	for (uint64_t i = X_DEPTH; i < 2 * X_DEPTH; i++)
		x_recv(&b, 0, i, AT, 100);
	expect_eq(x_srq_modify(&b, 0, &attr, IBV_SRQ_LIMIT), 0);
	expect_eq(side_async(&p->b, 0), -1);
	for (uint64_t i = 0; i < 2 * X_DEPTH; i++)
		x_send(&a, b.srqn[0], i, 0, 100);
	for (uint64_t i = 0; i < 2 * X_DEPTH; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	for (uint64_t i = 0; i < 2 * X_DEPTH; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_SRQ_LIMIT_REACHED);
	x_end(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE("IBTA A14", messages_reach_the_queue_that_they_name),
		RULE("IBTA A14",
		     all_operations_reach_the_memory_of_the_queues_domain),
		CASE(without_a_grh_it_is_this_host),
		RULE("IBTA A14", a_target_serves_the_queues_of_other_processes),
		{ .name = "three_processes_may_have_a_part_each",
		  .fn = three_processes_may_have_a_part_each, .spares = 1,
		  .rule = "IBTA A14" },
		RULE("IBTA A14", messages_to_several_processes_keep_their_order),
		RULE("IBTA 9.7.5.2.8", an_empty_queue_holds_up_what_follows),
		RULE("IBTA A14", long_messages_of_two_initiators_do_not_mix),
		CASE(a_full_ring_of_messages_goes_through),
		RULE("ibv_modify_qp(3)", a_reset_connection_starts_again),
		RULE("ibv_get_cq_event(3)", events_wake_who_sleeps),
		RULE("ibv_modify_srq(3)", a_queue_has_its_limit_and_may_grow),
	};

	return RUN_CASES(argc, argv, cases);
}
