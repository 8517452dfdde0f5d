/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/link.h"

#include <errno.h>

#include "fabric/agent/rate.h"
#include "fabric/agent/trap.h"
#include "fabric/agent/view.h"

#define HOQ_NO_LIMIT 20 /* of adapters: packets wait as long as the flow control makes them */

uint8_t agent_lanes_of_code(uint8_t code)
{
	static const uint8_t lanes[] = {0, 1, 2, 4, 8, 15};

	return code < ARRAY_SIZE(lanes) ? lanes[code] : 0;
}

uint8_t agent_code_of_lanes(uint8_t lanes)
{
	for (uint8_t code = MAD_VLS_1; code <= MAD_VLS_15; code++)
		if (agent_lanes_of_code(code) == lanes)
			return code;
	return 0;
}

uint8_t agent_code_of_mtu(uint16_t mtu)
{
	for (uint8_t code = MAD_MTU_256; code <= MAD_MTU_4096; code++)
		if (128u << code == mtu)
			return code;
	return 0;
}

int agent_link_push(const struct fabric_agents *a, const struct agent_node *n, uint8_t port,
		    const struct mad_port_info *info)
{
	const struct fabric_port_setting s = {
		.state = info->port_state,
		.lanes = agent_lanes_of_code(info->operational_vls),
		.high_limit = info->vl_high_limit,
		.hoq_life = n->is_switch ? info->hoq_life : HOQ_NO_LIMIT,
		.mtu = (uint16_t)(128u << info->neighbor_mtu),
		.enforce_in = info->partition_enforcement_inbound,
		.enforce_out = info->partition_enforcement_outbound,
	};

	return port ? fabric_set_port(a->engine, n->number, port, &s) : 0;
}

/* The state of one end in PortInfo and the engine. */
static int set_end(struct fabric_agents *a, struct agent_node *n, uint8_t port, bool up,
		    const struct agent_rate *r)
{
	struct agent_port *p = &n->port[port];

	p->up = up;
	p->info.port_state = up ? MAD_PORT_INIT : MAD_PORT_DOWN;
	p->info.port_physical_state = up ? MAD_PHYSICAL_LINK_UP : p->physical;
	if (up) {
		p->info.link_width_active = r->width;
		p->info.link_speed_active = r->speed;
		p->info.link_speed_ext_active = r->extended;
	}
	return agent_link_push(a, n, port, &p->info);
}

/* Tells the manager and plugged-in processes. */
static void announce(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint64_t now_ns)
{
	if (n->is_switch) {
		n->info.port_state_change = 1;
		agent_trap_link_state(a, n, now_ns);
	}
	agent_view_changed(a, n, port, false);
}

struct ends {
	struct agent_node *n[2];
	uint8_t port[2];
};

static bool ends_of(struct fabric_agents *a, struct agent_node *n, uint8_t port, struct ends *e)
{
	struct topology_end peer;

	if (!topology_peer(a->topology, n->number, port, &peer))
		return false;
	*e = (struct ends){{n, &a->node[peer.node]}, {port, peer.port}};
	return true;
}

static bool should_be_up(const struct ends *e, struct agent_rate *r)
{
	const struct agent_port *p = &e->n[0]->port[e->port[0]], *q = &e->n[1]->port[e->port[1]];

	return p->joined && q->joined && agent_rate_agree(&p->info, &q->info, r) &&
	       p->physical != MAD_PHYSICAL_DISABLED && q->physical != MAD_PHYSICAL_DISABLED &&
	       (p->physical == MAD_PHYSICAL_POLLING || q->physical == MAD_PHYSICAL_POLLING);
}

static void set_ends(struct fabric_agents *a, const struct ends *e, bool up, const struct agent_rate *r,
		     uint64_t now_ns)
{
	for (int i = 0; i < 2; i++)
		set_end(a, e->n[i], e->port[i], up, r);
	for (int i = 0; i < 2; i++)
		announce(a, e->n[i], e->port[i], now_ns);
}

/* The rate on which the ends agreed counts from now on; a link that is up keeps its own. */
static void set_rate(struct fabric_agents *a, const struct ends *e, const struct agent_rate *r)
{
	struct agent_port *p = &e->n[0]->port[e->port[0]];

	p->info.link_width_active = r->width;
	p->info.link_speed_active = r->speed;
	p->info.link_speed_ext_active = r->extended;
	fabric_set_rate(a->engine, e->n[0]->number, e->port[0], agent_rate_bps(a, e->n[0], e->port[0]));
}

/* The engine reports the change by fabric_agents_link(), which finds that it is known. */
static void set_link(struct fabric_agents *a, const struct ends *e, bool up, const struct agent_rate *r,
		     uint64_t now_ns)
{
	for (int i = 0; i < 2; i++)
		e->n[i]->port[e->port[i]].up = up;
	if (up)
		set_rate(a, e, r);
	fabric_set_link(a->engine, e->n[0]->number, e->port[0], up);
	set_ends(a, e, up, r, now_ns);
}

void agent_link_update(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint64_t now_ns)
{
	struct agent_rate r = {0};
	struct ends e;
	bool up;

	if (!ends_of(a, n, port, &e)) {
		set_end(a, n, port, false, &r);
		return;
	}
	up = should_be_up(&e, &r);
	if (up == n->port[port].up) {
		for (int i = 0; i < 2 && !up; i++) /* polling or disabled */
			set_end(a, e.n[i], e.port[i], false, &r);
		return;
	}
	set_link(a, &e, up, &r, now_ns);
}

void agent_link_retrain(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint64_t now_ns)
{
	const struct agent_rate none = {0};
	struct ends e;

	if (n->port[port].up && ends_of(a, n, port, &e))
		set_link(a, &e, false, &none, now_ns);
	agent_link_update(a, n, port, now_ns);
}

int agent_link_settle(struct fabric_agents *a, struct agent_node *n, uint8_t port)
{
	struct agent_rate r = {0};
	struct ends e;
	const bool up = ends_of(a, n, port, &e) && should_be_up(&e, &r);

	return set_end(a, n, port, up, &r);
}

int fabric_agents_cable(struct fabric_agents *a, uint32_t node, uint8_t port, bool joined, uint64_t now_ns)
{
	struct agent_port *p = agent_port_at(a, node, port);
	struct ends e;

	if (!p || !ends_of(a, &a->node[node], port, &e))
		return -EINVAL;
	for (int i = 0; i < 2; i++)
		e.n[i]->port[e.port[i]].joined = joined;
	agent_link_update(a, &a->node[node], port, now_ns);
	return 0;
}

void fabric_agents_link(struct fabric_agents *a, uint32_t node, uint8_t port, bool up, uint64_t now_ns)
{
	struct agent_port *p = agent_port_at(a, node, port);
	struct agent_rate r = {0};
	struct ends e;

	if (!p || p->up == up || !ends_of(a, &a->node[node], port, &e))
		return;
	if (up && !should_be_up(&e, &r))
		return;
	set_ends(a, &e, up, &r, now_ns);
}
