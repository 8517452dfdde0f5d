/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of ports and switches in blocks: P_KeyTable, SLtoVLMappingTable, VLArbitrationTable,
 * LinearForwardingTable, MulticastForwardingTable (IBA volume 1, 14.2.5.7 to 14.2.5.12). All but the
 * P_Keys of adapters are in the engine.
 */
#include <string.h>

#include "fabric/agent/sma.h"
#include "fabric/agent/view.h"

#define LINEAR_BLOCK 64
#define MULTICAST_BLOCK 32
#define MULTICAST_PORTS 16 /* of a position */
#define ARBITRATION_BLOCK 32

/* ---- P_Keys ---- */

/* One block for each port. */
static struct agent_port *pkey_port(const struct agent_request *r, uint8_t *number)
{
	const uint32_t block = r->mod & 0xffff, port = r->mod >> 16;

	if (block * ARRAY_SIZE(((struct mad_pkey_table *)0)->pkey) >= AGENT_PKEYS)
		return NULL;
	*number = r->node->is_switch ? (uint8_t)port : r->in_port;
	return r->node->is_switch && port > r->node->ports ? NULL : &r->node->port[*number];
}

uint16_t agent_get_pkeys(struct agent_request *r)
{
	struct mad_pkey_table table;
	struct agent_port *p;
	uint8_t number;

	p = pkey_port(r, &number);
	if (!p)
		return MAD_STATUS_BAD_VALUE;
	memcpy(table.pkey, p->pkeys, sizeof(table.pkey));
	mad_pkey_table_pack(&table, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_pkeys(struct agent_request *r)
{
	struct mad_pkey_table want;
	struct agent_port *p;
	uint8_t number;

	p = pkey_port(r, &number);
	if (!p)
		return MAD_STATUS_BAD_VALUE;
	mad_pkey_table_unpack(r->data, &want);
	if (r->node->is_switch && number &&
	    fabric_set_pkeys(r->a->engine, r->node->number, number, want.pkey, AGENT_PKEYS))
		return MAD_STATUS_BAD_VALUE;
	memcpy(p->pkeys, want.pkey, sizeof(p->pkeys));
	agent_view_changed(r->a, r->node, number, false);
	return MAD_STATUS_OK;
}

/* ---- service levels ---- */

static bool sl_ports(const struct agent_request *r, uint8_t *in, uint8_t *out)
{
	if (!r->node->is_switch) {
		*in = 0;
		*out = r->in_port;
		return true;
	}
	*in = (uint8_t)(r->mod >> 8);
	*out = (uint8_t)r->mod;
	/* The upper bits select several ports at once: OptimizedSLtoVLMappingProgramming, which
	 * SwitchInfo does not claim. */
	return r->mod <= 0xffff && *in <= r->node->ports && *out <= r->node->ports;
}

uint16_t agent_get_sl_to_vl(struct agent_request *r)
{
	struct mad_sl_to_vl table;
	uint8_t in, out;

	if (!sl_ports(r, &in, &out) ||
	    fabric_get_sl_to_lane(r->a->engine, r->node->number, in, out, table.vl))
		return MAD_STATUS_BAD_VALUE;
	mad_sl_to_vl_pack(&table, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_sl_to_vl(struct agent_request *r)
{
	struct mad_sl_to_vl want;
	uint8_t in, out;

	mad_sl_to_vl_unpack(r->data, &want);
	if (!sl_ports(r, &in, &out) ||
	    fabric_set_sl_to_lane(r->a->engine, r->node->number, in, out, want.vl))
		return MAD_STATUS_BAD_VALUE;
	return MAD_STATUS_OK;
}

/* ---- arbitration ---- */

struct arbitration_block {
	uint8_t port;
	bool high;
	unsigned first;
};

static bool arbitration_block(const struct agent_request *r, struct arbitration_block *b)
{
	const uint32_t block = r->mod >> 16, port = r->mod & 0xffff;

	if (block < MAD_VL_ARBITRATION_LOW_FIRST || block > MAD_VL_ARBITRATION_HIGH_SECOND)
		return false;
	b->high = block >= MAD_VL_ARBITRATION_HIGH_FIRST;
	b->first = (block - 1) % 2 * ARBITRATION_BLOCK;
	b->port = r->node->is_switch ? (uint8_t)port : r->in_port;
	return !r->node->is_switch || (port && port <= r->node->ports);
}

uint16_t agent_get_arbitration(struct agent_request *r)
{
	struct fabric_arbitration entries[ARBITRATION_BLOCK];
	struct mad_vl_arbitration table;
	struct arbitration_block b;

	if (!arbitration_block(r, &b) ||
	    fabric_get_arbitration(r->a->engine, r->node->number, b.port, b.high, b.first, entries,
				   ARBITRATION_BLOCK))
		return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < ARBITRATION_BLOCK; i++)
		table.entry[i] = (struct mad_vl_weight){entries[i].lane, entries[i].weight};
	mad_vl_arbitration_pack(&table, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_arbitration(struct agent_request *r)
{
	struct fabric_arbitration entries[ARBITRATION_BLOCK];
	struct mad_vl_arbitration want;
	struct arbitration_block b;

	if (!arbitration_block(r, &b))
		return MAD_STATUS_BAD_VALUE;
	mad_vl_arbitration_unpack(r->data, &want);
	for (unsigned i = 0; i < ARBITRATION_BLOCK; i++) {
		entries[i] = (struct fabric_arbitration){want.entry[i].vl, want.entry[i].weight};
		/* Management has no weight: the entry is skipped. */
		if (entries[i].lane >= FABRIC_LANE_MANAGEMENT)
			entries[i] = (struct fabric_arbitration){0, 0};
	}
	if (fabric_set_arbitration(r->a->engine, r->node->number, b.port, b.high, b.first, entries,
				   ARBITRATION_BLOCK))
		return MAD_STATUS_BAD_VALUE;
	return MAD_STATUS_OK;
}

/* ---- forwarding ---- */

static bool linear_block(const struct agent_request *r)
{
	return r->mod < AGENT_LIDS / LINEAR_BLOCK;
}

uint16_t agent_get_linear(struct agent_request *r)
{
	struct mad_linear_forwarding table;

	if (!linear_block(r) ||
	    fabric_get_forwarding(r->a->engine, r->node->number, (uint16_t)(r->mod * LINEAR_BLOCK),
				  table.port, LINEAR_BLOCK))
		return MAD_STATUS_BAD_VALUE;
	mad_linear_forwarding_pack(&table, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_linear(struct agent_request *r)
{
	struct mad_linear_forwarding want;

	if (!linear_block(r))
		return MAD_STATUS_BAD_VALUE;
	mad_linear_forwarding_unpack(r->data, &want);
	/* A port that is not there drops packets, as 255 does. */
	for (unsigned i = 0; i < LINEAR_BLOCK; i++)
		if (want.port[i] > r->node->ports)
			want.port[i] = MAD_FORWARDING_NONE;
	if (fabric_set_forwarding(r->a->engine, r->node->number, (uint16_t)(r->mod * LINEAR_BLOCK),
				  want.port, LINEAR_BLOCK))
		return MAD_STATUS_BAD_VALUE;
	return MAD_STATUS_OK;
}

struct multicast_block {
	uint16_t first;
	uint8_t position;
};

static bool multicast_block(const struct agent_request *r, struct multicast_block *b)
{
	const uint32_t block = r->mod & 0x1ff;

	*b = (struct multicast_block){(uint16_t)(block * MULTICAST_BLOCK), (uint8_t)(r->mod >> 28)};
	return !(r->mod & 0x0ffffe00) && b->first < r->a->multicast &&
	       b->position * MULTICAST_PORTS <= r->node->ports;
}

uint16_t agent_get_multicast(struct agent_request *r)
{
	struct mad_multicast_forwarding table;
	struct multicast_block b;

	if (!multicast_block(r, &b) ||
	    fabric_get_multicast(r->a->engine, r->node->number, b.first, b.position, table.ports))
		return MAD_STATUS_BAD_VALUE;
	mad_multicast_forwarding_pack(&table, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_multicast(struct agent_request *r)
{
	struct mad_multicast_forwarding want;
	struct multicast_block b;

	if (!multicast_block(r, &b))
		return MAD_STATUS_BAD_VALUE;
	mad_multicast_forwarding_unpack(r->data, &want);
	if (fabric_set_multicast(r->a->engine, r->node->number, b.first, b.position, want.ports))
		return MAD_STATUS_BAD_VALUE;
	return MAD_STATUS_OK;
}
