/* SPDX-License-Identifier: BSD-2-Clause */
/* LIDs, properties of ports, forwarding tables, lanes, states: what the manager sets in the nodes. */
#define LOG_ROOM "manager"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"
#include "util/log.h"

#define HOQ_LIFE 0x12      /* 1 s, which ends a deadlock */
#define SUBNET_TIMEOUT 18  /* 1 s */
#define BLOCK 64           /* LIDs of a block of a forwarding table */

static bool is_switch(const struct manager_node *n)
{
	return n->info.node_type == MAD_NODE_SWITCH;
}

/* ---- LIDs: a port GUID keeps its LID for as long as the manager runs ---- */

static uint16_t lid_of(const struct manager *m, uint64_t guid)
{
	for (uint32_t i = 0; i < m->lid_count; i++)
		if (m->lids[i].guid == guid)
			return m->lids[i].lid;
	return 0;
}

static bool lid_is_taken(const struct manager *m, uint16_t lid)
{
	for (uint32_t i = 0; i < m->lid_count; i++)
		if (m->lids[i].lid == lid)
			return true;
	return false;
}

/* The LID that the port has from an earlier manager, if it is free; else the next free one. */
static uint16_t lid_new(struct manager *m, uint64_t guid, uint16_t present)
{
	uint16_t lid = present;
	void *more = NULL;

	if (m->lid_count <= MANAGER_LID_LAST - MANAGER_LID_FIRST)
		more = realloc(m->lids, (m->lid_count + 1) * sizeof(*m->lids));
	if (!more) {
		/* Each LID is given, or no memory: the sweep says that it is not complete. */
		m->report.unanswered++;
		return 0;
	}
	m->lids = more;
	if (lid < MANAGER_LID_FIRST || lid > MANAGER_LID_LAST || lid_is_taken(m, lid)) {
		/* LIDs are given in order, so the count is the first guess. */
		lid = (uint16_t)MIN(m->lid_count + MANAGER_LID_FIRST, MANAGER_LID_LAST);
		while (lid_is_taken(m, lid))
			lid = lid == MANAGER_LID_LAST ? MANAGER_LID_FIRST : (uint16_t)(lid + 1);
	}
	m->lids[m->lid_count].guid = guid;
	m->lids[m->lid_count++].lid = lid;
	return lid;
}

static uint16_t lid_for(struct manager *m, uint64_t guid, uint16_t present)
{
	uint16_t lid = lid_of(m, guid);

	return lid ? lid : lid_new(m, guid, present);
}

/* ---- ports ---- */

static const struct manager_port *peer_of(const struct manager *m, const struct manager_port *p)
{
	return p->peer == MANAGER_NONE ? NULL : &m->nodes[p->peer].ports[p->peer_port];
}

/* The code of operational lanes for so many: 1, 2, 4, 8, 15. */
static uint8_t lanes_code(unsigned lanes)
{
	return lanes >= 15 ? MAD_VLS_15 : lanes >= 8 ? MAD_VLS_8 : lanes >= 4 ? MAD_VLS_4 :
	       lanes >= 2 ? MAD_VLS_2 : MAD_VLS_1;
}

static void on_set(struct manager *m, const struct manager_request *r, const struct mad_smp *answer)
{
	struct manager_port *p = &m->nodes[r->node].ports[r->port];

	if (answer)
		mad_port_info_unpack(answer->data, &p->info);
}

static void set_port(struct manager *m, uint32_t node, uint8_t port, struct mad_port_info *info)
{
	uint8_t data[MAD_SMP_DATA_BYTES] = { 0 };

	/* What a Set leaves as it is. */
	info->port_physical_state = 0;
	info->link_down_default_state = 0;
	info->link_width_enabled = info->link_speed_enabled = 0;
	info->link_speed_ext_enabled = 0;
	if (mad_port_info_pack(info, data))
		manager_set(m, node, MAD_ATTR_PORT_INFO, port, port, data, on_set);
}

/* Properties of a port with a link, and of end ports. The state stays. */
static void set_properties(struct manager *m, uint32_t node, uint8_t port)
{
	const struct manager_node *n = &m->nodes[node];
	const struct manager_port *p = &n->ports[port], *peer = peer_of(m, p);
	struct mad_port_info info = p->info;

	info.port_state = 0; /* it stays */
	if (!is_switch(n) || !port) {
		info.gid_prefix = m->config.subnet_prefix;
		info.lid = is_switch(n) ? n->lid : lid_for(m, p->guid, info.lid);
		info.master_sm_lid = m->sm_lid;
		info.master_sm_sl = 0;
		info.subnet_timeout = SUBNET_TIMEOUT;
		/* A port that was not active asks its users to register again. */
		info.client_reregister = p->info.port_state != MAD_PORT_ACTIVE && !is_switch(n);
	}
	if (peer) {
		info.neighbor_mtu = MIN(info.mtu_cap, peer->info.mtu_cap);
		info.operational_vls = MIN(MIN(info.vl_cap, peer->info.vl_cap),
					   lanes_code(m->config.lanes));
		info.vl_high_limit = 0;
		if (is_switch(n))
			info.hoq_life = HOQ_LIFE;
	}
	set_port(m, node, port, &info);
}

static void set_switch(struct manager *m, uint32_t node)
{
	struct mad_switch_info info = m->nodes[node].switch_info;
	uint8_t data[MAD_SMP_DATA_BYTES] = { 0 };
	uint16_t top = 0;

	for (uint32_t i = 0; i < m->lid_count; i++)
		top = MAX(top, m->lids[i].lid);
	m->nodes[node].top = top;
	info.linear_fdb_top = top;
	info.port_state_change = 1; /* clears it */
	info.life_time_value = SUBNET_TIMEOUT;
	if (mad_switch_info_pack(&info, data))
		manager_set(m, node, MAD_ATTR_SWITCH_INFO, 0, 0, data, NULL);
}

/* Adapters first, then switches, each by their GUIDs: a host has the same LID whichever way it was
 * found. */
static int by_guid(const void *a, const void *b, void *arg)
{
	const struct manager_node *nodes = arg;
	const struct mad_node_info *x = &nodes[*(const uint32_t *)a].info;
	const struct mad_node_info *y = &nodes[*(const uint32_t *)b].info;

	if (x->node_type != y->node_type)
		return x->node_type < y->node_type ? -1 : 1;
	return x->node_guid < y->node_guid ? -1 : x->node_guid > y->node_guid;
}

static void give_lids(struct manager *m, struct manager_node *n)
{
	if (is_switch(n))
		n->lid = lid_for(m, n->ports[0].guid, n->lid);
	for (unsigned p = 1; !is_switch(n) && p <= n->info.num_ports; p++)
		if (n->ports[p].known)
			n->ports[p].info.lid = lid_for(m, n->ports[p].guid, n->ports[p].info.lid);
}

void manager_assign_lids(struct manager *m)
{
	uint32_t *order = malloc((m->node_count + 1) * sizeof(*order));

	if (!order) {
		m->report.unanswered++;
		return;
	}
	for (uint32_t i = 0; i < m->node_count; i++)
		order[i] = i;
	qsort_r(order, m->node_count, sizeof(*order), by_guid, m->nodes);
	for (uint32_t i = 0; i < m->node_count; i++)
		give_lids(m, &m->nodes[order[i]]);
	free(order);
	m->sm_lid = lid_of(m, m->config.port_guid);
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		if (is_switch(n))
			set_switch(m, i);
		for (unsigned p = 0; p <= n->info.num_ports; p++)
			if (n->ports[p].known && ((!p && is_switch(n)) || n->ports[p].peer != MANAGER_NONE))
				set_properties(m, i, (uint8_t)p);
	}
}

void manager_set_states(struct manager *m, uint8_t state)
{
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned p = 1; p <= n->info.num_ports; p++) {
			struct mad_port_info info = n->ports[p].info;

			/* Only from the state before it: active ports stay as they are. */
			if (!n->ports[p].known || n->ports[p].peer == MANAGER_NONE ||
			    info.port_state != state - 1)
				continue;
			info.port_state = state;
			info.client_reregister = 0;
			set_port(m, i, (uint8_t)p, &info);
		}
	}
}

/* ---- what switches and adapters have got already ---- */

struct manager_loaded *manager_loaded_find(struct manager *m, uint64_t guid)
{
	struct manager_loaded *l;

	for (uint32_t i = 0; i < m->loaded_count; i++)
		if (m->loaded[i].guid == guid)
			return &m->loaded[i];
	l = realloc(m->loaded, (m->loaded_count + 1) * sizeof(*l));
	if (!l)
		return NULL;
	m->loaded = l;
	l += m->loaded_count++;
	*l = (struct manager_loaded){ .guid = guid };
	return l;
}

void manager_loaded_free(struct manager *m)
{
	for (uint32_t i = 0; i < m->loaded_count; i++) {
		free(m->loaded[i].forwarding);
		free(m->loaded[i].multicast);
	}
	free(m->loaded);
	m->loaded = NULL;
	m->loaded_count = 0;
}

/* A switch whose ports all were in INIT was started anew, and has none of the tables. */
static bool was_restarted(const struct manager_node *n)
{
	for (unsigned p = 1; p <= n->info.num_ports; p++)
		if (n->ports[p].known && n->ports[p].info.port_state > MAD_PORT_INIT)
			return false;
	return true;
}

static void loaded_check(struct manager *m, const struct manager_node *n, struct manager_loaded *l)
{
	if (!was_restarted(n))
		return;
	free(l->forwarding);
	free(l->multicast);
	*l = (struct manager_loaded){ .guid = l->guid };
}

/* ---- forwarding ---- */

/* Sends the blocks that differ from those that the switch has. */
static int load_forwarding(struct manager *m, uint32_t node, struct manager_loaded *l)
{
	const struct manager_node *n = &m->nodes[node];
	const unsigned blocks = n->top / BLOCK + 1u;
	uint8_t *copy = malloc((size_t)blocks * BLOCK);

	if (!copy)
		return -ENOMEM;
	memset(copy, MAD_FORWARDING_NONE, (size_t)blocks * BLOCK);
	memcpy(copy, n->forwarding, n->top + 1u);
	for (unsigned b = 0; b < blocks; b++) {
		const bool known = l->forwarding && (b + 1) * BLOCK <= l->top + 1u;

		if (!known || memcmp(copy + b * BLOCK, l->forwarding + b * BLOCK, BLOCK) != 0)
			manager_set(m, node, MAD_ATTR_LINEAR_FORWARDING, b, 0, copy + b * BLOCK, NULL);
	}
	free(l->forwarding);
	l->forwarding = copy;
	l->top = (uint16_t)(blocks * BLOCK - 1);
	return 0;
}

/* ---- lanes ---- */

static void load_arbitration(struct manager *m, uint32_t node, uint8_t port)
{
	const unsigned cap = m->nodes[node].ports[port].info.vl_arbitration_low_cap;
	struct mad_vl_arbitration low = { 0 };
	uint8_t data[MAD_SMP_DATA_BYTES] = { 0 };

	for (unsigned i = 0; i < m->config.lanes && i < MIN(cap, ARRAY_SIZE(low.entry)); i++)
		low.entry[i] = (struct mad_vl_weight){ .vl = (uint8_t)i, .weight = 64 };
	if (cap && mad_vl_arbitration_pack(&low, data))
		manager_set(m, node, MAD_ATTR_VL_ARBITRATION,
			    MAD_VL_ARBITRATION_LOW_FIRST << 16 | port, port, data, NULL);
}

static void load_mapping(struct manager *m, uint32_t node, uint8_t in, uint8_t out)
{
	struct mad_sl_to_vl map;
	uint8_t data[MAD_SMP_DATA_BYTES] = { 0 };

	for (unsigned sl = 0; sl < ARRAY_SIZE(map.vl); sl++)
		map.vl[sl] = (uint8_t)(sl % m->config.lanes);
	if (mad_sl_to_vl_pack(&map, data))
		manager_set(m, node, MAD_ATTR_SL_TO_VL,
			    is_switch(&m->nodes[node]) ? (uint32_t)in << 8 | out : 0, out, data, NULL);
}

static void load_lanes(struct manager *m, uint32_t node)
{
	const struct manager_node *n = &m->nodes[node];

	for (unsigned out = 1; out <= n->info.num_ports; out++) {
		if (!n->ports[out].known || n->ports[out].peer == MANAGER_NONE)
			continue;
		load_arbitration(m, node, (uint8_t)out);
		if (!is_switch(n)) {
			load_mapping(m, node, 0, (uint8_t)out);
			continue;
		}
		for (unsigned in = 0; in <= n->info.num_ports; in++)
			if (!in || (in != out && n->ports[in].peer != MANAGER_NONE))
				load_mapping(m, node, (uint8_t)in, (uint8_t)out);
	}
}

int manager_load_tables(struct manager *m)
{
	int ret = manager_route(m);

	for (uint32_t i = 0; !ret && i < m->node_count; i++) {
		struct manager_node *n = &m->nodes[i];
		struct manager_loaded *l = manager_loaded_find(m, n->info.node_guid);

		if (!l)
			return -ENOMEM;
		loaded_check(m, n, l);
		if (is_switch(n) && n->forwarding)
			ret = load_forwarding(m, i, l);
		if (!l->lanes)
			load_lanes(m, i);
		l->lanes = true;
	}
	return ret;
}
