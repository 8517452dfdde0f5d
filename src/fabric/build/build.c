/* SPDX-License-Identifier: BSD-2-Clause */
/* From the description to the engine; see build.h. */
#define LOG_ROOM "fabric"
#include "fabric/build/build.h"

#include <errno.h>
#include <string.h>

#include "util/log.h"

static int add_node(const struct topology *t, const struct fabric_build *b, struct fabric *f, uint32_t i)
{
	const struct topology_node *n = &t->nodes[i];
	const bool is_switch = n->kind == TOPOLOGY_SWITCH;
	int ret = fabric_add_node(f, is_switch ? FABRIC_SWITCH : FABRIC_HOST, n->port_count);

	if (ret >= 0 && (uint32_t)ret != i)
		ret = -EEXIST; /* the engine had nodes before */
	if (ret >= 0)
		ret = is_switch ? fabric_set_switch(f, i, &b->switches) : 0;
	if (ret)
		log_error("node %s cannot be made: %s", n->id, strerror(-ret));
	return ret;
}

static int add_link(const struct topology *t, const struct fabric_build *b, struct fabric *f,
		    const struct topology_link *l)
{
	const struct fabric_link link = {
		.bps = topology_link_bit_rate(l), .delay_ps = l->delay_ns * 1000,
		.bit_error_rate = l->bit_error_rate, .mtu = b->mtu, .lanes = b->lanes,
		.buffer_bytes = b->buffer_bytes,
	};
	int ret = fabric_add_link(f, l->end[0].node, l->end[0].port, l->end[1].node, l->end[1].port, &link);

	if (ret)
		log_error("the link from %s port %u to %s port %u cannot be made: %s",
			  t->nodes[l->end[0].node].id, l->end[0].port, t->nodes[l->end[1].node].id,
			  l->end[1].port, strerror(-ret));
	return ret;
}

int fabric_build(const struct topology *t, const struct fabric_build *b, struct fabric *f)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < t->node_count; i++)
		ret = add_node(t, b, f, i);
	for (uint32_t i = 0; !ret && i < t->link_count; i++)
		ret = add_link(t, b, f, &t->links[i]);
	return ret;
}
