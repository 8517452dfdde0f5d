/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of a node and its identity: NodeDescription, NodeInfo, SwitchInfo, GUIDInfo, LedInfo (IBA
 * volume 1, 14.2.5.2 to 14.2.5.5 and 14.2.5.15). Stored and shown, but without effect: LifeTimeValue (HOQLife
 * of the ports limits the life of packets) and the default ports of SwitchInfo, which are for random tables.
 */
#include <string.h>

#include "fabric/agent/sma.h"
#include "fabric/agent/view.h"

uint16_t agent_get_node_description(struct agent_request *r)
{
	struct mad_node_description d = {.text = ""};

	memcpy(d.text, r->node->what->name, strnlen(r->node->what->name, sizeof(d.text)));
	mad_node_description_pack(&d, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_get_node_info(struct agent_request *r)
{
	const struct topology_node *what = r->node->what;
	const struct mad_node_info info = {
		.base_version = MAD_BASE_VERSION, .class_version = MAD_VERSION_SUBN,
		.node_type = r->node->is_switch ? MAD_NODE_SWITCH : MAD_NODE_CA,
		.num_ports = r->node->ports,
		.system_image_guid = what->system_guid, .node_guid = what->guid,
		.port_guid = what->ports[agent_end_port(r->node, r->in_port)].guid,
		.partition_cap = AGENT_PKEYS,
		.device_id = what->device_id, .revision = 0,
		.local_port_num = r->in_port,
		.vendor_id = what->vendor_id,
	};

	mad_node_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_get_switch_info(struct agent_request *r)
{
	mad_switch_info_pack(&r->node->info, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_switch_info(struct agent_request *r)
{
	struct mad_switch_info *info = &r->node->info, want;

	mad_switch_info_unpack(r->data, &want);
	if (want.linear_fdb_top >= info->linear_fdb_cap ||
	    fabric_set_forwarding_top(r->a->engine, r->node->number, want.linear_fdb_top))
		return MAD_STATUS_BAD_VALUE;
	info->linear_fdb_top = want.linear_fdb_top;
	info->default_port = want.default_port;
	info->default_multicast_primary_port = want.default_multicast_primary_port;
	info->default_multicast_not_primary_port = want.default_multicast_not_primary_port;
	info->life_time_value = want.life_time_value;
	if (want.port_state_change)
		info->port_state_change = 0;
	return MAD_STATUS_OK;
}

/* The GUIDs of the end port: eight of an adapter's port, one of a switch. */
static void guids_of(const struct agent_request *r, struct mad_guid_info *info)
{
	const struct agent_node *n = r->node;

	*info = (struct mad_guid_info){{0}};
	if (n->is_switch)
		info->guid[0] = n->what->ports[0].guid;
	else
		memcpy(info->guid, n->port[r->in_port].host->guids, sizeof(info->guid));
}

uint16_t agent_get_guid_info(struct agent_request *r)
{
	struct mad_guid_info info;

	if (r->mod)
		return MAD_STATUS_BAD_VALUE;
	guids_of(r, &info);
	mad_guid_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

/* Entry 0 is the port's own GUID, and stays. */
uint16_t agent_set_guid_info(struct agent_request *r)
{
	struct mad_guid_info want;
	uint64_t *guids;

	if (r->mod)
		return MAD_STATUS_BAD_VALUE;
	if (r->node->is_switch)
		return MAD_STATUS_OK;
	mad_guid_info_unpack(r->data, &want);
	guids = r->node->port[r->in_port].host->guids;
	memcpy(guids + 1, want.guid + 1, (AGENT_GUIDS - 1) * sizeof(*guids));
	agent_view_changed(r->a, r->node, r->in_port, false);
	return MAD_STATUS_OK;
}

/* One LED for each port; port 0 of a switch has one, too. */
static struct agent_port *led_port(const struct agent_request *r)
{
	if (!r->node->is_switch)
		return &r->node->port[r->in_port];
	return r->mod <= r->node->ports ? &r->node->port[r->mod] : NULL;
}

uint16_t agent_get_led_info(struct agent_request *r)
{
	const struct agent_port *p = led_port(r);
	struct mad_led_info info;

	if (!p)
		return MAD_STATUS_BAD_VALUE;
	info.on = p->led;
	mad_led_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_led_info(struct agent_request *r)
{
	struct agent_port *p = led_port(r);
	struct mad_led_info want;

	if (!p)
		return MAD_STATUS_BAD_VALUE;
	mad_led_info_unpack(r->data, &want);
	p->led = want.on;
	return MAD_STATUS_OK;
}
