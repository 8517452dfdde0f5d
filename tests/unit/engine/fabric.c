/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact times and counters of single packets. */
#include <errno.h>
#include <string.h>

#include "fabric_kit.h"

static struct {
	uint64_t at_ps[64];
	uint32_t node[64];
	unsigned delivered, dropped, why;
	struct fabric *f;
} seen;

static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	(void)arg;
	(void)port;
	CHECK(seen.delivered < 64);
	seen.at_ps[seen.delivered] = fabric_now_ps(seen.f);
	seen.node[seen.delivered++] = node;
	fabric_packet_free(seen.f, p);
}

static void drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		 enum fabric_drop why)
{
	(void)arg;
	(void)node;
	(void)port;
	seen.dropped++;
	seen.why = why;
	fabric_packet_free(seen.f, p);
}

static const struct fabric_ops ops = { .deliver = deliver, .drop = drop };

static struct fabric *begin(void)
{
	struct fabric *f;

	memset(&seen, 0, sizeof(seen));
	CHECK(fabric_open(&kit_limits, &ops, 1, &f) == 0);
	seen.f = f;
	return f;
}

static void one_packet_over_one_link(void)
{
	struct fabric *f = begin();
	struct fabric_link link = kit_link(1);
	struct fabric_counters c;
	uint32_t a = kit_host(f), b = kit_host(f);

	kit_join(f, a, 1, b, 1, &link);
	kit_send(f, a, 2, 0, 2074);
	CHECK(fabric_packets_inside(f) == 1);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1 && seen.node[0] == b);
	CHECK(seen.at_ps[0] == 2074 * BYTE_PS + 5000);
	CHECK(fabric_packets_inside(f) == 0 && fabric_next_ps(f) == FABRIC_NEVER);
	CHECK(fabric_get_counters(f, a, 1, &c) == 0);
	CHECK(c.xmit_packets == 1 && c.xmit_words == 518 && c.unicast_xmit == 1 && !c.xmit_wait);
	CHECK(fabric_get_counters(f, b, 1, &c) == 0);
	CHECK(c.rcv_packets == 1 && c.rcv_words == 518 && c.unicast_rcv == 1);
	fabric_close(f);
}

static void a_link_that_was_down_may_have_another_rate(void)
{
	struct fabric *f = begin();
	struct fabric_link link = kit_link(1);
	uint32_t a = kit_host(f), b = kit_host(f);
	struct fabric_port_setting s;
	uint64_t start;

	kit_join(f, a, 1, b, 1, &link);
	CHECK(fabric_get_port(f, a, 1, &s) == 0);
	CHECK(fabric_set_rate(f, a, 1, link.bps / 4) == -EBUSY);
	CHECK(fabric_set_rate(f, a, 2, link.bps / 4) == -EINVAL);
	CHECK(fabric_set_link(f, b, 1, false) == 0);
	CHECK(fabric_set_rate(f, a, 1, 999999) == -EINVAL);
	CHECK(fabric_set_rate(f, a, 1, link.bps / 4) == 0);
	CHECK(fabric_set_link(f, b, 1, true) == 0);
	CHECK(fabric_set_port(f, a, 1, &s) == 0 && fabric_set_port(f, b, 1, &s) == 0);
	start = fabric_now_ps(f);
	kit_send(f, b, 1, 0, 2074);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1 && seen.node[0] == a);
	CHECK(seen.at_ps[0] == start + 2074 * 4 * BYTE_PS + 5000);
	fabric_close(f);
}

/* Two hosts at one switch, with LIDs 1 and 2. */
static void join_two(struct fabric *f, bool store_and_forward)
{
	const struct fabric_switch sw = {
		.latency_ps = 100000, .store_and_forward = store_and_forward,
	};
	struct fabric_link link = kit_link(1);
	uint32_t a = kit_host(f), b = kit_host(f), s = kit_switch(f, 4);

	CHECK(fabric_set_switch(f, s, &sw) == 0);
	kit_join(f, a, 1, s, 1, &link);
	kit_join(f, b, 1, s, 2, &link);
	kit_route(f, s, 1, 1);
	kit_route(f, s, 2, 2);
}

static void one_packet_over_a_switch(void)
{
	for (int stores = 0; stores < 2; stores++) {
		struct fabric *f = begin();

		join_two(f, stores);
		kit_send(f, 0, 2, 0, 2074);
		fabric_run(f, FABRIC_NEVER, 0);
		CHECK(seen.delivered == 1 && seen.node[0] == 1);
		CHECK(seen.at_ps[0] == (stores ? 2074 : 8) * BYTE_PS + 5000 + 100000 +
					       2074 * BYTE_PS + 5000);
		CHECK(fabric_next_ps(f) == FABRIC_NEVER);
		fabric_close(f);
	}
}

/* The buffer takes one packet, so the second waits for a flow control packet: to the picosecond. */
static void a_port_without_credits_counts_the_wait(void)
{
	struct fabric *f = begin();
	struct fabric_link link = kit_link(1);
	struct fabric_lane_state lane;
	struct fabric_counters c;
	uint64_t packet_ps = 2074 * BYTE_PS, wait_ps = 2 * 1000000 + 8 * BYTE_PS;
	uint32_t a = kit_host(f), b = kit_host(f);

	link.mtu = 2048;
	link.buffer_bytes = 2048 + 128;
	link.delay_ps = 1000000;
	kit_join(f, a, 1, b, 1, &link);
	kit_send(f, a, 2, 0, 2074);
	kit_send(f, a, 2, 0, 2074);
	fabric_run(f, packet_ps + 44000, 0);
	CHECK(fabric_get_counters(f, a, 1, &c) == 0 && c.xmit_wait == 2 && c.xmit_packets == 1);
	CHECK(fabric_get_lane(f, a, 1, 0, &lane) == 0);
	CHECK(lane.credit_blocks == 1 && lane.queued_bytes == 2074);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 2);
	CHECK(seen.at_ps[1] == packet_ps + wait_ps + packet_ps + 1000000);
	CHECK(fabric_get_counters(f, a, 1, &c) == 0 && c.xmit_wait == wait_ps / 22000);
	CHECK(fabric_get_lane(f, a, 1, 0, &lane) == 0 && lane.credit_blocks == 34);
	CHECK(fabric_clear_counters(f, a, 1) == 0);
	CHECK(fabric_get_counters(f, a, 1, &c) == 0 && c.xmit_wait == 0 && c.xmit_packets == 0);
	fabric_close(f);
}

/* A packet for a faster link waits until it is complete: the port would run out of bytes. */
static void a_switch_does_not_cut_through_to_a_faster_link(void)
{
	struct fabric *f = begin();
	struct fabric_link slow = kit_link(1), fast = kit_link(1);
	uint32_t a = kit_host(f), b = kit_host(f), s = kit_switch(f, 2);

	slow.bps = EDR_BPS / 4;
	kit_join(f, a, 1, s, 1, &slow);
	kit_join(f, b, 1, s, 2, &fast);
	kit_route(f, s, 2, 2);
	kit_send(f, a, 2, 0, 2074);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1);
	CHECK(seen.at_ps[0] == 2074 * 4 * BYTE_PS + 5000 + 2074 * BYTE_PS + 5000);
	fabric_close(f);
}

/* Management packets need no credits and pass waiting data. */
static void management_goes_first(void)
{
	struct fabric *f = begin();
	struct fabric_packet *p;

	join_two(f, false);
	for (unsigned i = 0; i < 8; i++)
		kit_send(f, 0, 2, 0, 2074);
	fabric_run(f, 1000, 0);
	p = kit_packet(f, 2, 0, 290);
	p->lane = FABRIC_LANE_MANAGEMENT;
	CHECK(fabric_send(f, 0, 1, p) == 0);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 9);
	/* Second, behind the packet that was being sent. */
	CHECK(seen.at_ps[1] == seen.at_ps[0] + 290 * BYTE_PS);
	CHECK(seen.at_ps[2] == seen.at_ps[1] + 2074 * BYTE_PS);
	fabric_close(f);
}

/* A damaged packet takes its credits along until its sender's next flow control packet, 65,536 symbol
 * times after the last one. */
static void credits_of_a_damaged_packet_come_back(void)
{
	struct fabric *f = begin();
	struct fabric_link link = kit_link(1);
	struct fabric_lane_state lane;
	struct fabric_counters c;
	struct fabric_packet *p;
	uint32_t a = kit_host(f), b = kit_host(f);

	kit_join(f, a, 1, b, 1, &link);
	p = kit_packet(f, 2, 0, 2074);
	p->flags |= FABRIC_CORRUPT;
	CHECK(fabric_send(f, a, 1, p) == 0);
	fabric_run(f, 1000000, 0);
	CHECK(seen.dropped == 1 && seen.why == FABRIC_DROP_CORRUPT);
	CHECK(fabric_get_lane(f, a, 1, 0, &lane) == 0 && lane.credit_blocks == 512 - 33);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(fabric_now_ps(f) == 4 * 65536 * BYTE_PS + 2 * (8 * BYTE_PS + 5000));
	CHECK(fabric_get_lane(f, a, 1, 0, &lane) == 0 && lane.credit_blocks == 512);
	CHECK(fabric_get_counters(f, b, 1, &c) == 0);
	CHECK(c.symbol_errors == 1 && c.rcv_errors == 1 && c.rcv_packets == 0);
	fabric_close(f);
}

/* A port whose head has waited for 4.096 us x 2^1 drops it, and the next one gets as long. */
static void heads_of_queues_have_a_lifetime(void)
{
	struct fabric *f = begin();
	struct fabric_port_setting set;
	struct fabric_counters c;
	uint64_t first;

	join_two(f, false);
	CHECK(fabric_get_port(f, 2, 2, &set) == 0);
	set.hoq_life = 1;
	CHECK(fabric_set_port(f, 2, 2, &set) == 0);
	/* The host has lost all credits of its lane to damaged packets. */
	for (unsigned i = 0; i < 15; i++) {
		struct fabric_packet *p = kit_packet(f, 2, 0, 2074);

		p->flags |= FABRIC_CORRUPT;
		CHECK(fabric_send(f, 2, 2, p) == 0);
	}
	fabric_run(f, 4000000, 0);
	CHECK(seen.dropped == 15);
	first = fabric_now_ps(f) + 8 * BYTE_PS + 5000 + 100000 + 8192000;
	kit_send(f, 0, 2, 0, 2074);
	kit_send(f, 0, 2, 0, 2074);
	fabric_run(f, first - 1, 0);
	CHECK(seen.dropped == 15);
	fabric_run(f, first, 0);
	CHECK(seen.dropped == 16 && seen.why == FABRIC_DROP_LIFETIME);
	fabric_run(f, first + 8192000, 0);
	CHECK(seen.dropped == 17 && seen.delivered == 0);
	CHECK(fabric_get_counters(f, 2, 2, &c) == 0 && c.xmit_discards == 2 && c.xmit_wait > 700);
	kit_send(f, 0, 2, 0, 2074);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1);
	fabric_close(f);
}

/* Host 0 holds port 3 of the switch. Host 1 sends to it, too, and then to host 3: its second packet, also
 * one that comes while the first is leaving, waits for the first, which waits for the port; with
 * virtual output queues it does not. */
static void the_head_of_a_queue_blocks_the_others(bool queues, bool late)
{
	const struct fabric_switch sw = { .latency_ps = 100000, .virtual_output_queues = queues };
	struct fabric_link link = kit_link(1);
	struct fabric *f = begin();
	uint64_t packet = 2074 * BYTE_PS, small = 100 * BYTE_PS;
	uint64_t second = late ? packet + packet / 2 : packet;
	uint64_t ready = 8 * BYTE_PS + 5000 + 100000; /* in the switch, after the first byte */
	uint32_t s;

	for (unsigned i = 0; i < 4; i++)
		kit_host(f);
	s = kit_switch(f, 4);
	CHECK(fabric_set_switch(f, s, &sw) == 0);
	for (uint8_t i = 0; i < 4; i++) {
		kit_join(f, i, 1, s, (uint8_t)(i + 1), &link);
		kit_route(f, s, i + 1, (uint8_t)(i + 1));
	}
	kit_send(f, 0, 3, 0, 2074);
	kit_send(f, 1, 3, 0, 2074);
	fabric_run(f, second, 0);
	kit_send(f, 1, 4, 0, 100);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 3);
	for (unsigned i = 0; i < 3; i++)
		if (seen.node[i] == 3)
			CHECK(seen.at_ps[i] ==
			      (queues ? second : 2 * packet) + ready + small + 5000);
	fabric_close(f);
}

/* Credits that were missing once do not make the port a victim for ever. */
static void a_port_marks_again_when_its_credits_are_back(void)
{
	const struct fabric_congestion_switch c = { .threshold = 15 };
	struct fabric_link link = kit_link(1);
	struct fabric_counters counters;
	struct fabric *f = begin();
	uint32_t s;

	for (unsigned i = 0; i < 3; i++)
		kit_host(f);
	s = kit_switch(f, 3);
	CHECK(fabric_set_congestion_switch(f, s, 0, &c) == 0);
	for (uint8_t i = 0; i < 3; i++)
		kit_join(f, i, 1, s, (uint8_t)(i + 1), &link);
	kit_route(f, s, 3, 3);
	for (unsigned i = 0; i < 16; i++) {
		struct fabric_packet *p = kit_packet(f, 3, 0, 2074);

		p->flags |= i < 15 ? FABRIC_CORRUPT : 0;
		CHECK(fabric_send(f, s, 3, p) == 0);
	}
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.dropped == 15 && seen.delivered == 1);
	CHECK(fabric_clear_counters(f, s, 3) == 0);
	for (unsigned i = 0; i < 10; i++) {
		kit_send(f, 0, 3, 0, 2074);
		kit_send(f, 1, 3, 0, 2074);
	}
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(fabric_get_counters(f, s, 3, &counters) == 0 && counters.marked > 5);
	CHECK(seen.delivered == 21);
	fabric_close(f);
}

int main(void)
{
	one_packet_over_one_link();
	a_link_that_was_down_may_have_another_rate();
	one_packet_over_a_switch();
	a_port_without_credits_counts_the_wait();
	a_switch_does_not_cut_through_to_a_faster_link();
	management_goes_first();
	credits_of_a_damaged_packet_come_back();
	heads_of_queues_have_a_lifetime();
	for (int i = 0; i < 4; i++)
		the_head_of_a_queue_blocks_the_others(i & 1, i & 2);
	a_port_marks_again_when_its_credits_are_back();
	puts("ok");
	return 0;
}
