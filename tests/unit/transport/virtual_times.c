/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times and counters of connections over packets: ACK timeouts and receivers that are not
 * ready (IBTA volume 1, 9.7.5.2.8 and 9.7.6.1.3). By the virtual clock
 * they are those of the specification: an ACK timeout takes from T to 4 T.
 */
#include <string.h>

#include "util/container_of.h"
#include "virtual.h"

static struct side *const a = &sides[0], *const b = &sides[1];

/* ---- ACK timeouts ---- */

static void lost_then_repeated(unsigned code, bool (*is)(const struct packet_seen *p))
{
	uint64_t t = rc_timeout_ns((uint8_t)code);

	pair_start(&(struct options){ .timeout = (uint8_t)code, .retry_cnt = 1 });
	lose(1, is);
	side_receive(b, 1, 0, 100);
	side_receive(b, 2, 0, 100);
	side_send(a, 1, 8);
	play(a, SENDS, 1, 5 * t);
	expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
	expect_eq(net.requests, 2);
	expect_within(net.at_ns[1] - net.at_ns[0], t, 4 * t);
	/* Once, though it came twice. */
	play_until(virtual_now_ns() + 2 * t);
	expect_eq(b->count[RECEIVES], 1);
	expect_eq(net.requests, 2);
	pair_end();
}

static void a_lost_request_is_repeated_after_the_time_of_each_timeout_code(void)
{
	for (unsigned code = 1; code < 32; code++)
		lost_then_repeated(code, is_request);
}

static void a_lost_acknowledgement_too_and_the_message_arrives_once(void)
{
	for (unsigned code = 1; code < 32; code++)
		lost_then_repeated(code, is_answer);
}

/* A process gets no processor until its timeout is over; meanwhile the answer has come. */
static void a_timeout_takes_in_what_has_come_first(void)
{
	struct hca_qp *qp;
	struct clock_source clock;

	pair_start(&(struct options){ .timeout = 10, .retry_cnt = 0 });
	side_receive(b, 1, 0, 100);
	side_send(a, 2, 8);
	while (!net.answers)
		virtual_step(virtual_now_ns() + rc_timeout_ns(10));
	expect_eq(carrier_sim_next(virtual_sim, UINT64_MAX), 0);
	clock = carrier_sim_clock(virtual_sim);
	virtual_set_ns(clock_source_now_ns(&clock) + 5 * rc_timeout_ns(10));
	qp = container_of(a->qp, struct hca_qp, ibv);
	hca_path_ops(&qp->path)->expired(qp);
	play(a, SENDS, 1, 1);
	expect_done(a, SENDS, 0, 2, IBV_WC_SUCCESS);
	pair_end();
}

/* Three messages of which the first is given up. */
static void given_up(unsigned code, unsigned retry_cnt)
{
	uint64_t t = rc_timeout_ns((uint8_t)code), start_ns;

	pair_start(&(struct options){ .timeout = (uint8_t)code, .retry_cnt = (uint8_t)retry_cnt });
	lose(UINT32_MAX, is_any);
	side_receive(a, 9, 0, 100);
	start_ns = virtual_now_ns();
	for (unsigned i = 1; i <= 3; i++)
		side_send(a, i, 8);
	play(a, SENDS, 3, 4 * t * (retry_cnt + 1) + LATE_NS);
	expect_done(a, SENDS, 0, 1, IBV_WC_RETRY_EXC_ERR);
	expect_done(a, SENDS, 1, 2, IBV_WC_WR_FLUSH_ERR);
	expect_done(a, SENDS, 2, 3, IBV_WC_WR_FLUSH_ERR);
	expect_done(a, RECEIVES, 0, 9, IBV_WC_WR_FLUSH_ERR);
	expect_within(a->done[SENDS][0].at_ns - start_ns, t * (retry_cnt + 1),
		      4 * t * (retry_cnt + 1));
	expect_eq(side_state(a), IBV_QPS_ERR);
	expect_eq(net.requests, 3 * (retry_cnt + 1));
	pair_end();
}

static void the_retries_end_with_an_error_for_all_codes_and_counts(void)
{
	for (unsigned code = 1; code < 32; code++)
		for (unsigned count = 0; count < 8; count++)
			given_up(code, count);
}

static void a_timeout_of_0_waits_for_ever(void)
{
	pair_start(&(struct options){ .no_timeout = 1 });
	lose(1, is_request);
	side_receive(b, 1, 0, 100);
	side_send(a, 1, 8);
	play_until(virtual_now_ns() + 30 * 24 * 3600 * SEC);
	expect_eq(a->count[SENDS], 0);
	expect_eq(net.requests, 1);
	expect_eq(side_state(a), IBV_QPS_RTS);
	/* The next one shows what is missing. */
	side_send(a, 2, 8);
	side_receive(b, 2, 0, 100);
	play(a, SENDS, 2, MS);
	pair_end();
}

static void retries_count_anew_for_each_message(void)
{
	pair_start(&(struct options){ .timeout = 12, .retry_cnt = 2 });
	for (unsigned i = 1; i <= 20; i++) {
		side_receive(b, i, 0, 100);
		lose(2, i & 1 ? is_request : is_answer);
		side_send(a, i, 8);
		play(a, SENDS, i, 9 * rc_timeout_ns(12));
		expect_done(a, SENDS, i - 1, i, IBV_WC_SUCCESS);
	}
	expect_eq(b->count[RECEIVES], 20);
	pair_end();
}

static void change(struct side *s, enum ibv_qp_state state, uint8_t timeout)
{
	struct ibv_qp_attr attr = { .qp_state = state, .timeout = timeout };

	expect_eq(ibv_modify_qp(s->qp, &attr,
				timeout ? IBV_QP_STATE | IBV_QP_TIMEOUT : IBV_QP_STATE), 0);
}

static void a_queue_that_is_drained_repeats_what_was_lost(void)
{
	for (unsigned lost = 0; lost < 7; lost++) {
		pair_start(&(struct options){ .timeout = 12, .retry_cnt = 7 });
		lose(lost, is_any);
		side_receive(b, 1, 0, 100);
		side_receive(b, 2, 0, 100);
		side_send(a, 1, 8);
		change(a, IBV_QPS_SQD, 0);
		side_send(a, 2, 8);
		play(a, SENDS, 1, 8 * 4 * rc_timeout_ns(12));
		expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
		play_until(virtual_now_ns() + 100 * MS);
		expect_eq(a->count[SENDS], 1);
		change(a, IBV_QPS_RTS, 0);
		play(a, SENDS, 2, MS);
		expect_done(b, RECEIVES, 1, 2, IBV_WC_SUCCESS);
		pair_end();
	}
}

static void a_changed_timeout_counts_from_then_on(void)
{
	for (uint8_t code = 1; code < 30; code++) {
		pair_start(&(struct options){ .timeout = (uint8_t)(31 - code), .retry_cnt = 1 });
		change(a, IBV_QPS_SQD, 0);
		play_until(virtual_now_ns() + MS);
		change(a, IBV_QPS_SQD, code);
		change(a, IBV_QPS_RTS, 0);
		lose(1, is_request);
		side_receive(b, 1, 0, 100);
		side_send(a, 1, 8);
		play(a, SENDS, 1, 5 * rc_timeout_ns(code));
		expect_within(net.at_ns[1] - net.at_ns[0], rc_timeout_ns(code),
			      4 * rc_timeout_ns(code));
		pair_end();
	}
}

/* ---- receivers that are not ready ---- */

/* In microseconds, table 45. */
static const uint32_t rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,
	160,	240,   320,   480,   640,   960,    1280,   1920,
	2560,	3840,  5120,  7680,  10240, 15360,  20480,  30720,
	40960,	61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

static void every_code_of_the_rnr_timer_is_waited_for(void)
{
	for (unsigned code = 0; code < 32; code++) {
		pair_start(&(struct options){ .min_rnr_timer = (uint8_t)code, .rnr_retry = 1 });
		side_send(a, 1, 8);
		play(a, SENDS, 1, SEC);
		expect_done(a, SENDS, 0, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		expect_eq(net.requests, 2);
		expect_within(net.at_ns[1] - net.at_ns[0], rnr_us[code] * US,
			      rnr_us[code] * US + LATE_NS);
		pair_end();
	}
}

static void the_rnr_counter_is_how_often_it_is_repeated(void)
{
	for (unsigned count = 0; count < 7; count++)
		for (unsigned code = 1; code < 32; code += 5) {
			uint64_t wait = count * (rnr_us[code] * US), from;

			/* What waits uses up no retry. */
			pair_start(&(struct options){ .min_rnr_timer = (uint8_t)code,
						 .rnr_retry = (uint8_t)count });
			from = virtual_now_ns();
			side_send(a, 1, 8);
			side_send(a, 2, 8);
			play(a, SENDS, 2, wait + 7 * LATE_NS);
			expect_done(a, SENDS, 0, 1, IBV_WC_RNR_RETRY_EXC_ERR);
			expect_done(a, SENDS, 1, 2, IBV_WC_WR_FLUSH_ERR);
			expect_within(a->done[SENDS][0].at_ns - from, wait,
				      wait + 7 * LATE_NS);
			expect_eq(side_state(a), IBV_QPS_ERR);
			expect_eq(side_state(b), IBV_QPS_RTS);
			pair_end();
		}
}

static void an_rnr_counter_of_7_waits_for_ever(void)
{
	pair_start(&(struct options){ .min_rnr_timer = 12, .rnr_retry = 7, .timeout = 1 });
	side_send(a, 1, 8);
	play_until(virtual_now_ns() + SEC);
	expect_eq(a->count[SENDS], 0);
	expect(net.requests > SEC / (640 * US + LATE_NS));
	side_receive(b, 1, 0, 100);
	play(a, SENDS, 1, MS);
	expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
	expect_done(b, RECEIVES, 0, 1, IBV_WC_SUCCESS);
	pair_end();
}

static void a_receive_that_is_posted_meanwhile_goes_on_and_the_count_begins_anew(void)
{
	pair_start(&(struct options){ .min_rnr_timer = 12, .rnr_retry = 2 });
	for (unsigned i = 1; i <= 30; i++)
		side_send(a, i, 3000);
	for (unsigned i = 1; i <= 30; i++) {
		/* Two of the three attempts. */
		play_until(virtual_now_ns() + 640 * US * 3 / 2);
		expect_eq(a->count[SENDS], i - 1);
		side_receive(b, i, 0, 3000);
		play(a, SENDS, i, 640 * US + LATE_NS);
		expect_done(a, SENDS, i - 1, i, IBV_WC_SUCCESS);
	}
	expect_eq(b->count[RECEIVES], 30);
	pair_end();
}

static void a_write_with_immediate_waits_for_a_receive_too(void)
{
	const struct request r = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .id = 1,
				   .bytes = 5000, .imm = 77 };

	pair_start(&(struct options){ .min_rnr_timer = 15, .rnr_retry = 3 });
	side_fill(a, 0, 5000, 1);
	memset(b->memory, 0, 5000);
	side_post(a, &r);
	play_until(virtual_now_ns() + 3 * MS);
	side_receive(b, 5, 0, 0);
	play(a, SENDS, 1, 2 * MS);
	expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
	expect_done(b, RECEIVES, 0, 5, IBV_WC_SUCCESS);
	expect_eq(b->done[RECEIVES][0].wc.imm_data, 77);
	side_check(b, 0, 5000, 1);
	pair_end();
}

static void a_changed_rnr_timer_counts_from_then_on(void)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 28 };

	pair_start(&(struct options){ .min_rnr_timer = 1, .rnr_retry = 1 });
	expect_eq(ibv_modify_qp(b->qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	side_send(a, 1, 8);
	play(a, SENDS, 1, SEC);
	expect_done(a, SENDS, 0, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_within(net.at_ns[1] - net.at_ns[0], rnr_us[28] * US,
		      rnr_us[28] * US + LATE_NS);
	pair_end();
}

/* The buffer of an inline message is the program's again behind the post. */
static void what_is_repeated_is_what_was_posted(void)
{
	static const uint32_t lengths[] = { 0, 1, 64, 96, 97, 200 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct request r = { .opcode = IBV_WR_SEND, .id = 1, .bytes = lengths[i],
				     .flags = IBV_SEND_INLINE };

		pair_start(&(struct options){ .min_rnr_timer = 5, .rnr_retry = 7,
					      .retry_cnt = 7, .inline_bytes = 200 });
		lose(3, is_any);
		side_fill(a, 0, 200, 1);
		side_post(a, &r);
		side_fill(a, 0, 200, 2);
		play_until(virtual_now_ns() + 30 * MS);
		side_receive(b, 1, 4096, 200);
		play(a, SENDS, 1, 30 * MS);
		expect_done(b, RECEIVES, 0, 1, IBV_WC_SUCCESS);
		expect_eq(b->done[RECEIVES][0].wc.byte_len, lengths[i]);
		side_check(b, 4096, lengths[i], 1);
		pair_end();
	}
}

static void waiting_for_a_receive_uses_up_no_retry_and_no_time_of_it(void)
{
	pair_start(&(struct options){ .min_rnr_timer = 20, .rnr_retry = 7, .retry_cnt = 0,
				 .timeout = 8 });
	side_send(a, 1, 8);
	play_until(virtual_now_ns() + SEC);
	expect_eq(a->count[SENDS], 0);
	side_receive(b, 1, 0, 8);
	play(a, SENDS, 1, 11 * MS);
	expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
	pair_end();
}

/* ---- acknowledgements that wait ---- */

/* Both poll without a gap and answer each other, so that both are relied on. */
static void converse(unsigned rounds)
{
	a->polls = b->polls = true;
	virtual_poll_ns = 1 * US;
	virtual_train = 4; /* an acknowledgement may leave with a reply */
	for (unsigned i = 0; i < rounds; i++) {
		side_receive(a, i, 0, 64);
		side_receive(b, i, 0, 64);
		side_send(a, i, 64);
		play(b, RECEIVES, i + 1, MS);
		side_send(b, i, 64);
		play(a, RECEIVES, i + 1, MS);
	}
}

static void an_acknowledgement_leaves_where_the_program_ceases_to_poll(void)
{
	/* At each time behind the last message. */
	for (uint64_t gap = 0; gap < 30 * US; gap += 1900) {
		pair_start(&(struct options){ .timeout = 18, .retry_cnt = 1 });
		converse(200);
		expect(packet_is_relied_on(&virtual_hosts[1].port));
		side_receive(b, 1000, 0, 64);
		side_send(a, 1000, 64);
		play_until(virtual_now_ns() + gap);
		a->polls = b->polls = false;
		/* Much sooner than anything is repeated. */
		play(a, SENDS, 201, 3 * MS);
		play(b, RECEIVES, 201, 3 * MS);
		pair_end();
	}
}

static void a_conversation_needs_few_acknowledgements_of_their_own(void)
{
	unsigned before;

	pair_start(&(struct options){ .timeout = 18 });
	converse(400);
	before = net.answers;
	for (unsigned i = 400; i < 500; i++) {
		side_receive(a, i, 0, 64);
		side_receive(b, i, 0, 64);
		side_send(a, i, 64);
		play(b, RECEIVES, i + 1, MS);
		side_send(b, i, 64);
		play(a, RECEIVES, i + 1, MS);
	}
	/* A reply and its acknowledgement each, which leave together. */
	expect_within(net.answers - before, 200, 210);
	pair_end();
}

/* ---- messages that wait for each other ---- */

static void small_messages_behind_others_leave_with_the_next_poll(void)
{
	/* 1: the program does not poll any more, so the progress thread sends them. */
	for (unsigned leaves = 0; leaves < 2; leaves++) {
		unsigned before;

		pair_start(&(struct options){ .timeout = 18 });
		converse(200);
		virtual_train = 32;
		expect(packet_is_relied_on(&virtual_hosts[0].port));
		for (unsigned i = 0; i < 40; i++)
			side_receive(b, 1000 + i, 0, 64);
		/* Nothing is owed any more. */
		play_until(virtual_now_ns() + 100 * US);
		before = net.requests;
		for (unsigned i = 0; i < 12; i++)
			side_send(a, 1000 + i, 64);
		expect_eq(net.requests - before, 8);
		a->polls = b->polls = !leaves; /* they are one process */
		play_until(virtual_now_ns() + (leaves ? 3 * MS : 3 * US));
		expect_eq(net.requests - before, 12);
		a->polls = b->polls = true;
		play(a, SENDS, 212, MS);
		/* Many do not wait for a poll, nor those of a program that is not relied on. */
		before = net.requests;
		for (unsigned i = 12; i < 40; i++)
			side_send(a, 1000 + i, 64);
		expect_eq(net.requests - before, leaves ? 28 : 24);
		play(b, RECEIVES, 240, MS);
		pair_end();
	}
}

#define CASE(fn) { #fn, fn }

const struct virtual_test virtual_times[] = {
	CASE(a_lost_request_is_repeated_after_the_time_of_each_timeout_code),
	CASE(a_lost_acknowledgement_too_and_the_message_arrives_once),
	CASE(the_retries_end_with_an_error_for_all_codes_and_counts),
	CASE(a_timeout_of_0_waits_for_ever),
	CASE(a_timeout_takes_in_what_has_come_first),
	CASE(retries_count_anew_for_each_message),
	CASE(a_queue_that_is_drained_repeats_what_was_lost),
	CASE(a_changed_timeout_counts_from_then_on),
	CASE(every_code_of_the_rnr_timer_is_waited_for),
	CASE(the_rnr_counter_is_how_often_it_is_repeated),
	CASE(an_rnr_counter_of_7_waits_for_ever),
	CASE(a_receive_that_is_posted_meanwhile_goes_on_and_the_count_begins_anew),
	CASE(a_write_with_immediate_waits_for_a_receive_too),
	CASE(a_changed_rnr_timer_counts_from_then_on),
	CASE(what_is_repeated_is_what_was_posted),
	CASE(waiting_for_a_receive_uses_up_no_retry_and_no_time_of_it),
	CASE(an_acknowledgement_leaves_where_the_program_ceases_to_poll),
	CASE(a_conversation_needs_few_acknowledgements_of_their_own),
	CASE(small_messages_behind_others_leave_with_the_next_poll),
	{ NULL, NULL },
};
