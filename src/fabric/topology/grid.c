/* SPDX-License-Identifier: BSD-2-Clause */
/* Grids of switches of one to three dimensions, open (line, mesh) or joined (ring, torus). See plan.h. */
#include "fabric/topology/plan.h"

/* The switch at a place of the grid; the last dimension is the innermost. */
static uint32_t index_of(const unsigned *size, const unsigned *at)
{
	return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

static void name_switch(struct topology_plan *p, const unsigned *at)
{
	if (p->request->sizes == 1)
		topology_plan_switch(p, "switch-%u", at[0] + 1);
	else if (p->request->sizes == 2)
		topology_plan_switch(p, "switch-%u-%u", at[0] + 1, at[1] + 1);
	else
		topology_plan_switch(p, "switch-%u-%u-%u", at[0] + 1, at[1] + 1, at[2] + 1);
}

/* The links of a switch to those that follow it in each dimension. */
static void link_switch(struct topology_plan *p, const unsigned *size, const unsigned *at, bool joined)
{
	for (unsigned d = 0; d < 3; d++) {
		unsigned next[3] = { at[0], at[1], at[2] };

		next[d]++;
		if (next[d] == size[d]) {
			/* The edges of two are neighbours already. */
			if (!joined || size[d] < 3)
				continue;
			next[d] = 0;
		}
		topology_plan_link(p, index_of(size, at), index_of(size, next));
	}
}

static void plan_grid(struct topology_plan *p, bool joined)
{
	const struct topology_request *r = p->request;
	unsigned size[3] = { r->size[0], r->sizes > 1 ? r->size[1] : 1, r->sizes > 2 ? r->size[2] : 1 };
	uint64_t switches = (uint64_t)size[0] * size[1] * size[2];
	unsigned hosts = r->hosts < 0 ? 1 : (unsigned)r->hosts;
	unsigned at[3];

	if (!topology_plan_expect(p, switches, switches * hosts))
		return;
	for (at[0] = 0; at[0] < size[0]; at[0]++)
		for (at[1] = 0; at[1] < size[1]; at[1]++)
			for (at[2] = 0; at[2] < size[2]; at[2]++)
				name_switch(p, at);
	for (uint32_t i = 0; i < switches; i++)
		topology_plan_hosts(p, i, hosts);
	for (at[0] = 0; at[0] < size[0]; at[0]++)
		for (at[1] = 0; at[1] < size[1]; at[1]++)
			for (at[2] = 0; at[2] < size[2]; at[2]++)
				link_switch(p, size, at, joined);
}

void topology_plan_mesh(struct topology_plan *p)
{
	plan_grid(p, false);
}

void topology_plan_torus(struct topology_plan *p)
{
	plan_grid(p, true);
}

void topology_plan_single(struct topology_plan *p)
{
	if (!topology_plan_expect(p, 1, p->request->size[0]))
		return;
	topology_plan_hosts(p, topology_plan_switch(p, "switch-1"), p->request->size[0]);
}
