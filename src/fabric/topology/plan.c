/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects nodes and links of a generated subnet, then numbers their ports. See plan.h. */
#include "fabric/topology/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/topology/say.h"

static void fail(struct topology_plan *p, int err)
{
	p->err = topology_say(p->why, p->why_bytes, err, "no memory for the subnet");
}

bool topology_plan_expect(struct topology_plan *p, uint64_t switches, uint64_t hosts)
{
	if (switches + hosts > TOPOLOGY_NODES_MAX) {
		p->err = topology_say(p->why, p->why_bytes, -ENOSPC,
				      "%llu switches and %llu hosts are more than %d nodes",
				      (unsigned long long)switches, (unsigned long long)hosts,
				      TOPOLOGY_NODES_MAX);
		return false;
	}
	p->nodes = calloc(switches + hosts, sizeof(*p->nodes));
	p->links = malloc(TOPOLOGY_LINKS_MAX * sizeof(*p->links));
	if (!p->nodes || !p->links)
		fail(p, -ENOMEM);
	return !p->err;
}

uint32_t topology_plan_switch(struct topology_plan *p, const char *format, ...)
{
	struct topology_plan_node *n = &p->nodes[p->node_count];
	va_list args;

	n->kind = TOPOLOGY_SWITCH;
	va_start(args, format);
	vsnprintf(n->id, sizeof(n->id), format, args);
	va_end(args);
	return p->node_count++;
}

void topology_plan_hosts(struct topology_plan *p, uint32_t at, unsigned count)
{
	for (; count && !p->err; count--) {
		struct topology_plan_node *n = &p->nodes[p->node_count];

		n->kind = TOPOLOGY_HCA;
		snprintf(n->id, sizeof(n->id), "host-%u", ++p->host_count);
		topology_plan_link(p, at, p->node_count++);
	}
}

void topology_plan_link(struct topology_plan *p, uint32_t a, uint32_t b)
{
	const uint32_t ends[2] = { a, b };

	if (p->err)
		return;
	if (p->link_count >= TOPOLOGY_LINKS_MAX) {
		p->err = topology_say(p->why, p->why_bytes, -ENOSPC, "more than %d links", TOPOLOGY_LINKS_MAX);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct topology_plan_node *n = &p->nodes[ends[i]];

		if (++n->ports > TOPOLOGY_PORTS_MAX) {
			p->err = topology_say(p->why, p->why_bytes, -ENOSPC, "'%s' would have more than %d ports",
					      n->id, TOPOLOGY_PORTS_MAX);
			return;
		}
		p->links[p->link_count][i] = ends[i];
	}
	p->link_count++;
}

/* ---- building ---- */

static int add_nodes(const struct topology_plan *p, struct topology *t)
{
	for (uint32_t i = 0; i < p->node_count; i++) {
		const struct topology_plan_node *from = &p->nodes[i];
		struct topology_node n = { .kind = from->kind, .port_count = (uint8_t)from->ports };
		uint32_t node;
		int err;

		snprintf(n.id, sizeof(n.id), "%s", from->id);
		err = topology_add_node(t, &n, &node, p->why, p->why_bytes);
		if (err)
			return err;
	}
	return 0;
}

static int add_links(const struct topology_plan *p, struct topology *t, uint8_t *used)
{
	for (uint32_t i = 0; i < p->link_count; i++) {
		struct topology_link l = p->request->link;
		int err;

		for (unsigned k = 0; k < 2; k++) {
			uint32_t node = p->links[i][k];

			l.end[k] = (struct topology_end){ node, ++used[node] };
		}
		err = topology_add_link(t, &l, p->why, p->why_bytes);
		if (err)
			return err;
	}
	return 0;
}

int topology_plan_build(const struct topology_plan *p, struct topology *t)
{
	uint8_t *used = calloc(p->node_count + 1U, 1);
	int err;

	if (!used)
		return topology_say(p->why, p->why_bytes, -ENOMEM, "no memory for the subnet");
	err = add_nodes(p, t);
	if (!err)
		err = add_links(p, t, used);
	free(used);
	return err;
}

void topology_plan_free(struct topology_plan *p)
{
	free(p->nodes);
	free(p->links);
}
