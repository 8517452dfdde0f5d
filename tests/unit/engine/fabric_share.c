/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares: of lanes by the tables of arbitration, of inputs of a switch in turn, and of flows when an output
 * is asked for too much, with and without congestion control. `fabric_share --verbose` prints them.
 */
#include <math.h>
#include <string.h>

#include "fabric_kit.h"

#define PACKET 2074u
#define PACKET_PS (PACKET * BYTE_PS)
#define SENDERS 8u

struct sender {
	uint32_t node, flow, offered; /* it offers a packet in so many packet times; 0: none */
	uint16_t dlid;
	uint64_t came;
};

static struct {
	struct fabric *f;
	uint64_t lane[16], packets;  /* by lane; all */
	struct sender senders[SENDERS];
	unsigned count;
	uint64_t marked_x, marked_q, marked_r; /* by the port from x to y, those to Q and to R */
	uint64_t last_ps; /* when a packet came */
	bool verbose, closing;
} run;

static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	struct sender *s = p->data;

	(void)arg;
	(void)port;
	run.lane[p->lane]++;
	run.packets++;
	run.last_ps = fabric_now_ps(run.f);
	if (p->flags & FABRIC_BECN) {
		fabric_becn(run.f, s->flow);
	} else if (s) {
		s->came++;
		if (p->flags & FABRIC_FECN) { /* answered by a notification */
			struct fabric_packet *n = kit_packet(run.f, p->slid, 0, 30);

			n->flags = FABRIC_BECN;
			n->data = s;
			if (fabric_send(run.f, node, 1, n))
				fabric_packet_free(run.f, n);
		}
	}
	fabric_packet_free(run.f, p);
}

static void drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		 enum fabric_drop why)
{
	(void)arg;
	(void)node;
	(void)port;
	(void)why;
	CHECK(run.closing);
	fabric_packet_free(run.f, p);
}

static const struct fabric_ops ops = { .deliver = deliver, .drop = drop };

static void begin(void)
{
	bool verbose = run.verbose;

	memset(&run, 0, sizeof(run));
	run.verbose = verbose;
	CHECK(fabric_open(&kit_limits, &ops, 1, &run.f) == 0);
}

static void end(void)
{
	run.closing = true;
	fabric_close(run.f);
}

/* Two hosts, 4 lanes, each with packets all the time. */
static void arbitrate(const struct fabric_arbitration *high, unsigned highs,
		      const struct fabric_arbitration *low, unsigned lows, uint8_t limit,
		      uint64_t packets)
{
	static const struct fabric_arbitration none[FABRIC_ARBITRATION_ENTRIES];
	struct fabric_link link = kit_link(4);
	struct fabric_port_setting set;
	uint32_t a, b;

	begin();
	a = kit_host(run.f);
	b = kit_host(run.f);
	kit_join(run.f, a, 1, b, 1, &link);
	kit_lanes(run.f, a, 1, 4);
	CHECK(!fabric_set_arbitration(run.f, a, 1, true, 0, none, FABRIC_ARBITRATION_ENTRIES));
	CHECK(!fabric_set_arbitration(run.f, a, 1, false, 0, none, FABRIC_ARBITRATION_ENTRIES));
	CHECK(!fabric_set_arbitration(run.f, a, 1, true, 0, high, highs));
	CHECK(!fabric_set_arbitration(run.f, a, 1, false, 0, low, lows));
	CHECK(!fabric_get_port(run.f, a, 1, &set));
	set.high_limit = limit;
	CHECK(!fabric_set_port(run.f, a, 1, &set));
	while (run.packets < packets) {
		for (uint8_t sl = 0; sl < 4; sl++) {
			struct fabric_packet *p;

			while ((p = kit_packet(run.f, 2, sl, 512)) && !fabric_send(run.f, a, 1, p))
				;
			fabric_packet_free(run.f, p);
		}
		fabric_run(run.f, FABRIC_NEVER, 64);
	}
	if (run.verbose)
		printf("lanes %llu %llu %llu %llu\n", (unsigned long long)run.lane[0],
		       (unsigned long long)run.lane[1], (unsigned long long)run.lane[2],
		       (unsigned long long)run.lane[3]);
	end();
}

static bool is_near(double x, double wanted, double part)
{
	return fabs(x - wanted) <= wanted * part;
}

static void lanes_share_by_their_weights(void)
{
	static const struct fabric_arbitration low[] = {
		{ 0, 8 }, { 1, 16 }, { 2, 24 }, { 3, 16 }, { 3, 16 }, /* twice: 32 in all */
	};

	arbitrate(low, 0, low, 5, 0, 100000);
	for (unsigned i = 0; i < 4; i++)
		CHECK(is_near((double)run.lane[i] / (double)run.packets, (i + 1) / 10., .02));
	/* In the table of high priority without a limit it is the same. */
	arbitrate(low, 5, low, 0, 255, 100000);
	for (unsigned i = 0; i < 4; i++)
		CHECK(is_near((double)run.lane[i] / (double)run.packets, (i + 1) / 10., .02));
}

static void the_high_limit_gives_the_others_a_turn(void)
{
	static const struct fabric_arbitration high[] = { { 1, 100 } }, low[] = { { 0, 50 }, { 2, 50 } };

	arbitrate(high, 1, low, 2, 255, 20000); /* none */
	CHECK(run.lane[1] == run.packets);
	arbitrate(high, 1, low, 2, 0, 20000); /* after each packet */
	CHECK(is_near((double)run.lane[1] / (double)run.packets, .5, .02));
	CHECK(is_near((double)run.lane[0], (double)run.lane[2], .02));
	arbitrate(high, 1, low, 2, 2, 20000); /* after 8 KiB, 16 packets */
	CHECK(is_near((double)run.lane[1] / (double)run.packets, 16. / 17, .02));
	CHECK(run.lane[3] == 0); /* in no table: starves */
}

/* Adds a host at a port of the switch; its LID is its number + 1. */
static uint32_t add_host(uint32_t sw, uint8_t port)
{
	struct fabric_link link = kit_link(1);
	uint32_t node = kit_host(run.f);

	kit_join(run.f, node, 1, sw, port, &link);
	return node;
}

static void add_sender(uint32_t node, uint32_t to, uint32_t offered)
{
	struct sender *s = &run.senders[run.count++];

	s->node = node;
	s->dlid = (uint16_t)(to + 1);
	s->offered = offered;
	s->flow = fabric_flow_open(run.f, node, 1, 0);
	CHECK(s->flow);
}

/* Figure F12 of the source of our notes: switch x with hosts A and P, one link to switch y with R and Q and
 * with `others` hosts that send to R, as A does; P sends to Q. Sender 0 is A, 1 is P. */
static void build(unsigned others, uint32_t a_offers, uint32_t p_offers, bool virtual_queues)
{
	const struct fabric_switch sw = {
		.latency_ps = 100000, .virtual_output_queues = virtual_queues,
	};
	struct fabric_link link = kit_link(1);
	uint32_t x, y, r, q, a, p;

	begin();
	x = kit_switch(run.f, 3);
	y = kit_switch(run.f, 3 + SENDERS);
	CHECK(!fabric_set_switch(run.f, x, &sw) && !fabric_set_switch(run.f, y, &sw));
	kit_join(run.f, x, 3, y, 3, &link);
	r = add_host(y, 1);
	q = add_host(y, 2);
	a = add_host(x, 1);
	p = add_host(x, 2);
	add_sender(a, r, a_offers);
	add_sender(p, q, p_offers);
	kit_route(run.f, x, (uint16_t)(a + 1), 1);
	kit_route(run.f, x, (uint16_t)(p + 1), 2);
	kit_route(run.f, y, (uint16_t)(a + 1), 3);
	kit_route(run.f, y, (uint16_t)(p + 1), 3);
	kit_route(run.f, x, (uint16_t)(r + 1), 3);
	kit_route(run.f, x, (uint16_t)(q + 1), 3);
	kit_route(run.f, y, (uint16_t)(r + 1), 1);
	kit_route(run.f, y, (uint16_t)(q + 1), 2);
	for (unsigned i = 0; i < others; i++) {
		uint32_t node = add_host(y, (uint8_t)(4 + i));

		add_sender(node, r, 1);
		kit_route(run.f, y, (uint16_t)(node + 1), (uint8_t)(4 + i));
	}
}

static void control_congestion(void)
{
	const struct fabric_congestion_switch sw = {
		.threshold = 15, .marking_rate = 10, .packet_bytes = 0x200,
	};
	const struct fabric_congestion_host host = {
		.timer = 60, .increase = 1, .trigger = 2, .limit = 127,
	};
	uint16_t table[128];

	for (uint16_t i = 0; i < 128; i++)
		table[i] = (uint16_t)(1u << 14 | i); /* i / 2 packet times */
	for (uint32_t node = 0; node < 2; node++)
		CHECK(!fabric_set_congestion_switch(run.f, node, 0, &sw));
	for (unsigned i = 0; i < run.count; i++) {
		uint32_t node = run.senders[i].node;

		CHECK(!fabric_set_congestion_host(run.f, node, 1, 0, &host));
		CHECK(!fabric_set_congestion_table(run.f, node, 1, 0, table, 128));
	}
}

static void offer(struct sender *s)
{
	struct fabric_packet *p = kit_packet(run.f, s->dlid, 0, PACKET);

	p->flow = s->flow;
	p->slid = (uint16_t)(s->node + 1);
	p->data = s;
	if (fabric_send(run.f, s->node, 1, p))
		fabric_packet_free(run.f, p);
}

static void play(uint32_t packet_times)
{
	for (uint32_t i = 0; i < packet_times; i++) {
		for (unsigned k = 0; k < run.count; k++)
			if (run.senders[k].offered && i % run.senders[k].offered == 0)
				offer(&run.senders[k]);
		fabric_run(run.f, fabric_now_ps(run.f) + PACKET_PS, 0);
	}
}

static uint64_t marked(uint32_t node, uint8_t port)
{
	struct fabric_counters c;

	CHECK(!fabric_get_counters(run.f, node, port, &c));
	return c.marked;
}

/* The share of the link that each sender gets, after some time to settle. */
static void measure(double share[SENDERS], uint32_t packet_times)
{
	play(packet_times / 2);
	for (unsigned i = 0; i < run.count; i++)
		run.senders[i].came = 0;
	play(packet_times);
	run.marked_x = marked(0, 3);
	run.marked_q = marked(1, 2);
	run.marked_r = marked(1, 1);
	for (unsigned i = 0; i < run.count; i++) {
		share[i] = (double)run.senders[i].came / packet_times;
		if (run.verbose)
			printf("%c%.3f", i ? ' ' : '\n', share[i]);
	}
	end();
}

static void inputs_share_an_output_in_turn(void)
{
	double share[SENDERS];

	build(1, 0, 0, false);
	measure(share, 2000);
	CHECK(is_near(share[2], 1, .02));
	build(2, 0, 0, false);
	measure(share, 2000);
	CHECK(is_near(share[2], .5, .02) && is_near(share[3], .5, .02));
	build(2, 2, 0, false);
	measure(share, 2000);
	for (unsigned i = 0; i < 4; i++)
		CHECK(i == 1 || is_near(share[i], 1. / 3, .02));
}

/* P's way is free, but its packets stand behind A's. */
static void a_flow_is_the_victim_of_others(void)
{
	double share[SENDERS];

	for (int queues = 0; queues < 2; queues++) {
		build(2, 2, 2, queues);
		measure(share, 3000);
		CHECK(is_near(share[2], 1. / 3, .02) && is_near(share[3], 1. / 3, .02));
		CHECK(is_near(share[0], 1. / 3, .03) && share[1] < .45);
	}
}

static void congestion_control_saves_the_victim(void)
{
	double without[SENDERS], with[SENDERS], all = 0;

	build(4, 1, 2, false);
	measure(without, 4000);
	build(4, 1, 2, false);
	control_congestion();
	measure(with, 20000);
	/* P asks for half of the link, and R's link is still in use. */
	if (run.verbose)
		printf("\nmarked by r %llu, q %llu, x %llu\n", (unsigned long long)run.marked_r,
		       (unsigned long long)run.marked_q, (unsigned long long)run.marked_x);
	CHECK(run.marked_r > 100 && run.marked_q + run.marked_x < run.marked_r / 5);
	CHECK(without[1] < .6 * .5);
	CHECK(with[1] > .9 * .5);
	for (unsigned i = 0; i < 6; i++)
		all += i == 1 ? 0 : with[i];
	CHECK(all > .7);
}

/* Sends two packets of the flow; the time between their arrivals, in packet times. */
static double gap(uint32_t flow)
{
	uint64_t first;

	for (unsigned i = 0; i < 2; i++) {
		struct fabric_packet *p = kit_packet(run.f, 2, 0, PACKET);

		p->flow = flow;
		CHECK(!fabric_send(run.f, 0, 1, p));
	}
	run.packets = 0;
	while (run.packets < 1)
		fabric_run(run.f, FABRIC_NEVER, 1);
	first = run.last_ps;
	fabric_run(run.f, FABRIC_NEVER, 0);
	CHECK(run.packets == 2);
	return (double)(run.last_ps - first) / PACKET_PS;
}

/* Two marks, and each tick of the timer takes one back. */
static void delays_follow_the_table_and_the_timer(void)
{
	static const uint16_t table[] = { 0, 4, 0x4003, 100 }; /* 0x4003: 3 / 2 */
	struct fabric_congestion_host host = { .timer = 100, .increase = 1, .limit = 2 };
	struct fabric_link link = kit_link(1);
	uint32_t flow, other;

	begin();
	kit_host(run.f);
	kit_host(run.f);
	kit_join(run.f, 0, 1, 1, 1, &link);
	flow = fabric_flow_open(run.f, 0, 1, 0);
	other = fabric_flow_open(run.f, 0, 1, 0);
	CHECK(!fabric_set_congestion_host(run.f, 0, 1, 0, &host));
	CHECK(!fabric_set_congestion_table(run.f, 0, 1, 0, table, 4));
	for (unsigned i = 0; i < 5; i++)
		fabric_becn(run.f, flow); /* up to the limit */
	CHECK(gap(flow) == 2.5);
	CHECK(gap(other) == 1);
	fabric_run(run.f, 102400000, 0);
	CHECK(gap(flow) == 5);
	fabric_run(run.f, 204800000, 0);
	CHECK(gap(flow) == 1);
	fabric_becn(run.f, flow);
	fabric_run(run.f, 512000000, 0); /* more ticks than marks */
	CHECK(gap(flow) == 1);
	host.minimum = 1;
	CHECK(!fabric_set_congestion_host(run.f, 0, 1, 0, &host));
	fabric_run(run.f, 1024000000, 0);
	CHECK(gap(flow) == 5);
	CHECK(!fabric_set_congestion_host(run.f, 0, 1, 0, NULL));
	CHECK(gap(flow) == 1);
	end();
}

/* A port that only lacks credits marks when its mask says so. */
static void a_mask_lets_victims_be_marked(void)
{
	struct fabric_congestion_switch c = { .threshold = 15 };
	double share[SENDERS];

	for (int mask = 0; mask < 2; mask++) {
		build(4, 2, 2, false);
		c.victim_mask = mask;
		CHECK(!fabric_set_congestion_switch(run.f, 0, 3, &c));
		measure(share, 2000);
		CHECK(mask ? run.marked_x > 100 : run.marked_x < 10);
		CHECK(run.marked_r == 0);
	}
}

int main(int argc, char **argv)
{
	run.verbose = argc > 1 && !strcmp(argv[1], "--verbose");
	lanes_share_by_their_weights();
	the_high_limit_gives_the_others_a_turn();
	inputs_share_an_output_in_turn();
	a_flow_is_the_victim_of_others();
	congestion_control_saves_the_victim();
	delays_follow_the_table_and_the_timer();
	a_mask_lets_victims_be_marked();
	puts("ok");
	return 0;
}
