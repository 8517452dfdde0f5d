/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of nodes: forwarding, multicast, service levels to lanes. They grow when they are set. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric/state.h"

#define LIDS FABRIC_LID_MULTICAST /* of the linear table */
#define GROUPS (0x10000u - FABRIC_LID_MULTICAST)
#define GROUP_BLOCK 32
#define POSITIONS 16
#define GROW_LIDS 1024

static struct fabric_node *switch_at(const struct fabric *f, uint32_t node)
{
	struct fabric_node *n = fabric_node_at(f, node);

	return n && n->kind == FABRIC_SWITCH ? n : NULL;
}

static int grow_forwarding(struct fabric_node *n, uint32_t count)
{
	uint8_t *to;

	if (count <= n->forwarding_count)
		return 0;
	count = (count + GROW_LIDS - 1) / GROW_LIDS * GROW_LIDS;
	to = realloc(n->forwarding, count);
	if (!to)
		return -ENOMEM;
	memset(to + n->forwarding_count, FABRIC_NO_PORT, count - n->forwarding_count);
	n->forwarding = to;
	n->forwarding_count = count;
	return 0;
}

int fabric_set_forwarding(struct fabric *f, uint32_t node, uint16_t first, const uint8_t *ports,
			  unsigned count)
{
	struct fabric_node *n = switch_at(f, node);
	int r;

	if (!n || !ports || first > LIDS || count > LIDS - first)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++)
		if (ports[i] > n->ports && ports[i] != FABRIC_NO_PORT)
			return -EINVAL;
	r = grow_forwarding(n, first + count);
	if (!r && count)
		memcpy(n->forwarding + first, ports, count);
	return r;
}

int fabric_get_forwarding(const struct fabric *f, uint32_t node, uint16_t first, uint8_t *ports,
			  unsigned count)
{
	const struct fabric_node *n = switch_at(f, node);

	if (!n || !ports || first > LIDS || count > LIDS - first)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++)
		ports[i] = first + i < n->forwarding_count ? n->forwarding[first + i] : FABRIC_NO_PORT;
	return 0;
}

int fabric_set_forwarding_top(struct fabric *f, uint32_t node, uint16_t top)
{
	struct fabric_node *n = switch_at(f, node);

	if (!n || top >= LIDS)
		return -EINVAL;
	n->forwarding_top = top;
	return 0;
}

/* Bits of the ports that the switch has at this position. */
static uint16_t ports_at(const struct fabric_node *n, unsigned position)
{
	unsigned first = position * 16;

	if (first > n->ports)
		return 0;
	return n->ports - first >= 15 ? 0xffff : (uint16_t)((1u << (n->ports - first + 1)) - 1);
}

int fabric_set_multicast(struct fabric *f, uint32_t node, uint16_t first, uint8_t position,
			 const uint16_t masks[32])
{
	struct fabric_node *n = switch_at(f, node);
	uint16_t (*to)[POSITIONS];
	uint32_t count = first + (uint32_t)GROUP_BLOCK;

	if (!n || !masks || position >= POSITIONS || count > GROUPS)
		return -EINVAL;
	for (unsigned i = 0; i < GROUP_BLOCK; i++)
		if (masks[i] & ~ports_at(n, position))
			return -EINVAL;
	if (count > n->multicast_count) {
		to = realloc(n->multicast, count * sizeof(*to));
		if (!to)
			return -ENOMEM;
		memset(to + n->multicast_count, 0, (count - n->multicast_count) * sizeof(*to));
		n->multicast = to;
		n->multicast_count = count;
	}
	for (unsigned i = 0; i < GROUP_BLOCK; i++)
		n->multicast[first + i][position] = masks[i];
	return 0;
}

int fabric_get_multicast(const struct fabric *f, uint32_t node, uint16_t first, uint8_t position,
			 uint16_t masks[32])
{
	const struct fabric_node *n = switch_at(f, node);

	if (!n || !masks || position >= POSITIONS || first + (uint32_t)GROUP_BLOCK > GROUPS)
		return -EINVAL;
	for (unsigned i = 0; i < GROUP_BLOCK; i++)
		masks[i] = first + i < n->multicast_count ? n->multicast[first + i][position] : 0;
	return 0;
}

int fabric_set_sl_to_lane(struct fabric *f, uint32_t node, uint8_t in, uint8_t out,
			  const uint8_t lanes[16])
{
	struct fabric_node *n = fabric_node_at(f, node);

	if (!n || in > n->ports || out > n->ports || !lanes)
		return -EINVAL;
	for (unsigned i = 0; i < 16; i++)
		if (lanes[i] >= FABRIC_LANES)
			return -EINVAL;
	if (!n->sl_to_lane) {
		n->sl_to_lane = calloc((n->ports + 1u) * (n->ports + 1u), sizeof(*n->sl_to_lane));
		if (!n->sl_to_lane)
			return -ENOMEM;
	}
	memcpy(n->sl_to_lane[in * (n->ports + 1u) + out], lanes, 16);
	return 0;
}

int fabric_get_sl_to_lane(const struct fabric *f, uint32_t node, uint8_t in, uint8_t out,
			  uint8_t lanes[16])
{
	const struct fabric_node *n = fabric_node_at(f, node);

	if (!n || in > n->ports || out > n->ports || !lanes)
		return -EINVAL;
	if (n->sl_to_lane)
		memcpy(lanes, n->sl_to_lane[in * (n->ports + 1u) + out], 16);
	else
		memset(lanes, 0, 16);
	return 0;
}
