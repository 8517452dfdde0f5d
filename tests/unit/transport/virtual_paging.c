/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory on demand by the profiles of adapters (BUSBAR_PAGING, engine/paging): what was measured
 * of them, in virtual time. The figures are those of T. Fukuoka, "ODP performance pitfalls of
 * InfiniBand", University of Tokyo 2021, where no other source is named.
 */
#include <string.h>
#include <sys/mman.h>

#include "hca/host/settings.h"
#include "hca/memory/demand.h"
#include "util/container_of.h"
#include "virtual.h"

static struct side *const a = &sides[0], *const b = &sides[1];

#define PAGE 4096u
#define BYTES 100u

/* The smallest RNR delay of the measurements, 1.28 ms. */
static const struct options usual = { .timeout = 1, .retry_cnt = 7, .rnr_retry = 7,
				      .min_rnr_timer = 14, .max_rd_atomic = 4 };

static void begin(const char *profile, const struct options *o)
{
	hca_settings.paging = profile;
	virtual_on_demand = true;
	pair_start(o);
}

static void end(void)
{
	pair_end();
	hca_settings.paging = "";
	virtual_on_demand = false;
}

/* The pages are there at the requester, or at the responder. */
static void prefetch(struct side *s)
{
	side_prefetch(s, 0, 16 * PAGE);
}

static void post_read(uint64_t id, uint32_t at)
{
	side_post(a, &(struct request){ .opcode = IBV_WR_RDMA_READ, .id = id,
					.at = at, .to = at, .bytes = BYTES });
}

static void post_write(uint64_t id, uint32_t at, uint32_t bytes)
{
	side_post(a, &(struct request){ .opcode = IBV_WR_RDMA_WRITE, .id = id, .at = at, .to = at,
					.bytes = bytes });
}

/* READs from one page, one in each interval. How long all of them took. */
static uint64_t reads(unsigned count, uint64_t interval_ns)
{
	uint64_t began_ns = virtual_now_ns();

	side_fill(b, 0, 16 * PAGE, 7);
	for (unsigned i = 0; i < count; i++) {
		play_until(began_ns + i * interval_ns);
		post_read(i, i * BYTES);
	}
	play(a, SENDS, count, 60 * SEC);
	for (unsigned i = 0; i < count; i++) {
		expect_done(a, SENDS, i, i, IBV_WC_SUCCESS);
		for (uint32_t at = 0; at < BYTES; at++)
			expect_eq(a->memory[i * BYTES + at], pattern(7, i * BYTES + at));
	}
	return a->done[SENDS][count - 1].at_ns - began_ns;
}

enum faults { AT_RESPONDER = 1, AT_REQUESTER = 2, AT_BOTH = 3 };

static uint64_t two_reads(const char *profile, enum faults faults, uint64_t interval_ns)
{
	uint64_t took_ns;

	begin(profile, &usual);
	if (!(faults & AT_RESPONDER))
		prefetch(b);
	if (!(faults & AT_REQUESTER))
		prefetch(a);
	took_ns = reads(2, interval_ns);
	end();
	return took_ns;
}

static bool is_dammed(uint64_t took_ns)
{
	return took_ns > 300 * MS;
}

/* ---- one request ---- */

static void a_responder_without_the_page_of_a_read_sends_an_rnr_nak_and_answers_it_later(void)
{
	begin("connectx4", &usual);
	prefetch(a);
	reads(1, 0);
	/* Figure 4.2: request, NAK at 0.14 ms, response at 0.54 ms, request at 4.6 ms. */
	expect_eq(net.requests, 2);
	expect_eq(net.answers, 3);
	expect_within(net.at_ns[1] - net.at_ns[0], 4 * MS, 5 * MS);
	end();
}

static void a_requester_without_the_page_sends_the_read_again_every_half_millisecond(void)
{
	begin("connectx4", &usual);
	prefetch(b);
	reads(1, 0);
	expect_eq(net.requests, 2);
	expect_within(net.at_ns[1] - net.at_ns[0], 500 * US, 800 * US);
	end();
}

static void a_responder_without_the_page_of_a_write_sends_an_rnr_nak_after_a_fault(void)
{
	begin("connectx4", &usual);
	prefetch(a);
	post_write(1, 0, BYTES);
	play(a, SENDS, 1, SEC);
	expect_eq(net.requests, 2);
	expect_eq(net.answers, 2);
	/* Figure 4.4: 0.5 ms and 5.5 ms; the wait is 3.4 times what the NAK asks for. */
	expect_within(net.at_ns[1] - net.at_ns[0], 4 * MS, 6 * MS);
	end();
}

static void a_responder_without_the_page_of_a_receive_sends_an_rnr_nak(void)
{
	begin("connectx4", &usual);
	prefetch(a);
	side_receive(b, 9, 0, BYTES);
	side_send(a, 1, BYTES);
	play(a, SENDS, 1, SEC);
	expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
	play(b, RECEIVES, 1, SEC);
	expect_eq(net.requests, 2);
	end();
}

static void a_requester_without_the_page_of_a_write_sends_it_when_the_page_is_there(void)
{
	uint64_t began_ns;

	begin("connectx4", &usual);
	prefetch(b);
	began_ns = virtual_now_ns();
	post_write(1, 0, BYTES);
	play(a, SENDS, 1, SEC);
	expect_eq(net.requests, 1);
	expect_within(net.at_ns[0] - began_ns, 500 * US, 600 * US);
	end();
}

/* Whichever pages of it are there, each packet leaves once, with the right bytes. */
static void a_long_write_leaves_as_far_as_its_pages_are_there(void)
{
	for (unsigned there = 0; there < 16; there++) {
		begin("connectx4", &usual);
		virtual_train = 16;
		prefetch(b);
		side_fill(a, 0, 4 * PAGE, 5);
		for (unsigned page = 0; page < 4; page++)
			if (there >> page & 1)
				side_prefetch(a, page * PAGE, PAGE);
		post_write(1, 0, 4 * PAGE);
		play(a, SENDS, 1, SEC);
		expect_done(a, SENDS, 0, 1, IBV_WC_SUCCESS);
		expect_eq(net.requests, 4 * PAGE / 1024);
		for (uint32_t at = 0; at < 4 * PAGE; at++)
			expect_eq(b->memory[at], pattern(5, at));
		end();
	}
}

static void prefetched_pages_cost_nothing(void)
{
	begin("connectx4", &usual);
	prefetch(a);
	prefetch(b);
	expect(reads(4, 0) < 100 * US);
	expect_eq(net.requests, 4);
	end();
}

static void a_page_that_the_program_frees_is_missing_again(void)
{
	begin("connectx4", &usual);
	prefetch(a);
	prefetch(b);
	reads(1, 0);
	expect_eq(madvise(b->memory, PAGE, MADV_DONTNEED), 0);
	play_until(virtual_now_ns() + HCA_DEMAND_LOOK_NS);
	post_read(1, 0);
	play(a, SENDS, 2, SEC);
	expect_done(a, SENDS, 1, 1, IBV_WC_SUCCESS);
	expect_eq(a->memory[0], 0);
	expect_eq(net.requests, 3);
	end();
}

/* Neither an RNR NAK nor a fault: the peer may not have the page. */
static void a_request_without_the_right_is_refused_at_once(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_qp_attr none = { .qp_access_flags = 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
		begin("connectx4", &usual);
		prefetch(a);
		expect_eq(ibv_modify_qp(b->qp, &none, IBV_QP_ACCESS_FLAGS), 0);
		side_post(a, &(struct request){ .opcode = opcodes[i], .id = 1, .bytes = 8 });
		play(a, SENDS, 1, SEC);
		expect_done(a, SENDS, 0, 1, IBV_WC_REM_INV_REQ_ERR);
		expect_eq(net.requests, 1);
		expect_eq(net.answers, 1);
		end();
	}
}

/* ---- packet damming ---- */

static void a_read_that_is_posted_while_another_waits_is_lost_until_the_timeout(void)
{
	uint64_t took_ns = two_reads("connectx4", AT_RESPONDER, MS);

	/* Figure 5.3: 541.7 ms. */
	expect_within(took_ns, 500 * MS, 600 * MS);
	took_ns = two_reads("connectx4", AT_REQUESTER, 300 * US);
	expect_within(took_ns, 430 * MS, 600 * MS);
}

/* Figure 5.3: request 1 again at 3.968 ms, its response at 4.051 ms. */
static void only_the_read_that_was_posted_meanwhile_is_lost(void)
{
	uint64_t began_ns;

	begin("connectx4", &usual);
	prefetch(a);
	began_ns = virtual_now_ns();
	reads(2, MS);
	expect_within(a->done[SENDS][0].at_ns - began_ns, 4 * MS, 5 * MS);
	/* Two of each; the second one was sent again at the timeout. */
	expect_eq(net.requests, 4);
	end();
}

/* Four may be sent without an answer: the fifth leaves behind the answer to the first. */
static void what_leaves_behind_the_repeated_read_shows_the_gap(void)
{
	begin("connectx4", &usual);
	prefetch(a);
	expect(reads(5, 500 * US) < 10 * MS);
	expect_eq(net.naks, 1);
	end();
}

/* Figures 5.2 and 5.4: the bounds of the intervals, in steps of 100 us. */
static void expect_window(const char *profile, enum faults faults, uint64_t first_us,
			  uint64_t last_us)
{
	uint64_t first = 0, last = 0;

	for (uint64_t us = 100; us < 6000; us += 100)
		if (is_dammed(two_reads(profile, faults, us * US))) {
			first = first ? first : us;
			last = us;
		}
	if (first != first_us || last != last_us)
		fail("dammed from %ju to %ju us", (uintmax_t)first, (uintmax_t)last);
}

static void damming_happens_in_the_intervals_that_were_measured(void)
{
	expect_window("connectx4", AT_RESPONDER, 200, 4400);
	expect_window("connectx4", AT_REQUESTER, 100, 500);
	expect_window("connectx4", AT_BOTH, 200, 4400);
	expect_window("connectx6", AT_RESPONDER, 0, 0);
	expect_window("connectx6", AT_REQUESTER, 0, 0);
	expect_window("connectx6", AT_BOTH, 0, 0);
	expect_window("ideal", AT_BOTH, 0, 0);
}

/* Figure 5.6. */
static void a_third_read_behind_the_wait_shows_the_gap(void)
{
	uint64_t took_ns;

	begin("connectx4", &usual);
	prefetch(a);
	took_ns = reads(3, 2500 * US);
	expect_eq(net.naks, 1);
	expect(took_ns < 10 * MS);
	end();
}

/* Figure 5.5. */
static void more_reads_make_the_intervals_shorter(void)
{
	static const uint64_t last_us[] = { 0, 0, 4400, 2200, 1400 };

	for (unsigned count = 2; count <= 4; count++) {
		uint64_t last = 0;

		for (uint64_t us = 100; us < 6000; us += 100) {
			begin("connectx4", &usual);
			prefetch(a);
			if (is_dammed(reads(count, us * US)))
				last = us;
			end();
		}
		expect_eq(last, last_us[count]);
	}
}

/* ---- amplification of WRITEs ---- */

static void a_fault_repeats_all_writes_that_are_posted(void)
{
	enum { WRITES = 120, SIZE = 340, PAGES = (WRITES * SIZE + PAGE - 1) / PAGE };

	begin("connectx4", &usual);
	side_prefetch(a, 0, WRITES * SIZE);
	for (uint64_t i = 0; i < WRITES; i++)
		post_write(i, (uint32_t)i * SIZE, SIZE);
	play(a, SENDS, WRITES, 10 * SEC);
	/* N (M + 1) / 2, where a WRITE across a page boundary needs both. */
	expect(net.requests > WRITES * (PAGES + 1) / 2 * 8 / 10);
	expect(net.requests < WRITES * (PAGES + 1) / 2 * 13 / 10);
	end();
}

/* ---- timeouts ---- */

static uint64_t dead_after_ns(const char *profile, uint8_t code, uint8_t retries)
{
	struct options o = usual;
	uint64_t began_ns, took_ns;

	o.timeout = code;
	o.retry_cnt = retries;
	begin(profile, &o);
	lose(UINT32_MAX, is_any);
	began_ns = virtual_now_ns();
	post_read(1, 0);
	play(a, SENDS, 1, 100 * SEC);
	expect_done(a, SENDS, 0, 1, IBV_WC_RETRY_EXC_ERR);
	took_ns = a->done[SENDS][0].at_ns - began_ns;
	end();
	return took_ns;
}

static void a_dead_peer_takes_the_time_that_was_measured(void)
{
	/* Figure 4.5: t / 8 is about 500 ms, or 30 ms. */
	expect_within(dead_after_ns("connectx4", 1, 7) / 8, 500 * MS, 540 * MS);
	expect_within(dead_after_ns("connectx4", 16, 7) / 8, 500 * MS, 540 * MS);
	expect_within(dead_after_ns("connectx5", 1, 7) / 8, 28 * MS, 32 * MS);
	/* Public measurements of 2026. */
	expect_within(dead_after_ns("connectx6", 14, 7), 3500 * MS, 3760 * MS);
	expect_within(dead_after_ns("connectx6", 20, 7), 58500 * MS, 59800 * MS);
}

/* Public measurements of 2026: then the error is another one, after 0.38 to 3.51 ms. */
static void a_dead_peer_whose_region_goes_first_gives_another_error(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge,
				  .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t began_ns;
	struct ibv_mr *mr;

	begin("connectx6", &usual);
	mr = ibv_reg_mr(virtual_pd, b->memory, PAGE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	expect(mr);
	sge = (struct ibv_sge){ (uintptr_t)b->memory, BYTES, mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)b->memory;
	wr.wr.rdma.rkey = mr->rkey;
	expect_eq(ibv_dereg_mr(mr), 0);
	began_ns = virtual_now_ns();
	expect_eq(ibv_post_send(a->qp, &wr, &bad), 0);
	play(a, SENDS, 1, SEC);
	expect_done(a, SENDS, 0, 1, IBV_WC_REM_ACCESS_ERR);
	expect(a->done[SENDS][0].at_ns - began_ns < 3510 * US);
	end();
}

const struct virtual_test virtual_paging[] = {
#define CASE(fn) { #fn, fn }
	CASE(a_responder_without_the_page_of_a_read_sends_an_rnr_nak_and_answers_it_later),
	CASE(a_requester_without_the_page_sends_the_read_again_every_half_millisecond),
	CASE(a_responder_without_the_page_of_a_write_sends_an_rnr_nak_after_a_fault),
	CASE(a_responder_without_the_page_of_a_receive_sends_an_rnr_nak),
	CASE(a_requester_without_the_page_of_a_write_sends_it_when_the_page_is_there),
	CASE(a_long_write_leaves_as_far_as_its_pages_are_there),
	CASE(prefetched_pages_cost_nothing),
	CASE(a_page_that_the_program_frees_is_missing_again),
	CASE(a_request_without_the_right_is_refused_at_once),
	CASE(a_read_that_is_posted_while_another_waits_is_lost_until_the_timeout),
	CASE(only_the_read_that_was_posted_meanwhile_is_lost),
	CASE(what_leaves_behind_the_repeated_read_shows_the_gap),
	CASE(damming_happens_in_the_intervals_that_were_measured),
	CASE(a_third_read_behind_the_wait_shows_the_gap),
	CASE(more_reads_make_the_intervals_shorter),
	CASE(a_fault_repeats_all_writes_that_are_posted),
	CASE(a_dead_peer_takes_the_time_that_was_measured),
	CASE(a_dead_peer_whose_region_goes_first_gives_another_error),
	{ NULL, NULL },
};
