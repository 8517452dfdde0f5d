/* SPDX-License-Identifier: BSD-2-Clause */
/* Fat trees of two and three levels. See plan.h, and generate.h for their sizes. */
#include <errno.h>

#include "fabric/topology/plan.h"
#include "fabric/topology/say.h"
#include "util/container_of.h"

struct tree {
	unsigned pods, leaves, hosts, spines, links, cores; /* leaves and spines: of a pod; 1 pod: no cores */
	uint32_t first_spine, first_core;
};

static uint32_t leaf(const struct tree *tree, unsigned pod, unsigned i)
{
	return pod * tree->leaves + i;
}

static uint32_t spine(const struct tree *tree, unsigned pod, unsigned i)
{
	return tree->first_spine + pod * tree->spines + i;
}

static void plan_level(struct topology_plan *p, const char *name, unsigned pods, unsigned count)
{
	for (unsigned pod = 0; pod < pods; pod++)
		for (unsigned i = 0; i < count; i++) {
			if (p->request->sizes == 3)
				topology_plan_switch(p, "%s-%u-%u", name, pod + 1, i + 1);
			else
				topology_plan_switch(p, "%s-%u", name, i + 1);
		}
}

static void link_pod(struct topology_plan *p, const struct tree *tree, unsigned pod)
{
	for (unsigned l = 0; l < tree->leaves && !p->err; l++)
		for (unsigned again = 0; again < tree->links; again++)
			for (unsigned s = 0; s < tree->spines; s++)
				topology_plan_link(p, leaf(tree, pod, l), spine(tree, pod, s));
}

static void link_cores(struct topology_plan *p, const struct tree *tree, unsigned pod)
{
	unsigned each = tree->cores / tree->spines;

	for (unsigned s = 0; s < tree->spines; s++)
		for (unsigned c = 0; c < each; c++)
			topology_plan_link(p, spine(tree, pod, s), tree->first_core + s * each + c);
}

static int read_request(struct topology_plan *p, struct tree *tree)
{
	const struct topology_request *r = p->request;
	const unsigned *size = r->size + (r->sizes == 3);

	tree->pods = r->sizes == 3 ? r->size[0] : 1;
	tree->leaves = size[0];
	tree->hosts = size[1];
	tree->spines = r->spines < 0 ? tree->hosts : (unsigned)r->spines;
	tree->links = r->links < 0 ? MAX(tree->hosts / tree->spines, 1U) : (unsigned)r->links;
	tree->first_spine = tree->pods * tree->leaves;
	tree->first_core = tree->first_spine + tree->pods * tree->spines;
	if (r->sizes != 3) {
		tree->cores = 0;
		if (r->cores >= 0)
			return topology_say(p->why, p->why_bytes, -EINVAL,
					    "cores: a fat tree of two levels has none; right is fat-tree:PxLxH");
		return 0;
	}
	tree->cores = r->cores < 0 ? tree->spines * tree->leaves : (unsigned)r->cores;
	if (!tree->cores || tree->cores % tree->spines)
		return topology_say(p->why, p->why_bytes, -EINVAL,
				    "cores=%u is no multiple of the %u spines of a pod", tree->cores, tree->spines);
	return 0;
}

void topology_plan_fat_tree(struct topology_plan *p)
{
	struct tree tree;

	p->err = read_request(p, &tree);
	if (p->err ||
	    !topology_plan_expect(p, (uint64_t)tree.pods * (tree.leaves + tree.spines) + tree.cores,
				  (uint64_t)tree.pods * tree.leaves * tree.hosts))
		return;
	plan_level(p, "leaf", tree.pods, tree.leaves);
	plan_level(p, "spine", tree.pods, tree.spines);
	for (unsigned i = 0; i < tree.cores; i++)
		topology_plan_switch(p, "core-%u", i + 1);
	for (uint32_t i = 0; i < tree.pods * tree.leaves; i++)
		topology_plan_hosts(p, i, tree.hosts);
	for (unsigned pod = 0; pod < tree.pods; pod++)
		link_pod(p, &tree, pod);
	for (unsigned pod = 0; pod < tree.pods && tree.cores; pod++)
		link_cores(p, &tree, pod);
}
