/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated network: times, addresses, room, partitions, and that a seed decides. */
#include "rig.h"
#include "transport/carrier/sim.h"

static struct carrier_sim *open_sim(struct carrier_sim_params p)
{
	struct carrier_sim *sim;

	rig_begin();
	check(carrier_sim_open(&p, &sim) == 0);
	for (unsigned i = 0; i < p.ends; i++)
		rig_own(carrier_sim_end(sim, i));
	return sim;
}

static int send_to(struct carrier_sim *sim, unsigned from, uint32_t to, uint32_t number,
		   uint32_t length)
{
	uint8_t bytes[8192];
	struct iovec iov = { bytes, length };
	struct carrier_unit u = { .iov = &iov, .count = 1, .to = carrier_addr_of(to) };

	rig_make(number, bytes, length);
	return carrier_emit(carrier_sim_end(sim, from), &u, 1);
}

static uint64_t now(struct carrier_sim *sim)
{
	struct clock_source clock = carrier_sim_clock(sim);

	return clock_source_now_ns(&clock);
}

static void a_packet_takes_its_time_and_knows_its_sender(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){
		.ends = 3, .start_ns = 5000,
		/* 1000 bytes take a microsecond. */
		.link = { .rate_bps = 8000000000, .delay_ns = 2000 },
	});

	check(now(sim) == 5000 && carrier_sim_next_ns(sim) == UINT64_MAX);
	check(send_to(sim, 0, 2, 1, 1000) == 1 && send_to(sim, 0, 1, 2, 1000) == 1);
	check(carrier_sim_next_ns(sim) == 8000);
	check(carrier_sim_next(sim, 7000) == -1 && now(sim) == 7000);
	check(carrier_sim_next(sim, 100000) == 2 && now(sim) == 8000);
	check(carrier_next_ns(carrier_sim_end(sim, 2)) == 0);
	check(carrier_poll(carrier_sim_end(sim, 2), 4) == 1);
	check(rig.got.number[0] == 1 && carrier_addr_number(&rig.got.last.from) == 0);
	check(rig.got.last.when_ns == 8000 && (rig.got.last.known & CARRIER_WHEN));
	/* Behind the other one on the same link. */
	check(carrier_sim_next(sim, 100000) == 1 && now(sim) == 9000);
	check(carrier_sim_next(sim, 100000) == -1 && now(sim) == 100000);
	carrier_sim_close(sim);
}

static void what_leads_nowhere_is_refused(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){
		.ends = 2, .packet_max = 500,
	});
	struct carrier_sim_params none = { 0 };
	struct carrier_sim_counters n;
	struct carrier_sim *other;

	check(send_to(sim, 0, 2, 1, 100) == -EHOSTUNREACH);
	check(send_to(sim, 0, 1, 1, 501) == -EMSGSIZE);
	check(send_to(sim, 0, 1, 1, 0) == -EINVAL);
	check(carrier_sim_open(&none, &other) == -EINVAL);
	check(send_to(sim, 0, 0, 1, 500) == 1 && carrier_sim_next(sim, 1) == 0);
	carrier_close(carrier_sim_end(sim, 1));
	check(send_to(sim, 0, 1, 1, 500) == 1 && carrier_sim_next(sim, 10) == -1);
	carrier_sim_count(sim, 0, &n);
	check(n.unreachable == 1 && n.sent.packets == 2);
	carrier_sim_close(sim);
}

static void a_link_that_is_full_says_when_there_is_room(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){
		.ends = 2, .send_bytes = 4000, .link = { .rate_bps = 8000000000 },
	});
	struct carrier *c = carrier_sim_end(sim, 0);
	uint64_t next;

	for (uint32_t i = 0; i < 4; i++)
		check(send_to(sim, 0, 1, i, 1000) == 1);
	check(send_to(sim, 0, 1, 4, 1000) == -EAGAIN);
	next = carrier_next_ns(c);
	check(next == 2000); /* half of it has left */
	while (carrier_sim_next(sim, next) >= 0)
		check(carrier_poll(carrier_sim_end(sim, 1), 8) == 1);
	check(rig.got.writable == 0);
	check(carrier_poll(c, 1) == 0 && rig.got.writable == 1);
	check(carrier_next_ns(c) == UINT64_MAX);
	check(send_to(sim, 0, 1, 4, 1000) == 1);
	while (carrier_sim_next(sim, 1000000) >= 0)
		check(carrier_poll(carrier_sim_end(sim, 1), 8) == 1);
	check(rig.got.count == 5);
	for (uint32_t i = 0; i < 5; i++)
		check(rig.got.number[i] == i);
	carrier_sim_close(sim);
}

static void an_end_that_does_not_poll_loses(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){
		.ends = 2, .receive_bytes = 1000,
	});
	struct carrier_sim_counters n;

	for (uint32_t i = 0; i < 15; i++)
		check(send_to(sim, 0, 1, i, 100) == 1);
	while (carrier_sim_next(sim, 100) >= 0)
		;
	check(carrier_poll(carrier_sim_end(sim, 1), 100) == 10);
	carrier_sim_count(sim, 1, &n);
	check(n.overrun == 5 && n.delivered == 10);
	carrier_sim_close(sim);
}

/* Of both senders together the port lets out one packet of 100 bytes in 100 ns. */
static void a_port_queues_marks_and_refuses(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){
		.ends = 3,
		.port = { .rate_bps = 8000000000, .queue_bytes = 1000, .mark_from = 200,
			  .mark_all = 500, .mark_most = 0 },
	});
	const uint8_t bytes[100] = { 0 };
	const struct iovec iov = { (void *)(uintptr_t)bytes, sizeof(bytes) };
	struct carrier_unit unit = { .iov = &iov, .count = 1, .to = carrier_addr_of(2),
				     .known = CARRIER_TOS, .tos = 2 };
	struct carrier_sim_counters n;

	for (unsigned i = 0; i < 6; i++)
		for (unsigned end = 0; end < 2; end++)
			check(carrier_emit(carrier_sim_end(sim, end), &unit, 1) == 1);
	for (uint64_t i = 1; i <= 10; i++)
		check(carrier_sim_next_ns(sim) <= i * 100 &&
		      carrier_sim_next(sim, i * 100) == 2);
	check(carrier_sim_next(sim, 10000) == -1);
	carrier_sim_count(sim, 2, &n);
	check(n.refused == 2 && n.queued_most == 1000);
	/* 9, 8, 7, 6 and 5 packets were behind the first ones. */
	check(n.marked == 5);
	unit.tos = 0; /* whoever does not know of ECN is not marked */
	for (unsigned i = 0; i < 10; i++)
		check(carrier_emit(carrier_sim_end(sim, 0), &unit, 1) == 1);
	while (carrier_sim_next(sim, 20000) >= 0)
		;
	carrier_sim_count(sim, 2, &n);
	check(n.refused == 2 && n.marked == 5);
	carrier_sim_close(sim);
}

static void a_partition_parts_two_ends_both_ways(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){
		.ends = 3, .link = { .delay_ns = 1000 },
	});
	struct carrier_sim_counters n;

	check(send_to(sim, 1, 0, 1, 100) == 1); /* on its way already */
	carrier_sim_part(sim, 0, 1, true);
	check(send_to(sim, 0, 1, 2, 100) == 1);
	check(send_to(sim, 0, 2, 3, 100) == 1);
	check(carrier_sim_next(sim, 5000) == 2 && carrier_sim_next(sim, 5000) == -1);
	carrier_sim_count(sim, 0, &n);
	check(n.parted == 1);
	carrier_sim_count(sim, 1, &n);
	check(n.parted == 1);
	carrier_sim_part(sim, 1, 0, false);
	check(send_to(sim, 0, 1, 4, 100) == 1);
	check(carrier_sim_next(sim, 10000) == 1);
	carrier_sim_close(sim);
}

static void a_train_is_split(void)
{
	struct carrier_sim *sim = open_sim((struct carrier_sim_params){ .ends = 2 });
	uint8_t bytes[250] = { 0 };
	struct iovec iov = { bytes, 250 };
	struct carrier_unit u = {
		.iov = &iov, .count = 1, .segment = 100, .to = carrier_addr_of(1),
	};

	check(carrier_emit(carrier_sim_end(sim, 0), &u, 1) == 1);
	while (carrier_sim_next(sim, 100) >= 0)
		;
	check(carrier_poll(carrier_sim_end(sim, 1), 100) == 3);
	check(rig.got.bytes[0] == 100 && rig.got.bytes[2] == 50);
	carrier_sim_close(sim);
}

static void one_seed_decides_all(void)
{
	static struct rig_log before;

	for (int round = 0; round < 3; round++) {
		struct carrier_sim *sim = open_sim((struct carrier_sim_params){
			.ends = 10, .seed = round < 2 ? 5 : 6,
			.link = { .loss = 0.1, .duplicate = 0.1, .reorder = 0.1,
				  .corrupt = 0.1, .delay_ns = 1000, .jitter_ns = 500,
				  .rate_bps = 1000000000 },
		});
		int end;

		for (uint32_t i = 0; i < 3000; i++) {
			send_to(sim, i % 10, i * 7 % 10, i, 100);
			rig.now_ns = now(sim);
			end = carrier_sim_next(sim, now(sim) + 100);
			if (end >= 0)
				carrier_poll(carrier_sim_end(sim, (unsigned)end), 2);
		}
		check(rig.got.count > 1000);
		if (round)
			check(!memcmp(before.number, rig.got.number,
				      sizeof(before.number)) == (round == 1));
		before = rig.got;
		carrier_sim_close(sim);
	}
}

int main(void)
{
	run_test(a_packet_takes_its_time_and_knows_its_sender);
	run_test(what_leads_nowhere_is_refused);
	run_test(a_link_that_is_full_says_when_there_is_room);
	run_test(an_end_that_does_not_poll_loses);
	run_test(a_port_queues_marks_and_refuses);
	run_test(a_partition_parts_two_ends_both_ways);
	run_test(a_train_is_split);
	run_test(one_seed_decides_all);
	return 0;
}
