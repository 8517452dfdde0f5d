/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE and READ of many megabytes: posting does not wait for them, nor does other
 * work of the process; and what can happen in the middle of them. Where a case needs to
 * be in the middle it tries until it was: on a machine under load all may be copied
 * before the test gets on.
 */
#include <string.h>
#include <time.h>

#include "xrc_help.h"

#define MIB (UINT64_C(1) << 20)

enum { TRIES = 30, ODD = 13, FEW = MAX_WRS };
static const uint32_t LARGE = 48 << 20, WHOLE = 5 << 20;

static const struct side_options large = { .bytes = 64 * MIB, .one_cq = false };

static void start(struct pair *p)
{
	p->conn.timeout = 14;
	pair_start(p, &large);
}

static uint64_t word_at(struct side *s, uint64_t offset)
{
	uint64_t word;

	side_peek(s, offset, &word, sizeof(word));
	return word;
}

/* The last word of LARGE bytes, and one behind them. */
static void mark(struct side *s, uint8_t value)
{
	side_set(s, 0, 8, value);
	side_set(s, LARGE - 8, 16, value);
}

static bool is_complete(struct side *s, uint8_t value)
{
	return (uint8_t)word_at(s, LARGE - 8) == value;
}

static void post(struct pair *p, int qp, enum ibv_wr_opcode opcode, uint64_t wr_id,
		 uint32_t length)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, wr_id, 0, 0, length);

	expect_eq(side_post_send(&p->a, qp, &r, 1).ret, 0);
}

/* FEW operations with the numbers from 0 on, for a longer middle: after the last, a
 * short one, the target is complete with `value`. */
static void prepare_few(struct pair *p, enum ibv_wr_opcode opcode, uint8_t value,
			struct send_req r[FEW])
{
	bool read = opcode == IBV_WR_RDMA_READ;
	struct side *from = read ? &p->b : &p->a;

	mark(read ? &p->a : &p->b, 0);
	mark(from, 0);
	side_set(from, LARGE + 64, 8, value);
	for (uint64_t i = 0; i < FEW - 1; i++)
		r[i] = rdma_req(&p->a, &p->b, opcode, i, 0, 0, LARGE);
	r[FEW - 1] = rdma_req(&p->a, &p->b, opcode, FEW - 1,
			      read ? LARGE - 8 : LARGE + 64,
			      read ? LARGE + 64 : LARGE - 8, 8);
}

static void post_few(struct pair *p, enum ibv_wr_opcode opcode, uint8_t value)
{
	struct send_req r[FEW];

	prepare_few(p, opcode, value, r);
	expect_eq(side_post_send(&p->a, 0, r, FEW).ret, 0);
}

/* Those that ended well, in order; then `status` ends one, and the rest is flushed. True
 * if it was so; false if all went well. */
static bool few_ended(struct pair *p, enum ibv_wc_status status)
{
	bool failed = false;

	for (uint64_t i = 0; i < FEW; i++) {
		struct ibv_wc wc = side_wait(&p->a, SEND_CQ);

		expect_eq(wc.wr_id, i);
		if (failed)
			expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		else if (wc.status != IBV_WC_SUCCESS)
			expect_eq(wc.status, status);
		failed |= wc.status != IBV_WC_SUCCESS;
	}
	return failed;
}

static void posting_returns_before_the_copy_is_done(struct pair *p)
{
	int early = 0;

	need_arrival();
	start(p);
	for (int i = 1; i <= TRIES && !early; i++) {
		post_few(p, IBV_WR_RDMA_WRITE, (uint8_t)i);
		early += !is_complete(&p->b, (uint8_t)i);
		expect(!few_ended(p, IBV_WC_SUCCESS));
		expect(is_complete(&p->b, (uint8_t)i));
		expect_eq(word_at(&p->b, LARGE), 0);
	}
	expect(early);
}

static void a_read_does_not_hold_up_posting_either(struct pair *p)
{
	int early = 0;

	start(p);
	for (int i = 1; i <= TRIES && !early; i++) {
		post_few(p, IBV_WR_RDMA_READ, (uint8_t)i);
		early += !is_complete(&p->a, (uint8_t)i);
		expect(!few_ended(p, IBV_WC_SUCCESS));
		expect(is_complete(&p->a, (uint8_t)i));
		expect_eq(word_at(&p->a, LARGE), 0);
	}
	expect(early);
}

/* Both queue pairs complete to the queue that is polled. */
static void other_queue_pairs_complete_meanwhile(struct pair *p)
{
	int first = 0;

	start(p);
	expect_eq(side_qp_create(&p->a, &large), 1);
	expect_eq(side_qp_create(&p->b, &large), 1);
	pair_connect_qp(p, 1);
	for (int i = 0; i < TRIES && !first; i++) {
		struct recv_req r = { .wr_id = 9, .num_sge = 1,
				      .sge = { side_sge(&p->b, LARGE + 64, 64) } };
		struct send_req s = send_req(&p->a, IBV_WR_SEND, FEW, LARGE + 64, 8);

		expect_eq(side_post_recv(&p->b, 1, &r, 1).ret, 0);
		post_few(p, IBV_WR_RDMA_WRITE, (uint8_t)i);
		expect_eq(side_post_send(&p->a, 1, &s, 1).ret, 0);
		for (int k = 0; k <= FEW; k++)
			first += side_wait(&p->a, SEND_CQ).wr_id == FEW && k < FEW;
		side_wait_ok(&p->b, RECV_CQ, 9);
	}
	expect(first);
}

static void later_entries_wait_for_the_copy(struct pair *p)
{
	struct send_req r[4];

	start(p);
	for (int i = 1; i <= 3; i++) {
		mark(&p->b, 0);
		mark(&p->a, (uint8_t)i);
		side_set(&p->a, LARGE + 64, 8, (uint8_t)i);
		side_recv(&p->b, 9, LARGE + 1024, 64);
		r[0] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, LARGE);
		r[1] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, LARGE + 64,
				LARGE + 64, 8);
		r[2] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 3, LARGE + 128,
				LARGE - 8, 8);
		r[3] = send_req(&p->a, IBV_WR_SEND, 4, LARGE + 64, 8);
		expect_eq(side_post_send(&p->a, 0, r, 4).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, 9);
		expect(is_complete(&p->b, (uint8_t)i));
		expect_eq((uint8_t)word_at(&p->b, LARGE + 64), i);
		for (uint64_t id = 1; id <= 4; id++)
			side_wait_ok(&p->a, SEND_CQ, id);
		expect_eq((uint8_t)word_at(&p->a, LARGE + 128), i);
	}
}

static void immediate_data_come_behind_the_last_byte(struct pair *p)
{
	start(p);
	for (int i = 1; i <= 3; i++) {
		struct ibv_wc wc;

		mark(&p->b, 0);
		mark(&p->a, (uint8_t)i);
		side_recv(&p->b, 9, LARGE + 1024, 64);
		post(p, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 1, LARGE);
		wc = side_wait_ok(&p->b, RECV_CQ, 9);
		expect(is_complete(&p->b, (uint8_t)i));
		expect_eq(wc.byte_len, LARGE);
		side_wait_ok(&p->a, SEND_CQ, 1);
	}
	/* There is a receive for it later only. */
	post(p, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 1, LARGE);
	side_expect_none(&p->a, SEND_CQ);
	side_recv(&p->b, 9, LARGE + 1024, 64);
	side_wait_ok(&p->b, RECV_CQ, 9);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

/* In pieces that no part ends with. */
static struct send_req in_pieces(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, 1, 0, ODD, WHOLE);
	uint64_t at = 0;

	r.num_sge = 4;
	for (int i = 0; i < 4; i++) {
		uint32_t length = i < 3 ? MIB * (uint32_t)i + 77777 :
					  WHOLE - (uint32_t)at;

		r.sge[i] = side_sge(&p->a, at, length);
		at += length;
	}
	return r;
}

static void every_byte_is_copied_once(struct pair *p)
{
	struct side_options pieces = large;
	struct send_req r;

	pieces.sges = 4;
	p->conn.timeout = 14;
	pair_start(p, &pieces);
	side_fill(&p->a, 0, WHOLE, 3);
	r = in_pieces(p, IBV_WR_RDMA_WRITE);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, ODD, WHOLE, 3);
	expect_eq(word_at(&p->b, (ODD + WHOLE + 8) & ~7u), 0);
	side_fill(&p->b, ODD, WHOLE, 4);
	r = in_pieces(p, IBV_WR_RDMA_READ);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->a, 0, WHOLE, 4);
	expect_eq(word_at(&p->a, WHOLE), 0);
}

/* What one posting call brings is not copied at once altogether. */
static void a_chain_of_writes_keeps_its_order(struct pair *p)
{
	struct send_req r[MAX_WRS];

	start(p);
	for (uint32_t i = 0; i < MAX_WRS; i++) {
		side_fill(&p->a, i * MIB, 1 << 20, i + 1);
		/* Each over a part of the one before. */
		r[i] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, i * MIB,
				i * MIB / 2, 1 << 20);
	}
	expect_eq(side_post_send(&p->a, 0, r, MAX_WRS).ret, 0);
	for (uint32_t i = 0; i < MAX_WRS; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	for (uint32_t i = 0; i < MAX_WRS; i++)
		side_check(&p->b, i * MIB / 2, i < MAX_WRS - 1 ? MIB / 2 : MIB, i + 1);
}

static void unreliable_connections_copy_by_parts(struct pair *p)
{
	struct side_options uc = large;

	uc.type = IBV_QPT_UC;
	pair_start(p, &uc);
	side_fill(&p->a, 0, WHOLE, 5);
	side_recv(&p->b, 9, LARGE, 64);
	post(p, 0, IBV_WR_RDMA_WRITE, 1, WHOLE);
	post(p, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 2, WHOLE);
	side_wait_ok(&p->b, RECV_CQ, 9);
	side_check(&p->b, 0, WHOLE, 5);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 2);
}

static void extended_connections_copy_by_parts(struct pair *p)
{
	struct x_send s = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1,
			    .length = 3 << 20 };
	struct x a, b;

	need_no_rnic("its queue pairs are of RC only");
	x_start(p, &a, &b);
	s.srqn = b.srqn[0];
	s.rkey = b.side->rkey;
	s.remote_addr = b.side->addr;
	side_fill(a.side, 0, s.length, 6);
	expect_eq(x_post(&a, &s), 0);
	s.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	s.wr_id = 2;
	x_recv(&b, 0, 9, 0, 0);
	expect_eq(x_post(&a, &s), 0);
	side_wait_ok(b.side, RECV_CQ, 9);
	side_check(b.side, 0, s.length, 6);
	side_wait_ok(a.side, SEND_CQ, 1);
	side_wait_ok(a.side, SEND_CQ, 2);
	side_fill(b.side, 0, s.length, 7);
	s.opcode = IBV_WR_RDMA_READ;
	expect_eq(x_post(&a, &s), 0);
	side_wait_ok(a.side, SEND_CQ, 2);
	side_check(a.side, 0, s.length, 7);
	x_end(&a, &b);
}

/* ---- without anybody who polls ---- */

static void nanosleep_1_ms(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void a_copy_needs_no_poll(struct pair *p)
{
	start(p);
	for (int i = 1; i <= 3; i++) {
		uint64_t end = now_ms() + WAIT_MS;

		mark(&p->b, 0);
		mark(&p->a, (uint8_t)i);
		post(p, 0, IBV_WR_RDMA_WRITE, 1, LARGE);
		while (!is_complete(&p->b, (uint8_t)i) && now_ms() < end)
			nanosleep_1_ms();
		expect(is_complete(&p->b, (uint8_t)i));
		side_wait_ok(&p->a, SEND_CQ, 1);
		/* The next time it is one that polled a moment ago. */
		for (int k = 0; k < 2000; k++)
			side_poll(&p->a, SEND_CQ, 1, 0);
	}
}

static void an_event_tells_of_the_end(struct pair *p)
{
	struct side_options events = large;

	need_arrival();
	events.events = true;
	pair_start(p, &events);
	for (int i = 1; i <= 3; i++) {
		mark(&p->b, 0);
		mark(&p->a, (uint8_t)i);
		post(p, 0, IBV_WR_RDMA_WRITE, 1, LARGE);
		expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
		if (!side_poll(&p->a, SEND_CQ, 1, 0).count) {
			expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
			side_wait_ok(&p->a, SEND_CQ, 1);
		}
		expect(is_complete(&p->b, (uint8_t)i));
	}
}

/* ---- in the middle ---- */

/* `s` overwrites what may still be written, and it stays: a word of each page. */
static int overwrite(struct end *e, void *arg)
{
	for (uint64_t at = 0; at < LARGE; at += 4096)
		*(volatile uint64_t *)(void *)(e->buffer + at) = 0x1111;
	e->buffer[LARGE - 1] = 0x11;
	return 0;
}

static int is_overwritten(struct end *e, void *arg)
{
	for (uint64_t at = 0; at < LARGE; at += 4096)
		if (*(volatile uint64_t *)(void *)(e->buffer + at) != 0x1111)
			return 0;
	return e->buffer[LARGE - 1] == 0x11;
}

static void nothing_is_written(struct side *s)
{
	struct timespec quiet = { .tv_nsec = QUIET_MS * 1000000l };

	expect_eq(side_run(s, overwrite, NULL, 0), 0);
	nanosleep(&quiet, NULL);
	expect_eq(side_run(s, is_overwritten, NULL, 0), 1);
}

static void destruction_ends_a_copy(struct pair *p)
{
	const char *access = getenv("BUSBAR_SHM_ACCESS");
	/* By procmem, too, until the file of the peer's memory has come over the link. */
	bool by_target = transport_under_test()->streams ||
			 (access && (!strcmp(access, "target") || !strcmp(access, "procmem")));
	int middle = 0;

	start(p);
	for (int i = 1; i <= TRIES && !middle; i++) {
		post_few(p, IBV_WR_RDMA_WRITE, (uint8_t)i);
		side_poll(&p->a, SEND_CQ, 1, 0);
		expect_eq(side_qp_destroy(&p->a, 0), 0);
		middle += !is_complete(&p->b, (uint8_t)i);
		/* What the target carries out, or TCP has taken, may be on its way to it. */
		if (!by_target)
			nothing_is_written(&p->b);
		expect_eq(side_qp_destroy(&p->b, 0), 0);
		nothing_is_written(&p->b);
		expect_eq(side_qp_create(&p->a, &large), 0);
		expect_eq(side_qp_create(&p->b, &large), 0);
		pair_connect_qp(p, 0);
	}
	expect(middle);
}

static void reset_ends_a_copy(struct pair *p)
{
	int middle = 0;

	start(p);
	for (int i = 1; i <= TRIES && !middle; i++) {
		post_few(p, IBV_WR_RDMA_READ, (uint8_t)i);
		side_poll(&p->a, SEND_CQ, 1, 0);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
		middle += !is_complete(&p->a, (uint8_t)i);
		nothing_is_written(&p->a);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
		/* It works as before, from the beginning. */
		mark(&p->b, (uint8_t)i);
		post(p, 0, IBV_WR_RDMA_READ, 2, LARGE);
		side_wait_ok(&p->a, SEND_CQ, 2);
		expect(is_complete(&p->a, (uint8_t)i));
	}
	expect(middle);
}

/* With the completion the buffers are the program's again. */
static void an_error_flushes_when_the_copy_stands_still(struct pair *p)
{
	int middle = 0;

	start(p);
	for (int i = 1; i <= TRIES && !middle; i++) {
		post_few(p, IBV_WR_RDMA_READ, (uint8_t)i);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
		for (uint64_t k = 0; k < FEW; k++) {
			struct ibv_wc wc = side_wait(&p->a, SEND_CQ);

			expect_eq(wc.wr_id, k);
			if (wc.status == IBV_WC_SUCCESS)
				continue;
			expect_status(wc, IBV_WC_WR_FLUSH_ERR);
			expect(!is_complete(&p->a, (uint8_t)i));
			if (!middle++)
				nothing_is_written(&p->a);
		}
		side_expect_none(&p->a, SEND_CQ);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
	expect(middle);
}

static void a_key_that_is_withdrawn_ends_a_copy(struct pair *p)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int middle = 0;

	start(p);
	for (int i = 1; i <= TRIES && !middle; i++) {
		struct region mr = side_reg(&p->b, 0, LARGE, access, 0);
		struct send_req r[FEW];

		prepare_few(p, IBV_WR_RDMA_WRITE, (uint8_t)i, r);
		for (int k = 0; k < FEW; k++)
			r[k].rkey = mr.rkey;
		expect_eq(side_post_send(&p->a, 0, r, FEW).ret, 0);
		expect_eq(side_dereg(&p->b, mr.index), 0);
		nothing_is_written(&p->b);
		middle += few_ended(p, IBV_WC_REM_ACCESS_ERR);
	}
	expect(middle);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
}

static void a_local_key_that_is_withdrawn_ends_a_copy(struct pair *p)
{
	int middle = 0;

	start(p);
	for (int i = 1; i <= TRIES && !middle; i++) {
		struct region mr = side_reg(&p->a, 0, LARGE, IBV_ACCESS_LOCAL_WRITE, 0);
		struct send_req r[FEW];

		prepare_few(p, IBV_WR_RDMA_READ, (uint8_t)i, r);
		for (int k = 0; k < FEW; k++)
			r[k].sge[0].lkey = mr.lkey;
		expect_eq(side_post_send(&p->a, 0, r, FEW).ret, 0);
		expect_eq(side_dereg(&p->a, mr.index), 0);
		nothing_is_written(&p->a);
		middle += few_ended(p, IBV_WC_LOC_PROT_ERR);
	}
	expect(middle);
}

static void a_drained_queue_has_copied(struct pair *p)
{
	const struct ibv_qp_attr drain = { .qp_state = IBV_QPS_SQD,
					   .en_sqd_async_notify = 1 };

	need_no_rnic("it has no state SQD");
	start(p);
	mark(&p->a, 1);
	post(p, 0, IBV_WR_RDMA_WRITE, 1, LARGE);
	expect_eq(side_modify(&p->a, 0, &drain,
			      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	post(p, 0, IBV_WR_RDMA_READ, 2, LARGE);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_SQ_DRAINED);
	expect(is_complete(&p->b, 1));
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
}

static void the_death_of_the_peer_ends_a_copy(struct pair *p)
{
	struct ibv_wc wc;

	p->conn.retry_cnt = 1;
	start(p);
	side_stop(&p->b);
	post(p, 0, IBV_WR_RDMA_WRITE, 1, LARGE);
	side_kill(&p->b);
	wc = side_wait(&p->a, SEND_CQ);
	expect(wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_SUCCESS);
	post(p, 0, IBV_WR_RDMA_WRITE, 2, LARGE);
	wc = side_wait(&p->a, SEND_CQ);
	expect_eq(wc.wr_id, 2);
	expect(wc.status != IBV_WC_SUCCESS);
}

/* ---- all at once ---- */

struct work {
	uint64_t remote;
	uint32_t rkey;
	int rounds;
};

/* Posts to QP 0 and, from one queue with others, polls until its completions came. */
static int write_and_poll(struct end *e, void *arg)
{
	struct work *w = arg;

	for (int i = 0; i < w->rounds; i++) {
		struct ibv_sge sge = { (uintptr_t)e->buffer, WHOLE, e->mr[0]->lkey };
		struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1,
					  .opcode = i % 2 ? IBV_WR_RDMA_READ :
							    IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED,
					  .wr.rdma = { w->remote, w->rkey } }, *bad;
		uint64_t end = now_ms() + WAIT_MS;
		struct ibv_wc wc;
		int n;

		if (ibv_post_send(e->qp[0], &wr, &bad))
			return -1;
		do {
			n = ibv_poll_cq(e->cq[SEND_CQ], 1, &wc);
		} while (!n && now_ms() < end);
		if (n != 1 || wc.status != IBV_WC_SUCCESS)
			return -2;
	}
	return 0;
}

/* Meanwhile keys, other queue pairs and sleepers come and go at the same side. */
static void others_come_and_go_meanwhile(struct pair *p)
{
	struct work w = { .rounds = 60 };

	start(p);
	w.remote = p->b.addr;
	w.rkey = p->b.rkey;
	side_start(&p->a, write_and_poll, &w, sizeof(w));
	for (int i = 0; i < 30; i++) {
		struct region mr = side_reg(&p->a, LARGE, 4096,
					    IBV_ACCESS_LOCAL_WRITE, 0);
		int qp = side_qp_create(&p->a, &large);
		struct send_req r;

		expect_eq(side_qp_create(&p->b, &large), qp);
		pair_connect_qp(p, qp);
		/* Behind the bytes that the other thread writes and reads. */
		r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, WHOLE, WHOLE, WHOLE);
		expect_eq(side_post_send(&p->a, qp, &r, 1).ret, 0);
		expect_eq(side_dereg(&p->a, mr.index), 0);
		expect_eq(side_qp_destroy(&p->a, qp), 0);
		expect_eq(side_qp_destroy(&p->b, qp), 0);
	}
	expect_eq(side_join(&p->a, &w, sizeof(w)), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(posting_returns_before_the_copy_is_done),
		CASE(a_read_does_not_hold_up_posting_either),
		CASE(other_queue_pairs_complete_meanwhile),
		CASE(later_entries_wait_for_the_copy),
		CASE(immediate_data_come_behind_the_last_byte),
		CASE(every_byte_is_copied_once),
		CASE(a_chain_of_writes_keeps_its_order),
		CASE(unreliable_connections_copy_by_parts),
		CASE(extended_connections_copy_by_parts),
		CASE(a_copy_needs_no_poll),
		CASE(an_event_tells_of_the_end),
		CASE(destruction_ends_a_copy),
		CASE(reset_ends_a_copy),
		CASE(an_error_flushes_when_the_copy_stands_still),
		CASE(a_key_that_is_withdrawn_ends_a_copy),
		CASE(a_local_key_that_is_withdrawn_ends_a_copy),
		CASE(a_drained_queue_has_copied),
		CASE_IN(ONLY_TWO_PROCESSES, the_death_of_the_peer_ends_a_copy),
		CASE(others_come_and_go_meanwhile),
	};

	return RUN_CASES(argc, argv, cases);
}
