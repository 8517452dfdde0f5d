/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/sma.h"

#include "fabric/agent/attribute.h"
#include "fabric/agent/mkey.h"
#include "fabric/agent/trap.h"

static const struct agent_attribute attributes[] = {
	{MAD_ATTR_NODE_DESCRIPTION, mad_node_description_bytes, AGENT_OF_ALL,
	 agent_get_node_description, NULL},
	{MAD_ATTR_NODE_INFO, mad_node_info_bytes, AGENT_OF_ALL, agent_get_node_info, NULL},
	{MAD_ATTR_SWITCH_INFO, mad_switch_info_bytes, AGENT_OF_SWITCHES,
	 agent_get_switch_info, agent_set_switch_info},
	{MAD_ATTR_GUID_INFO, mad_guid_info_bytes, AGENT_OF_ALL, agent_get_guid_info, agent_set_guid_info},
	{MAD_ATTR_PORT_INFO, mad_port_info_bytes, AGENT_OF_ALL, agent_get_port_info, agent_set_port_info},
	{MAD_ATTR_PKEY_TABLE, mad_pkey_table_bytes, AGENT_OF_ALL, agent_get_pkeys, agent_set_pkeys},
	{MAD_ATTR_SL_TO_VL, mad_sl_to_vl_bytes, AGENT_OF_ALL, agent_get_sl_to_vl, agent_set_sl_to_vl},
	{MAD_ATTR_VL_ARBITRATION, mad_vl_arbitration_bytes, AGENT_OF_ALL,
	 agent_get_arbitration, agent_set_arbitration},
	{MAD_ATTR_LINEAR_FORWARDING, mad_linear_forwarding_bytes, AGENT_OF_SWITCHES,
	 agent_get_linear, agent_set_linear},
	{MAD_ATTR_MULTICAST_FORWARDING, mad_multicast_forwarding_bytes, AGENT_OF_SWITCHES,
	 agent_get_multicast, agent_set_multicast},
	{MAD_ATTR_LED_INFO, mad_led_info_bytes, AGENT_OF_ALL, agent_get_led_info, agent_set_led_info},
};

/* A manager's own: SMInfo, when a process of the port is one. Switches have no processes. */
static bool for_process(const struct agent_node *n, uint8_t port, const struct mad_smp *smp)
{
	if (n->is_switch)
		return false;
	if (smp->method & MAD_RESPONSE || smp->method == MAD_TRAP)
		return true;
	return smp->attr_id == MAD_ATTR_SM_INFO && n->port[port].info.capability_mask & MAD_CAP_SM;
}

enum agent_outcome agent_sma(struct fabric_agents *a, struct agent_node *n, uint8_t in_port,
			     uint8_t mad[MAD_BYTES], const struct agent_address *from, uint64_t now_ns)
{
	const uint8_t end_port = agent_end_port(n, in_port);
	struct agent_request r = {.a = a, .node = n, .in_port = in_port, .data = mad + MAD_DATA_AT,
				  .data_bytes = MAD_SMP_DATA_BYTES, .now_ns = now_ns};
	enum agent_mkey key;
	struct mad_smp smp;
	uint16_t status;

	if (!mad_smp_unpack(mad, MAD_BYTES, &smp)) {
		a->counts.bad_mad++;
		return AGENT_NOTHING;
	}
	if (for_process(n, end_port, &smp))
		return AGENT_PROCESS;
	r.mod = smp.attr_mod;
	if (smp.class_version != MAD_VERSION_SUBN)
		status = MAD_STATUS_BAD_VERSION;
	else if (smp.method != MAD_GET && smp.method != MAD_SET && smp.method != MAD_TRAP_REPRESS)
		status = MAD_STATUS_BAD_METHOD;
	else {
		key = agent_mkey_check(a, n, end_port, &smp, from, now_ns);
		if (key == AGENT_MKEY_REFUSED)
			return AGENT_NOTHING;
		if (smp.method == MAD_TRAP_REPRESS) {
			agent_trap_repress(a, n, smp.tid);
			return AGENT_NOTHING;
		}
		r.key_matches = key == AGENT_MKEY_MATCHES;
		status = agent_carry_out(&r, attributes, ARRAY_SIZE(attributes), smp.method, smp.attr_id);
	}
	if (!mad_make_response(mad, status)) {
		a->counts.bad_mad++;
		return AGENT_NOTHING;
	}
	a->counts.answered++;
	return AGENT_ANSWER;
}
