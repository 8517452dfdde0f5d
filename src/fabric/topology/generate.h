/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of subnets of well-known families, from a short text:
 *
 *	FAMILY:SIZES[,KEY=VALUE]...
 *
 *	single:N          one switch with N hosts
 *	line:N            N switches in a row
 *	ring:N            N switches in a circle
 *	mesh:XxY[xZ]      a grid of switches
 *	torus:XxY[xZ]     a grid whose edges are joined
 *	fat-tree:LxH      two levels: L leaves with H hosts each, below spines. fat-tree:36x18 has
 *	                  648 hosts and is made of 36 leaves and 18 spines with 36 ports each
 *	fat-tree:PxLxH    three levels: P pods, each of L leaves with H hosts and of spines, below cores
 *	fat-tree:k=K      the same as fat-tree:Kx(K/2)x(K/2): three levels of switches with K ports, K even
 *	dragonfly:AxPxH   groups of A switches, each with P hosts, a link to each other switch of its group
 *	                  and H links to other groups
 *
 * Keys of all: width=1x|2x|4x|8x|12x (4x), speed=SDR|...|NDR (EDR), delay=NUMBER[ns|us|ms] (0),
 * ber=NUMBER (0); all links are equal. Further ones, with their defaults in parentheses:
 *
 *	hosts=N     of line, ring, mesh, torus: hosts of each switch (1)
 *	spines=N    of fat-tree: spines, of each pod if there are pods (H)
 *	links=N     of fat-tree: links from each leaf to each spine (H/spines, at least 1)
 *	cores=N     of fat-tree:PxLxH: cores, a multiple of the spines of a pod (spines*L); the first spine of
 *	            each pod has a link to each of the first cores/spines cores, and so on
 *	groups=N    of dragonfly (A*H + 1, which is the largest): with fewer, two groups have several links,
 *	            as many between any two; what is left over of the A*H links of a group is not there
 *
 * A dimension of two, and a ring of two, have one link there, not two. Names: host-1 and so on, in the
 * order of their switches; switch-1, in grids switch-X-Y[-Z], in a dragonfly switch-GROUP-N; leaf-1,
 * spine-1, core-1, with pods leaf-POD-N and spine-POD-N; all count from 1. A switch has as many ports as
 * links, hosts first. GUIDs depend on the text alone.
 */
#ifndef FABRIC_TOPOLOGY_GENERATE_H
#define FABRIC_TOPOLOGY_GENERATE_H

#include "fabric/topology/topology.h"

/*
 * On success the caller frees *t. -EINVAL: `why` names the field and what would be right; -ENOSPC: more
 * nodes, links or ports than a description can have; -ENOMEM.
 */
int topology_generate(const char *text, struct topology **t, char *why, size_t why_bytes);

#endif
