/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/view.h"

#include <errno.h>
#include <string.h>

static enum topology_speed speed_of(const struct mad_port_info *info)
{
	switch (info->link_speed_ext_active) {
	case MAD_SPEED_EXT_FDR: return TOPOLOGY_FDR;
	case MAD_SPEED_EXT_EDR: return TOPOLOGY_EDR;
	case MAD_SPEED_EXT_HDR: return TOPOLOGY_HDR;
	case MAD_SPEED_EXT_NDR: return TOPOLOGY_NDR;
	}
	return info->link_speed_active == MAD_SPEED_QDR ? TOPOLOGY_QDR :
	       info->link_speed_active == MAD_SPEED_DDR ? TOPOLOGY_DDR : TOPOLOGY_SDR;
}

static void fill(const struct agent_port *port, struct plug_port *p)
{
	const struct mad_port_info *info = &port->info;
	const struct topology_link link = {.width = (enum topology_width)info->link_width_active,
					   .speed = speed_of(info)};

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
		.link_bps_mbit = (uint32_t)(topology_link_bit_rate(&link) / 1000000),
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
	fill(&n->port[port], &p);
	p.client_reregister = reregister;
	a->ops.changed(a->ops.arg, n->number, port, &p);
}

int fabric_agents_get_port(const struct fabric_agents *a, uint32_t node, uint8_t port, struct plug_port *p)
{
	const struct agent_port *at = agent_host_port_at(a, node, port);

	if (!at)
		return -EINVAL;
	fill(at, p);
	return 0;
}
