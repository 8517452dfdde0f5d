/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All functions of a fabric with random arguments, of which many do not exist, also from the functions
 * that the engine calls: each call succeeds or returns a documented error, and each packet comes back once.
 * fabric_calls [SEED [CALLS]].
 */
#include <errno.h>
#include <string.h>

#include "fabric_kit.h"
#include "util/prng.h"

#define NODES 12u
#define HELD 64u

static struct {
	struct fabric *f;
	struct prng g;
	struct fabric_packet *held[HELD]; /* the owner's */
	unsigned held_count, depth;
	uint64_t sent, came_back, shared, delivered;
	uint64_t calls;
} run;

static uint32_t below(uint32_t n)
{
	return (uint32_t)prng_below(&run.g, n);
}

/* A small number, now and then one that is too large. */
static uint32_t number(uint32_t n)
{
	return below(16) ? below(n) : (uint32_t)(prng_next(&run.g) >> below(33));
}

static uint32_t node(void)
{
	return number(NODES);
}

static uint8_t port(void)
{
	return (uint8_t)number(5);
}

static void expect(int r)
{
	CHECK(r >= 0 || r == -EINVAL || r == -ENOSPC || r == -EEXIST || r == -ENOLINK ||
	      r == -EBUSY);
}

static void build_something(void)
{
	struct fabric_link link = kit_link((uint8_t)(below(2) ? 1u << below(4) : number(17)));
	const struct fabric_switch s = {
		.latency_ps = number(200000), .store_and_forward = below(2),
		.virtual_output_queues = below(2),
	};

	if (!below(8))
		link.buffer_bytes = number(5000);
	if (!below(8))
		link.bit_error_rate = 1e-5;
	link.mtu = (uint16_t)(4096u >> below(2) * below(6));
	switch (below(5)) {
	case 0:
		expect(fabric_add_node(run.f, (enum fabric_kind)number(2), (uint8_t)(1 + number(4))));
		break;
	case 1:
	case 2:
		expect(fabric_add_link(run.f, node(), port(), node(), port(), &link));
		break;
	case 3:
		expect(fabric_set_switch(run.f, node(), &s));
		break;
	default:
		expect(fabric_set_link(run.f, node(), port(), below(4)));
		expect(fabric_set_bit_error_rate(run.f, node(), port(), below(3) ? 0 : 1e-5));
		break;
	}
}

static void set_port(void)
{
	const struct fabric_port_setting set = {
		.state = (uint8_t)(below(8) ? FABRIC_PORT_ACTIVE : number(6)),
		.lanes = (uint8_t)(1u << below(2) * below(4)), .high_limit = (uint8_t)number(256),
		.hoq_life = (uint8_t)number(24), .mtu = (uint16_t)(256u << below(5)),
		.enforce_in = !below(32), .enforce_out = !below(32),
	};
	const uint16_t pkeys[] = { 0xffff, (uint16_t)number(0x8000) };

	expect(fabric_set_port(run.f, node(), port(), &set));
	if (!below(4))
		expect(fabric_set_pkeys(run.f, node(), port(), pkeys, below(3)));
}

static void set_tables(void)
{
	struct fabric_arbitration weights[8];
	uint8_t ports[64], lanes[16];
	uint16_t masks[32];

	for (unsigned i = 0; i < 64; i++)
		ports[i] = (uint8_t)number(5);
	for (unsigned i = 0; i < 16; i++)
		lanes[i] = (uint8_t)(below(4) ? 0 : number(16));
	for (unsigned i = 0; i < 32; i++)
		masks[i] = (uint16_t)below(32);
	for (unsigned i = 0; i < 8; i++)
		weights[i] = (struct fabric_arbitration){ (uint8_t)number(8), (uint8_t)number(256) };
	expect(fabric_set_forwarding(run.f, node(), (uint16_t)number(64), ports, number(64) % 65));
	expect(fabric_set_multicast(run.f, node(), (uint16_t)number(64), (uint8_t)number(2), masks));
	expect(fabric_set_sl_to_lane(run.f, node(), port(), port(), lanes));
	expect(fabric_set_arbitration(run.f, node(), port(), below(2), number(64), weights,
				      below(9)));
	if (!below(64))
		expect(fabric_set_forwarding_top(run.f, node(), (uint16_t)number(0xc000)));
}

static void set_congestion(void)
{
	const struct fabric_congestion_switch s = {
		.threshold = (uint8_t)number(16), .marking_rate = (uint16_t)number(3),
	};
	const struct fabric_congestion_host h = {
		.timer = (uint16_t)number(9), .increase = (uint8_t)number(256),
		.minimum = (uint8_t)number(2), .limit = (uint16_t)number(16),
	};
	uint16_t table[16];

	for (unsigned i = 0; i < 16; i++)
		table[i] = (uint16_t)number(64);
	expect(fabric_set_congestion_switch(run.f, node(), port(), &s));
	expect(fabric_set_congestion_host(run.f, node(), port(), (uint8_t)number(16),
					  below(3) ? &h : NULL));
	expect(fabric_set_congestion_table(run.f, node(), port(), (uint16_t)number(16), table,
					   below(17)));
	fabric_becn(run.f, number(20));
}

static void look(void)
{
	struct fabric_port_setting set;
	struct fabric_arbitration weights[8];
	struct fabric_lane_state lane;
	struct fabric_counters c;
	uint8_t ports[64], lanes[16], p;
	uint16_t masks[32];
	uint32_t n;

	expect(fabric_get_port(run.f, node(), port(), &set));
	expect(fabric_get_counters(run.f, node(), port(), &c));
	expect(fabric_clear_counters(run.f, node(), port()));
	expect(fabric_get_lane(run.f, node(), port(), (uint8_t)number(16), &lane));
	expect(fabric_get_forwarding(run.f, node(), (uint16_t)number(64), ports, below(65)));
	expect(fabric_get_multicast(run.f, node(), (uint16_t)number(64), (uint8_t)number(3), masks));
	expect(fabric_get_sl_to_lane(run.f, node(), port(), port(), lanes));
	expect(fabric_get_arbitration(run.f, node(), port(), below(2), number(64), weights, below(9)));
	expect(fabric_peer(run.f, node(), port(), &n, &p));
	fabric_link_is_up(run.f, node(), port());
	fabric_flow_room(run.f, number(20));
	CHECK(fabric_next_ps(run.f) >= fabric_now_ps(run.f));
}

static void flows(void)
{
	if (below(2))
		fabric_flow_open(run.f, node(), port(), (uint8_t)number(16));
	else
		fabric_flow_close(run.f, number(20));
}

static void send_something(void)
{
	struct fabric_packet *p;
	int r;

	if (!run.held_count) {
		p = fabric_packet(run.f);
		if (!p)
			return;
		run.held[run.held_count++] = p;
	}
	p = run.held[--run.held_count];
	p->dlid = (uint16_t)(below(8) ? below(64) : below(2) ? 0xc000 + below(64) : 0xffff);
	p->bytes = below(8) ? 30 + below(300) : number(4300);
	p->sl = (uint8_t)number(16);
	p->lane = (uint8_t)(below(3) ? 0 : FABRIC_LANE_MANAGEMENT);
	p->flow = below(4) ? 0 : number(20);
	p->pkey = 0xffff;
	p->flags = FABRIC_MAY_MARK;
	r = fabric_send(run.f, node(), port(), p);
	CHECK(r == 0 || r == -EINVAL || r == -EAGAIN);
	if (r)
		run.held[run.held_count++] = p;
	else
		run.sent++;
}

static void call_something(void)
{
	static void (*const some[])(void) = {
		build_something, set_port, set_port, set_port, set_tables, set_congestion, look, flows,
		send_something, send_something, send_something, send_something, send_something,
		send_something, send_something, send_something,
	};

	run.calls++;
	some[below(sizeof(some) / sizeof(some[0]))]();
}

/* Callbacks call the engine, too, but not without end. */
static void call_from_inside(void)
{
	if (run.depth < 3 && !below(4)) {
		run.depth++;
		call_something();
		CHECK(fabric_run(run.f, FABRIC_NEVER, 0) == 0);
		run.depth--;
	}
}

static void take_back(struct fabric_packet *p)
{
	run.came_back++;
	if (run.held_count < HELD)
		run.held[run.held_count++] = p;
	else
		fabric_packet_free(run.f, p);
}

static void deliver(void *arg, uint32_t n, uint8_t at, struct fabric_packet *p)
{
	(void)arg;
	(void)n;
	(void)at;
	CHECK(!(p->flags & FABRIC_CORRUPT));
	run.delivered++;
	take_back(p);
	call_from_inside();
}

static void drop(void *arg, uint32_t n, uint8_t at, struct fabric_packet *p, enum fabric_drop why)
{
	(void)arg;
	(void)n;
	(void)at;
	(void)why;
	take_back(p);
	if (run.depth < 100)
		call_from_inside();
}

static void *share(void *arg, void *data)
{
	(void)arg;
	run.shared++;
	return data;
}

static void writable(void *arg, uint32_t n, uint8_t at)
{
	(void)arg;
	(void)n;
	(void)at;
	call_from_inside();
}

static void link_changed(void *arg, uint32_t n, uint8_t at, bool up)
{
	(void)arg;
	(void)n;
	(void)at;
	(void)up;
	call_from_inside();
}

static const struct fabric_ops ops = {
	.deliver = deliver, .drop = drop, .share = share, .writable = writable, .link = link_changed,
};

int main(int argc, char **argv)
{
	const struct fabric_limits limits = { .nodes = 10, .links = 14, .packets = 400, .flows = 16 };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 0) : 200000;

	run.g = prng_from(seed);
	CHECK(fabric_open(&limits, &ops, seed, &run.f) == 0);
	while (run.calls < calls) {
		call_something();
		if (!below(4))
			fabric_run(run.f, fabric_now_ps(run.f) + number(1000000), 1 + below(50));
		if (!below(64))
			fabric_find_deadlock(run.f, number(1000000));
		CHECK(run.sent + run.shared == run.came_back + fabric_packets_inside(run.f));
	}
	run.depth = 100;
	fabric_close(run.f);
	CHECK(run.sent + run.shared == run.came_back);
	printf("ok: %llu packets, %llu copies, %llu delivered\n", (unsigned long long)run.sent,
	       (unsigned long long)run.shared, (unsigned long long)run.delivered);
	return 0;
}
