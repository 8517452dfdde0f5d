/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dragonflies: groups of switches that are all joined, and links between any two groups. Kim, Dally, Scott
 * and Abts, "Technology-driven, highly-scalable dragonfly topology", 2008. See plan.h.
 */
#include <errno.h>

#include "fabric/topology/plan.h"
#include "fabric/topology/say.h"
#include "util/container_of.h"

static void link_group(struct topology_plan *p, uint32_t first, unsigned switches)
{
	for (unsigned a = 0; a < switches; a++)
		for (unsigned b = a + 1; b < switches; b++)
			topology_plan_link(p, first + a, first + b);
}

/*
 * The links that leave the groups, numbered in each from 0: `switches * each`. In a round of groups - 1,
 * link d - 1 leads to the group that is d further, where it is link groups - d - 1.
 */
static void link_groups(struct topology_plan *p, unsigned groups, unsigned switches, unsigned each)
{
	unsigned rounds = groups > 1 ? switches * each / (groups - 1) : 0;

	for (unsigned group = 0; group < groups && !p->err; group++)
		for (unsigned round = 0; round < rounds; round++)
			for (unsigned d = 1; group + d < groups; d++) {
				unsigned first = round * (groups - 1);
				unsigned here = (first + d - 1) / each, there = (first + groups - d - 1) / each;

				topology_plan_link(p, group * switches + here, (group + d) * switches + there);
			}
}

void topology_plan_dragonfly(struct topology_plan *p)
{
	const struct topology_request *r = p->request;
	unsigned switches = r->size[0], hosts = r->size[1], each = r->size[2];
	unsigned most = switches * each + 1, groups = r->groups < 0 ? most : (unsigned)r->groups;

	if (groups > most) {
		p->err = topology_say(p->why, p->why_bytes, -EINVAL,
				      "groups=%u: groups of %u switches with %u links each can be at most %u", groups,
				      switches, each, most);
		return;
	}
	if (!topology_plan_expect(p, (uint64_t)groups * switches, (uint64_t)groups * switches * hosts))
		return;
	for (unsigned group = 0; group < groups && !p->err; group++)
		for (unsigned i = 0; i < switches; i++)
			topology_plan_switch(p, "switch-%u-%u", group + 1, i + 1);
	for (uint32_t i = 0; i < groups * switches; i++)
		topology_plan_hosts(p, i, hosts);
	for (unsigned group = 0; group < groups && !p->err; group++)
		link_group(p, group * switches, switches);
	link_groups(p, groups, switches, each);
}
