/* SPDX-License-Identifier: BSD-2-Clause */
/* Forwarding tables of the subnet as it was found, by the engines of fabric/routing. */
#define LOG_ROOM "manager"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "fabric/routing/routing.h"
#include "util/container_of.h"
#include "util/log.h"

/* The node with index i has index i in the description, too. Its GUIDs are not those of the subnet: paths do
 * not depend on them, and it would want those of all ports. */
static int add_node(struct topology *t, const struct manager_node *n)
{
	struct topology_node to = {
		.kind = n->info.node_type == MAD_NODE_SWITCH ? TOPOLOGY_SWITCH : TOPOLOGY_HCA,
		.port_count = n->info.num_ports,
	};
	char why[160];
	uint32_t node;
	int ret;

	snprintf(to.id, sizeof(to.id), "%016llx", (unsigned long long)n->info.node_guid);
	ret = topology_add_node(t, &to, &node, why, sizeof(why));
	if (ret)
		log_error("a node does not fit into the description of the subnet: %s", why);
	return ret;
}

static int add_links(struct topology *t, const struct manager *m, uint32_t node)
{
	const struct manager_node *n = &m->nodes[node];
	int ret = 0;

	for (unsigned p = 1; p <= n->info.num_ports && !ret; p++) {
		const struct manager_port *port = &n->ports[p];
		const struct topology_link link = {
			.end = { { node, (uint8_t)p }, { port->peer, port->peer_port } },
			.width = TOPOLOGY_4X,
			.speed = TOPOLOGY_EDR,
		};

		/* Once for both ends. */
		if (port->peer == MANAGER_NONE || port->peer < node ||
		    (port->peer == node && port->peer_port < p))
			continue;
		ret = topology_add_link(t, &link, NULL, 0);
	}
	return ret;
}

static int describe(const struct manager *m, struct topology **out)
{
	struct topology *t = topology_new();
	int ret = t ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < m->node_count && !ret; i++)
		ret = add_node(t, &m->nodes[i]);
	for (uint32_t i = 0; i < m->node_count && !ret; i++)
		ret = add_links(t, m, i);
	if (ret)
		topology_free(t);
	else
		*out = t;
	return ret;
}

static int compute(const struct manager *m, const struct topology *t, struct routing **r)
{
	uint32_t root = MANAGER_NONE;

	if (m->config.routing == MANAGER_MIN_HOP)
		return routing_min_hop(t, r);
	for (uint32_t i = 0; m->config.root && i < m->node_count; i++)
		if (!strncmp(m->nodes[i].description.text, m->config.root,
			     sizeof(m->nodes[i].description.text)))
			root = i;
	if (m->config.root && root == MANAGER_NONE)
		log_warn("no switch is called '%s': a root of up/down routing is chosen", m->config.root);
	return routing_up_down(t, &root, root == MANAGER_NONE ? 0 : 1, r);
}

static int take(struct manager *m, const struct routing *r, uint32_t node)
{
	struct manager_node *n = &m->nodes[node];

	free(n->forwarding);
	n->forwarding = malloc(n->top + 1u);
	if (!n->forwarding)
		return -ENOMEM;
	memset(n->forwarding, MAD_FORWARDING_NONE, n->top + 1u);
	for (uint32_t i = 0; i < r->target_count; i++) {
		const struct routing_target *to = &r->targets[i];
		const uint16_t lid = manager_lid(&m->nodes[to->node], to->port);

		if (lid && lid <= n->top)
			n->forwarding[lid] = r->ports[node][i];
	}
	return 0;
}

int manager_route(struct manager *m)
{
	struct topology *t;
	struct routing *r = NULL;
	int ret = describe(m, &t);

	if (ret)
		return ret;
	ret = compute(m, t, &r);
	for (uint32_t i = 0; i < m->node_count && !ret; i++)
		if (m->nodes[i].info.node_type == MAD_NODE_SWITCH)
			ret = take(m, r, i);
	if (r)
		routing_tables_free(r);
	topology_free(t);
	return ret;
}
