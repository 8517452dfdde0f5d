/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets nodes forward, copy, deliver to their own management and drop, and what the functions of a
 * fabric refuse. */
#include <errno.h>
#include <string.h>

#include "fabric_kit.h"

#define SWITCH 3u

static struct {
	struct fabric *f;
	unsigned delivered, dropped, shared;
	uint32_t node, drop_node;
	uint8_t port, drop_port;
	enum fabric_drop why;
	unsigned at[8]; /* packets delivered at each node */
} seen;

static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	(void)arg;
	seen.delivered++;
	seen.node = node;
	seen.port = port;
	seen.at[node]++;
	fabric_packet_free(seen.f, p);
}

static void drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		 enum fabric_drop why)
{
	(void)arg;
	seen.dropped++;
	seen.drop_node = node;
	seen.drop_port = port;
	seen.why = why;
	fabric_packet_free(seen.f, p);
}

static void *share(void *arg, void *data)
{
	(void)arg;
	seen.shared++;
	return data;
}

/* Hosts 0 to 2 with LIDs 1 to 3 at ports 1 to 3 of switch 3, whose LID is 4. */
static struct fabric *begin(void)
{
	static const struct fabric_ops ops = { .deliver = deliver, .drop = drop, .share = share };
	struct fabric_link link = kit_link(2);
	struct fabric *f;

	memset(&seen, 0, sizeof(seen));
	CHECK(fabric_open(&kit_limits, &ops, 1, &f) == 0);
	seen.f = f;
	for (unsigned i = 0; i < 3; i++)
		kit_host(f);
	kit_switch(f, 4);
	for (uint8_t i = 0; i < 3; i++) {
		kit_join(f, i, 1, SWITCH, (uint8_t)(i + 1), &link);
		kit_route(f, SWITCH, i + 1, (uint8_t)(i + 1));
	}
	kit_route(f, SWITCH, 4, 0);
	return f;
}

static void send_from(uint32_t node, uint8_t port, uint16_t dlid, bool management)
{
	struct fabric_packet *p = kit_packet(seen.f, dlid, 0, 300);

	if (management)
		p->lane = FABRIC_LANE_MANAGEMENT;
	CHECK(fabric_send(seen.f, node, port, p) == 0);
	fabric_run(seen.f, FABRIC_NEVER, 0);
}

static void expect_drop(enum fabric_drop why, uint32_t node, uint8_t port)
{
	CHECK(seen.dropped == 1 && seen.why == why && seen.drop_node == node &&
	      seen.drop_port == port && !seen.delivered);
	CHECK(fabric_packets_inside(seen.f) == 0);
	seen.dropped = 0;
}

static void packets_reach_management_and_come_from_it(void)
{
	struct fabric *f = begin();

	send_from(0, 1, 4, true); /* to the switch's LID */
	CHECK(seen.delivered == 1 && seen.node == SWITCH && seen.port == 1);
	send_from(1, 1, 4, false);
	CHECK(seen.delivered == 2 && seen.node == SWITCH && seen.port == 2);
	send_from(2, 1, FABRIC_LID_PERMISSIVE, true); /* a directed route */
	CHECK(seen.delivered == 3 && seen.node == SWITCH && seen.port == 3);
	send_from(SWITCH, 2, FABRIC_LID_PERMISSIVE, true);
	CHECK(seen.delivered == 4 && seen.node == 1);
	send_from(SWITCH, 0, 3, true); /* by the table */
	CHECK(seen.delivered == 5 && seen.node == 2);
	send_from(SWITCH, 0, 4, true); /* to itself */
	CHECK(seen.delivered == 6 && seen.node == SWITCH && seen.port == 0);
	CHECK(seen.dropped == 0);
	fabric_close(f);
}

static void routes_that_do_not_exist_drop(void)
{
	struct fabric *f = begin();
	struct fabric_counters c;

	send_from(0, 1, 9, false);
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 1);
	kit_route(f, SWITCH, 9, 4); /* a port without a link */
	send_from(0, 1, 9, true);
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 1);
	CHECK(fabric_set_forwarding_top(f, SWITCH, 2) == 0);
	send_from(0, 1, 3, false);
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 1);
	CHECK(fabric_get_counters(f, SWITCH, 1, &c) == 0 && c.rcv_switch_relay == 3);
	send_from(SWITCH, 0, 3, true);
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 0);
	fabric_close(f);
}

static void states_of_ports_permit_packets(void)
{
	struct fabric *f = begin();

	kit_state(f, SWITCH, 2, FABRIC_PORT_ARMED);
	send_from(0, 1, 2, false);
	expect_drop(FABRIC_DROP_STATE, SWITCH, 2);
	send_from(1, 1, 1, false); /* data may arrive */
	CHECK(seen.delivered == 1);
	kit_state(f, SWITCH, 2, FABRIC_PORT_INIT);
	seen.delivered = 0;
	send_from(1, 1, 1, false);
	expect_drop(FABRIC_DROP_STATE, SWITCH, 2);
	send_from(1, 1, 1, true);
	CHECK(seen.delivered == 1);
	seen.delivered = 0;
	kit_state(f, 0, 1, FABRIC_PORT_INIT);
	send_from(0, 1, 2, false);
	expect_drop(FABRIC_DROP_STATE, 0, 1);
	CHECK(fabric_set_link(f, 0, 1, false) == 0);
	kit_state(f, 0, 1, FABRIC_PORT_ACTIVE); /* stays down */
	send_from(0, 1, 2, true);
	expect_drop(FABRIC_DROP_LINK_DOWN, 0, 1);
	send_from(2, 1, 1, false);
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 3);
	fabric_close(f);
}

static void lanes_and_lengths_are_checked(void)
{
	static const uint8_t last[16] = { 15 }, second[16] = { 1 };
	struct fabric *f = begin();
	struct fabric_port_setting set;

	CHECK(fabric_set_sl_to_lane(f, SWITCH, 1, 2, last) == 0);
	send_from(0, 1, 2, false);
	expect_drop(FABRIC_DROP_LANE, SWITCH, 1);
	CHECK(fabric_set_sl_to_lane(f, SWITCH, 1, 2, second) == 0);
	CHECK(fabric_get_port(f, SWITCH, 2, &set) == 0 && set.lanes == 2);
	set.lanes = 1;
	set.mtu = 256;
	CHECK(fabric_set_port(f, SWITCH, 2, &set) == 0);
	send_from(0, 1, 2, false);
	expect_drop(FABRIC_DROP_LANE, SWITCH, 1);
	CHECK(fabric_send(f, 2, 1, kit_packet(f, 2, 0, 256 + 126)) == 0);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1);
	seen.delivered = 0;
	CHECK(fabric_send(f, 2, 1, kit_packet(f, 2, 0, 256 + 127)) == 0);
	fabric_run(f, FABRIC_NEVER, 0);
	expect_drop(FABRIC_DROP_TOO_LONG, SWITCH, 2);
	fabric_close(f);
}

static void send_pkey(uint16_t pkey)
{
	struct fabric_packet *p = kit_packet(seen.f, 2, 0, 300);

	p->pkey = pkey;
	CHECK(fabric_send(seen.f, 0, 1, p) == 0);
	fabric_run(seen.f, FABRIC_NEVER, 0);
}

static void partitions_are_enforced(void)
{
	static const uint16_t limited[] = { 0x1234, 0x7fff }, full[] = { 0x9234 };
	struct fabric *f = begin();
	struct fabric_port_setting set;
	struct fabric_lane_state lane;
	struct fabric_counters c;

	CHECK(fabric_get_port(f, SWITCH, 1, &set) == 0);
	set.enforce_in = true;
	CHECK(fabric_set_port(f, SWITCH, 1, &set) == 0);
	CHECK(fabric_set_pkeys(f, SWITCH, 1, limited, 2) == 0);
	send_pkey(0x9234);
	CHECK(seen.delivered == 1);
	seen.delivered = 0;
	send_pkey(0x1234); /* two limited members */
	expect_drop(FABRIC_DROP_PARTITION, SWITCH, 1);
	send_pkey(0x9235);
	expect_drop(FABRIC_DROP_PARTITION, SWITCH, 1);
	CHECK(fabric_get_counters(f, SWITCH, 1, &c) == 0 && c.rcv_constraint == 2);
	CHECK(fabric_get_lane(f, 0, 1, 0, &lane) == 0 && lane.credit_blocks == 512);
	set.enforce_in = false;
	CHECK(fabric_set_port(f, SWITCH, 1, &set) == 0);
	set.enforce_out = true;
	CHECK(fabric_set_port(f, SWITCH, 2, &set) == 0);
	CHECK(fabric_set_pkeys(f, SWITCH, 2, full, 1) == 0);
	send_pkey(0x1234);
	CHECK(seen.delivered == 1);
	seen.delivered = 0;
	send_pkey(0xffff);
	expect_drop(FABRIC_DROP_PARTITION, SWITCH, 2);
	CHECK(fabric_get_counters(f, SWITCH, 2, &c) == 0 && c.xmit_constraint == 1);
	fabric_close(f);
}

/* Lane 15 has no credits: two hosts that send to one lose what their buffers in the switch do not take. */
static void management_packets_are_lost_when_their_buffer_is_full(void)
{
	struct fabric *f = begin();
	struct fabric_counters a, b;

	for (unsigned i = 0; i < 400; i++) {
		for (uint32_t node = 0; node < 2; node++) {
			struct fabric_packet *p = kit_packet(f, 3, 0, 290);

			p->lane = FABRIC_LANE_MANAGEMENT;
			CHECK(fabric_send(f, node, 1, p) == 0);
		}
		fabric_run(f, fabric_now_ps(f) + 290 * BYTE_PS, 0);
	}
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(fabric_get_counters(f, SWITCH, 1, &a) == 0 && fabric_get_counters(f, SWITCH, 2, &b) == 0);
	CHECK(seen.dropped > 200 && seen.dropped < 400 && seen.why == FABRIC_DROP_MANAGEMENT);
	CHECK(a.management_dropped + b.management_dropped == seen.dropped);
	CHECK(seen.delivered == 800 - seen.dropped);
	fabric_close(f);
}

static void groups_get_copies_but_not_the_sender(void)
{
	struct fabric *f = begin();
	uint16_t masks[32] = { 0x1f, 0x02 };
	struct fabric_counters c;

	CHECK(fabric_set_multicast(f, SWITCH, 0, 0, masks) == 0);
	send_from(0, 1, 0xc000, false);
	/* Ports 2 and 3 and the management port; port 4 has no link. */
	CHECK(seen.delivered == 3 && seen.at[1] == 1 && seen.at[2] == 1 && seen.at[SWITCH] == 1);
	CHECK(seen.shared == 2 && seen.dropped == 0 && fabric_packets_inside(f) == 0);
	CHECK(fabric_get_counters(f, SWITCH, 1, &c) == 0 && c.multicast_rcv == 1);
	CHECK(fabric_get_counters(f, SWITCH, 2, &c) == 0 && c.multicast_xmit == 1);
	send_from(SWITCH, 0, 0xc000, false);
	CHECK(seen.delivered == 6 && seen.at[0] == 1);
	seen.delivered = 0;
	send_from(0, 1, 0xc001, false); /* it came from the only member */
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 1);
	send_from(0, 1, 0xc100, false);
	expect_drop(FABRIC_DROP_NO_ROUTE, SWITCH, 1);
	fabric_close(f);
}

/* Two switches with two cables between them, and tables that lead back by the other cable. */
static void packets_do_not_circle_for_ever(void)
{
	struct fabric *f = begin();
	struct fabric_link link = kit_link(2);
	uint32_t a = kit_switch(f, 3), b = kit_switch(f, 2);
	uint16_t at_a[32] = { 0xe }, at_b[32] = { 0x6 }, at_switch[32] = { 0x1e };

	kit_join(f, SWITCH, 4, a, 1, &link);
	kit_join(f, a, 2, b, 1, &link);
	kit_join(f, a, 3, b, 2, &link);
	kit_route(f, SWITCH, 9, 4);
	kit_route(f, a, 9, 2);
	kit_route(f, b, 9, 2);
	for (int management = 0; management <= 1; management++) {
		struct fabric_packet *p = kit_packet(f, 9, 0, 300);

		p->lane = management ? FABRIC_LANE_MANAGEMENT : 0;
		CHECK(fabric_send(f, 0, 1, p) == 0);
		fabric_run(f, FABRIC_NEVER, 10000);
		CHECK(fabric_packets_inside(f) == 0 && seen.dropped == 1 && seen.why == FABRIC_DROP_LIFETIME);
		seen.dropped = 0;
	}
	CHECK(fabric_set_multicast(f, a, 0, 0, at_a) == 0 && fabric_set_multicast(f, b, 0, 0, at_b) == 0 &&
	      fabric_set_multicast(f, SWITCH, 0, 0, at_switch) == 0);
	kit_send(f, 0, 0xc000, 0, 300);
	fabric_run(f, FABRIC_NEVER, 10000);
	CHECK(fabric_packets_inside(f) == 0 && seen.dropped > 0);
	fabric_close(f);
}

static void a_cut_drops_what_is_on_the_link_and_waits_for_it(void)
{
	struct fabric *f = begin();
	struct fabric_lane_state lane;
	struct fabric_counters c;

	for (unsigned i = 0; i < 30; i++) {
		CHECK(fabric_send(f, 0, 1, kit_packet(f, 2, 0, 2074)) == 0);
		CHECK(fabric_send(f, 2, 1, kit_packet(f, 2, 0, 2074)) == 0);
	}
	fabric_run(f, 2000000, 0);
	CHECK(fabric_set_link(f, SWITCH, 2, false) == 0);
	CHECK(!fabric_link_is_up(f, 1, 1) && seen.dropped >= 2);
	CHECK(fabric_get_counters(f, 1, 1, &c) == 0 && c.link_downed == 1);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered + seen.dropped == 60 && seen.delivered > 5);
	CHECK(fabric_packets_inside(f) == 0);
	CHECK(fabric_set_link(f, 1, 1, true) == 0);
	kit_state(f, 1, 1, FABRIC_PORT_ACTIVE);
	kit_state(f, SWITCH, 2, FABRIC_PORT_ACTIVE);
	CHECK(fabric_get_lane(f, SWITCH, 2, 0, &lane) == 0 && lane.credit_blocks == 512 &&
	      lane.queued_bytes == 0);
	seen.delivered = 0;
	send_from(0, 1, 2, false);
	CHECK(seen.delivered == 1);
	fabric_close(f);
}

static void a_full_port_asks_for_patience(void)
{
	struct fabric *f = begin();
	struct fabric_packet *p = kit_packet(f, 2, 0, 2074);
	uint32_t flow = fabric_flow_open(f, 0, 1, 0);

	CHECK(flow && fabric_flow_room(f, flow) == FABRIC_FLOW_PACKETS);
	for (unsigned i = 0; i < FABRIC_FLOW_PACKETS; i++) {
		CHECK(fabric_send(f, 0, 1, p) == 0);
		p = kit_packet(f, 2, 0, 2074);
	}
	CHECK(fabric_send(f, 0, 1, p) == -EAGAIN);
	p->flow = flow;
	CHECK(fabric_send(f, 0, 1, p) == 0);
	CHECK(fabric_flow_room(f, flow) == FABRIC_FLOW_PACKETS - 1);
	CHECK(fabric_packets_inside(f) == FABRIC_FLOW_PACKETS + 1);
	fabric_flow_close(f, flow); /* its packet still leaves */
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == FABRIC_FLOW_PACKETS + 1);
	CHECK(fabric_flow_open(f, 0, 1, 0) == flow);
	fabric_close(f);
}

static void nodes_and_links_that_cannot_be_are_refused(void)
{
	struct fabric_link good = kit_link(2), l;
	struct fabric *f = begin();
	const struct fabric_limits few = { .nodes = 1, .links = 1, .packets = 1, .flows = 1 };
	static const struct fabric_ops none;
	struct fabric *small;

	CHECK(fabric_add_node(f, FABRIC_SWITCH, 0) == -EINVAL);
	CHECK(fabric_add_node(f, FABRIC_SWITCH, 255) == -EINVAL);
	CHECK(fabric_add_node(f, (enum fabric_kind)7, 2) == -EINVAL);
	CHECK(fabric_add_link(f, 0, 1, 1, 1, &good) == -EEXIST);
	CHECK(fabric_add_link(f, SWITCH, 4, SWITCH, 4, &good) == -EINVAL);
	CHECK(fabric_add_link(f, SWITCH, 5, 0, 1, &good) == -EINVAL);
	CHECK(fabric_add_link(f, SWITCH, 0, 9, 1, &good) == -EINVAL);
#define REFUSED(member, value) \
	l = good; \
	l.member = value; \
	CHECK(fabric_add_link(f, SWITCH, 4, (uint32_t)fabric_add_node(f, FABRIC_HOST, 1), 1, &l) == -EINVAL)
	REFUSED(bps, 0);
	REFUSED(bps, UINT64_MAX);
	REFUSED(delay_ps, FABRIC_DELAY_PS_MAX + 1);
	REFUSED(bit_error_rate, -1);
	REFUSED(bit_error_rate, 1);
	REFUSED(bit_error_rate, __builtin_nan(""));
	REFUSED(mtu, 1500);
	REFUSED(mtu, 128);
	REFUSED(lanes, 3);
	REFUSED(lanes, 16);
	REFUSED(buffer_bytes, 4096);
#undef REFUSED
	CHECK(fabric_open(&few, &none, 1, &small) == 0);
	CHECK(fabric_add_node(small, FABRIC_HOST, 1) == 0);
	CHECK(fabric_add_node(small, FABRIC_HOST, 1) == -ENOSPC);
	CHECK(fabric_flow_open(small, 0, 1, 0) == 1 && fabric_flow_open(small, 0, 1, 0) == 0);
	CHECK(fabric_packet(small) && !fabric_packet(small));
	fabric_close(small);
	fabric_close(NULL);
	fabric_close(f);
}

static void settings_out_of_range_are_refused(void)
{
	struct fabric_arbitration entry = { 15, 1 };
	struct fabric_port_setting good, set;
	struct fabric_congestion_switch c = { .threshold = 16 };
	struct fabric_congestion_host h = { .limit = 2, .minimum = 3 };
	struct fabric *f = begin();
	uint16_t masks[32] = { 0x20 };
	uint8_t lanes[16] = { 16 }, port = 5;

	CHECK(fabric_get_port(f, 0, 1, &good) == 0);
#define REFUSED(member, value) \
	set = good; \
	set.member = value; \
	CHECK(fabric_set_port(f, 0, 1, &set) == -EINVAL)
	REFUSED(state, 0);
	REFUSED(state, 5);
	REFUSED(lanes, 4); /* more than the link has */
	REFUSED(lanes, 3);
	REFUSED(mtu, 8192);
	REFUSED(mtu, 300);
#undef REFUSED
	CHECK(fabric_set_port(f, 0, 2, &good) == -EINVAL && fabric_set_port(f, 0, 0, &good) == -EINVAL);
	CHECK(fabric_set_arbitration(f, 0, 1, true, 0, &entry, 1) == -EINVAL);
	entry.lane = 1;
	CHECK(fabric_set_arbitration(f, 0, 1, true, 64, &entry, 1) == -EINVAL);
	CHECK(fabric_set_arbitration(f, 0, 1, true, 0, &entry, 65) == -EINVAL);
	CHECK(fabric_set_sl_to_lane(f, 0, 0, 1, lanes) == -EINVAL);
	lanes[0] = 0;
	CHECK(fabric_set_sl_to_lane(f, 0, 2, 1, lanes) == -EINVAL);
	CHECK(fabric_set_forwarding(f, SWITCH, 1, &port, 1) == -EINVAL);
	port = 1;
	CHECK(fabric_set_forwarding(f, 0, 1, &port, 1) == -EINVAL);
	CHECK(fabric_set_forwarding(f, SWITCH, 0xc000, &port, 1) == -EINVAL);
	CHECK(fabric_set_forwarding_top(f, SWITCH, 0xc000) == -EINVAL);
	CHECK(fabric_set_multicast(f, SWITCH, 0, 0, masks) == -EINVAL);
	masks[0] = 0;
	CHECK(fabric_set_multicast(f, SWITCH, 0, 16, masks) == -EINVAL);
	CHECK(fabric_set_multicast(f, SWITCH, 0x3fe1, 0, masks) == -EINVAL);
	CHECK(fabric_set_congestion_switch(f, SWITCH, 0, &c) == -EINVAL);
	CHECK(fabric_set_congestion_switch(f, 0, 0, &c) == -EINVAL);
	CHECK(fabric_set_congestion_host(f, 0, 1, 0, &h) == -EINVAL);
	CHECK(fabric_set_congestion_host(f, 0, 1, 16, NULL) == -EINVAL);
	CHECK(fabric_set_congestion_host(f, SWITCH, 1, 0, NULL) == -EINVAL);
	CHECK(fabric_set_congestion_table(f, 0, 1, 0xffff, masks, 2) == -EINVAL);
	CHECK(fabric_set_bit_error_rate(f, 0, 1, 2) == -EINVAL);
	CHECK(fabric_set_rate(f, 0, 1, 0) == -EINVAL);
	CHECK(fabric_set_link(f, SWITCH, 4, false) == -ENOLINK);
	CHECK(fabric_set_link(f, 77, 1, false) == -EINVAL);
	fabric_close(f);
}

static void packets_that_cannot_be_are_refused(void)
{
	struct fabric *f = begin();
	struct fabric_packet *p = kit_packet(f, 2, 0, 300);

	CHECK(fabric_send(f, 9, 1, p) == -EINVAL && fabric_send(f, 0, 2, p) == -EINVAL);
	CHECK(fabric_send(f, 0, 0, p) == -EINVAL && fabric_send(f, 0, 1, NULL) == -EINVAL);
	p->bytes = 9;
	CHECK(fabric_send(f, 0, 1, p) == -EINVAL);
	p->bytes = 5000;
	CHECK(fabric_send(f, 0, 1, p) == -EINVAL);
	p->bytes = 300;
	p->sl = 16;
	CHECK(fabric_send(f, 0, 1, p) == -EINVAL);
	p->sl = 0;
	p->flow = 12;
	CHECK(fabric_send(f, 0, 1, p) == -EINVAL);
	p->flow = fabric_flow_open(f, 1, 1, 0); /* another host's */
	CHECK(fabric_send(f, 0, 1, p) == -EINVAL);
	p->flow = 0;
	p->dlid = FABRIC_LID_PERMISSIVE;
	CHECK(fabric_send(f, SWITCH, 0, p) == -EINVAL);
	p->dlid = 2;
	CHECK(fabric_send(f, 0, 1, p) == 0);
	CHECK(fabric_send(f, 0, 1, p) == -EINVAL); /* it is the engine's */
	fabric_packet_free(f, p);
	CHECK(fabric_flow_open(f, 0, 1, 16) == 0 && fabric_flow_open(f, SWITCH, 1, 0) == 0);
	fabric_flow_close(f, 77);
	fabric_becn(f, 77);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1);
	CHECK(fabric_run(f, fabric_now_ps(f) - 1, 0) == 0);
	/* What is inside at the end comes back. */
	CHECK(fabric_send(f, 0, 1, kit_packet(f, 2, 0, 300)) == 0);
	fabric_close(f);
	CHECK(seen.dropped == 1 && seen.why == FABRIC_DROP_LINK_DOWN);
}

int main(void)
{
	packets_reach_management_and_come_from_it();
	routes_that_do_not_exist_drop();
	states_of_ports_permit_packets();
	lanes_and_lengths_are_checked();
	partitions_are_enforced();
	management_packets_are_lost_when_their_buffer_is_full();
	groups_get_copies_but_not_the_sender();
	packets_do_not_circle_for_ever();
	a_cut_drops_what_is_on_the_link_and_waits_for_it();
	a_full_port_asks_for_patience();
	nodes_and_links_that_cannot_be_are_refused();
	settings_out_of_range_are_refused();
	packets_that_cannot_be_are_refused();
	puts("ok");
	return 0;
}
