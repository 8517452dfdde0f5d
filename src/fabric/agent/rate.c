/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/rate.h"

/* The highest bit. */
static uint8_t highest(uint8_t bits)
{
	return bits ? (uint8_t)(1u << (31 - __builtin_clz(bits))) : 0;
}

/* The widest: the bit of 2x stands above that of 12x. */
static uint8_t widest(uint8_t bits)
{
	const uint8_t wide = bits & (MAD_WIDTH_4X | MAD_WIDTH_8X | MAD_WIDTH_12X);

	return wide ? highest(wide) : highest(bits);
}

bool agent_rate_agree(const struct mad_port_info *p, const struct mad_port_info *q, struct agent_rate *r)
{
	const uint8_t all = MAD_SPEED_EXT_FDR | MAD_SPEED_EXT_EDR | MAD_SPEED_EXT_HDR | MAD_SPEED_EXT_NDR;
	const uint8_t off = 30; /* LinkSpeedExtEnabled: extended speeds are disabled */
	uint8_t extended = p->link_speed_ext_enabled & q->link_speed_ext_enabled & all;

	if (p->link_speed_ext_enabled == off || q->link_speed_ext_enabled == off)
		extended = 0;
	r->width = widest(p->link_width_enabled & q->link_width_enabled);
	r->speed = highest(p->link_speed_enabled & q->link_speed_enabled);
	r->extended = highest(extended);
	if (r->extended && !r->speed)
		r->speed = MAD_SPEED_QDR;
	return r->width && r->speed;
}

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

/* What PortInfo cannot tell from QDR, FDR10, is known from the cable, when it does what it can. */
static bool is_best(const struct mad_port_info *info)
{
	return info->link_width_active == widest(info->link_width_supported) &&
	       info->link_speed_active == highest(info->link_speed_supported) &&
	       info->link_speed_ext_active == highest(info->link_speed_ext_supported);
}

uint64_t agent_rate_bps(const struct fabric_agents *a, const struct agent_node *n, uint8_t port)
{
	const struct mad_port_info *info = &n->port[port].info;
	const struct topology_link active = {.width = (enum topology_width)info->link_width_active,
					     .speed = speed_of(info)};
	const uint32_t link = n->what->ports[port].link;

	return topology_link_bit_rate(link < a->topology->link_count && is_best(info) ?
				      &a->topology->links[link] : &active);
}
