/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The congestion control agent: its attributes but the log, and the rules of the CC_Key (IBA volume 1, annex
 * A10). What it sets goes to the engine at once. There is no credit starvation marking (CongestionInfo bit
 * 0 is 0): CreditMask, CSThreshold and CSReturnDelay are stored and have no effect, and a port's
 * setting with ControlType 1 is refused.
 */
#include <string.h>

#include "fabric/agent/attribute.h"
#include "fabric/agent/gmp.h"
#include "wire/bytes.h"

#define SECOND_NS UINT64_C(1000000000)
#define CREDIT_BYTES 64 /* of PacketSize */
#define PORTS_OF_BLOCK 32
#define BY_SL 1 /* PortControl */

static struct agent_cc_port *host_cc(const struct agent_request *r)
{
	return &r->node->port[r->in_port].host->cc;
}

/* ---- what is there ---- */

static uint16_t get_class_port_info(struct agent_request *r)
{
	return agent_get_class_port_info(r, MAD_VERSION_CONG_MGT, 0);
}

static uint16_t get_info(struct agent_request *r)
{
	const struct mad_congestion_info info = {
		.control_table_cap = r->node->is_switch ? 0 : AGENT_CC_BLOCKS,
	};

	mad_congestion_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

/* ---- the key ---- */

static uint16_t get_key_info(struct agent_request *r)
{
	struct mad_congestion_key_info info = r->node->cc.key;

	if (!r->key_matches)
		info.cc_key = 0;
	mad_congestion_key_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

static uint16_t set_key_info(struct agent_request *r)
{
	struct mad_congestion_key_info *info = &r->node->cc.key, want;

	mad_congestion_key_info_unpack(r->data, &want);
	info->cc_key = want.cc_key;
	info->cc_key_protect = want.cc_key_protect;
	info->cc_key_lease_period = want.cc_key_lease_period;
	if (!want.cc_key_violations) /* as M_KeyViolations: only 0 can be written */
		info->cc_key_violations = 0;
	r->node->cc.lease_end_ns = 0;
	return MAD_STATUS_OK;
}

/* Whether the request may be carried out; a lease starts with a wrong key and stops with a right one. */
static bool key_permits(struct agent_cc *cc, uint64_t key, uint8_t method, uint64_t now_ns, bool *matches)
{
	if (cc->lease_end_ns && now_ns >= cc->lease_end_ns) {
		cc->lease_end_ns = 0;
		cc->key.cc_key_protect = 0;
	}
	*matches = !cc->key.cc_key || key == cc->key.cc_key;
	if (*matches) {
		cc->lease_end_ns = 0;
		return true;
	}
	if (method == MAD_GET && !cc->key.cc_key_protect) {
		*matches = true; /* without protection everybody may see the key */
		return true;
	}
	cc->key.cc_key_violations += cc->key.cc_key_violations < UINT16_MAX;
	if (cc->key.cc_key_lease_period && !cc->lease_end_ns)
		cc->lease_end_ns = now_ns + cc->key.cc_key_lease_period * SECOND_NS;
	return false;
}

/* ---- switches ---- */

/* The setting in force at a port: its own, if that is valid, else the one of all. */
static int push_switch(const struct agent_request *r, uint8_t port)
{
	const struct mad_switch_congestion_setting *all = &r->node->cc.set;
	const struct mad_switch_port_congestion *own = &r->node->cc.port[port];
	const struct fabric_congestion_switch c = {
		.threshold = own->valid ? own->threshold : all->threshold,
		.marking_rate = own->valid ? own->marking_rate : all->marking_rate,
		.packet_bytes = (uint16_t)((own->valid ? own->packet_size : all->packet_size) * CREDIT_BYTES),
		.victim_mask = mad_cc_port(all->victim_mask, port),
	};

	return fabric_set_congestion_switch(r->a->engine, r->node->number, port, &c);
}

static uint16_t push_switches(const struct agent_request *r, unsigned first, unsigned last)
{
	for (unsigned port = MAX(first, 1); port <= last && port <= r->node->ports; port++)
		if (push_switch(r, (uint8_t)port))
			return MAD_STATUS_BAD_VALUE;
	return MAD_STATUS_OK;
}

static uint16_t get_switch(struct agent_request *r)
{
	mad_switch_congestion_setting_pack(&r->node->cc.set, r->data);
	return MAD_STATUS_OK;
}

static uint16_t set_switch(struct agent_request *r)
{
	struct mad_switch_congestion_setting *set = &r->node->cc.set, want;

	mad_switch_congestion_setting_unpack(r->data, &want);
	if (want.control_map & MAD_CONTROL_VICTIM_MASK)
		memcpy(set->victim_mask, want.victim_mask, sizeof(set->victim_mask));
	if (want.control_map & MAD_CONTROL_CREDIT_MASK)
		memcpy(set->credit_mask, want.credit_mask, sizeof(set->credit_mask));
	if (want.control_map & MAD_CONTROL_THRESHOLD) {
		set->threshold = want.threshold;
		set->packet_size = want.packet_size;
	}
	if (want.control_map & MAD_CONTROL_CS_THRESHOLD) {
		set->cs_threshold = want.cs_threshold;
		set->cs_return_delay = want.cs_return_delay;
	}
	if (want.control_map & MAD_CONTROL_MARKING_RATE)
		set->marking_rate = want.marking_rate;
	set->control_map = want.control_map & (MAD_CONTROL_VICTIM_MASK | MAD_CONTROL_CREDIT_MASK |
		MAD_CONTROL_THRESHOLD | MAD_CONTROL_CS_THRESHOLD | MAD_CONTROL_MARKING_RATE);
	return push_switches(r, 1, r->node->ports);
}

static uint16_t get_ports(struct agent_request *r)
{
	struct mad_switch_port_congestion_setting shown = {0};

	if (r->mod > r->node->ports / PORTS_OF_BLOCK)
		return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < PORTS_OF_BLOCK; i++) {
		const unsigned port = r->mod * PORTS_OF_BLOCK + i;

		if (port <= r->node->ports)
			shown.port[i] = r->node->cc.port[port];
	}
	mad_switch_port_congestion_setting_pack(&shown, r->data);
	return MAD_STATUS_OK;
}

static uint16_t set_ports(struct agent_request *r)
{
	struct mad_switch_port_congestion_setting want;
	const unsigned first = r->mod * PORTS_OF_BLOCK;

	if (r->mod > r->node->ports / PORTS_OF_BLOCK)
		return MAD_STATUS_BAD_VALUE;
	mad_switch_port_congestion_setting_unpack(r->data, &want);
	for (unsigned i = 0; i < PORTS_OF_BLOCK; i++)
		if (want.port[i].valid && want.port[i].control_type)
			return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < PORTS_OF_BLOCK && first + i <= r->node->ports; i++)
		r->node->cc.port[first + i] = want.port[i];
	return push_switches(r, first, first + PORTS_OF_BLOCK - 1);
}

/* ---- adapters ---- */

static uint16_t push_host(const struct agent_request *r)
{
	const struct agent_cc_port *cc = host_cc(r);

	for (uint8_t sl = 0; sl < ARRAY_SIZE(cc->set.sl); sl++) {
		const struct mad_ca_congestion *s = &cc->set.sl[sl];
		const struct fabric_congestion_host c = {
			.timer = s->ccti_timer, .increase = s->ccti_increase,
			.trigger = s->trigger_threshold, .minimum = s->ccti_min, .limit = cc->limit,
		};
		const bool valid = cc->set.control_map >> sl & 1;

		if (fabric_set_congestion_host(r->a->engine, r->node->number, r->in_port, sl,
					       valid ? &c : NULL))
			return MAD_STATUS_BAD_VALUE;
	}
	return MAD_STATUS_OK;
}

/* The engine refuses a CCTI_Min above the CCTI_Limit. */
static bool fits(const struct mad_ca_congestion_setting *set, uint16_t limit)
{
	for (unsigned sl = 0; sl < ARRAY_SIZE(set->sl); sl++)
		if (set->control_map >> sl & 1 && set->sl[sl].ccti_min > limit)
			return false;
	return true;
}

static uint16_t get_host(struct agent_request *r)
{
	mad_ca_congestion_setting_pack(&host_cc(r)->set, r->data);
	return MAD_STATUS_OK;
}

/* ControlMap says which entries are valid; the engine delays flows of those service levels alone. */
static uint16_t set_host(struct agent_request *r)
{
	struct mad_ca_congestion_setting want;

	mad_ca_congestion_setting_unpack(r->data, &want);
	if (!fits(&want, host_cc(r)->limit))
		return MAD_STATUS_BAD_VALUE;
	want.port_control &= BY_SL;
	host_cc(r)->set = want;
	return push_host(r);
}

static uint16_t get_table(struct agent_request *r)
{
	const struct agent_cc_port *cc = host_cc(r);
	struct mad_congestion_control_table shown = {.ccti_limit = cc->limit};

	if (r->mod >= AGENT_CC_BLOCKS)
		return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < MAD_CC_TABLE_ENTRIES; i++) {
		const uint16_t entry = cc->table[r->mod * MAD_CC_TABLE_ENTRIES + i];

		shown.entry[i] = (struct mad_congestion_control){(uint8_t)(entry >> 14), entry & 0x3fff};
	}
	mad_congestion_control_table_pack(&shown, r->data);
	return MAD_STATUS_OK;
}

static uint16_t set_table(struct agent_request *r)
{
	const uint16_t first = (uint16_t)(r->mod * MAD_CC_TABLE_ENTRIES);
	struct agent_cc_port *cc = host_cc(r);
	struct mad_congestion_control_table want;
	uint16_t *entry = cc->table + first;

	if (r->mod >= AGENT_CC_BLOCKS)
		return MAD_STATUS_BAD_VALUE;
	mad_congestion_control_table_unpack(r->data, &want);
	if (want.ccti_limit >= ARRAY_SIZE(cc->table) || !fits(&cc->set, want.ccti_limit))
		return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < MAD_CC_TABLE_ENTRIES; i++)
		entry[i] = (uint16_t)(want.entry[i].shift << 14 | want.entry[i].multiplier);
	cc->limit = want.ccti_limit;
	if (fabric_set_congestion_table(r->a->engine, r->node->number, r->in_port, first, entry,
					MAD_CC_TABLE_ENTRIES))
		return MAD_STATUS_BAD_VALUE;
	return push_host(r);
}

bool fabric_agents_by_sl(const struct fabric_agents *a, uint32_t node, uint8_t port)
{
	const struct agent_port *p = agent_host_port_at(a, node, port);

	return p && p->host->cc.set.port_control & BY_SL;
}

static const struct agent_attribute attributes[] = {
	{MAD_ATTR_CLASS_PORT_INFO, mad_class_port_info_bytes, AGENT_OF_ALL,
	 get_class_port_info, agent_set_class_port_info},
	{MAD_ATTR_CONGESTION_INFO, mad_congestion_info_bytes, AGENT_OF_ALL, get_info, NULL},
	{MAD_ATTR_CONGESTION_KEY_INFO, mad_congestion_key_info_bytes, AGENT_OF_ALL,
	 get_key_info, set_key_info},
	{MAD_ATTR_CONGESTION_LOG, mad_congestion_log_switch_bytes, AGENT_OF_ALL,
	 agent_get_congestion_log, NULL},
	{MAD_ATTR_SWITCH_CONGESTION_SETTING, mad_switch_congestion_setting_bytes, AGENT_OF_SWITCHES,
	 get_switch, set_switch},
	{MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING, mad_switch_port_congestion_setting_bytes,
	 AGENT_OF_SWITCHES, get_ports, set_ports},
	{MAD_ATTR_CA_CONGESTION_SETTING, mad_ca_congestion_setting_bytes, AGENT_OF_ADAPTERS,
	 get_host, set_host},
	{MAD_ATTR_CONGESTION_CONTROL_TABLE, mad_congestion_control_table_bytes, AGENT_OF_ADAPTERS,
	 get_table, set_table},
	{MAD_ATTR_TIME_STAMP, mad_time_stamp_bytes, AGENT_OF_ALL, agent_get_time_stamp, NULL},
};

bool agent_cc(struct fabric_agents *a, struct agent_node *n, uint8_t in_port, uint8_t mad[MAD_BYTES],
	      const struct mad_header *h, uint64_t now_ns)
{
	const unsigned at = h->attr_id == MAD_ATTR_CONGESTION_LOG ? MAD_CC_LOG_AT : MAD_DATA_AT;
	struct agent_request r = {.a = a, .node = n, .in_port = in_port, .mod = h->attr_mod,
				  .data = mad + at, .data_bytes = MAD_BYTES - at, .now_ns = now_ns};
	uint16_t status = MAD_STATUS_BAD_VERSION;

	if (h->class_version == MAD_VERSION_CONG_MGT) {
		if (!key_permits(&n->cc, get_64(mad + MAD_CC_KEY_AT), h->method, now_ns, &r.key_matches)) {
			a->counts.bad_key++;
			return false;
		}
		status = agent_carry_out(&r, attributes, ARRAY_SIZE(attributes), h->method, h->attr_id);
	}
	if (mad_make_response(mad, status))
		return true;
	a->counts.bad_mad++;
	return false;
}
