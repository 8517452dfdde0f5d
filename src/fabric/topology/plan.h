/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A generated subnet before the ports are numbered: nodes, and which are joined. A family plans its
 * switches, then its hosts, then the links of switches; topology_plan_build() gives each node as many
 * ports as it has links, in this order. The first fault is kept, and later calls do nothing, so families
 * need not look at each. Private to the folder.
 */
#ifndef FABRIC_TOPOLOGY_PLAN_H
#define FABRIC_TOPOLOGY_PLAN_H

#include "fabric/topology/topology.h"

struct topology_plan_node {
	char id[32];
	enum topology_kind kind;
	unsigned ports;
};

/* What a text asks for; -1: a key is not given. */
struct topology_request {
	unsigned size[3], sizes;
	int hosts, spines, links, cores, groups;
	struct topology_link link; /* width, speed, delay, bit error rate of all links */
};

struct topology_plan {
	const struct topology_request *request;
	struct topology_plan_node *nodes;
	uint32_t (*links)[2];
	uint32_t node_count, link_count, host_count;
	int err;
	char *why;
	size_t why_bytes;
};

/* Whether that many nodes can be; otherwise the fault is kept. Before anything is planned. */
bool topology_plan_expect(struct topology_plan *p, uint64_t switches, uint64_t hosts);
/* The index of a new switch. */
uint32_t topology_plan_switch(struct topology_plan *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void topology_plan_hosts(struct topology_plan *p, uint32_t at, unsigned count);
void topology_plan_link(struct topology_plan *p, uint32_t a, uint32_t b);

int topology_plan_build(const struct topology_plan *p, struct topology *t);
void topology_plan_free(struct topology_plan *p);

/* ---- families: they plan what the request says ---- */

/* single, line, ring, mesh and torus are grids, with or without joined edges. */
void topology_plan_single(struct topology_plan *p);
void topology_plan_mesh(struct topology_plan *p);
void topology_plan_torus(struct topology_plan *p);
void topology_plan_fat_tree(struct topology_plan *p);
void topology_plan_dragonfly(struct topology_plan *p);

#endif
