/* SPDX-License-Identifier: BSD-2-Clause */
/* From the description to the engine; see build.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

#define MTU 4096

static int add_node(struct serve *s, uint32_t i)
{
	const struct topology_node *n = &s->topology->nodes[i];
	const struct fabric_switch properties = {
		.latency_ps = s->set.switch_latency_ns * 1000,
		.store_and_forward = s->set.store_and_forward,
		.virtual_output_queues = s->set.virtual_output_queues,
	};
	const bool is_switch = n->kind == TOPOLOGY_SWITCH;
	int ret = fabric_add_node(s->fabric, is_switch ? FABRIC_SWITCH : FABRIC_HOST, n->port_count);

	/* The agents count on equal numbers. */
	if (ret >= 0 && (uint32_t)ret != i)
		return -EPROTO;
	if (ret >= 0 && is_switch)
		ret = fabric_set_switch(s->fabric, i, &properties);
	if (ret < 0)
		log_error("node %s cannot be made: %s", n->id, strerror(-ret));
	return ret < 0 ? ret : 0;
}

static int add_link(struct serve *s, const struct topology_link *l)
{
	const struct fabric_link link = {
		.bps = topology_link_bit_rate(l), .delay_ps = l->delay_ns * 1000,
		.bit_error_rate = l->bit_error_rate, .mtu = MTU, .lanes = s->set.lanes,
		.buffer_bytes = s->set.buffer_bytes,
	};
	const struct topology_node *nodes = s->topology->nodes;
	int ret = fabric_add_link(s->fabric, l->end[0].node, l->end[0].port, l->end[1].node,
				  l->end[1].port, &link);

	if (ret)
		log_error("the link from %s port %u to %s port %u cannot be made: %s",
			  nodes[l->end[0].node].id, l->end[0].port, nodes[l->end[1].node].id,
			  l->end[1].port, strerror(-ret));
	return ret;
}

static int add_hosts(struct serve *s)
{
	const struct topology *t = s->topology;
	uint32_t count = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		if (t->nodes[i].kind == TOPOLOGY_HCA)
			count += t->nodes[i].port_count;
	s->host_of_node = malloc((t->node_count ? t->node_count : 1) * sizeof(*s->host_of_node));
	s->hosts = calloc(count ? count : 1, sizeof(*s->hosts));
	if (!s->host_of_node || !s->hosts)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->node_count; i++) {
		s->host_of_node[i] = t->nodes[i].kind == TOPOLOGY_HCA ? s->host_count : UINT32_MAX;
		for (unsigned p = 1; t->nodes[i].kind == TOPOLOGY_HCA && p <= t->nodes[i].port_count; p++) {
			struct serve_host *h = &s->hosts[s->host_count++];

			h->node = i;
			h->port = (uint8_t)p;
			list_init(&h->clients);
			list_init(&h->waiting);
			list_init(&h->in_writable);
		}
	}
	return 0;
}

int serve_build(struct serve *s, const struct fabric_ops *ops)
{
	int ret = fabric_open(&(struct fabric_limits){ 0 }, ops, s->set.seed, &s->fabric);

	if (!ret)
		ret = add_hosts(s);
	if (ret) {
		log_error("no memory for the fabric");
		return ret;
	}
	for (uint32_t i = 0; !ret && i < s->topology->node_count; i++)
		ret = add_node(s, i);
	for (uint32_t i = 0; !ret && i < s->topology->link_count; i++)
		ret = add_link(s, &s->topology->links[i]);
	return ret;
}

void serve_build_free(struct serve *s)
{
	if (s->fabric)
		fabric_close(s->fabric);
	free(s->hosts);
	free(s->host_of_node);
}
