/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of one-sided work on one queue pair: what a READ or an ATOMIC
 * behind a WRITE finds, and what a fence adds (InfiniBand specification volume 1,
 * 9.5 and the table of 10.8.3.3). Order between these and SEND is in order.c.
 */
#include <string.h>

#include "pair.h"

static const struct side_options all = {
	.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.bytes = 1 << 20,
};

/* In the buffer of either side. */
enum { WORD = 4096, TARGET = 8192, BACK = 1 << 19, ROUNDS = 40 };

static const uint32_t lengths[] = { 1, 8, 100, 4096, 40000, 300000 };

static void start(struct pair *p)
{
	p->conn.access_b = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &all);
}

static uint64_t word_at(struct side *s, uint64_t offset)
{
	uint64_t v;

	side_peek(s, offset, &v, sizeof(v));
	return v;
}

/* The 8 bytes at `offset` become eight times `value`. */
static uint64_t set_word(struct side *s, uint64_t offset, uint8_t value)
{
	side_set(s, offset, 8, value);
	return value * UINT64_C(0x0101010101010101);
}

static struct send_req quiet(struct send_req r)
{
	r.flags = 0;
	return r;
}

static struct send_req atomic(struct pair *p, enum ibv_wr_opcode opcode,
			      uint64_t offset, uint64_t compare_add,
			      uint64_t swap)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, 9, offset, WORD, 8);

	r.compare_add = compare_add;
	r.swap = swap;
	return r;
}

static void a_read_behind_a_write_finds_its_data(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t length = lengths[i % 6];
		struct send_req r[2] = {
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0,
				       TARGET, length)),
			rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, BACK,
				 TARGET, length),
		};

		side_fill(&p->a, 0, length, i);
		side_set(&p->a, BACK, length, 0);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		side_check(&p->a, BACK, length, i);
	}
}

static void of_two_writes_to_one_place_the_later_stays(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t length = lengths[i % 6];
		struct send_req r[2] = {
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0,
				       TARGET, length)),
			rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, BACK,
				 TARGET, length),
		};

		side_fill(&p->a, 0, length, 2 * i);
		side_fill(&p->a, BACK, length, 2 * i + 1);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		side_check(&p->b, TARGET, length, 2 * i + 1);
	}
}

static void a_fenced_write_does_not_change_what_the_read_before_it_brings(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t length = lengths[i % 6];
		struct send_req r[2] = {
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, BACK,
				       TARGET, length)),
			rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, 0, TARGET,
				 length),
		};

		r[1].flags |= IBV_SEND_FENCE;
		side_fill(&p->b, TARGET, length, 2 * i);
		side_fill(&p->a, 0, length, 2 * i + 1);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		side_check(&p->a, BACK, length, 2 * i);
		side_check(&p->b, TARGET, length, 2 * i + 1);
	}
}

static void a_fenced_write_carries_what_a_read_brought(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t length = lengths[i % 6];
		struct send_req r[2] = {
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0,
				       TARGET, length)),
			rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, 0, BACK,
				 length),
		};

		r[1].flags |= IBV_SEND_FENCE;
		side_fill(&p->b, TARGET, length, i);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		side_check(&p->b, BACK, length, i);
	}
}

static void a_fenced_write_carries_what_an_atomic_brought(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t before = set_word(&p->b, WORD, (uint8_t)(i + 1));
		struct send_req r[2] = {
			quiet(atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 1, 0)),
			rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, 64, TARGET,
				 8),
		};

		r[1].flags |= IBV_SEND_FENCE;
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		expect_eq(word_at(&p->b, TARGET), before);
	}
}

static void atomics_writes_and_reads_of_one_word_take_their_turns(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t first = set_word(&p->a, 0, (uint8_t)i);
		uint64_t second = set_word(&p->a, 8, (uint8_t)(i + 100));
		struct send_req r[] = {
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0,
				       WORD, 8)),
			quiet(atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 5, 0)),
			quiet(atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, 72,
				     first + 5, 7)),
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 80,
				       WORD, 8)),
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 8,
				       WORD, 8)),
			atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 88, 1, 0),
		};

		/* A READ may be overtaken by a WRITE behind it: fenced. */
		r[4].flags = IBV_SEND_FENCE;
		expect_eq(side_post_send(&p->a, 0, r, 6).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 9);
		expect_eq(word_at(&p->a, 64), first);
		expect_eq(word_at(&p->a, 72), first + 5);
		expect_eq(word_at(&p->a, 80), 7);
		expect_eq(word_at(&p->a, 88), second);
		expect_eq(word_at(&p->b, WORD), second + 1);
	}
}

static void work_behind_a_waiting_send_waits(struct pair *p)
{
	uint64_t before;
	struct send_req r[4];

	/* No receive is posted for the SEND, so nothing posted after it is executed. */
	start(p);
	before = set_word(&p->b, WORD, 3);
	set_word(&p->a, 80, 0);
	r[0] = send_req(&p->a, IBV_WR_SEND, 1, 0, 8);
	r[1] = atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 1, 0);
	r[2] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 80, WORD, 8);
	r[3] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 3, 0, TARGET, 8);
	set_word(&p->a, 0, 9);
	set_word(&p->b, TARGET, 0);
	expect_eq(side_post_send(&p->a, 0, r, 4).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(word_at(&p->b, WORD), before);
	expect_eq(word_at(&p->a, 80), 0);
	expect_eq(word_at(&p->b, TARGET), 0);
	side_recv(&p->b, 5, 1 << 16, 100);
	side_wait_ok(&p->b, RECV_CQ, 5);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 9);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_wait_ok(&p->a, SEND_CQ, 3);
	expect_eq(word_at(&p->a, 64), before);
	expect_eq(word_at(&p->a, 80), before + 1);
	expect_eq(word_at(&p->b, TARGET), UINT64_C(0x0909090909090909));
}

static void a_write_with_immediate_shows_what_was_written_before_it(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t length = lengths[i % 6];
		struct send_req r[2] = {
			quiet(rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0,
				       TARGET, length)),
			rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0,
				 0, 0),
		};

		r[1].num_sge = 0;
		side_fill(&p->a, 0, length, i);
		side_recv(&p->b, i, 0, 0);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_check(&p->b, TARGET, length, i);
		side_wait_ok(&p->a, SEND_CQ, 2);
	}
}

#define ORDER "IBTA 9.5"
#define FENCE "IBTA 10.8.3.3"

static const struct test_case cases[] = {
	RULE(ORDER, a_read_behind_a_write_finds_its_data),
	RULE(ORDER, of_two_writes_to_one_place_the_later_stays),
	RULE(ORDER, atomics_writes_and_reads_of_one_word_take_their_turns),
	RULE(ORDER, work_behind_a_waiting_send_waits),
	RULE(ORDER, a_write_with_immediate_shows_what_was_written_before_it),
	RULE(FENCE,
	     a_fenced_write_does_not_change_what_the_read_before_it_brings),
	RULE(FENCE, a_fenced_write_carries_what_a_read_brought),
	RULE(FENCE, a_fenced_write_carries_what_an_atomic_brought),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
