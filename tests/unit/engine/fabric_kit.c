/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of the fabric share; see fabric_kit.h. */
#include "fabric_kit.h"

const struct fabric_limits kit_limits = {
	.nodes = 128, .links = 256, .packets = 32768, .flows = 512,
};

struct fabric_link kit_link(uint8_t lanes)
{
	return (struct fabric_link){
		.bps = EDR_BPS, .delay_ps = 5000, .mtu = 4096, .lanes = lanes, .buffer_bytes = 32768,
	};
}

uint32_t kit_host(struct fabric *f)
{
	int node = fabric_add_node(f, FABRIC_HOST, 1);

	CHECK(node >= 0);
	return (uint32_t)node;
}

uint32_t kit_switch(struct fabric *f, uint8_t ports)
{
	const struct fabric_switch s = { .latency_ps = 100000 };
	int node = fabric_add_node(f, FABRIC_SWITCH, ports);

	CHECK(node >= 0);
	CHECK(fabric_set_switch(f, (uint32_t)node, &s) == 0);
	return (uint32_t)node;
}

void kit_state(struct fabric *f, uint32_t node, uint8_t port, enum fabric_port_state state)
{
	struct fabric_port_setting s;

	CHECK(fabric_get_port(f, node, port, &s) == 0);
	s.state = (uint8_t)state;
	CHECK(fabric_set_port(f, node, port, &s) == 0);
}

void kit_join(struct fabric *f, uint32_t a, uint8_t port_a, uint32_t b, uint8_t port_b,
	      const struct fabric_link *link)
{
	CHECK(fabric_add_link(f, a, port_a, b, port_b, link) == 0);
	kit_state(f, a, port_a, FABRIC_PORT_ACTIVE);
	kit_state(f, b, port_b, FABRIC_PORT_ACTIVE);
}

void kit_route(struct fabric *f, uint32_t node, uint16_t lid, uint8_t port)
{
	CHECK(fabric_set_forwarding(f, node, lid, &port, 1) == 0);
}

void kit_lanes(struct fabric *f, uint32_t node, uint8_t ports, uint8_t lanes)
{
	uint8_t table[16];

	for (uint8_t i = 0; i < 16; i++)
		table[i] = i % lanes;
	for (unsigned i = 0; i <= ports; i++)
		for (unsigned k = 0; k <= ports; k++)
			CHECK(fabric_set_sl_to_lane(f, node, (uint8_t)i, (uint8_t)k, table) == 0);
}

struct fabric_packet *kit_packet(struct fabric *f, uint16_t dlid, uint8_t sl, uint32_t bytes)
{
	struct fabric_packet *p = fabric_packet(f);

	CHECK(p);
	p->dlid = dlid;
	p->sl = sl;
	p->bytes = bytes;
	p->pkey = 0xffff;
	p->flags = FABRIC_MAY_MARK;
	return p;
}

void kit_send(struct fabric *f, uint32_t node, uint16_t dlid, uint8_t sl, uint32_t bytes)
{
	CHECK(fabric_send(f, node, 1, kit_packet(f, dlid, sl, bytes)) == 0);
}
