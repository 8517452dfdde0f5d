/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of subnets of well-known families, from a short text:
 *
 *	FAMILY:SIZES[,KEY=VALUE]...
 *
 *	single:N                one switch with N hosts
 *	line:N                  N switches in a row
 *	ring:N                  N switches in a circle
 *	mesh:XxY[xZ]            a grid
 *	torus:XxY[xZ]           a grid with its edges joined
 *	fat-tree:HxL            L leaves with H hosts each, below spines (two levels). A leaf has as many
 *	                        links up as hosts: fat-tree:18x36 has 648 hosts, 36 leaves, 18 spines
 *	fat-tree:k=K            three levels of switches with K ports each (K even): K pods, K^3/4 hosts
 *	dragonfly:AxPxH         groups of A switches, each with P hosts and H links to other groups, all
 *	                        A*H + 1 groups; inside of a group each switch has a link to each other one
 *
 * Keys for all: width=1x|2x|4x|8x|12x (4x), speed=SDR..NDR (EDR), delay=NUMBER[ns|us|ms] (0),
 * ber=NUMBER (0). For line, ring, mesh, torus: hosts=N per switch (1). For the two-level fat tree:
 * spines=N (H), which makes a leaf have H links to N spines, distributed evenly; links=N: links of a leaf
 * to all spines together (H). For dragonfly: groups=N, at most A*H + 1.
 *
 * A dimension of two has one link, not two. Names: host-1 ..., switch-1 ... (leaf-1, spine-1, core-1; in
 * grids switch-X-Y-Z, counted from 1; in a dragonfly switch-GROUP-N, in the tree of three levels
 * leaf-POD-N and spine-POD-N). Hosts are numbered in the order of their switches.
 * Ports: hosts first, from port 1 on, then the links of switches, so that a switch has as many ports as
 * links. GUIDs depend on the order alone: the same text gives the same description.
 */
#ifndef FABRIC_TOPOLOGY_GENERATE_H
#define FABRIC_TOPOLOGY_GENERATE_H

#include "fabric/topology/topology.h"

/* On success the caller frees *t. -EINVAL: `why` names the field and what would be right; -ENOSPC: more
 * nodes, links or ports than a description can have; -ENOMEM. */
int topology_generate(const char *text, struct topology **t, char *why, size_t why_bytes);

#endif
