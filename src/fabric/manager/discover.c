/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the nodes of the subnet by directed route, breadth first from the manager's own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"

static void on_node(struct manager *m, const struct manager_request *r, const struct mad_smp *answer);

void manager_nodes_free(struct manager *m)
{
	for (uint32_t i = 0; i < m->node_count; i++) {
		free(m->nodes[i].ports);
		free(m->nodes[i].forwarding);
	}
	free(m->nodes);
	m->nodes = NULL;
	m->node_count = m->node_room = 0;
}

uint32_t manager_node_find(const struct manager *m, uint64_t guid)
{
	for (uint32_t i = 0; i < m->node_count; i++)
		if (m->nodes[i].info.node_guid == guid)
			return i;
	return MANAGER_NONE;
}

uint16_t manager_lid(const struct manager_node *n, uint8_t port)
{
	return n->info.node_type == MAD_NODE_SWITCH ? n->lid : n->ports[port].info.lid;
}

static uint8_t first_end_port(const struct manager_node *n)
{
	return n->info.node_type == MAD_NODE_SWITCH ? 0 : 1;
}

static uint8_t last_end_port(const struct manager_node *n)
{
	return n->info.node_type == MAD_NODE_SWITCH ? 0 : n->info.num_ports;
}

bool manager_port_by_lid(const struct manager *m, uint16_t lid, uint32_t *node, uint8_t *port)
{
	for (uint32_t i = 0; lid && i < m->node_count; i++)
		for (unsigned p = first_end_port(&m->nodes[i]); p <= last_end_port(&m->nodes[i]); p++) {
			if (manager_lid(&m->nodes[i], (uint8_t)p) != lid)
				continue;
			*node = i;
			*port = (uint8_t)p;
			return true;
		}
	return false;
}

bool manager_port_by_guid(const struct manager *m, uint64_t guid, uint32_t *node, uint8_t *port)
{
	for (uint32_t i = 0; guid && i < m->node_count; i++)
		for (unsigned p = first_end_port(&m->nodes[i]); p <= last_end_port(&m->nodes[i]); p++) {
			if (m->nodes[i].ports[p].guid != guid)
				continue;
			*node = i;
			*port = (uint8_t)p;
			return true;
		}
	return false;
}

/* ---- a node ---- */

static uint32_t node_add(struct manager *m, const struct manager_request *r,
			 const struct mad_node_info *info)
{
	struct manager_node *n;

	if (m->node_count >= MANAGER_NODES_MAX || info->num_ports > TOPOLOGY_PORTS_MAX)
		return MANAGER_NONE;
	/* Requests of the sweep have indexes, so the array may move. */
	if (m->node_count == m->node_room) {
		uint32_t room = m->node_room ? 2 * m->node_room : 64;

		n = realloc(m->nodes, room * sizeof(*n));
		if (!n)
			return MANAGER_NONE;
		m->nodes = n;
		m->node_room = room;
	}
	n = &m->nodes[m->node_count];
	*n = (struct manager_node){ .info = *info, .hops = r->smp.hop_count };
	n->ports = calloc(info->num_ports + 1u, sizeof(*n->ports));
	if (!n->ports)
		return MANAGER_NONE;
	memcpy(n->path, r->smp.initial_path, sizeof(n->path));
	for (unsigned i = 0; i <= info->num_ports; i++)
		n->ports[i].peer = MANAGER_NONE;
	if (info->node_type == MAD_NODE_SWITCH)
		m->report.switches++;
	else
		m->report.hosts++;
	return m->node_count++;
}

static void join_ports(struct manager *m, uint32_t a, uint8_t port_a, uint32_t b, uint8_t port_b)
{
	struct manager_port *x, *y;

	if (port_a > m->nodes[a].info.num_ports || port_b > m->nodes[b].info.num_ports || !port_a || !port_b)
		return;
	x = &m->nodes[a].ports[port_a];
	y = &m->nodes[b].ports[port_b];
	if (x->peer == MANAGER_NONE && y->peer == MANAGER_NONE)
		m->report.links++;
	x->peer = b;
	x->peer_port = port_b;
	y->peer = a;
	y->peer_port = port_a;
}

static void on_description(struct manager *m, const struct manager_request *r,
			   const struct mad_smp *answer)
{
	if (answer)
		mad_node_description_unpack(answer->data, &m->nodes[r->node].description);
}

static void on_switch(struct manager *m, const struct manager_request *r, const struct mad_smp *answer)
{
	if (answer)
		mad_switch_info_unpack(answer->data, &m->nodes[r->node].switch_info);
}

/* The node behind the port is asked who it is. */
static void look_behind(struct manager *m, uint32_t node, uint8_t port)
{
	const struct manager_node *n = &m->nodes[node];
	uint8_t path[MAD_SMP_PATH_BYTES];

	if (n->hops + 1 >= MAD_SMP_PATH_BYTES)
		return;
	memcpy(path, n->path, sizeof(path));
	path[n->hops + 1] = port;
	manager_get(m, node, path, (uint8_t)(n->hops + 1), MAD_ATTR_NODE_INFO, 0, port, on_node);
}

static void on_port(struct manager *m, const struct manager_request *r, const struct mad_smp *answer)
{
	struct manager_node *n = &m->nodes[r->node];
	struct manager_port *p = &n->ports[r->port];

	if (!answer)
		return;
	mad_port_info_unpack(answer->data, &p->info);
	p->known = true;
	if (!r->port) {
		n->lid = p->info.lid;
		return;
	}
	/* An adapter forwards nothing; only the manager's own leads on. */
	if (p->info.port_state > MAD_PORT_DOWN && p->peer == MANAGER_NONE &&
	    (n->info.node_type == MAD_NODE_SWITCH || !r->node))
		look_behind(m, r->node, r->port);
}

static void ask_port(struct manager *m, uint32_t node, uint8_t port)
{
	const struct manager_node *n = &m->nodes[node];

	manager_get(m, node, n->path, n->hops, MAD_ATTR_PORT_INFO, port, port, on_port);
}

static void ask_all(struct manager *m, uint32_t node)
{
	const struct manager_node *n = &m->nodes[node];

	manager_get(m, node, n->path, n->hops, MAD_ATTR_NODE_DESCRIPTION, 0, 0, on_description);
	if (n->info.node_type == MAD_NODE_SWITCH) {
		manager_get(m, node, n->path, n->hops, MAD_ATTR_SWITCH_INFO, 0, 0, on_switch);
		ask_port(m, node, 0);
	}
	for (unsigned p = 1; p <= n->info.num_ports; p++)
		if (n->info.node_type == MAD_NODE_SWITCH || p == n->info.local_port_num)
			ask_port(m, node, (uint8_t)p);
}

/* The request has come to this port of an adapter. */
static void reach_port(struct manager_port *p, const struct manager_request *r, const struct mad_node_info *info)
{
	p->guid = info->port_guid;
	if (p->reached)
		return;
	p->reached = true;
	p->hops = r->smp.hop_count;
	memcpy(p->path, r->smp.initial_path, sizeof(p->path));
}

static void on_node(struct manager *m, const struct manager_request *r, const struct mad_smp *answer)
{
	struct mad_node_info info;
	uint32_t node;
	bool fresh;

	if (!answer)
		return;
	mad_node_info_unpack(answer->data, &info);
	node = manager_node_find(m, info.node_guid);
	fresh = node == MANAGER_NONE;
	if (fresh)
		node = node_add(m, r, &info);
	if (node == MANAGER_NONE) {
		m->report.unanswered++;
		return;
	}
	if (r->node != MANAGER_NONE)
		join_ports(m, r->node, r->port, node, info.local_port_num);
	if (info.node_type == MAD_NODE_SWITCH)
		m->nodes[node].ports[0].guid = info.port_guid;
	else if (info.local_port_num && info.local_port_num <= info.num_ports)
		reach_port(&m->nodes[node].ports[info.local_port_num], r, &info);
	if (fresh)
		ask_all(m, node);
	else if (info.node_type != MAD_NODE_SWITCH && info.local_port_num <= info.num_ports &&
		 !m->nodes[node].ports[info.local_port_num].known)
		ask_port(m, node, info.local_port_num); /* another port of an adapter */
}

void manager_discover(struct manager *m)
{
	static const uint8_t self[MAD_SMP_PATH_BYTES];

	manager_nodes_free(m);
	manager_get(m, MANAGER_NONE, self, 0, MAD_ATTR_NODE_INFO, 0, 0, on_node);
}

/* ---- has anything changed? ---- */

static void on_light(struct manager *m, const struct manager_request *r, const struct mad_smp *answer)
{
	struct mad_switch_info info;

	if (answer)
		mad_switch_info_unpack(answer->data, &info);
	if (!answer || info.port_state_change)
		m->sweep_wanted = true;
}

void manager_light(struct manager *m)
{
	for (uint32_t i = 0; i < m->node_count; i++)
		if (m->nodes[i].info.node_type == MAD_NODE_SWITCH)
			manager_get(m, i, m->nodes[i].path, m->nodes[i].hops, MAD_ATTR_SWITCH_INFO, 0, 0,
				    on_light);
}
