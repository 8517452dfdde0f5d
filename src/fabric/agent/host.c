/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the owner tells the agents of a port: what its processes can do, and packets with wrong keys (IBA
 * volume 1, 10.9.4, 14.2.5.1).
 */
#include <errno.h>
#include <string.h>

#include "fabric/agent/trap.h"
#include "fabric/agent/view.h"

#define CHANGEABLE (MAD_CAP_SM | MAD_CAP_COMM_MGT | MAD_CAP_SNMP_TUNNELING | MAD_CAP_DEVICE_MANAGEMENT | \
		    MAD_CAP_VENDOR_CLASS)
#define SWITCH_PKEY_ALL 0x3f /* data_valid: LIDs, P_Key, SL and queue pairs */
#define SWITCH_PKEY_GIDS 0xc0

int fabric_agents_set_capability(struct fabric_agents *a, uint32_t node, uint8_t port, uint32_t set,
				 uint32_t clear, uint64_t now_ns)
{
	struct agent_port *p = agent_host_port_at(a, node, port);
	struct mad_trap_capability t;
	uint8_t bytes[MAD_NOTICE_DETAILS_BYTES];
	uint32_t mask;

	if (!p || (set | clear) & ~(uint32_t)CHANGEABLE)
		return -EINVAL;
	mask = (p->info.capability_mask & ~clear) | set;
	if (mask == p->info.capability_mask)
		return 0;
	p->info.capability_mask = mask;
	t = (struct mad_trap_capability){.lid = p->info.lid, .capability_mask = mask,
					 .capability_mask2 = p->info.capability_mask2};
	mad_trap_capability_pack(&t, bytes);
	agent_trap_raise(a, agent_node_at(a, node), port, MAD_TRAP_CAPABILITY_CHANGE, bytes, now_ns);
	agent_view_changed(a, agent_node_at(a, node), port, false);
	return 0;
}

int fabric_agents_violation(struct fabric_agents *a, uint32_t node, uint8_t port,
			    const struct agent_violation *v, uint64_t now_ns)
{
	struct agent_port *p = agent_host_port_at(a, node, port);
	struct mad_trap_key t = {.lid1 = v->slid, .lid2 = v->dlid, .key = v->key, .sl = v->sl & 15,
				 .qp1 = v->src_qp & 0xffffff, .qp2 = v->dest_qp & 0xffffff};
	uint8_t bytes[MAD_NOTICE_DETAILS_BYTES];
	uint16_t *count;

	if (!p)
		return -EINVAL;
	memcpy(t.gid1, v->sgid, sizeof(t.gid1));
	memcpy(t.gid2, v->dgid, sizeof(t.gid2));
	mad_trap_key_pack(&t, bytes);
	count = v->qkey ? &p->info.qkey_violations : &p->info.pkey_violations;
	*count += *count < UINT16_MAX;
	agent_trap_raise(a, agent_node_at(a, node), port, v->qkey ? MAD_TRAP_BAD_QKEY : MAD_TRAP_BAD_PKEY,
			 bytes, now_ns);
	agent_view_changed(a, agent_node_at(a, node), port, false);
	return 0;
}

int fabric_agents_switch_violation(struct fabric_agents *a, uint32_t node, uint8_t port,
				   const struct agent_violation *v, uint64_t now_ns)
{
	struct agent_node *n = agent_node_at(a, node);
	static const uint8_t none[16];
	struct mad_trap_switch_pkey t = {
		.data_valid = SWITCH_PKEY_ALL, .lid1 = v->slid, .lid2 = v->dlid, .pkey = (uint16_t)v->key,
		.sl = v->sl & 15, .qp1 = v->src_qp & 0xffffff, .qp2 = v->dest_qp & 0xffffff, .port = port,
	};
	uint8_t bytes[MAD_NOTICE_DETAILS_BYTES];

	if (!n || !n->is_switch || !port || port > n->ports)
		return -EINVAL;
	t.switch_lid = n->port[0].info.lid;
	if (memcmp(v->dgid, none, sizeof(none)))
		t.data_valid |= SWITCH_PKEY_GIDS;
	memcpy(t.gid1, v->sgid, sizeof(t.gid1));
	memcpy(t.gid2, v->dgid, sizeof(t.gid2));
	mad_trap_switch_pkey_pack(&t, bytes);
	agent_trap_raise(a, n, port, MAD_TRAP_SWITCH_BAD_PKEY, bytes, now_ns);
	return 0;
}
