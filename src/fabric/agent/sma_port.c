/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortInfo (IBA volume 1, 14.2.5.6): what is shown, which values a Set may have, and what they change.
 * A Set with one wrong value changes nothing. Stored and shown, but without effect here: VLStallCount,
 * InitType, LocalPhyErrors, OverrunErrors, MulticastPKeyTrapSuppressionEnabled, SubnetTimeOut but for
 * traps. Raw packets do not exist, so FilterRaw stays 0.
 */
#include <string.h>

#include "fabric/agent/link.h"
#include "fabric/agent/sma.h"
#include "fabric/agent/view.h"

#define SPEEDS_EXTENDED (1u << 31) /* of the modifier: the manager knows extended speeds */
#define SPEED_ALL 15
#define EXTENDED_OFF 30
#define EXTENDED_ALL 31
#define WIDTH_ALL 255

/* The port that the modifier names: of an adapter 0 is the one that is asked. */
static struct agent_port *port_of(const struct agent_request *r, uint8_t *number)
{
	const uint32_t mod = r->mod & ~SPEEDS_EXTENDED;

	if (mod > r->node->ports)
		return NULL;
	*number = (uint8_t)mod;
	if (!mod && !r->node->is_switch)
		*number = r->in_port;
	return &r->node->port[*number];
}

uint16_t agent_get_port_info(struct agent_request *r)
{
	struct mad_port_info info;
	struct agent_port *p;
	uint8_t number;

	p = port_of(r, &number);
	if (!p)
		return MAD_STATUS_BAD_VALUE;
	info = p->info;
	info.local_port_num = r->in_port;
	if (!r->key_matches || (!r->node->is_switch && number != r->in_port))
		info.mkey = 0;
	mad_port_info_pack(&info, r->data);
	return MAD_STATUS_OK;
}

/* ---- which values are right ---- */

static bool within(uint8_t bits, uint8_t supported)
{
	return !(bits & ~supported);
}

static bool rates_are_right(const struct mad_port_info *want, const struct mad_port_info *is, bool extended)
{
	if (want->link_width_enabled != WIDTH_ALL && !within(want->link_width_enabled, is->link_width_supported))
		return false;
	if (want->link_speed_enabled != SPEED_ALL && !within(want->link_speed_enabled, is->link_speed_supported))
		return false;
	return !extended || want->link_speed_ext_enabled >= EXTENDED_OFF ||
	       within(want->link_speed_ext_enabled, is->link_speed_ext_supported);
}

static bool state_is_right(const struct mad_port_info *want, const struct mad_port_info *is)
{
	switch (want->port_state) {
	case 0:
	case MAD_PORT_DOWN:
		break;
	case MAD_PORT_ARMED:
		if (is->port_state != MAD_PORT_INIT && is->port_state != MAD_PORT_ARMED)
			return false;
		break;
	case MAD_PORT_ACTIVE:
		if (is->port_state != MAD_PORT_ARMED && is->port_state != MAD_PORT_ACTIVE)
			return false;
		break;
	default:
		return false;
	}
	/* The link trains anew, so the port becomes neither ARMED nor ACTIVE. */
	return want->port_physical_state <= MAD_PHYSICAL_DISABLED &&
	       (!want->port_physical_state || want->port_state <= MAD_PORT_DOWN);
}

/* Of ports with a connector. */
static bool link_is_right(const struct mad_port_info *want, const struct mad_port_info *is, bool extended)
{
	return want->link_down_default_state <= MAD_PHYSICAL_POLLING &&
	       want->neighbor_mtu >= MAD_MTU_256 && want->neighbor_mtu <= is->mtu_cap &&
	       want->operational_vls <= is->vl_cap && rates_are_right(want, is, extended) &&
	       state_is_right(want, is);
}

/* Of ports with a LID. LID and MasterSMLID may be 0: none yet. */
static bool end_is_right(const struct mad_port_info *want, bool base_port0)
{
	const uint16_t path_bits = (uint16_t)((1u << want->lmc) - 1);

	return want->lid < AGENT_LIDS && !(want->lid & path_bits) && want->master_sm_lid < AGENT_LIDS &&
	       !(base_port0 && want->lmc);
}

/* ---- what changes ---- */

static void take_rates(const struct mad_port_info *want, struct mad_port_info *is, bool extended)
{
	if (want->link_width_enabled)
		is->link_width_enabled = want->link_width_enabled & is->link_width_supported;
	if (want->link_speed_enabled)
		is->link_speed_enabled = want->link_speed_enabled & is->link_speed_supported;
	if (!extended || !want->link_speed_ext_enabled)
		return;
	is->link_speed_ext_enabled = want->link_speed_ext_enabled == EXTENDED_OFF ? EXTENDED_OFF :
		want->link_speed_ext_enabled & is->link_speed_ext_supported;
}

static void take_link(const struct agent_request *r, const struct mad_port_info *want,
		      struct mad_port_info *is)
{
	take_rates(want, is, r->mod & SPEEDS_EXTENDED);
	if (want->link_down_default_state)
		is->link_down_default_state = want->link_down_default_state;
	is->neighbor_mtu = want->neighbor_mtu;
	if (want->operational_vls)
		is->operational_vls = want->operational_vls;
	is->vl_high_limit = want->vl_high_limit;
	is->vl_stall_count = want->vl_stall_count;
	is->hoq_life = want->hoq_life;
	if (r->node->is_switch) {
		is->partition_enforcement_inbound = want->partition_enforcement_inbound;
		is->partition_enforcement_outbound = want->partition_enforcement_outbound;
	}
	is->local_phy_errors = want->local_phy_errors;
	is->overrun_errors = want->overrun_errors;
	if (want->port_state >= MAD_PORT_ARMED)
		is->port_state = want->port_state;
}

static void take_end(const struct mad_port_info *want, struct mad_port_info *is)
{
	is->mkey = want->mkey;
	is->mkey_protect_bits = want->mkey_protect_bits;
	is->mkey_lease_period = want->mkey_lease_period;
	is->gid_prefix = want->gid_prefix;
	is->lid = want->lid;
	is->lmc = want->lmc;
	is->master_sm_lid = want->master_sm_lid;
	is->master_sm_sl = want->master_sm_sl;
	is->init_type = want->init_type;
	is->subnet_timeout = want->subnet_timeout;
	is->multicast_pkey_trap_suppression = want->multicast_pkey_trap_suppression;
	/* Counters of violations: only 0 can be written. */
	if (!want->mkey_violations)
		is->mkey_violations = 0;
	if (!want->pkey_violations)
		is->pkey_violations = 0;
	if (!want->qkey_violations)
		is->qkey_violations = 0;
}

/* The link goes down and trains anew, from the physical state that is wanted. */
static void take_down(struct agent_request *r, struct agent_port *p, uint8_t number,
		      const struct mad_port_info *want)
{
	if (want->port_state != MAD_PORT_DOWN && !want->port_physical_state)
		return;
	p->physical = want->port_physical_state ? want->port_physical_state : p->info.link_down_default_state;
	agent_link_retrain(r->a, r->node, number, r->now_ns);
}

uint16_t agent_set_port_info(struct agent_request *r)
{
	struct mad_port_info want, next;
	struct agent_port *p;
	uint8_t number;
	bool end, external, reregister;

	p = port_of(r, &number);
	if (!p)
		return MAD_STATUS_BAD_VALUE;
	mad_port_info_unpack(r->data, &want);
	end = number == agent_end_port(r->node, number);
	external = number != 0;
	/* Another port of an adapter has a manager, and perhaps a subnet, of its own. */
	if (!r->node->is_switch && number != r->in_port)
		return MAD_STATUS_BAD_VALUE;
	if (end && !end_is_right(&want, !external && !r->node->info.enhanced_port0))
		return MAD_STATUS_BAD_VALUE;
	if (external && !link_is_right(&want, &p->info, r->mod & SPEEDS_EXTENDED))
		return MAD_STATUS_BAD_VALUE;

	next = p->info;
	if (external)
		take_link(r, &want, &next);
	if (end)
		take_end(&want, &next);
	if (agent_link_push(r->a, r->node, number, &next))
		return MAD_STATUS_BAD_VALUE;
	p->info = next;
	reregister = want.client_reregister && !r->node->is_switch;
	if (external)
		take_down(r, p, number, &want);
	agent_view_changed(r->a, r->node, number, reregister);
	return MAD_STATUS_OK;
}
