/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings whose buffers wait for each other, and two lanes that prevent it. fabric_deadlock [MESSAGES].
 */
#include <string.h>

#include "fabric_map.h"

#define SWITCHES 6u
#define HOSTS 2u /* of each switch */

static struct {
	struct fabric *f;
	struct map map;
	struct prng g;
	struct fabric_lane_at cycle[32];
	size_t cycle_count;
	uint64_t sent, came, messages;
	bool lanes;
} run;

/* Each host sends to the host opposite, over half of the ring, or to a random one. */
static void send_more(void *arg, uint32_t node, uint8_t port)
{
	uint32_t from, to;

	(void)arg;
	for (from = 0; run.map.host_node[from] != node; from++)
		;
	while (run.sent < run.messages) {
		struct fabric_packet *p;
		uint8_t sl;

		to = (from + SWITCHES / 2) % run.map.hosts;
		if (run.lanes && prng_below(&run.g, 4) == 0)
			to = (uint32_t)prng_below(&run.g, run.map.hosts);
		if (to == from)
			continue;
		sl = run.lanes ? map_ring_lane(&run.map, from, to) : 0;
		p = kit_packet(run.f, (uint16_t)(to + 1), sl, 2074);
		if (fabric_send(run.f, node, port, p)) {
			fabric_packet_free(run.f, p);
			return;
		}
		run.sent++;
	}
}

static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	(void)arg;
	(void)port;
	CHECK(run.map.host_node[p->dlid - 1] == node);
	run.came++;
	fabric_packet_free(run.f, p);
}

static void deadlock(void *arg, const struct fabric_lane_at *cycle, size_t count)
{
	(void)arg;
	CHECK(count <= 32);
	memcpy(run.cycle, cycle, count * sizeof(*cycle));
	run.cycle_count = count;
}

static const struct fabric_ops ops = {
	.deliver = deliver, .writable = send_more, .deadlock = deadlock,
};

static struct fabric_link small_link(void *arg)
{
	struct fabric_link link = kit_link(2);

	(void)arg;
	link.mtu = 2048;
	link.buffer_bytes = 2 * 2240;
	return link;
}

static void begin(bool lanes, bool queues, uint64_t messages)
{
	const struct fabric_switch sw = { .latency_ps = 100000, .virtual_output_queues = queues };

	memset(&run, 0, sizeof(run));
	run.lanes = lanes;
	run.messages = messages;
	run.g = prng_from(1);
	CHECK(fabric_open(&kit_limits, &ops, 1, &run.f) == 0);
	map_ring(&run.map, run.f, SWITCHES, HOSTS, small_link, NULL);
	for (uint32_t i = 0; i < SWITCHES; i++) {
		CHECK(fabric_set_switch(run.f, run.map.switch_node[i], &sw) == 0);
		kit_lanes(run.f, run.map.switch_node[i], MAP_PORTS, 2);
	}
	for (uint32_t i = 0; i < run.map.hosts; i++) {
		kit_lanes(run.f, run.map.host_node[i], 1, 2);
		send_more(NULL, run.map.host_node[i], 1);
	}
}

static uint32_t switch_of(uint32_t node)
{
	for (uint32_t i = 0; i < SWITCHES; i++)
		if (run.map.switch_node[i] == node)
			return i;
	CHECK(!"the cycle is of switches");
	return 0;
}

static void a_ring_with_the_shortest_ways_blocks_itself(bool queues)
{
	begin(false, queues, 100000);
	fabric_run(run.f, FABRIC_NEVER, 0);
	CHECK(run.came < 100000 && fabric_packets_inside(run.f) > SWITCHES);
	CHECK(fabric_next_ps(run.f) == FABRIC_NEVER);
	fabric_run(run.f, fabric_now_ps(run.f) + 1000000, 0);
	CHECK(fabric_find_deadlock(run.f, 2000000) == 0); /* not for so long */
	CHECK(fabric_find_deadlock(run.f, 1000000) == 1);
	CHECK(run.cycle_count == SWITCHES);
	for (uint32_t i = 0; i < SWITCHES; i++) {
		CHECK(run.cycle[i].port == 1 && run.cycle[i].lane == 0);
		CHECK(switch_of(run.cycle[(i + 1) % SWITCHES].node) ==
		      (switch_of(run.cycle[i].node) + 1) % SWITCHES);
	}
	fabric_close(run.f);
}

static void two_lanes_prevent_it(uint64_t messages, bool queues)
{
	begin(true, queues, messages);
	while (fabric_next_ps(run.f) != FABRIC_NEVER) {
		fabric_run(run.f, fabric_now_ps(run.f) + 100000000, 0);
		CHECK(fabric_find_deadlock(run.f, 0) == 0);
	}
	CHECK(run.came == messages && fabric_packets_inside(run.f) == 0);
	fabric_close(run.f);
}

/* Full buffers alone are none: a receiver that is slow is not in a cycle. */
static void a_slow_link_is_no_deadlock(void)
{
	struct fabric_link slow = small_link(NULL), fast = small_link(NULL);
	uint32_t a, b, s;

	memset(&run, 0, sizeof(run));
	CHECK(fabric_open(&kit_limits, &ops, 1, &run.f) == 0);
	slow.bps = EDR_BPS / 1000;
	a = kit_host(run.f);
	b = kit_host(run.f);
	s = kit_switch(run.f, 2);
	run.map.host_node[1] = b;
	kit_join(run.f, a, 1, s, 1, &fast);
	kit_join(run.f, b, 1, s, 2, &slow);
	kit_route(run.f, s, 2, 2);
	for (unsigned i = 0; i < 20; i++)
		kit_send(run.f, a, 2, 0, 2074);
	fabric_run(run.f, 100000000, 0);
	CHECK(fabric_packets_inside(run.f) > 10 && fabric_find_deadlock(run.f, 0) == 0);
	fabric_run(run.f, FABRIC_NEVER, 0);
	CHECK(run.came == 20);
	fabric_close(run.f);
}

int main(int argc, char **argv)
{
	uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000;

	a_ring_with_the_shortest_ways_blocks_itself(false);
	a_ring_with_the_shortest_ways_blocks_itself(true);
	two_lanes_prevent_it(messages, false);
	two_lanes_prevent_it(messages, true);
	a_slow_link_is_no_deadlock();
	puts("ok");
	return 0;
}
