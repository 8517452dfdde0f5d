/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that end, and those that go on: peers that are gone, that are not there yet, or
 * that refuse (IBTA volume 1, 9.7.6.1.3, 9.9.2 and 9.9.3).
 */
#include "util/container_of.h"
#include "virtual.h"

static struct side *const a = &sides[0], *const b = &sides[1];

/* ---- peers that are gone ---- */

static void post_stream(struct side *s, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++) {
		side_receive(s->peer, i, 0, 4000);
		side_send(s, i, 100 + i * 30);
	}
}

/* Successes, one error, and flushes. How many succeeded. */
static unsigned expect_end(const struct side *s, unsigned count)
{
	unsigned ok = 0;

	expect_eq(s->count[SENDS], count);
	while (ok < count && s->done[SENDS][ok].wc.status == IBV_WC_SUCCESS)
		ok++;
	expect(ok < count);
	for (unsigned i = 0; i < count; i++)
		expect_done(s, SENDS, i, i,
			    i < ok    ? IBV_WC_SUCCESS :
			    i == ok ? IBV_WC_RETRY_EXC_ERR :
				      IBV_WC_WR_FLUSH_ERR);
	return ok;
}

static void a_peer_that_is_gone_is_given_up_within_the_time(void)
{
	for (unsigned retries = 0; retries < 8; retries++)
		for (unsigned packets = 1; packets < 60; packets += 7) {
			const struct options o = { .timeout = 11, .mtu = IBV_MTU_256,
						   .retry_cnt = (uint8_t)retries };
			uint64_t t = rc_timeout_ns(11), from;
			unsigned ok;

			pair_start(&o);
			post_stream(a, 0, 40);
			while (net.requests < packets)
				virtual_step(UINT64_MAX);
			from = virtual_now_ns();
			lose(UINT32_MAX, is_any);
			play(a, SENDS, 40, 4 * t * (retries + 1) + LATE_NS);
			ok = expect_end(a, 40);
			/* Of progress its time begins anew. */
			expect_within(a->done[SENDS][39].at_ns - from,
				      t * (retries + 1) - 100 * US,
				      4 * t * (retries + 1));
			expect(b->count[RECEIVES] >= ok);
			pair_end();
		}
}

static void a_partition_that_heals_in_time_loses_nothing(void)
{
	for (unsigned tries = 1; tries < 8; tries++) {
		pair_start(&(struct options){ .timeout = 11, .retry_cnt = (uint8_t)tries });
		post_stream(a, 0, 40);
		post_stream(b, 0, 40);
		while (net.requests < 10)
			virtual_step(UINT64_MAX);
		carrier_sim_part(virtual_sim, 0, 1, true);
		play_until(virtual_now_ns() + tries * rc_timeout_ns(11));
		carrier_sim_part(virtual_sim, 0, 1, false);
		for (int k = 0; k < 2; k++) {
			play(&sides[k], SENDS, 40, 6 * rc_timeout_ns(11));
			play(&sides[k], RECEIVES, 40, 6 * rc_timeout_ns(11));
			for (unsigned i = 0; i < 40; i++) {
				expect_done(&sides[k], SENDS, i, i, IBV_WC_SUCCESS);
				expect_done(&sides[k], RECEIVES, i, i, IBV_WC_SUCCESS);
				expect_eq(sides[k].done[RECEIVES][i].wc.byte_len,
					  100 + i * 30);
			}
		}
		pair_end();
	}
}

static void what_a_reset_peer_does_not_answer_ends_after_the_retries(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	uint64_t t = rc_timeout_ns(10), from;

	pair_start(&(struct options){ .timeout = 10, .retry_cnt = 3 });
	expect_eq(ibv_modify_qp(b->qp, &attr, IBV_QP_STATE), 0);
	from = virtual_now_ns();
	side_send(a, 1, 8);
	play(a, SENDS, 1, 16 * t + LATE_NS);
	expect_done(a, SENDS, 0, 1, IBV_WC_RETRY_EXC_ERR);
	expect_within(a->done[SENDS][0].at_ns - from, 4 * t, 16 * t);
	pair_end();
}

/* ---- peers that are not there ---- */

static const enum ibv_wr_opcode all_ops[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* With each operation, of which nothing is carried out. */
static void expect_given_up(const struct options *o, void (*prepare)(void))
{
	uint64_t t = rc_timeout_ns(o->timeout), from;

	for (size_t i = 0; i < ARRAY_SIZE(all_ops); i++) {
		pair_start(o);
		if (prepare)
			prepare();
		side_fill(b, 0, 8, 5);
		from = virtual_now_ns();
		side_post(a, &(struct request){ .opcode = all_ops[i], .id = i, .bytes = 8,
						.at = 64, .compare_add = 1 });
		play(a, SENDS, 1, 4 * t * (o->retry_cnt + 1u) + LATE_NS);
		expect_done(a, SENDS, 0, i, IBV_WC_RETRY_EXC_ERR);
		expect_within(a->done[SENDS][0].at_ns - from, t, 4 * t * (o->retry_cnt + 1u));
		expect_eq(side_state(a), IBV_QPS_ERR);
		side_check(b, 0, 8, 5);
		expect_eq(b->count[RECEIVES], 0);
		pair_end();
	}
}

static void destroy_peer(void)
{
	side_destroy(b);
}

static void a_peer_that_is_not_there_is_given_up(void)
{
	const struct options o = { .timeout = 12, .retry_cnt = 3 };

	expect_given_up(&o, destroy_peer);
}

static void a_peer_that_does_not_receive_yet_is_given_up(void)
{
	const struct options o = { .timeout = 12, .retry_cnt = 3, .only_first = true };

	expect_given_up(&o, NULL);
}

/* Those of the future have a gap before them. Those of the past are taken for copies; one that
 * is only just past would be acknowledged with what seems to be before it. */
static void sequence_numbers_that_do_not_fit_are_given_up(void)
{
	static const int skews[] = { 100, 0x7fffff, -1, -100, -0x7fffff };

	for (size_t i = 0; i < ARRAY_SIZE(skews); i++) {
		const struct options o = { .timeout = 12, .retry_cnt = 3,
					   .skew = skews[i] };

		expect_given_up(&o, NULL);
	}
}

static void a_peer_that_becomes_ready_in_time_gets_the_message(void)
{
	const struct options o = { .timeout = 12, .retry_cnt = 3, .only_first = true };

	for (unsigned tries = 0; tries < 3; tries++) {
		pair_start(&o);
		side_receive(b, 7, 0, 100);
		side_send(a, 1, 100);
		play_until(virtual_now_ns() + tries * rc_timeout_ns(12) + MS);
		expect_eq(a->count[SENDS], 0);
		side_connect(b, &o);
		play(a, SENDS, 1, 4 * rc_timeout_ns(12));
		expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
		expect_done(b, RECEIVES, 0, 7, IBV_WC_SUCCESS);
		pair_end();
	}
}

/* ---- refusals ---- */

static void a_message_longer_than_the_receive_ends_both_sides(void)
{
	static const uint32_t lengths[] = { 2, 97, 1024, 1025, 5000, 60000 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		for (unsigned lost = 0; lost < 3; lost++) {
			pair_start(&(struct options){ .timeout = 12, .retry_cnt = 7 });
			lose(lost, is_request);
			side_receive(b, 1, 0, lengths[i] - 1);
			side_receive(b, 2, 0, 100);
			side_send(a, 1, lengths[i]);
			side_send(a, 2, 100);
			play(a, SENDS, 2, 10 * 4 * rc_timeout_ns(12));
			play(b, RECEIVES, 2, MS);
			expect_done(a, SENDS, 0, 1, IBV_WC_REM_INV_REQ_ERR);
			expect_done(a, SENDS, 1, 2, IBV_WC_WR_FLUSH_ERR);
			expect_done(b, RECEIVES, 0, 1, IBV_WC_LOC_LEN_ERR);
			expect_done(b, RECEIVES, 1, 2, IBV_WC_WR_FLUSH_ERR);
			expect_eq(side_state(a), IBV_QPS_ERR);
			expect_eq(side_state(b), IBV_QPS_ERR);
			pair_end();
		}
}

static void each_queue_pair_ends_alone(void)
{
	pair_start(&(struct options){ .rnr_retry = 0 });
	sides_open(2, 0, 1, &(struct options){ .rnr_retry = 0 });
	side_send(a, 1, 100);
	play(a, SENDS, 1, MS);
	expect_done(a, SENDS, 0, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	side_receive(&sides[3], 4, 0, 100);
	side_send(&sides[2], 3, 100);
	play(&sides[2], SENDS, 1, MS);
	play(&sides[3], RECEIVES, 1, MS);
	expect_done(&sides[2], SENDS, 0, 3, IBV_WC_SUCCESS);
	expect_done(&sides[3], RECEIVES, 0, 4, IBV_WC_SUCCESS);
	pair_end();
}

/* ---- connections that are made again ---- */

static void what_was_on_its_way_before_a_reset_does_not_arrive_behind_it(void)
{
	struct options o = { .timeout = 12, .retry_cnt = 7, .rnr_retry = 7,
			     .min_rnr_timer = 1, .mtu = IBV_MTU_256 };

	/* At any time of the old connection. */
	for (uint64_t after = 0; after < 40 * US; after += 1300) {
		o.psn = 100;
		pair_start(&o);
		carrier_sim_impair(virtual_sim, 0, IMPAIR_ALL_CLASSES, &(struct impair_params){
			.delay_ns = 10 * US, .duplicate = 0.3, .reorder = 0.1 });
		post_stream(a, 0, 20);
		post_stream(b, 0, 20);
		play_until(virtual_now_ns() + after);
		o.psn = 0x500000;
		for (unsigned i = 0; i < 2; i++)
			side_reset(&sides[i]);
		for (unsigned i = 0; i < 2; i++) {
			side_connect(&sides[i], &o);
			sides[i].count[SENDS] = sides[i].count[RECEIVES] = 0;
		}
		post_stream(a, 100, 20);
		post_stream(b, 100, 20);
		for (unsigned i = 0; i < 2; i++) {
			play(&sides[i], SENDS, 20, 30 * rc_timeout_ns(12));
			play(&sides[i], RECEIVES, 20, MS);
			for (unsigned k = 0; k < 20; k++) {
				expect_done(&sides[i], SENDS, k, 100 + k, IBV_WC_SUCCESS);
				expect_done(&sides[i], RECEIVES, k, 100 + k, IBV_WC_SUCCESS);
				expect_eq(sides[i].done[RECEIVES][k].wc.byte_len,
					  100 + (100 + k) * 30);
			}
		}
		pair_end();
	}
}

#define CASE(fn) { #fn, fn }

const struct virtual_test virtual_ends[] = {
	CASE(a_peer_that_is_gone_is_given_up_within_the_time),
	CASE(a_partition_that_heals_in_time_loses_nothing),
	CASE(what_a_reset_peer_does_not_answer_ends_after_the_retries),
	CASE(a_peer_that_is_not_there_is_given_up),
	CASE(a_peer_that_does_not_receive_yet_is_given_up),
	CASE(sequence_numbers_that_do_not_fit_are_given_up),
	CASE(a_peer_that_becomes_ready_in_time_gets_the_message),
	CASE(a_message_longer_than_the_receive_ends_both_sides),
	CASE(each_queue_pair_ends_alone),
	CASE(what_was_on_its_way_before_a_reset_does_not_arrive_behind_it),
	{ NULL, NULL },
};
