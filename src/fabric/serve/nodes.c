/* SPDX-License-Identifier: BSD-2-Clause */
/* Agents of the nodes; see nodes.h. */
#include "fabric/serve/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/agent/agent.h"
#include "fabric/serve/mads.h"
#include "fabric/serve/manager.h"
#include "fabric/serve/datagram.h"
#include "fabric/serve/out.h"
#include "fabric/serve/pool.h"
#include "fabric/serve/send.h"
#include "util/nearest.h"

struct serve_host *serve_nodes_host(struct serve *s, uint32_t node, uint8_t port)
{
	uint32_t first;

	if (node >= s->topology->node_count || !port || port > s->topology->nodes[node].port_count)
		return NULL;
	first = s->host_of_node[node];
	return first == UINT32_MAX ? NULL : &s->hosts[first + port - 1];
}

static void on_send(void *arg, uint32_t node, uint8_t port, const uint8_t mad[MAD_BYTES],
		    const struct agent_address *to)
{
	struct serve *s = arg;
	struct serve_buffer *b = serve_pool_take(&s->pool);
	struct ib_native n;

	if (!b) {
		s->mads_lost++;
		return;
	}
	serve_pool_head(b, PLUG_PACKET, 0, 0, serve_datagram_mad(mad, to, &n, b->body));
	serve_send_node(s, node, port, b, &n);
}

static void on_deliver(void *arg, uint32_t node, uint8_t port, const uint8_t mad[MAD_BYTES],
		       const struct agent_address *from)
{
	struct serve *s = arg;
	struct serve_host *h = serve_nodes_host(s, node, port);

	if (h && !(s->manager && serve_manager_deliver(s->manager, node, port, mad, from)))
		serve_mads_deliver(h, s, mad, from);
}

static void on_changed(void *arg, uint32_t node, uint8_t port, const struct plug_port *p)
{
	struct serve *s = arg;
	struct serve_host *h = serve_nodes_host(s, node, port);

	if (!h)
		return;
	h->state = *p;
	h->state.client_reregister = 0;
	list_for_each (c, &h->clients, struct serve_client, in_host) {
		c->reregister |= p->client_reregister;
		serve_out_port(c);
	}
}

int serve_nodes_open(struct serve *s)
{
	const struct fabric_agents_ops ops = {
		.send = on_send, .deliver = on_deliver, .changed = on_changed, .arg = s,
	};
	const struct fabric_agents_limits limits = { .lanes = s->set.lanes };
	int ret = fabric_agents_open(s->topology, s->fabric, &limits, &ops, &s->agents);

	for (uint32_t i = 0; !ret && i < s->host_count; i++)
		ret = fabric_agents_get_port(s->agents, s->hosts[i].node, s->hosts[i].port,
					     &s->hosts[i].state);
	return ret;
}

void serve_nodes_receive(struct serve *s, uint32_t node, uint8_t port, const uint8_t *packet,
			 const struct ib_native *n)
{
	struct agent_address from;

	if (serve_datagram_address(n, &from))
		fabric_agents_receive(s->agents, node, port, packet + serve_datagram_payload(n), &from, s->now_ns);
}

uint32_t serve_nodes_find(const struct serve *s, const char *name, unsigned *port)
{
	uint32_t node = topology_find_name(s->topology, name);
	const char *colon = strrchr(name, ':');
	char id[TOPOLOGY_NAME_MAX + 1];
	unsigned long number;
	char *end;

	*port = 0;
	if (node != TOPOLOGY_NONE || !colon || (size_t)(colon - name) >= sizeof(id))
		return node;
	number = strtoul(colon + 1, &end, 10);
	if (colon[1] < '0' || colon[1] > '9' || *end || !number || number > TOPOLOGY_PORTS_MAX)
		return TOPOLOGY_NONE;
	memcpy(id, name, (size_t)(colon - name));
	id[colon - name] = '\0';
	*port = (unsigned)number;
	return topology_find_name(s->topology, id);
}

const char *serve_nodes_hint(const struct serve *s, const char *name, int kind, char *buf, size_t size)
{
	struct nearest near = NEAREST(name);

	for (uint32_t i = 0; i < s->topology->node_count; i++)
		if (!kind || s->topology->nodes[i].kind == (enum topology_kind)kind)
			nearest_try(&near, s->topology->nodes[i].id);
	return nearest_hint(&near, buf, size);
}
