/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: members, and the trees by which switches copy packets to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"

#define MEMBERS_MAX 8192
#define BLOCK 32 /* groups of a block of a multicast table */
#define POSITION_PORTS 16

/* ---- members ---- */

struct manager_group *manager_group_find(struct manager *m, const uint8_t mgid[16])
{
	for (unsigned i = 0; i < MANAGER_GROUPS_MAX; i++)
		if (m->groups[i].used && !memcmp(m->groups[i].mgid, mgid, 16))
			return &m->groups[i];
	return NULL;
}

struct manager_group *manager_group_new(struct manager *m, const uint8_t mgid[16])
{
	for (unsigned i = 0; i < MANAGER_GROUPS_MAX; i++) {
		struct manager_group *g = &m->groups[i];

		if (g->used)
			continue;
		*g = (struct manager_group){ .used = true };
		memcpy(g->mgid, mgid, sizeof(g->mgid));
		return g;
	}
	return NULL;
}

uint16_t manager_group_mlid(const struct manager *m, const struct manager_group *g)
{
	return (uint16_t)(0xc000 + (g - m->groups));
}

static struct manager_member *member_find(struct manager_group *g, const uint8_t gid[16])
{
	for (unsigned i = 0; i < g->member_count; i++)
		if (!memcmp(g->members[i].gid, gid, 16))
			return &g->members[i];
	return NULL;
}

int manager_group_join(struct manager *m, struct manager_group *g, const uint8_t gid[16],
		       uint8_t join_state, bool by_itself)
{
	struct manager_member *member = member_find(g, gid);

	if (!member) {
		member = g->member_count < MEMBERS_MAX ?
				 realloc(g->members, (g->member_count + 1) * sizeof(*member)) : NULL;
		if (!member)
			return -ENOMEM;
		g->members = member;
		member += g->member_count++;
		*member = (struct manager_member){ 0 };
		memcpy(member->gid, gid, sizeof(member->gid));
	}
	member->join_state |= join_state;
	member->by_itself |= by_itself;
	m->groups_changed = true;
	return 0;
}

int manager_group_leave(struct manager *m, struct manager_group *g, const uint8_t gid[16],
			uint8_t join_state, bool by_itself)
{
	struct manager_member *member = member_find(g, gid);

	if (!member || !(member->join_state & join_state))
		return -ENOENT;
	if (member->by_itself && !by_itself)
		return -EACCES;
	member->join_state &= (uint8_t)~join_state;
	if (!member->join_state)
		*member = g->members[--g->member_count];
	m->groups_changed = true;
	if (g->member_count || g->keep)
		return 0;
	free(g->members);
	*g = (struct manager_group){ 0 };
	return 0;
}

void manager_groups_free(struct manager *m)
{
	for (unsigned i = 0; i < MANAGER_GROUPS_MAX; i++)
		free(m->groups[i].members);
}

/* ---- trees ---- */

/* One spanning tree for all groups: the port of each switch that leads to its root. */
struct tree {
	uint32_t root;
	uint8_t *up;       /* by node; 0: the root, or no switch */
	uint32_t *order;   /* a queue of switches */
	uint32_t count;
};

static bool is_switch(const struct manager *m, uint32_t node)
{
	return m->nodes[node].info.node_type == MAD_NODE_SWITCH;
}

static bool tree_grow(const struct manager *m, struct tree *t)
{
	uint8_t *seen = calloc(m->node_count, 1);

	t->up = calloc(m->node_count, 1);
	t->order = calloc(m->node_count, sizeof(*t->order));
	t->root = MANAGER_NONE;
	for (uint32_t i = 0; i < m->node_count && t->root == MANAGER_NONE; i++)
		if (is_switch(m, i))
			t->root = i;
	if (!seen || !t->up || !t->order || t->root == MANAGER_NONE) {
		free(seen);
		return false;
	}
	t->order[t->count++] = t->root;
	seen[t->root] = 1;
	for (uint32_t at = 0; at < t->count; at++) {
		const struct manager_node *n = &m->nodes[t->order[at]];

		for (unsigned p = 1; p <= n->info.num_ports; p++) {
			uint32_t peer = n->ports[p].peer;

			if (peer == MANAGER_NONE || !is_switch(m, peer) || seen[peer])
				continue;
			seen[peer] = 1;
			t->up[peer] = n->ports[p].peer_port;
			t->order[t->count++] = peer;
		}
	}
	free(seen);
	return true;
}

/* Masks of the ports of all switches, [node][position]. */
typedef uint16_t masks[TOPOLOGY_PORTS_MAX / POSITION_PORTS + 1];

static void mask_add(masks *to, uint32_t node, uint8_t port)
{
	to[node][port / POSITION_PORTS] |= (uint16_t)(1u << port % POSITION_PORTS);
}

/* From the switch of a member to the root, in both directions. */
static void branch_add(const struct manager *m, const struct tree *t, uint32_t node, masks *to)
{
	while (node != t->root && t->up[node]) {
		const struct manager_port *p = &m->nodes[node].ports[t->up[node]];

		mask_add(to, node, t->up[node]);
		mask_add(to, p->peer, p->peer_port);
		node = p->peer;
	}
}

static uint64_t guid_of(const uint8_t gid[16])
{
	uint64_t guid = 0;

	for (unsigned i = 8; i < 16; i++)
		guid = guid << 8 | gid[i];
	return guid;
}

static void group_masks(const struct manager *m, const struct tree *t, const struct manager_group *g,
			masks *to)
{
	memset(to, 0, m->node_count * sizeof(*to));
	for (unsigned i = 0; i < g->member_count; i++) {
		uint32_t node;
		uint8_t port;

		if (!manager_port_by_guid(m, guid_of(g->members[i].gid), &node, &port))
			continue;
		if (is_switch(m, node)) {
			mask_add(to, node, 0);
			branch_add(m, t, node, to);
			continue;
		}
		const struct manager_port *p = &m->nodes[node].ports[port];

		if (p->peer == MANAGER_NONE || !is_switch(m, p->peer))
			continue;
		mask_add(to, p->peer, p->peer_port);
		branch_add(m, t, p->peer, to);
	}
	/* The root's branches to members alone: a switch with one port of the tree and no member is a
	 * leaf without need, which only the root can be. */
}

/* ---- loading ---- */

static void send_block(struct manager *m, uint32_t node, const struct manager_loaded *l,
		       unsigned block, unsigned position)
{
	struct mad_multicast_forwarding table;
	uint8_t data[MAD_SMP_DATA_BYTES] = { 0 };

	memcpy(table.ports, &l->multicast[position][block * BLOCK], sizeof(table.ports));
	if (mad_multicast_forwarding_pack(&table, data))
		manager_set(m, node, MAD_ATTR_MULTICAST_FORWARDING, position << 28 | block, 0, data, NULL);
}

static unsigned positions_of(const struct manager_node *n)
{
	return n->info.num_ports / POSITION_PORTS + 1u;
}

/* Writes the masks of a group into the tables of all switches; marks changed blocks. */
static void store(struct manager *m, unsigned group, masks *from, uint8_t (*changed)[16])
{
	for (uint32_t i = 0; i < m->node_count; i++) {
		struct manager_loaded *l;

		if (!is_switch(m, i))
			continue;
		l = manager_loaded_find(m, m->nodes[i].info.node_guid);
		if (!l)
			continue;
		if (!l->multicast)
			l->multicast = calloc(positions_of(&m->nodes[i]), sizeof(*l->multicast));
		for (unsigned p = 0; l->multicast && p < positions_of(&m->nodes[i]); p++) {
			if (l->multicast[p][group] == from[i][p])
				continue;
			l->multicast[p][group] = from[i][p];
			changed[i][group / BLOCK] = 1;
		}
	}
}

_Static_assert(MANAGER_GROUPS_MAX / BLOCK <= 16, "blocks of all groups");

void manager_load_groups(struct manager *m)
{
	struct tree t = { 0 };
	masks *wanted = calloc(MAX(m->node_count, 1u), sizeof(*wanted));
	uint8_t (*changed)[16] = calloc(MAX(m->node_count, 1u), sizeof(*changed));

	if (wanted && changed && m->node_count && tree_grow(m, &t)) {
		for (unsigned g = 0; g < MANAGER_GROUPS_MAX; g++) {
			group_masks(m, &t, &m->groups[g], wanted);
			store(m, g, wanted, changed);
		}
		for (uint32_t i = 0; i < m->node_count; i++)
			for (unsigned b = 0; b < MANAGER_GROUPS_MAX / BLOCK; b++)
				for (unsigned p = 0; changed[i][b] && p < positions_of(&m->nodes[i]); p++)
					send_block(m, i, manager_loaded_find(m, m->nodes[i].info.node_guid),
						   b, p);
	}
	free(t.up);
	free(t.order);
	free(wanted);
	free(changed);
}
