/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random subnets for tests: switches in a random connected graph with tables by up/down (first towards
 * switch 0, then away from it: no circle of buffers), or in a ring with the shortest ways. Hosts have
 * the LIDs 1, 2 and so on; each switch has hosts.
 */
#ifndef TESTS_FABRIC_MAP_H
#define TESTS_FABRIC_MAP_H

#include "fabric_kit.h"
#include "util/prng.h"

#define MAP_SWITCHES 16u
#define MAP_HOSTS 48u
#define MAP_PORTS 12u
#define MAP_GROUP 0xc000u /* of all hosts */

struct map {
	uint32_t switches, hosts, links;
	uint32_t switch_node[MAP_SWITCHES], host_node[MAP_HOSTS];
	uint8_t host_switch[MAP_HOSTS], host_port[MAP_HOSTS];
	uint8_t ports[MAP_SWITCHES];                  /* that are in use */
	uint8_t peer[MAP_SWITCHES][MAP_PORTS + 1];    /* a switch, or 255 */
	uint8_t level[MAP_SWITCHES];                  /* from switch 0 */
	uint8_t parent_port[MAP_SWITCHES];            /* towards it in the tree of groups */
	uint8_t parent[MAP_SWITCHES];
};

typedef struct fabric_link (*map_link)(void *arg);

/* A connected graph of `switches` with some links more than a tree, `hosts` at each; tables of up/down
 * and of the group of all hosts. */
void map_random(struct map *m, struct fabric *f, struct prng *g, uint32_t switches, uint32_t hosts,
		map_link link, void *arg);
/* A ring with the shortest ways. Port 1 leads to the next switch, port 2 to the one before. */
void map_ring(struct map *m, struct fabric *f, uint32_t switches, uint32_t hosts, map_link link,
	      void *arg);
/* The lane for a way in a ring from host to host: 1 if it passes between the last switch and the first (a
 * dateline), else 0. Neither lane has a circle of buffers: no way is longer than half of the ring. */
uint8_t map_ring_lane(const struct map *m, uint32_t from, uint32_t to);

#endif
