/* SPDX-License-Identifier: BSD-2-Clause */
/* Random subnets for tests; see fabric_map.h. */
#include "fabric_map.h"

#include <string.h>

#define NONE 255

static void join(struct map *m, struct fabric *f, uint32_t a, uint32_t b,
		 const struct fabric_link *link)
{
	uint8_t port_a = ++m->ports[a], port_b = ++m->ports[b];

	kit_join(f, m->switch_node[a], port_a, m->switch_node[b], port_b, link);
	m->peer[a][port_a] = (uint8_t)b;
	m->peer[b][port_b] = (uint8_t)a;
	m->links++;
}

static void add_hosts(struct map *m, struct fabric *f, uint32_t hosts, map_link link, void *arg)
{
	for (uint32_t i = 0; i < m->switches * hosts; i++) {
		uint32_t s = i % m->switches;
		struct fabric_link l = link(arg);

		m->host_node[i] = kit_host(f);
		m->host_switch[i] = (uint8_t)s;
		m->host_port[i] = ++m->ports[s];
		kit_join(f, m->host_node[i], 1, m->switch_node[s], m->ports[s], &l);
	}
	m->hosts = m->switches * hosts;
}

static void add_switches(struct map *m, struct fabric *f, uint32_t switches)
{
	memset(m, 0, sizeof(*m));
	memset(m->peer, NONE, sizeof(m->peer));
	m->switches = switches;
	for (uint32_t i = 0; i < switches; i++)
		m->switch_node[i] = kit_switch(f, MAP_PORTS);
}

/* Levels from switch 0, and the tree that the search goes along. */
static void set_levels(struct map *m)
{
	uint8_t queue[MAP_SWITCHES] = { 0 };
	uint32_t count = 1;

	memset(m->level, NONE, sizeof(m->level));
	m->level[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		for (uint8_t port = 1; port <= m->ports[queue[i]]; port++) {
			uint8_t to = m->peer[queue[i]][port];

			if (to == NONE || m->level[to] != NONE)
				continue;
			m->level[to] = (uint8_t)(m->level[queue[i]] + 1);
			m->parent[to] = queue[i];
			queue[count++] = to;
		}
	}
	CHECK(count == m->switches);
	for (uint32_t i = 1; i < m->switches; i++)
		for (uint8_t port = m->ports[i]; port; port--)
			if (m->peer[i][port] == m->parent[i])
				m->parent_port[i] = port;
}

static bool is_up(const struct map *m, uint32_t from, uint32_t to)
{
	return m->level[to] != m->level[from] ? m->level[to] < m->level[from] : to < from;
}

/* One step of the search for the ways to a switch: from `s` by a port whose other end has one. Down
 * where the way is down from there on, else up. */
static void improve(const struct map *m, uint32_t s, uint8_t cost[2][MAP_SWITCHES],
		    uint8_t way[2][MAP_SWITCHES])
{
	for (uint8_t port = 1; port <= m->ports[s]; port++) {
		uint8_t to = m->peer[s][port];
		bool up = to != NONE && is_up(m, s, to);
		uint8_t rest;

		if (to == NONE)
			continue;
		rest = cost[0][to] != NONE || !up ? cost[0][to] : cost[1][to];
		if (rest != NONE && rest + 1 < cost[up][s]) {
			cost[up][s] = (uint8_t)(rest + 1);
			way[up][s] = port;
		}
	}
}

/* For each switch the port on the way to `to`: down alone where that is possible. */
static void up_down(const struct map *m, uint32_t to, uint8_t ports[MAP_SWITCHES])
{
	uint8_t cost[2][MAP_SWITCHES], way[2][MAP_SWITCHES] = { { 0 } };

	memset(cost, NONE, sizeof(cost));
	cost[0][to] = 0;
	for (uint32_t i = 0; i < 2 * m->switches; i++)
		for (uint32_t s = 0; s < m->switches; s++)
			if (s != to)
				improve(m, s, cost, way);
	for (uint32_t s = 0; s < m->switches; s++)
		ports[s] = cost[0][s] != NONE ? way[0][s] : way[1][s];
}

static void set_group(const struct map *m, struct fabric *f)
{
	uint16_t masks[32] = { 0 };

	for (uint32_t s = 0; s < m->switches; s++) {
		masks[0] = s ? (uint16_t)(1u << m->parent_port[s]) : 0;
		for (uint32_t i = 0; i < m->hosts; i++)
			if (m->host_switch[i] == s)
				masks[0] |= (uint16_t)(1u << m->host_port[i]);
		for (uint32_t k = 1; k < m->switches; k++)
			for (uint8_t port = 1; m->parent[k] == s && port <= m->ports[s]; port++) {
				uint32_t node;
				uint8_t peer_port;

				if (m->peer[s][port] != k ||
				    fabric_peer(f, m->switch_node[s], port, &node, &peer_port))
					continue;
				if (peer_port == m->parent_port[k])
					masks[0] |= (uint16_t)(1u << port);
			}
		CHECK(fabric_set_multicast(f, m->switch_node[s], 0, 0, masks) == 0);
	}
}

void map_random(struct map *m, struct fabric *f, struct prng *g, uint32_t switches, uint32_t hosts,
		map_link link, void *arg)
{
	add_switches(m, f, switches);
	for (uint32_t i = 1; i < switches; i++) {
		struct fabric_link l = link(arg);
		uint32_t to = (uint32_t)prng_below(g, i);

		while (m->ports[to] > 5)
			to = (to + 1) % i;
		join(m, f, i, to, &l);
	}
	for (uint32_t i = 0; i < switches; i++) {
		struct fabric_link l = link(arg);
		uint32_t a = (uint32_t)prng_below(g, switches);
		uint32_t b = (uint32_t)prng_below(g, switches);

		if (a != b && m->ports[a] < 8 && m->ports[b] < 8)
			join(m, f, a, b, &l);
	}
	add_hosts(m, f, hosts, link, arg);
	set_levels(m);
	for (uint32_t i = 0; i < m->hosts; i++) {
		uint8_t ports[MAP_SWITCHES];

		up_down(m, m->host_switch[i], ports);
		for (uint32_t s = 0; s < switches; s++)
			kit_route(f, m->switch_node[s], (uint16_t)(i + 1),
				  s == m->host_switch[i] ? m->host_port[i] : ports[s]);
	}
	set_group(m, f);
}

void map_ring(struct map *m, struct fabric *f, uint32_t switches, uint32_t hosts, map_link link,
	      void *arg)
{
	add_switches(m, f, switches);
	for (uint32_t i = 0; i < switches; i++)
		m->ports[i] = 2;
	for (uint32_t i = 0; i < switches; i++) {
		struct fabric_link l = link(arg);

		kit_join(f, m->switch_node[i], 1, m->switch_node[(i + 1) % switches], 2, &l);
	}
	add_hosts(m, f, hosts, link, arg);
	for (uint32_t i = 0; i < m->hosts; i++) {
		for (uint32_t s = 0; s < switches; s++) {
			uint32_t ahead = (m->host_switch[i] + switches - s) % switches;

			kit_route(f, m->switch_node[s], (uint16_t)(i + 1),
				  !ahead ? m->host_port[i] : ahead <= switches / 2 ? 1 : 2);
		}
	}
}

uint8_t map_ring_lane(const struct map *m, uint32_t from, uint32_t to)
{
	uint32_t a = m->host_switch[from], b = m->host_switch[to];
	uint32_t ahead = (b + m->switches - a) % m->switches;

	return ahead && (ahead <= m->switches / 2 ? b < a : b > a);
}
