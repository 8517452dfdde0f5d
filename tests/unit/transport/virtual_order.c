/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the network does to the packets of a connection, and what the messages see of it:
 * nothing. What is lost is asked for, what comes again is not carried out again (IBTA
 * volume 1, 9.7.1 to 9.7.5), and unreliable messages arrive whole or not at all (9.8.3).
 */
#include <string.h>

#include "util/container_of.h"
#include "virtual.h"

static struct side *const a = &sides[0], *const b = &sides[1];

#define TIMEOUT 14 /* 67 ms: what takes less was not repeated by time */
#define SHORT (2 * MS)

static const struct options small = { .timeout = TIMEOUT, .retry_cnt = 7, .rnr_retry = 7,
				      .min_rnr_timer = 1, .mtu = IBV_MTU_256 };

static bool is_read_response(const struct packet_seen *p)
{
	return p->opcode >= IB_READ_RESPONSE_FIRST && p->opcode <= IB_READ_RESPONSE_ONLY;
}

static bool is_atomic_response(const struct packet_seen *p)
{
	return p->opcode == IB_ATOMIC_ACKNOWLEDGE;
}

static bool is_acknowledgement(const struct packet_seen *p)
{
	return p->opcode == IB_ACKNOWLEDGE;
}

/* ---- sequence NAKs ---- */

/* Two messages of eight packets, of which one packet is lost. */
static void lose_one_of_two_messages(unsigned k, enum ibv_wr_opcode op)
{
	const bool takes = op != IBV_WR_RDMA_WRITE;

	pair_start(&small);
	memset(b->memory, 0, 8192);
	lose_behind(k, 1, is_request);
	for (uint32_t i = 0; i < 2; i++) {
		side_fill(a, i * 2048, 2048, i + 1);
		if (takes)
			side_receive(b, i, i * 2048, 2048);
		side_post(a, &(struct request){ .opcode = op, .id = i, .at = i * 2048,
						.to = i * 2048, .bytes = 2048, .imm = i });
	}
	play(a, SENDS, 2, SHORT);
	for (uint32_t i = 0; i < 2; i++) {
		expect_done(a, SENDS, i, i, IBV_WC_SUCCESS);
		if (takes)
			expect_done(b, RECEIVES, i, i, IBV_WC_SUCCESS);
		side_check(b, i * 2048, 2048, i + 1);
	}
	/* Everything from the lost packet on, once. */
	expect_eq(net.requests, 16 + 16 - k);
	expect_eq(net.naks, 1);
	pair_end();
}

static void a_lost_packet_is_asked_for_by_one_nak_wherever_it_was(void)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_WRITE_WITH_IMM };

	for (size_t op = 0; op < ARRAY_SIZE(ops); op++)
		for (unsigned k = 0; k < 15; k++) /* behind the last there is no gap */
			lose_one_of_two_messages(k, ops[op]);
}

static void a_lost_nak_is_replaced_by_the_timeout(void)
{
	uint64_t from;

	pair_start(&small);
	for (uint32_t i = 0; i < 2; i++)
		side_receive(b, i, i * 2048, 2048);
	lose(1, is_request);
	side_send(a, 0, 2048);
	lose(1, is_acknowledgement); /* the NAK */
	from = virtual_now_ns();
	play(a, SENDS, 1, 5 * rc_timeout_ns(TIMEOUT));
	expect_done(a, SENDS, 0, 0, IBV_WC_SUCCESS);
	expect_within(a->done[SENDS][0].at_ns - from, rc_timeout_ns(TIMEOUT),
		      4 * rc_timeout_ns(TIMEOUT) + LATE_NS);
	expect_eq(net.naks, 1);
	pair_end();
}

static void one_acknowledgement_tells_of_all_whose_own_were_lost(void)
{
	for (unsigned lost = 1; lost < 10; lost++) {
		pair_start(&small);
		for (uint32_t i = 0; i < 10; i++)
			side_receive(b, i, 0, 100);
		lose(lost, is_acknowledgement);
		for (uint32_t i = 0; i < 10; i++) {
			side_send(a, i, 50);
			play_until(virtual_now_ns() + 100 * US);
			expect_eq(a->count[SENDS], i < lost ? 0 : i + 1);
		}
		play(a, SENDS, 10, SHORT);
		play(b, RECEIVES, 10, SHORT);
		expect_eq(net.requests, 10);
		pair_end();
	}
}

/* ---- READs and atomics ---- */

static void read_with_a_lost_response(unsigned k, unsigned count)
{
	pair_start(&small);
	side_fill(b, 0, 2048, 3);
	side_fill(b, 2048, 2048, 4);
	memset(a->memory, 0, 4096);
	lose_behind(k, count, is_read_response);
	for (uint32_t i = 0; i < 2; i++)
		side_post(a, &(struct request){ .opcode = IBV_WR_RDMA_READ, .id = i,
						.at = i * 2048, .to = i * 2048,
						.bytes = 2048 });
	play(a, SENDS, 2, 4 * rc_timeout_ns(TIMEOUT) * count + SHORT);
	for (uint32_t i = 0; i < 2; i++)
		expect_done(a, SENDS, i, i, IBV_WC_SUCCESS);
	side_check(a, 0, 2048, 3);
	side_check(a, 2048, 2048, 4);
	pair_end();
}

static void each_lost_packet_of_a_read_response_is_read_again(void)
{
	for (unsigned k = 0; k < 16; k++)
		for (unsigned count = 1; count <= 7; count += 3)
			read_with_a_lost_response(k, count);
}

static void only_the_missing_rest_of_a_read_is_read_again(void)
{
	for (unsigned k = 0; k < 7; k++) {
		pair_start(&small);
		lose_behind(k, 1, is_read_response);
		side_post(a, &(struct request){ .opcode = IBV_WR_RDMA_READ, .bytes = 2048 });
		play(a, SENDS, 1, SHORT);
		expect_eq(net.requests, 2);
		/* Those that were on their way came as well. */
		expect_eq(net.answers, 8 + 8 - k);
		pair_end();
	}
}

/* Eight in a row; the response of one is lost several times. */
static void atomics_with_a_lost_response(enum ibv_wr_opcode op, unsigned k, unsigned count)
{
	uint64_t value = 1000, old;

	pair_start(&small);
	memcpy(b->memory, &value, 8);
	lose_behind(k, count, is_atomic_response);
	for (uint32_t i = 0; i < 8; i++)
		side_post(a, &(struct request){
			.opcode = op, .id = i, .at = 64 + i * 8, .bytes = 8,
			.compare_add = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : 1000 + i,
			.swap = 1001 + i });
	play(a, SENDS, 8, 8 * 4 * rc_timeout_ns(TIMEOUT));
	for (uint32_t i = 0; i < 8; i++) {
		expect_done(a, SENDS, i, i, IBV_WC_SUCCESS);
		memcpy(&old, a->memory + 64 + i * 8, 8);
		expect_eq(old, 1000 + i);
	}
	memcpy(&value, b->memory, 8);
	expect_eq(value, 1008);
	pair_end();
}

static void an_atomic_whose_response_is_lost_is_carried_out_once(void)
{
	for (unsigned k = 0; k < 8; k++)
		for (unsigned count = 1; count <= 7; count++) {
			atomics_with_a_lost_response(IBV_WR_ATOMIC_FETCH_AND_ADD, k, count);
			atomics_with_a_lost_response(IBV_WR_ATOMIC_CMP_AND_SWP, k, count);
		}
}

static void a_fenced_send_waits_for_the_read_whose_response_is_lost(void)
{
	for (unsigned lost = 0; lost < 8; lost++) {
		pair_start(&small);
		side_fill(b, 0, 2048, 6);
		memset(a->memory, 0, 2048);
		side_receive(b, 2, 8192, 2048);
		lose_behind(lost, 1, is_read_response);
		side_post(a, &(struct request){ .opcode = IBV_WR_RDMA_READ, .id = 1,
						.bytes = 2048 });
		side_post(a, &(struct request){ .opcode = IBV_WR_SEND, .id = 2, .bytes = 2048,
						.flags = IBV_SEND_FENCE });
		play(a, SENDS, 2, 5 * rc_timeout_ns(TIMEOUT));
		expect_eq(b->count[RECEIVES], 1);
		side_check(b, 8192, 2048, 6);
		pair_end();
	}
}

static void no_more_than_a_window_leaves_without_an_acknowledgement(void)
{
	pair_start(&small);
	side_receive(b, 1, 0, 100000);
	side_send(a, 1, 100000);
	play_until(virtual_now_ns() + DELAY_NS - 1);
	expect_eq(net.requests, virtual_hosts[0].port.medium->window);
	play(a, SENDS, 1, SHORT);
	expect_eq(net.requests, (100000 + 255) / 256);
	pair_end();
}

/* Messages of several packets to two queue pairs, which take turns at the receives. */
static void a_message_that_has_begun_keeps_its_receive_of_a_shared_queue(void)
{
	struct options o = small;
	uint32_t receives = 0;

	o.srq = true;
	pair_start(&o);
	o.share = b;
	sides_open(2, 0, 1, &o);
	lose_behind(5, 3, is_request);
	for (; receives < 20; receives++)
		side_receive(b, receives, 65536 + receives * 2048, 2048);
	for (uint32_t i = 0; i < 10; i++)
		for (unsigned k = 0; k < 4; k += 2) {
			side_fill(&sides[k], i * 2048, 2048, k * 10 + i);
			side_post(&sides[k], &(struct request){
				.opcode = IBV_WR_SEND, .id = i, .at = i * 2048, .bytes = 2048 });
			play_until(virtual_now_ns() + 300);
		}
	for (unsigned k = 0; k < 4; k += 2) {
		play(&sides[k], SENDS, 10, 5 * rc_timeout_ns(TIMEOUT));
		play(&sides[k + 1], RECEIVES, 10, SHORT);
		for (uint32_t i = 0; i < 10; i++) {
			const struct ibv_wc *wc = &sides[k + 1].done[RECEIVES][i].wc;

			expect_eq(wc->status, IBV_WC_SUCCESS);
			expect_eq(wc->byte_len, 2048);
			side_check(b, 65536 + (uint32_t)wc->wr_id * 2048, 2048, k * 10 + i);
		}
	}
	pair_end();
}

/* ---- whole networks ---- */

static struct plan usual(unsigned messages)
{
	return (struct plan){
		.pairs = 2, .hosts = 2, .messages = messages,
		.net.link.delay_ns = 3000,
		.options = { .timeout = 9, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 2,
			     .mtu = IBV_MTU_512, .psn = 0xfffff0 },
	};
}

static void play_seeds(struct plan *p, unsigned seeds, bool all)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct played r = virtual_play(p, seed);

		expect(!all || r.messages == 2 * p->pairs * p->messages);
	}
}

static void copies_of_all_packets_change_nothing(void)
{
	struct plan p = usual(60);

	p.net.link.duplicate = 1;
	play_seeds(&p, 4, true);
}

static void packets_in_any_order_change_nothing(void)
{
	struct plan p = usual(60);

	for (unsigned i = 1; i <= 10; i++) {
		p.net.link.reorder = i / 10.;
		play_seeds(&p, 1, true);
	}
}

static void damaged_packets_are_as_lost_ones(void)
{
	struct plan p = usual(60);

	p.net.link.corrupt = 0.05;
	play_seeds(&p, 5, true);
}

static void a_loss_of_1_to_30_percent_takes_time_and_nothing_else(void)
{
	struct plan p = usual(25);

	for (unsigned percent = 1; percent <= 30; percent++) {
		p.net.link.loss = percent / 100.;
		/* Eight losses in a row are possible then. */
		p.may_fail = percent > 8;
		play_seeds(&p, 2, !p.may_fail);
	}
}

static void unreliable_messages_arrive_whole_or_not_at_all(void)
{
	struct plan p = usual(64);

	p.options.type = IBV_QPT_UC;
	for (unsigned percent = 0; percent <= 30; percent += 5) {
		p.net.link.loss = percent / 100.;
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct played r = virtual_play(&p, seed);

			expect_eq(r.messages, 4 * 64);
			expect(percent ? r.received < r.messages :
					 r.received >= r.messages - 4 * 8);
		}
	}
}

static const struct options over_uc = { .type = IBV_QPT_UC, .one_queue = true };

/* Both sides send in turns, `turns` messages each, and the first one once more, so many bytes. */
static void talk(unsigned turns, uint32_t bytes)
{
	for (unsigned i = 0; i < turns; i++) {
		side_receive(a, i, 0, 64);
		side_receive(b, i, 0, 64);
		side_send(a, i, 64);
		play(b, RECEIVES, i + 1, SEC);
		side_send(b, i, 64);
		play(a, RECEIVES, i + 1, SEC);
	}
	side_receive(b, turns, 0, bytes);
	side_send(a, turns, bytes);
}

static void talk_over_uc(unsigned turns)
{
	pair_start(&over_uc);
	talk(turns, 64);
}

static void unreliable_messages_complete_with_the_answer_where_it_always_comes(void)
{
	enum { TURNS = 40 };
	uint64_t sent_ns;

	/* At first with each message, later with the answer. */
	talk_over_uc(TURNS);
	for (unsigned i = 0; i < TURNS; i++)
		expect_done(a, SENDS, i, i, IBV_WC_SUCCESS);
	expect(a->done[SENDS][2].at_ns < b->done[RECEIVES][2].at_ns);
	expect(a->done[SENDS][TURNS - 1].at_ns >= a->done[RECEIVES][TURNS - 1].at_ns);
	/* In the order in which they took place. */
	for (unsigned i = 0; i < TURNS; i++)
		expect(a->done[SENDS][i].number < a->done[RECEIVES][i].number);
	/* No answer comes. */
	sent_ns = virtual_now_ns();
	expect_eq(a->count[SENDS], TURNS);
	play(a, SENDS, TURNS + 1, SEC);
	expect_done(a, SENDS, TURNS, TURNS, IBV_WC_SUCCESS);
	expect_within(a->done[SENDS][TURNS].at_ns - sent_ns, MS, 2 * MS + LATE_NS);
	/* The next one does not wait. */
	sent_ns = virtual_now_ns();
	side_receive(b, 0, 0, 64);
	side_send(a, TURNS + 1, 64);
	play(a, SENDS, TURNS + 2, SEC);
	expect_within(a->done[SENDS][TURNS + 1].at_ns - sent_ns, 0, LATE_NS);
	pair_end();
	/* Whoever has posted more does not wait. */
	talk_over_uc(TURNS);
	sent_ns = virtual_now_ns();
	side_send(a, TURNS + 1, 64);
	play(a, SENDS, TURNS + 2, SEC);
	expect_within(a->done[SENDS][TURNS].at_ns - sent_ns, 0, LATE_NS);
	pair_end();
	/* What has left is not flushed. */
	talk_over_uc(TURNS);
	side_error(a);
	play(a, SENDS, TURNS + 1, SEC);
	expect_done(a, SENDS, TURNS, TURNS, IBV_WC_SUCCESS);
	pair_end();
}

static void a_notification_of_congestion_is_no_answer(void)
{
	enum { TURNS = 40 };
	uint64_t sent_ns;

	virtual_open(&(struct carrier_sim_params){
		.ends = 2, .seed = 1, .link.delay_ns = DELAY_NS,
		.port = { .rate_bps = UINT64_C(1000000000), .queue_bytes = 100000, .mark_all = 1,
			  .mark_most = 1 } });
	sides_open(0, 0, 1, &over_uc);
	lose(0, is_any);
	talk(TURNS, 8192);
	sent_ns = virtual_now_ns();
	play_until(sent_ns + MS);
	expect(net.answers > TURNS); /* there was one */
	expect_eq(a->count[SENDS], TURNS);
	play(a, SENDS, TURNS + 1, SEC);
	expect_within(a->done[SENDS][TURNS].at_ns - sent_ns, MS, 2 * MS + LATE_NS);
	pair_end();
}

static void a_congested_port_marks_instead_of_losing(void)
{
	struct plan p = usual(64);

	/* Short enough that senders without a pace would lose packets. */
	p.hosts = 4;
	p.pairs = 4;
	p.options.timeout = 14;
	p.net.port = (struct carrier_sim_port){ .rate_bps = UINT64_C(1000000000),
						.queue_bytes = 400000, .mark_from = 4000,
						.mark_all = 20000, .mark_most = 0.5 };
	play_seeds(&p, 5, true);
}

/* Of what waits for room nothing is lost, and nobody notices but by the time. */
static void a_full_link_delays_and_loses_nothing(void)
{
	struct plan p = usual(64);

	p.options.timeout = 22; /* 17 s */
	p.net.link.rate_bps = UINT64_C(200000000);
	p.net.send_bytes = 8192;
	for (unsigned uc = 0; uc < 2; uc++)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			struct played r;

			p.options.type = uc ? IBV_QPT_UC : IBV_QPT_RC;
			r = virtual_play(&p, seed);
			expect_eq(r.messages, 4 * 64);
			expect(r.took_ns < SEC);
		}
}

/* With the long timeout nobody is helped by what is repeated. */
static void programs_that_poll_now_and_then_wait_for_nothing(void)
{
	struct plan p = usual(64);

	p.options.timeout = 22;
	p.train = 4;
	p.naps = true;
	for (p.poll_ns = 1000; p.poll_ns <= 16000; p.poll_ns *= 4)
		for (uint64_t seed = 1; seed <= 8; seed++)
			expect(virtual_play(&p, seed).took_ns < 200 * MS);
}

static void a_seed_plays_the_same_run_again(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct plan p = virtual_plan(seed);
		uint64_t first = virtual_play(&p, seed).fingerprint;
		struct plan other = virtual_plan(seed + 100);

		virtual_play(&other, seed + 100);
		expect_eq(virtual_play(&p, seed).fingerprint, first);
	}
}

#define CASE(fn) { #fn, fn }

const struct virtual_test virtual_order[] = {
	CASE(a_lost_packet_is_asked_for_by_one_nak_wherever_it_was),
	CASE(a_lost_nak_is_replaced_by_the_timeout),
	CASE(one_acknowledgement_tells_of_all_whose_own_were_lost),
	CASE(each_lost_packet_of_a_read_response_is_read_again),
	CASE(only_the_missing_rest_of_a_read_is_read_again),
	CASE(an_atomic_whose_response_is_lost_is_carried_out_once),
	CASE(a_fenced_send_waits_for_the_read_whose_response_is_lost),
	CASE(no_more_than_a_window_leaves_without_an_acknowledgement),
	CASE(a_message_that_has_begun_keeps_its_receive_of_a_shared_queue),
	CASE(copies_of_all_packets_change_nothing),
	CASE(packets_in_any_order_change_nothing),
	CASE(damaged_packets_are_as_lost_ones),
	CASE(a_loss_of_1_to_30_percent_takes_time_and_nothing_else),
	CASE(unreliable_messages_arrive_whole_or_not_at_all),
	CASE(unreliable_messages_complete_with_the_answer_where_it_always_comes),
	CASE(a_notification_of_congestion_is_no_answer),
	CASE(a_congested_port_marks_instead_of_losing),
	CASE(a_full_link_delays_and_loses_nothing),
	CASE(programs_that_poll_now_and_then_wait_for_nothing),
	CASE(a_seed_plays_the_same_run_again),
	{ NULL, NULL },
};
