/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What BUSBAR_CAPTURE shows of each operation, compared field by field with what was
 * posted, at both ends. Over shm the packets are those that an adapter would have sent
 * (transport/shm/watch/watch.h); over loop and roce they are those that were sent.
 */
#include <endian.h>
#include <string.h>

#include "captured.h"
#include "xrc_help.h"

enum { AT = 1 << 20, ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_ATOMIC,
       GRH = 40, QKEY = 0x11111111 };

static const struct side_options rc = { .bytes = 4 << 20,
					.mr_access = IBV_ACCESS_LOCAL_WRITE | ACCESS };

static struct capture_of here, there;
static uint32_t psn; /* of the next request of `a` */

static void start(struct pair *p, const struct side_options *opt)
{
	p->conn.access_a = p->conn.access_b = ACCESS;
	p->conn.timeout = 20; /* 4.3 s: nothing is sent twice because the peer was busy */
	pair_start(p, opt);
	psn = p->conn.psn_a;
}

static bool is_shm(void)
{
	return !strcmp(transport_under_test()->name, "shm");
}

/* Both captures are of one file where both sides are in one process. */
static void load(struct pair *p)
{
	side_close(&p->a);
	side_close(&p->b);
	captured_load(&p->a, &here);
	captured_load(&p->b, &there);
}

static void done(void)
{
	captured_free(&here);
	captured_free(&there);
}

/* What came to `b` is what left `a`, byte by byte. */
static void expect_the_same(bool answers)
{
	bool out = !answers;

	captured_rewind(&here);
	captured_rewind(&there);
	for (;;) {
		const struct captured *sent = captured_any(&here, out, answers);
		const struct captured *came = captured_any(&there, !out, answers);

		expect_eq(!came, !sent);
		if (!sent)
			return;
		expect_eq(came->length, sent->length);
		expect(!memcmp(came->frame, sent->frame, sent->length));
	}
}

static uint8_t opcode_at(uint8_t service, uint8_t first, bool is_first, bool is_last)
{
	return service + first + (is_first && is_last ? 4 : is_last ? 2 : !is_first);
}

/* The packets of a message of `length` bytes with pattern `seed`, from `a`: SENDs or
 * WRITEs (`first`: the opcode of their first packet). `last` and `only` are added to the
 * opcode of the last one. */
static const struct captured *expect_message(struct pair *p, uint8_t service,
					     uint8_t first, uint32_t length, uint64_t seed,
					     uint8_t extra_last)
{
	uint32_t at = 0;
	const struct captured *c, *begin = NULL;

	do {
		uint32_t bytes = length - at < MTU ? length - at : MTU;
		bool is_last = at + bytes == length;

		c = captured_request(&here, true);
		begin = begin ? begin : c;
		expect_eq(c->ib.opcode, opcode_at(service, first, at == 0, is_last) +
						(is_last ? extra_last : 0));
		expect_eq(c->ib.psn, psn);
		expect_eq(c->ib.dest_qpn, p->b.qpn[0]);
		expect_eq(c->ib.bytes, bytes);
		expect_eq(c->ib.pkey, 0xffff);
		expect(!memcmp(c->src, p->a.gid.raw + 12, 4));
		expect(!memcmp(c->dst, p->b.gid.raw + 12, 4));
		if (is_last && service == IB_SERVICE_RC)
			expect(c->ib.ack_req);
		for (uint32_t i = 0; i < bytes; i++)
			expect_eq(c->payload[i], pattern(seed, at + i));
		psn = (psn + 1) & 0xffffff;
		at += bytes;
	} while (at < length);
	if (begin->ib.headers & IB_HAS_RETH)
		expect_eq(begin->ib.reth.length, length);
	return c;
}

/* The last packet of a request from `a` was answered. Over loop one ACK may do for
 * several. */
static void expect_ack(struct pair *p, uint32_t msn)
{
	const struct captured *c;

	if (!is_shm())
		return;
	c = captured_answer(&here, false);
	expect_eq(c->ib.opcode, IB_ACKNOWLEDGE);
	expect_eq(c->ib.dest_qpn, p->a.qpn[0]);
	expect_eq(c->ib.psn, (psn - 1) & 0xffffff);
	expect_eq(c->ib.aeth.syndrome, 0x1f);
	expect_eq(c->ib.aeth.msn, msn);
	expect(!memcmp(c->dst, p->a.gid.raw + 12, 4));
}

/* The answer with data. Over loop an ACK of the same packet may precede it. */
static const struct captured *answer_with_data(void)
{
	const struct captured *c = captured_answer(&here, false);

	while (c->ib.opcode == IB_ACKNOWLEDGE && !is_shm())
		c = captured_answer(&here, false);
	return c;
}

static const uint32_t sizes[] = { 0,	1,     2,     96,    97,    1023,  1024,
				  1025, 16384, 16385, 32768, 32769, 70003 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void every_send_is_shown_in_packets(struct pair *p)
{
	start(p, &rc);
	for (uint64_t i = 0; i < SIZES; i++) {
		side_fill(&p->a, 0, sizes[i] + 1, i);
		side_recv(&p->b, i, AT, 1 << 20);
		side_send(&p->a, i, 0, sizes[i]);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	load(p);
	for (uint64_t i = 0; i < SIZES; i++) {
		const struct captured *c = expect_message(p, IB_SERVICE_RC, IB_SEND_FIRST,
							  sizes[i], i, 0);

		expect(!c->comment[0]);
		expect_ack(p, (uint32_t)i + 1);
	}
	expect(!captured_any(&here, true, false));
	expect_the_same(false);
	expect_the_same(true);
	done();
}

static void immediate_data_and_solicited_events_are_shown(struct pair *p)
{
	const struct captured *c;
	struct send_req r;

	start(p, &rc);
	side_fill(&p->a, 0, 3000, 1);
	for (uint64_t i = 0; i < 2; i++) {
		uint32_t length = i ? 3000 : 10;

		side_recv(&p->b, i, AT, 4096);
		r = send_req(&p->a, IBV_WR_SEND_WITH_IMM, i, 0, length);
		r.imm = htobe32(0xa1b2c3d4);
		r.flags |= IBV_SEND_SOLICITED;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	load(p);
	for (uint64_t i = 0; i < 2; i++) {
		c = expect_message(p, IB_SERVICE_RC, IB_SEND_FIRST, i ? 3000 : 10, 1, 1);
		expect_eq(c->ib.immdt, 0xa1b2c3d4);
		expect(c->ib.solicited);
	}
	expect_the_same(false);
	done();
}

static void a_key_to_be_invalidated_is_shown(struct pair *p)
{
	const struct captured *c;
	struct region region;
	struct send_req r;

	start(p, &rc);
	side_fill(&p->a, 0, 100, 1);
	side_recv(&p->b, 1, AT, 4096);
	region = side_reg(&p->b, 0, 4096, 0, 0);
	r = send_req(&p->a, IBV_WR_SEND_WITH_INV, 1, 0, 100);
	r.imm = region.rkey ^ 0x55; /* no key: `b` refuses it */
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait(&p->b, RECV_CQ);
	load(p);
	c = captured_request(&here, true);
	expect_eq(c->ib.opcode, IB_SEND_ONLY_INVALIDATE);
	expect_eq(c->ib.ieth.rkey, region.rkey ^ 0x55);
	done();
}

static void writes_are_shown_with_their_address(struct pair *p)
{
	const struct captured *c;
	struct send_req r;

	start(p, &rc);
	for (uint64_t i = 0; i < SIZES; i++) {
		side_fill(&p->a, 0, sizes[i] + 1, i);
		r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 0, AT + i, sizes[i]);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->b, AT + i, sizes[i], i);
		r.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		r.imm = htobe32(7 + (uint32_t)i);
		side_recv(&p->b, i, 0, 10);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	load(p);
	for (uint64_t i = 0; i < SIZES; i++) {
		unsigned before = here.next[true][false];

		c = captured_request(&here, true);
		expect_eq(c->ib.reth.va, p->b.addr + AT + i);
		expect_eq(c->ib.reth.rkey, p->b.rkey);
		expect_eq(c->ib.reth.length, sizes[i]);
		here.next[true][false] = before;
		expect_message(p, IB_SERVICE_RC, IB_WRITE_FIRST, sizes[i], i, 0);
		expect_ack(p, 2 * (uint32_t)i + 1);
		c = expect_message(p, IB_SERVICE_RC, IB_WRITE_FIRST, sizes[i], i, 1);
		expect_eq(c->ib.immdt, 7 + i);
		expect_ack(p, 2 * (uint32_t)i + 2);
	}
	expect_the_same(false);
	expect_the_same(true);
	done();
}

/* A request has a PSN for each packet of its answer. */
static void reads_are_shown_with_their_answers(struct pair *p)
{
	const struct captured *c;
	struct send_req r;

	start(p, &rc);
	for (uint64_t i = 0; i < SIZES; i++) {
		side_fill(&p->b, AT, sizes[i] + 1, i);
		r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, i, 0, AT, sizes[i]);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->a, 0, sizes[i], i);
	}
	load(p);
	for (uint64_t i = 0; i < SIZES; i++) {
		uint32_t at = 0, msn = 0;

		c = captured_request(&here, true);
		expect_eq(c->ib.opcode, IB_READ_REQUEST);
		expect_eq(c->ib.psn, psn);
		expect_eq(c->ib.reth.va, p->b.addr + AT);
		expect_eq(c->ib.reth.rkey, p->b.rkey);
		expect_eq(c->ib.reth.length, sizes[i]);
		do {
			uint32_t bytes = sizes[i] - at < MTU ? sizes[i] - at : MTU;
			bool is_last = at + bytes == sizes[i];

			c = answer_with_data();
			expect_eq(c->ib.opcode,
				  at == 0 && is_last ? IB_READ_RESPONSE_ONLY :
				  at == 0	     ? IB_READ_RESPONSE_FIRST :
				  is_last	     ? IB_READ_RESPONSE_LAST :
						       IB_READ_RESPONSE_MIDDLE);
			expect_eq(c->ib.psn, psn);
			expect_eq(c->ib.bytes, bytes);
			for (uint32_t k = 0; k < bytes; k++)
				expect_eq(c->payload[k], pattern(i, at + k));
			if (c->ib.headers & IB_HAS_AETH) {
				expect_eq(c->ib.aeth.syndrome, 0x1f);
				msn = c->ib.aeth.msn;
			}
			psn = (psn + 1) & 0xffffff;
			at += bytes;
		} while (at < sizes[i]);
		expect_eq(msn, i + 1);
	}
	expect_the_same(false);
	expect_the_same(true);
	done();
}

static void atomics_are_shown_with_what_was_there(struct pair *p)
{
	const struct captured *c;
	uint64_t before, word;
	struct send_req r;

	start(p, &rc);
	side_fill(&p->b, AT, 8, 3);
	side_peek(&p->b, AT, &before, 8);
	r = rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, AT, 8);
	r.compare_add = 5;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	r.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	r.wr_id = 2;
	r.compare_add = before + 5;
	r.swap = 77;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_peek(&p->b, AT, &word, 8);
	expect_eq(word, 77);
	load(p);
	c = captured_request(&here, true);
	expect_eq(c->ib.opcode, IB_FETCH_ADD);
	expect_eq(c->ib.psn, psn);
	expect_eq(c->ib.atomiceth.va, p->b.addr + AT);
	expect_eq(c->ib.atomiceth.rkey, p->b.rkey);
	expect_eq(c->ib.atomiceth.swap_add, 5);
	c = answer_with_data();
	expect_eq(c->ib.opcode, IB_ATOMIC_ACKNOWLEDGE);
	expect_eq(c->ib.psn, psn);
	expect_eq(c->ib.atomicacketh.original, before);
	expect_eq(c->ib.aeth.msn, 1);
	c = captured_request(&here, true);
	expect_eq(c->ib.opcode, IB_COMPARE_SWAP);
	expect_eq(c->ib.psn, psn + 1);
	expect_eq(c->ib.atomiceth.compare, before + 5);
	expect_eq(c->ib.atomiceth.swap_add, 77);
	c = answer_with_data();
	expect_eq(c->ib.atomicacketh.original, before + 5);
	expect_eq(c->ib.aeth.msn, 2);
	expect_the_same(false);
	expect_the_same(true);
	done();
}

static void unreliable_messages_are_shown_without_answers(struct pair *p)
{
	struct side_options uc = rc;
	struct send_req r;

	uc.type = IBV_QPT_UC;
	start(p, &uc);
	side_fill(&p->a, 0, 80000, 9);
	for (uint64_t i = 0; i < SIZES; i++) {
		side_recv(&p->b, i, AT, 1 << 20);
		side_send(&p->a, i, 0, sizes[i]);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, AT, 3000);
	side_recv(&p->b, 1, AT, 10);
	r.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 1);
	load(p);
	for (uint64_t i = 0; i < SIZES; i++)
		expect_message(p, IB_SERVICE_UC, IB_SEND_FIRST, sizes[i], 9, 0);
	expect_message(p, IB_SERVICE_UC, IB_WRITE_FIRST, 3000, 9, 1);
	expect(!captured_any(&here, false, true));
	expect_the_same(false);
	done();
}

static void datagrams_are_shown_with_their_numbers_and_addresses(struct pair *p)
{
	static const uint32_t lengths[] = { 0, 1, 55, 57, 1024, 4095, 4096 };
	static const struct side_options ud = { .type = IBV_QPT_UD, .bytes = 4 << 20 };
	const struct captured *c;
	int ah;

	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
	ah = side_ah_to(&p->a, &p->b.gid);
	side_fill(&p->a, 0, 4096, 4);
	for (uint64_t i = 0; i < 7; i++) {
		struct send_req r = send_req(&p->a,
					     i & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					     i, 0, lengths[i]);

		r.ah = ah;
		r.remote_qpn = p->b.qpn[0];
		r.qkey = QKEY;
		r.imm = htobe32(0xf00 + (uint32_t)i);
		side_recv(&p->b, i, AT, GRH + 4096);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	load(p);
	for (uint32_t i = 0; i < 7; i++) {
		c = captured_request(&here, true);
		expect_eq(c->ib.opcode, i & 1 ? IB_SERVICE_UD + IB_SEND_ONLY_IMM :
						IB_SERVICE_UD + IB_SEND_ONLY);
		expect_eq(c->ib.dest_qpn, p->b.qpn[0]);
		expect_eq(c->ib.deth.src_qpn, p->a.qpn[0]);
		expect_eq(c->ib.deth.qkey, QKEY);
		expect_eq(c->ib.bytes, lengths[i]);
		if (i & 1)
			expect_eq(c->ib.immdt, 0xf00 + i);
		expect(!memcmp(c->dst, p->b.gid.raw + 12, 4));
		for (uint32_t k = 0; k < lengths[i]; k++)
			expect_eq(c->payload[k], pattern(4, k));
	}
	expect_the_same(false);
	done();
}

static void a_message_that_was_not_received_is_shown_again(struct pair *p)
{
	const struct captured *c;
	unsigned again = 0;

	p->conn.min_rnr_timer = 20; /* 10 ms */
	start(p, &rc);
	side_fill(&p->a, 0, 3000, 1);
	side_send(&p->a, 1, 0, 3000);
	side_expect_none(&p->a, SEND_CQ);
	side_recv(&p->b, 1, AT, 4096);
	side_wait_ok(&p->a, SEND_CQ, 1);
	load(p);
	c = captured_answer(&here, false);
	expect_eq(c->ib.opcode, IB_ACKNOWLEDGE);
	expect_eq(c->ib.aeth.syndrome, 0x20 + 20);
	expect_eq(c->ib.aeth.msn, 0);
	expect_eq(c->ib.psn, psn);
	/* From the first packet on, with the same numbers. */
	expect_message(p, IB_SERVICE_RC, IB_SEND_FIRST, 3000, 1, 0);
	psn -= 3;
	c = expect_message(p, IB_SERVICE_RC, IB_SEND_FIRST, 3000, 1, 0);
	again = !strcmp(c->comment, "sent again");
	expect_eq(again, is_shm());
	captured_rewind(&here);
	for (const struct captured *last; (last = captured_any(&here, false, true));)
		c = last;
	expect_eq(c->ib.aeth.syndrome, 0x1f);
	expect_eq(c->ib.aeth.msn, 1);
	done();
}

static void a_refusal_is_shown(struct pair *p)
{
	const struct captured *c;
	struct send_req r;

	start(p, &rc);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, AT, 100);
	r.rkey ^= 0x10;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	load(p);
	c = captured_answer(&here, false);
	expect_eq(c->ib.opcode, IB_ACKNOWLEDGE);
	expect_eq(c->ib.psn, psn);
	expect_eq(c->ib.aeth.syndrome, 0x62);
	expect_the_same(true);
	done();
}

static void messages_to_xrc_queues_are_shown_with_their_number(struct pair *p)
{
	const struct captured *c;
	struct x_send s = { .opcode = IBV_WR_SEND, .wr_id = 1, .length = 3000 };
	struct x a, b;

	x_start(p, &a, &b);
	s.srqn = b.srqn[0];
	side_fill(&p->a, 0, 3000, 6);
	x_recv(&b, 0, 2, AT, 4096);
	expect_eq(x_post(&a, &s), 0);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_wait_ok(&p->a, SEND_CQ, 1);
	x_end(&a, &b);
	load(p);
	for (uint32_t i = 0; i < 3; i++) {
		c = captured_request(&here, true);
		expect_eq(c->ib.opcode, IB_SERVICE_XRC + IB_SEND_FIRST + i);
		expect_eq(c->ib.xrceth.srqn, b.srqn[0]);
		expect_eq(c->ib.dest_qpn, b.tgt);
		expect(!memcmp(c->payload, (const uint8_t[]){ pattern(6, i * MTU) }, 1));
	}
	c = captured_answer(&here, false);
	expect_eq(c->ib.opcode, IB_SERVICE_XRC + IB_ACKNOWLEDGE);
	expect_eq(c->ib.dest_qpn, a.ini);
	expect_the_same(false);
	done();
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(every_send_is_shown_in_packets),
		CASE(immediate_data_and_solicited_events_are_shown),
		CASE(a_key_to_be_invalidated_is_shown),
		CASE(writes_are_shown_with_their_address),
		CASE(reads_are_shown_with_their_answers),
		CASE(atomics_are_shown_with_what_was_there),
		CASE(unreliable_messages_are_shown_without_answers),
		CASE(datagrams_are_shown_with_their_numbers_and_addresses),
		CASE(a_message_that_was_not_received_is_shown_again),
		CASE(a_refusal_is_shown),
		CASE(messages_to_xrc_queues_are_shown_with_their_number),
	};

	captured_begin();
	return RUN_CASES(argc, argv, cases);
}
