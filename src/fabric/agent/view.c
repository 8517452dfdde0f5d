/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/view.h"

#include <errno.h>
#include <string.h>

#include "fabric/agent/rate.h"

static void fill(const struct fabric_agents *a, const struct agent_node *n, uint8_t number,
		 struct plug_port *p)
{
	const struct agent_port *port = &n->port[number];
	const struct mad_port_info *info = &port->info;

	*p = (struct plug_port){
		.subnet_prefix = info->gid_prefix,
		.capability_mask = info->capability_mask,
		.lid = info->lid, .sm_lid = info->master_sm_lid,
		.lmc = info->lmc, .sm_sl = info->master_sm_sl,
		.state = info->port_state, .physical_state = info->port_physical_state,
		.mtu_active = info->neighbor_mtu, .mtu_max = info->mtu_cap,
		.width_active = info->link_width_active,
		.speed_active = info->link_speed_active,
		.speed_extended = info->link_speed_ext_active,
		.lanes = info->vl_cap,
		.pkey_count = AGENT_PKEYS, .guid_count = info->guid_cap,
		.init_type_reply = info->init_type_reply, .subnet_timeout = info->subnet_timeout,
		.qkey_violations = info->qkey_violations, .pkey_violations = info->pkey_violations,
		.link_bps_mbit = (uint32_t)(agent_rate_bps(a, n, number) / 1000000),
	};
	memcpy(p->guids, port->host->guids, sizeof(p->guids));
	memcpy(p->pkeys, port->pkeys, sizeof(p->pkeys));
}

void agent_view_changed(const struct fabric_agents *a, const struct agent_node *n, uint8_t port,
			bool reregister)
{
	struct plug_port p;

	if (n->is_switch || !a->ops.changed)
		return;
	fill(a, n, port, &p);
	p.client_reregister = reregister;
	a->ops.changed(a->ops.arg, n->number, port, &p);
}

int fabric_agents_get_port(const struct fabric_agents *a, uint32_t node, uint8_t port, struct plug_port *p)
{
	if (!agent_host_port_at(a, node, port))
		return -EINVAL;
	fill(a, &a->node[node], port, p);
	return 0;
}
