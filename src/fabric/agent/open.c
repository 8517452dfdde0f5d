/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agents are made for the nodes of a description, with the values that a port has before a manager has
 * found it, and work at their due times.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agent/gmp.h"
#include "fabric/agent/link.h"
#include "fabric/agent/trap.h"

#define MULTICAST_DEFAULT 1024
#define MULTICAST_MAX 0x3fc0 /* of 0xc000 to 0xfffe, whole blocks */
#define SUBNET_PREFIX UINT64_C(0xfe80000000000000)
#define SUBNET_TIMEOUT 18
#define RESPONSE_TIME 16
#define HOQ_LIFE 16
#define LIFE_TIME 18
#define NO_PORT 0xff
#define PKEY_DEFAULT 0xffff

#define CAP2_LINK_WIDTH_2X (1 << 4)
#define CAP2_LINK_SPEED_HDR (1 << 5)
#define CAP2_LINK_SPEED_NDR (1 << 10)

/* ---- what a connector supports ---- */

/* Slower and narrower than its cable, too. */
static uint8_t widths_of(enum topology_width width)
{
	switch (width) {
	case TOPOLOGY_1X: return MAD_WIDTH_1X;
	case TOPOLOGY_2X: return MAD_WIDTH_1X | MAD_WIDTH_2X;
	case TOPOLOGY_4X: return MAD_WIDTH_1X | MAD_WIDTH_4X;
	case TOPOLOGY_8X: return MAD_WIDTH_1X | MAD_WIDTH_4X | MAD_WIDTH_8X;
	case TOPOLOGY_12X: break;
	}
	return MAD_WIDTH_1X | MAD_WIDTH_4X | MAD_WIDTH_12X;
}

/* FDR10 is a vendor's: it is shown as QDR. */
static uint8_t speeds_of(enum topology_speed speed)
{
	return speed == TOPOLOGY_SDR ? MAD_SPEED_SDR : speed == TOPOLOGY_DDR ? MAD_SPEED_SDR | MAD_SPEED_DDR :
	       MAD_SPEED_SDR | MAD_SPEED_DDR | MAD_SPEED_QDR;
}

static uint8_t extended_of(enum topology_speed speed)
{
	return speed < TOPOLOGY_FDR ? 0 : (uint8_t)((2u << (speed - TOPOLOGY_FDR)) - 1);
}

static uint16_t capability2_of(enum topology_width width, enum topology_speed speed)
{
	return (uint16_t)((width == TOPOLOGY_2X ? CAP2_LINK_WIDTH_2X : 0) |
			  (speed >= TOPOLOGY_HDR ? CAP2_LINK_SPEED_HDR : 0) |
			  (speed >= TOPOLOGY_NDR ? CAP2_LINK_SPEED_NDR : 0));
}

static const struct topology_link *link_of(const struct fabric_agents *a, const struct agent_node *n,
					   uint8_t port)
{
	const uint32_t link = n->what->ports[port].link;

	return port && link < a->topology->link_count ? &a->topology->links[link] : NULL;
}

static uint32_t capability_of(const struct agent_node *n, uint8_t extended, uint16_t capability2)
{
	uint32_t mask = MAD_CAP_TRAP | MAD_CAP_SL_MAPPING | MAD_CAP_LED_INFO | MAD_CAP_SYSTEM_IMAGE_GUID;

	mask |= n->is_switch ? MAD_CAP_PKEY_SWITCH_TRAP :
		MAD_CAP_AUTOMATIC_MIGRATION | MAD_CAP_CLIENT_REREGISTRATION | MAD_CAP_CAPABILITY_MASK_NOTICE;
	return mask | (extended ? MAD_CAP_EXTENDED_SPEEDS : 0) | (capability2 ? MAD_CAP_CAPABILITY_MASK2 : 0);
}

/* ---- before a manager comes ---- */

static void fill_link(struct mad_port_info *info, enum topology_width width, enum topology_speed speed)
{
	info->link_width_supported = info->link_width_enabled = widths_of(width);
	info->link_width_active = MAD_WIDTH_4X;
	info->link_speed_supported = info->link_speed_enabled = speeds_of(speed);
	info->link_speed_active = MAD_SPEED_SDR;
	info->link_speed_ext_supported = info->link_speed_ext_enabled = extended_of(speed);
	info->capability_mask2 = capability2_of(width, speed);
}

static void fill_port(const struct fabric_agents *a, struct agent_node *n, uint8_t port,
		      const struct fabric_agents_limits *limits)
{
	const bool end = port == agent_end_port(n, port);
	const struct topology_link *link = link_of(a, n, port);
	struct agent_port *p = &n->port[port];
	struct mad_port_info *info = &p->info;

	*info = (struct mad_port_info){
		.neighbor_mtu = agent_code_of_mtu(limits->mtu), .mtu_cap = agent_code_of_mtu(limits->mtu),
		.vl_cap = agent_code_of_lanes(limits->lanes),
		.operational_vls = agent_code_of_lanes(limits->lanes),
		.vl_arbitration_high_cap = FABRIC_ARBITRATION_ENTRIES,
		.vl_arbitration_low_cap = FABRIC_ARBITRATION_ENTRIES,
		.link_down_default_state = MAD_PHYSICAL_POLLING,
		.hoq_life = HOQ_LIFE, .resp_time_value = RESPONSE_TIME,
	};
	fill_link(info, link ? link->width : TOPOLOGY_4X, link ? link->speed : TOPOLOGY_EDR);
	if (end) {
		info->gid_prefix = SUBNET_PREFIX;
		info->subnet_timeout = SUBNET_TIMEOUT;
		info->guid_cap = n->is_switch ? 1 : AGENT_GUIDS;
		info->capability_mask = capability_of(n, info->link_speed_ext_supported,
						      info->capability_mask2);
	}
	p->physical = MAD_PHYSICAL_POLLING;
	p->pkeys[0] = PKEY_DEFAULT;
	p->joined = link && fabric_link_is_up(a->engine, n->number, port);
	if (p->host)
		p->host->guids[0] = n->what->ports[port].guid;
	if (!port) {
		info->port_state = MAD_PORT_ACTIVE;
		info->port_physical_state = MAD_PHYSICAL_LINK_UP;
	}
}

static void fill_switch(const struct fabric_agents *a, struct agent_node *n)
{
	n->info = (struct mad_switch_info){
		.linear_fdb_cap = AGENT_LIDS, .multicast_fdb_cap = a->multicast,
		.default_multicast_primary_port = NO_PORT, .default_multicast_not_primary_port = NO_PORT,
		.life_time_value = LIFE_TIME, .partition_enforcement_cap = AGENT_PKEYS,
		.port_state_change = 1, /* links came up when the power did */
		.inbound_enforcement_cap = 1, .outbound_enforcement_cap = 1,
		.enhanced_port0 = n->what->enhanced_port_0,
	};
}

/* As real adapters and switches begin: a service level has a lane of its own while there are enough, so that
 * the layers of a routing engine count also where its manager leaves these tables as they are. */
static int fill_lanes(struct fabric_agents *a, const struct agent_node *n, uint8_t lanes)
{
	uint8_t lane_of[16];
	int err = 0;

	for (unsigned sl = 0; sl < ARRAY_SIZE(lane_of); sl++)
		lane_of[sl] = (uint8_t)(sl % lanes);
	for (unsigned in = 0; in <= (n->is_switch ? n->ports : 0u) && !err; in++)
		for (unsigned out = 1; out <= n->ports && !err; out++)
			err = fabric_set_sl_to_lane(a->engine, n->number, (uint8_t)in, (uint8_t)out, lane_of);
	return err;
}

/* All ports have their links' properties before the first link is looked at. */
static int fill(struct fabric_agents *a, const struct fabric_agents_limits *l)
{
	int err = 0;

	for (uint32_t i = 0; i < a->nodes; i++) {
		struct agent_node *n = &a->node[i];

		if (n->is_switch)
			fill_switch(a, n);
		for (unsigned port = n->is_switch ? 0 : 1; port <= n->ports; port++)
			fill_port(a, n, (uint8_t)port, l);
		err = err ? err : fill_lanes(a, n, l->lanes);
	}
	for (uint32_t i = 0; i < a->nodes && !err; i++)
		for (unsigned port = 1; port <= a->node[i].ports && !err; port++) {
			/* The engine enforces what the table says before a manager writes it. */
			err = fabric_set_pkeys(a->engine, i, (uint8_t)port, a->node[i].port[port].pkeys,
					       AGENT_PKEYS);
			if (!err)
				err = agent_link_settle(a, &a->node[i], (uint8_t)port);
		}
	return err;
}

/* ---- memory ---- */

static void give_memory(struct fabric_agents *a)
{
	struct agent_port_host *host = a->hosts;
	struct mad_switch_port_congestion *cc = a->cc_ports;
	struct agent_port *port = a->ports;

	for (uint32_t i = 0; i < a->nodes; i++) {
		const struct topology_node *what = &a->topology->nodes[i];
		struct agent_node *n = &a->node[i];

		*n = (struct agent_node){.number = i, .what = what, .ports = what->port_count, .port = port,
					 .is_switch = what->kind == TOPOLOGY_SWITCH};
		list_init(&n->timed);
		port += n->ports + 1;
		if (n->is_switch) {
			n->cc.port = cc;
			cc += n->ports + 1;
			continue;
		}
		for (unsigned p = 1; p <= n->ports; p++)
			n->port[p].host = host++;
	}
}

static int take_memory(struct fabric_agents *a)
{
	size_t ports = 0, hosts = 0;

	for (uint32_t i = 0; i < a->nodes; i++) {
		const struct topology_node *what = &a->topology->nodes[i];

		ports += what->port_count + 1u;
		hosts += what->kind == TOPOLOGY_SWITCH ? 0 : what->port_count;
	}
	a->node = calloc(a->nodes + 1u, sizeof(*a->node));
	a->ports = calloc(ports + 1, sizeof(*a->ports));
	a->hosts = calloc(hosts + 1, sizeof(*a->hosts));
	a->cc_ports = calloc(ports + 1, sizeof(*a->cc_ports));
	if (!a->node || !a->ports || !a->hosts || !a->cc_ports)
		return -ENOMEM;
	give_memory(a);
	return 0;
}

static bool take_limits(const struct fabric_agents_limits *from, struct fabric_agents_limits *to)
{
	*to = from ? *from : (struct fabric_agents_limits){0};
	to->mtu = to->mtu ? to->mtu : 4096;
	to->lanes = to->lanes ? to->lanes : 8;
	to->multicast = to->multicast ? to->multicast : MULTICAST_DEFAULT;
	return agent_code_of_mtu(to->mtu) && agent_code_of_lanes(to->lanes) && !(to->multicast % 32) &&
	       to->multicast <= MULTICAST_MAX;
}

int fabric_agents_open(const struct topology *t, struct fabric *engine,
		       const struct fabric_agents_limits *limits, const struct fabric_agents_ops *ops,
		       struct fabric_agents **out)
{
	struct fabric_agents_limits l;
	struct fabric_agents *a;
	int err;

	if (!take_limits(limits, &l))
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->topology = t;
	a->engine = engine;
	a->ops = *ops;
	a->nodes = t->node_count;
	a->multicast = l.multicast;
	list_init(&a->timed);
	err = take_memory(a);
	if (err) {
		fabric_agents_close(a);
		return err;
	}
	err = fill(a, &l);
	if (err) {
		fabric_agents_close(a);
		return err;
	}
	*out = a;
	return 0;
}

void fabric_agents_close(struct fabric_agents *a)
{
	if (!a)
		return;
	free(a->cc_ports);
	free(a->hosts);
	free(a->ports);
	free(a->node);
	free(a);
}

/* ---- due times ---- */

static uint64_t due_ns(const struct agent_node *n)
{
	return MIN(agent_trap_due(n), agent_samples_due(n));
}

uint64_t fabric_agents_next_ns(const struct fabric_agents *a)
{
	uint64_t next = UINT64_MAX;

	for (const struct list *l = a->timed.next; l != &a->timed; l = l->next)
		next = MIN(next, due_ns(container_of(l, struct agent_node, timed)));
	return next;
}

void fabric_agents_tick(struct fabric_agents *a, uint64_t now_ns)
{
	for (struct list *l = a->timed.next, *after; l != &a->timed; l = after) {
		struct agent_node *n = container_of(l, struct agent_node, timed);

		after = l->next;
		agent_samples_tick(a, n, now_ns);
		agent_trap_tick(a, n, now_ns);
		if (due_ns(n) == UINT64_MAX)
			list_remove(l);
	}
}

void fabric_agents_get_counts(const struct fabric_agents *a, struct fabric_agents_counts *c)
{
	*c = a->counts;
}
