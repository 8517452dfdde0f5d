/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine and the hosts of a description; see build.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/build.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric/build/build.h"
#include "util/log.h"

#define MTU 4096

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
	const struct fabric_build b = {
		.switches = {
			.latency_ps = s->set.switch_latency_ns * 1000,
			.store_and_forward = s->set.store_and_forward,
			.virtual_output_queues = s->set.virtual_output_queues,
		},
		.mtu = MTU, .lanes = s->set.lanes, .buffer_bytes = s->set.buffer_bytes,
	};
	int ret = fabric_open(&(struct fabric_limits){ 0 }, ops, s->set.seed, &s->fabric);

	if (!ret)
		ret = add_hosts(s);
	if (ret) {
		log_error("no memory for the fabric");
		return ret;
	}
	return fabric_build(s->topology, &b, s->fabric);
}

void serve_build_free(struct serve *s)
{
	if (s->fabric)
		fabric_close(s->fabric);
	free(s->hosts);
	free(s->host_of_node);
}
