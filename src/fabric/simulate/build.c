/* SPDX-License-Identifier: BSD-2-Clause */
/* From a scenario to the engine; see build.h. */
#define LOG_ROOM "fabric"
#include "fabric/simulate/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/build/build.h"
#include "util/log.h"

static bool is_switch(const struct simulate_state *st, uint32_t node)
{
	return st->s->topology->nodes[node].kind == TOPOLOGY_SWITCH;
}

/* ---- routes ---- */

static uint8_t lane_of_path(const void *context, uint32_t source, uint32_t target, uint32_t node, uint8_t in,
			    uint8_t out)
{
	const struct simulate_state *st = context;

	(void)node;
	(void)in;
	(void)out;
	return st->s->lane_of_level[routing_layer(st->routing, st->layers, source, target)];
}

/* Looks for a circle in the paths, for the result. */
static int find_circle(struct simulate_state *st)
{
	struct routing_channel *circle = NULL;
	int count = routing_credit_loop(st->s->topology, st->routing, st->layers ? lane_of_path : NULL, st, &circle);

	if (count <= 0)
		return count;
	st->r->circle = calloc((size_t)count, sizeof(*st->r->circle));
	if (!st->r->circle) {
		free(circle);
		return -ENOMEM;
	}
	for (int i = 0; i < count; i++)
		st->r->circle[i] = (struct simulate_lane){
			st->s->topology->links[circle[i].link].end[circle[i].from], circle[i].lane,
		};
	st->r->circle_count = (uint32_t)count;
	free(circle);
	return 0;
}

int simulate_build_routes(struct simulate_state *st)
{
	const struct topology *t = st->s->topology;
	char why[300] = "";
	int ret;

	if (st->s->routing == SIMULATE_DFSSSP)
		ret = routing_dfsssp(t, st->s->lanes, &st->routing, &st->layers, why, sizeof(why));
	else if (st->s->routing == SIMULATE_LASH)
		ret = routing_lash(t, st->s->lanes, &st->routing, &st->layers, why, sizeof(why));
	else if (st->s->routing == SIMULATE_UP_DOWN)
		ret = routing_up_down(t, NULL, 0, &st->routing);
	else
		ret = routing_min_hop(t, &st->routing);
	if (!ret)
		ret = routing_check_paths(t, st->routing, why, sizeof(why));
	if (!ret && st->routing->target_count >= FABRIC_LID_MULTICAST)
		ret = -ENOSPC;
	if (!ret)
		ret = find_circle(st);
	if (ret)
		log_error("routing %s: %s", simulate_routing_name(st->s->routing), *why ? why : strerror(-ret));
	else if (st->layers)
		st->r->layers = st->layers->count;
	return ret;
}

uint16_t simulate_build_lid(const struct simulate_state *st, struct topology_end end)
{
	return (uint16_t)(routing_find_target(st->routing, end.node, end.port) + 1);
}

/* ---- nodes and links ---- */

static int set_forwarding(struct simulate_state *st, uint32_t i)
{
	if (!is_switch(st, i))
		return 0;
	return fabric_set_forwarding(st->f, i, 1, st->routing->ports[i], st->routing->target_count);
}

int simulate_build_port(struct simulate_state *st, uint32_t node, uint8_t port)
{
	struct fabric_port_setting p;
	int ret = fabric_get_port(st->f, node, port, &p);

	if (ret)
		return ret;
	p.state = FABRIC_PORT_ACTIVE;
	p.lanes = (uint8_t)st->s->lanes;
	p.mtu = (uint16_t)st->s->mtu;
	p.high_limit = (uint8_t)st->s->high_limit;
	p.hoq_life = (uint8_t)st->s->hoq_life;
	return fabric_set_port(st->f, node, port, &p);
}

static int activate(struct simulate_state *st, const struct topology_link *l)
{
	int ret = simulate_build_port(st, l->end[0].node, l->end[0].port);

	return ret ? ret : simulate_build_port(st, l->end[1].node, l->end[1].port);
}

/* ---- lanes ---- */

static int set_lanes(struct simulate_state *st, uint32_t node)
{
	const uint8_t ports = st->s->topology->nodes[node].port_count;
	int ret = 0;

	if (st->s->lanes == 1)
		return 0;
	for (unsigned in = 0; in <= (is_switch(st, node) ? ports : 0u) && !ret; in++)
		for (unsigned out = 1; out <= ports && !ret; out++)
			ret = fabric_set_sl_to_lane(st->f, node, (uint8_t)in, (uint8_t)out, st->s->lane_of_level);
	return ret;
}

static int set_arbitration(struct simulate_state *st, uint32_t node, uint8_t port,
			   const struct simulate_arbitration *a)
{
	struct fabric_arbitration entries[FABRIC_ARBITRATION_ENTRIES] = { { 0, 0 } };

	for (unsigned i = 0; i < a->count; i++)
		entries[i] = (struct fabric_arbitration){ a->entries[i].lane, a->entries[i].weight };
	return fabric_set_arbitration(st->f, node, port, a->high, 0, entries, FABRIC_ARBITRATION_ENTRIES);
}

static int set_rule(struct simulate_state *st, const struct simulate_arbitration *a)
{
	const struct topology *t = st->s->topology;
	int ret = 0;

	if (a->at.node != TOPOLOGY_NONE)
		return set_arbitration(st, a->at.node, a->at.port, a);
	for (uint32_t i = 0; i < t->link_count && !ret; i++)
		for (unsigned k = 0; k < 2 && !ret; k++)
			ret = set_arbitration(st, t->links[i].end[k].node, t->links[i].end[k].port, a);
	return ret;
}

/* ---- congestion control ---- */

static int set_marking(struct simulate_state *st, uint32_t node)
{
	const struct simulate_congestion *g = &st->s->congestion;
	const struct fabric_congestion_switch c = {
		.threshold = (uint8_t)g->threshold, .marking_rate = (uint16_t)g->marking_rate,
		.packet_bytes = (uint16_t)g->marked_bytes, .victim_mask = g->victims,
	};

	return g->at_switches ? fabric_set_congestion_switch(st->f, node, 0, &c) : 0;
}

static int set_throttle(struct simulate_state *st, uint32_t node, uint8_t port)
{
	const struct simulate_congestion *g = &st->s->congestion;
	const struct fabric_congestion_host c = {
		.timer = (uint16_t)g->timer, .increase = (uint8_t)g->increase, .trigger = (uint8_t)g->trigger,
		.minimum = (uint8_t)g->minimum, .limit = (uint16_t)g->limit,
	};
	uint16_t table[SIMULATE_TABLE_MAX];
	int ret;

	if (!g->at_hosts)
		return 0;
	/* Without a table: each entry a packet's time more. */
	for (uint16_t i = 0; i < SIMULATE_TABLE_MAX; i++)
		table[i] = g->table_count ? g->table[i] : i;
	ret = fabric_set_congestion_table(st->f, node, port, 0, table,
					  g->table_count ? g->table_count : SIMULATE_TABLE_MAX);
	for (uint8_t sl = 0; sl < 16 && !ret; sl++)
		ret = fabric_set_congestion_host(st->f, node, port, sl, &c);
	return ret;
}

static int set_node(struct simulate_state *st, uint32_t node)
{
	int ret = set_lanes(st, node);

	if (!ret && is_switch(st, node))
		ret = set_marking(st, node);
	for (uint8_t port = 1; !ret && !is_switch(st, node) && port <= st->s->topology->nodes[node].port_count; port++)
		ret = set_throttle(st, node, port);
	return ret;
}

/* How many packets can be: in the buffers of links, of which each takes a block at least, in flows, and notifications
 * that wait in adapters. */
static uint32_t packets_of(const struct simulate_state *st)
{
	const uint64_t lanes = (uint64_t)st->s->topology->link_count * 2 * st->s->lanes;
	const uint64_t inside = lanes * (st->s->buffer_bytes / FABRIC_BLOCK_BYTES + FABRIC_FLOW_PACKETS);

	return (uint32_t)(inside < 1u << 20 ? inside : 1u << 20) + st->sender_count * FABRIC_FLOW_PACKETS + 64;
}

int simulate_build_fabric(struct simulate_state *st, const struct fabric_ops *ops)
{
	const struct topology *t = st->s->topology;
	const struct fabric_limits limits = { .flows = st->sender_count + 2, .packets = packets_of(st) };
	const struct fabric_build b = {
		.switches = {
			.latency_ps = st->s->latency_ps,
			.store_and_forward = st->s->store_and_forward,
			.virtual_output_queues = st->s->output_queues,
		},
		.mtu = (uint16_t)st->s->mtu, .lanes = (uint8_t)st->s->lanes,
		.buffer_bytes = st->s->buffer_bytes,
	};
	int ret = fabric_open(&limits, ops, st->s->seed, &st->f);

	if (!ret)
		ret = fabric_build(t, &b, st->f);
	for (uint32_t i = 0; i < t->node_count && !ret; i++)
		ret = set_forwarding(st, i);
	for (uint32_t i = 0; i < t->link_count && !ret; i++)
		ret = activate(st, &t->links[i]);
	for (uint32_t i = 0; i < t->node_count && !ret; i++)
		ret = set_node(st, i);
	for (uint32_t i = 0; i < st->s->rule_count && !ret; i++)
		ret = set_rule(st, &st->s->rules[i]);
	if (ret)
		log_error("the subnet '%s' cannot be made: %s", st->s->topology_name, strerror(-ret));
	return ret;
}
