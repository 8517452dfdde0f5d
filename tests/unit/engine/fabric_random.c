/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random subnets, packets and faults, from one seed: each packet comes to its host once or is dropped for
 * a reason that exists, those of a flow in order, and afterwards no packet is left and all credits have
 * come back. fabric_random [--seed N] [--runs N] [--verbose]. Run N of seed S is run 1 of seed S + N - 1.
 */
#include <string.h>

#include "fabric_map.h"

#define FLOWS 256u
#define TURNS 60u
#define PACKET_BLOCKS 35u /* of the longest packet */

struct flow {
	uint32_t number, from, to;
	uint8_t sl;
	uint64_t sent, came;
};

static struct {
	struct fabric *f;
	struct map map;
	struct prng g;
	struct flow flows[FLOWS];
	uint32_t flow_count;
	bool errors, cuts, short_life, ring, groups;
	uint8_t lanes;
	uint32_t buffer_blocks; /* of each lane of each link */
	uint64_t sent, delivered, dropped, marked, damaged;
	uint64_t group_sent, group_came, group_dropped;
	uint64_t hash, last_ps;
	uint64_t seed;
} run;

static void fail(const char *what)
{
	printf("failed: %s; repeat: fabric_random --seed %llu --runs 1 --verbose\n", what,
	       (unsigned long long)run.seed);
	exit(1);
}

static void expect(bool good, const char *what)
{
	if (!good)
		fail(what);
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)prng_below(&run.g, n);
}

static void event(void *arg, const struct fabric_event *e)
{
	const uint64_t parts[] = { e->at_ps, e->packet->number, e->node,
				   (uint64_t)e->kind << 24 | (uint64_t)e->port << 16 |
					   (uint64_t)e->lane << 8 | e->why };

	(void)arg;
	for (unsigned i = 0; i < 4; i++)
		run.hash = (run.hash ^ parts[i]) * UINT64_C(0x100000001b3);
	expect(fabric_now_ps(run.f) >= run.last_ps, "time does not go back");
	run.last_ps = fabric_now_ps(run.f);
}

/* The packet's data: the flow in the upper half, its number in the flow in the lower one. */
static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	struct flow *flow = &run.flows[(uintptr_t)p->data >> 40];
	uint64_t number = (uintptr_t)p->data & ((UINT64_C(1) << 40) - 1);

	(void)arg;
	expect(port == 1, "packets come to hosts");
	if (p->dlid >= MAP_GROUP) {
		run.group_came++;
		expect(node != run.map.host_node[flow->from], "no copy comes back to the sender");
	} else {
		expect(node == run.map.host_node[flow->to], "the packet is at its host");
		expect(number > flow->came, "packets of a flow come in order, and once");
		expect(run.errors || run.cuts || run.short_life || number == flow->came + 1,
		       "no packet of a flow is left out");
		flow->came = number;
		run.delivered++;
	}
	if (p->flags & FABRIC_FECN) {
		run.marked++;
		fabric_becn(run.f, flow->number);
	}
	fabric_packet_free(run.f, p);
}

static void drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		 enum fabric_drop why)
{
	(void)arg;
	(void)node;
	(void)port;
	switch (why) {
	case FABRIC_DROP_CORRUPT:
		run.damaged++;
		expect(run.errors, "bit errors come from links with an error rate");
		break;
	case FABRIC_DROP_LIFETIME:
		expect(run.short_life, "packets live on without a limit");
		break;
	case FABRIC_DROP_LINK_DOWN:
	case FABRIC_DROP_NO_ROUTE:
	case FABRIC_DROP_STATE:
		expect(run.cuts, "links are up");
		break;
	default:
		fail("this drop has no reason");
	}
	if (p->dlid >= MAP_GROUP)
		run.group_dropped++;
	else
		run.dropped++;
	fabric_packet_free(run.f, p);
}

static const struct fabric_ops ops = { .deliver = deliver, .drop = drop, .event = event };

static struct fabric_link random_link(void *arg)
{
	static const uint64_t bps[] = { 8000000000, 32000000000, 54545454545, EDR_BPS };
	(void)arg;
	return (struct fabric_link){
		.bps = bps[below(4)],
		.delay_ps = below(8) ? below(20000) : below(5000000),
		.bit_error_rate = run.errors && !below(3) ? 1e-6 * (1 + below(20)) : 0,
		.mtu = 2048,
		.lanes = run.lanes,
		.buffer_bytes = run.buffer_blocks * FABRIC_BLOCK_BYTES,
	};
}

static void set_switches(void)
{
	for (uint32_t i = 0; i < run.map.switches; i++) {
		uint32_t node = run.map.switch_node[i];
		const struct fabric_switch s = {
			.latency_ps = below(3) ? below(300000) : 0,
			.store_and_forward = !below(3),
			.virtual_output_queues = !below(3),
		};
		const struct fabric_congestion_switch c = {
			.threshold = (uint8_t)below(16), .marking_rate = (uint16_t)below(4),
		};

		CHECK(fabric_set_switch(run.f, node, &s) == 0);
		CHECK(fabric_set_congestion_switch(run.f, node, 0, &c) == 0);
		kit_lanes(run.f, node, MAP_PORTS, run.lanes);
		for (uint8_t k = 1; run.short_life && k <= run.map.ports[i]; k++) {
			struct fabric_port_setting set;

			CHECK(fabric_get_port(run.f, node, k, &set) == 0);
			set.hoq_life = (uint8_t)below(4);
			CHECK(fabric_set_port(run.f, node, k, &set) == 0);
		}
	}
}

static void set_hosts(void)
{
	static const uint16_t table[] = { 0, 1, 2, 4, 8, 0x4003, 16, 32 };

	for (uint32_t i = 0; i < run.map.hosts; i++) {
		const struct fabric_congestion_host c = {
			.timer = (uint16_t)below(20), .increase = (uint8_t)below(3), .limit = 7,
		};

		kit_lanes(run.f, run.map.host_node[i], 1, run.lanes);
		if (below(2))
			continue;
		for (uint8_t sl = 0; sl < 16; sl++)
			CHECK(!fabric_set_congestion_host(run.f, run.map.host_node[i], 1, sl, &c));
		CHECK(!fabric_set_congestion_table(run.f, run.map.host_node[i], 1, 0, table, 8));
	}
}

static void open_flows(void)
{
	run.flow_count = 1 + below(FLOWS - 1);
	for (uint32_t i = 0; i < run.flow_count; i++) {
		struct flow *flow = &run.flows[i];

		flow->from = below(run.map.hosts);
		flow->to = below(run.map.hosts);
		if (flow->to == flow->from)
			flow->to = (flow->to + 1) % run.map.hosts;
		flow->sl = run.ring ? map_ring_lane(&run.map, flow->from, flow->to)
				    : (uint8_t)below(16);
		flow->number = fabric_flow_open(run.f, run.map.host_node[flow->from], 1, flow->sl);
		CHECK(flow->number);
	}
}

static void send_one(void)
{
	uint32_t index = below(run.flow_count);
	struct flow *flow = &run.flows[index];
	bool group = run.groups && !below(8);
	struct fabric_packet *p = kit_packet(run.f, group ? MAP_GROUP : (uint16_t)(flow->to + 1),
					     flow->sl, 30 + below(2048));

	p->flow = flow->number;
	p->data = (void *)((uintptr_t)index << 40 | (uintptr_t)(flow->sent + 1));
	if (fabric_send(run.f, run.map.host_node[flow->from], 1, p)) {
		fabric_packet_free(run.f, p);
		return;
	}
	if (group) {
		run.group_sent++;
	} else {
		flow->sent++;
		run.sent++;
	}
}

static void cut_or_join(void)
{
	uint32_t s = below(run.map.switches);
	uint8_t port = (uint8_t)(1 + below(run.map.ports[s]));
	uint32_t node = run.map.switch_node[s], peer;
	uint8_t peer_port;
	bool up = fabric_link_is_up(run.f, node, port);

	CHECK(fabric_set_link(run.f, node, port, !up) == 0);
	if (up || fabric_peer(run.f, node, port, &peer, &peer_port))
		return;
	kit_state(run.f, node, port, FABRIC_PORT_ACTIVE);
	kit_state(run.f, peer, peer_port, FABRIC_PORT_ACTIVE);
}

static void expect_all_credits(uint32_t node, uint8_t port)
{
	for (uint8_t lane = 0; lane < run.lanes; lane++) {
		struct fabric_lane_state s;

		CHECK(fabric_get_lane(run.f, node, port, lane, &s) == 0);
		expect(!s.queued_bytes, "no bytes are queued");
		expect(!fabric_link_is_up(run.f, node, port) ||
			       s.credit_blocks == (run.buffer_blocks < 2048 ? run.buffer_blocks : 2048),
		       "all credits are back");
	}
}

static void finish(void)
{
	fabric_run(run.f, FABRIC_NEVER, 0);
	expect(fabric_find_deadlock(run.f, 0) == 0, "there is no deadlock");
	expect(fabric_packets_inside(run.f) == 0, "no packet is left");
	expect(fabric_next_ps(run.f) == FABRIC_NEVER, "no event is left");
	expect(run.sent == run.delivered + run.dropped, "each packet came or was dropped");
	if (!run.errors && !run.cuts && !run.short_life) {
		expect(run.dropped == 0 && run.group_dropped == 0, "links lose nothing");
		expect(run.group_came == run.group_sent * (run.map.hosts - 1),
		       "a packet to a group comes to all other hosts");
	}
	for (uint32_t i = 0; i < run.map.switches; i++)
		for (uint8_t k = 1; k <= run.map.ports[i]; k++) {
			uint32_t peer;
			uint8_t peer_port;

			expect_all_credits(run.map.switch_node[i], k);
			CHECK(!fabric_peer(run.f, run.map.switch_node[i], k, &peer, &peer_port));
			expect_all_credits(peer, peer_port);
		}
}

/* The hash of all events of the run. */
static uint64_t play(uint64_t seed)
{
	uint32_t switches;

	memset(&run, 0, sizeof(run));
	run.seed = seed;
	run.g = prng_from(seed);
	run.hash = UINT64_C(0xcbf29ce484222325);
	run.lanes = (uint8_t)(1u << below(4));
	run.buffer_blocks = PACKET_BLOCKS * (1 + below(below(4) ? 8 : 80));
	run.errors = !below(3);
	run.cuts = !below(4);
	run.short_life = !below(6);
	run.ring = run.lanes > 1 && !below(3);
	run.groups = !run.ring && !below(2);
	CHECK(fabric_open(&kit_limits, &ops, seed, &run.f) == 0);
	switches = run.ring ? 3 + below(8) : 1 + below(8);
	if (run.ring)
		map_ring(&run.map, run.f, switches, 1 + below(2), random_link, NULL);
	else
		map_random(&run.map, run.f, &run.g, switches, 2 + below(2), random_link, NULL);
	set_switches();
	set_hosts();
	open_flows();
	for (unsigned i = 0; i < TURNS; i++) {
		for (uint32_t k = below(60); k; k--)
			send_one();
		if (run.cuts && !below(4))
			cut_or_join();
		fabric_run(run.f, fabric_now_ps(run.f) + below(3000000), 0);
	}
	finish();
	fabric_close(run.f);
	return run.hash;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, runs = 200, packets = 0, dropped = 0, marked = 0, copies = 0;
	bool verbose = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			runs = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--verbose"))
			verbose = true;
		else
			return 2;
	}
	for (uint64_t i = 0; i < runs; i++) {
		uint64_t hash = play(seed + i);

		packets += run.sent + run.group_sent;
		copies += run.group_came;
		dropped += run.dropped + run.group_dropped;
		marked += run.marked;
		if (verbose)
			printf("seed %llu hash %016llx sent %llu dropped %llu damaged %llu\n",
			       (unsigned long long)(seed + i), (unsigned long long)hash,
			       (unsigned long long)run.sent, (unsigned long long)run.dropped,
			       (unsigned long long)run.damaged);
		if (i % 10 == 0)
			expect(play(seed + i) == hash, "the same seed gives the same events");
	}
	printf("ok: %llu packets, %llu copies, %llu dropped, %llu marked\n",
	       (unsigned long long)packets, (unsigned long long)copies,
	       (unsigned long long)dropped, (unsigned long long)marked);
	return 0;
}
