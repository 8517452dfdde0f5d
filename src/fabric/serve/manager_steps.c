/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a sweep; see manager_steps.h. */
#include "fabric/serve/manager_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/serve/route.h"
#include "fabric/serve/state.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define LID_LAST 0xbfffu
#define LIDS_OF_BLOCK 64
#define PORTS_OF_POSITION 16
#define HOQ_LIFE 18           /* about a second */
#define SUBNET_TIMEOUT 18
#define LIFE_TIME 18
#define PREFIX UINT64_C(0xfe80000000000000)
#define NO_PORT 255

enum phase { TABLES, ARM, ACTIVATE };

struct manager_steps {
	struct serve *s;
	struct serve_route *route;
	uint16_t *switch_lids;  /* by node */
	uint16_t top;           /* the highest LID */
	uint8_t *tables;        /* of all nodes, top + 1 entries rounded up to whole blocks */
	size_t table_bytes;
	uint32_t *via;          /* the node before, on the way from the host; UINT32_MAX: not reached */
	uint8_t *via_port;      /* its port */
	uint32_t *queue;
	const struct serve_host *host;
	struct manager_step *steps;
	size_t count, size, at;
	uint8_t phase;
};

int manager_steps_open(struct serve *s, struct manager_steps **out)
{
	const struct topology *t = s->topology;
	struct manager_steps *m = calloc(1, sizeof(*m));
	const size_t n = t->node_count + 1;
	uint32_t lid = s->host_count;

	if (!m)
		return -ENOMEM;
	m->s = s;
	m->switch_lids = calloc(n, sizeof(*m->switch_lids));
	m->via = malloc(n * sizeof(*m->via));
	m->via_port = malloc(n);
	m->queue = malloc(n * sizeof(*m->queue));
	for (uint32_t i = 0; m->switch_lids && i < t->node_count; i++)
		if (t->nodes[i].kind == TOPOLOGY_SWITCH)
			m->switch_lids[i] = (uint16_t)++lid;
	m->top = (uint16_t)lid;
	m->table_bytes = (lid / LIDS_OF_BLOCK + 1) * LIDS_OF_BLOCK;
	m->tables = lid <= LID_LAST ? malloc(n * m->table_bytes) : NULL;
	if (m->switch_lids && m->via && m->via_port && m->queue && m->tables) {
		*out = m;
		return 0;
	}
	manager_steps_close(m);
	return lid > LID_LAST ? -ENOSPC : -ENOMEM;
}

void manager_steps_close(struct manager_steps *m)
{
	if (!m)
		return;
	serve_route_free(m->route);
	free(m->switch_lids);
	free(m->tables);
	free(m->via);
	free(m->via_port);
	free(m->queue);
	free(m->steps);
	free(m);
}

const struct serve_host *manager_steps_host(const struct manager_steps *m)
{
	return m->host;
}

/* ---- what is reached ---- */

static bool neighbour(const struct manager_steps *m, uint32_t node, unsigned port,
		      struct topology_end *peer)
{
	return topology_peer(m->s->topology, node, (uint8_t)port, peer) &&
	       fabric_link_is_up(m->s->fabric, node, (uint8_t)port);
}

static void reach_from(struct manager_steps *m, uint32_t node, unsigned port, uint32_t *count)
{
	struct topology_end peer;

	if (!neighbour(m, node, port, &peer) || m->via[peer.node] != UINT32_MAX)
		return;
	m->via[peer.node] = node;
	m->via_port[peer.node] = (uint8_t)port;
	m->queue[(*count)++] = peer.node;
}

static void find_paths(struct manager_steps *m)
{
	const struct topology *t = m->s->topology;
	uint32_t count = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		m->via[i] = UINT32_MAX;
	m->via[m->host->node] = m->host->node;
	reach_from(m, m->host->node, m->host->port, &count);
	for (uint32_t head = 0; head < count; head++)
		for (unsigned p = 1; t->nodes[m->queue[head]].kind == TOPOLOGY_SWITCH &&
				     p <= t->nodes[m->queue[head]].port_count; p++)
			reach_from(m, m->queue[head], p, &count);
}

void manager_steps_path(const struct manager_steps *m, uint32_t node, struct mad_smp *smp)
{
	uint8_t ports[MAD_SMP_PATH_BYTES];
	unsigned hops = 0;

	for (; node != m->host->node && hops + 1 < MAD_SMP_PATH_BYTES; node = m->via[node])
		ports[hops++] = m->via_port[node];
	smp->hop_count = (uint8_t)hops;
	for (unsigned i = 0; i < hops; i++)
		smp->initial_path[i + 1] = ports[hops - 1 - i];
}

/* ---- the list ---- */

static int add(struct manager_steps *m, struct manager_step step)
{
	if (m->count == m->size) {
		size_t size = m->size ? m->size * 2 : 256;
		struct manager_step *more = realloc(m->steps, size * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->steps = more;
		m->size = size;
	}
	m->steps[m->count++] = step;
	return 0;
}

static int add_tables(struct manager_steps *m, uint32_t node)
{
	const unsigned ports = m->s->topology->nodes[node].port_count;
	struct manager_step step = { .node = node, .phase = TABLES };
	int ret;

	step.attribute = MAD_ATTR_SWITCH_INFO;
	ret = add(m, step);
	step.attribute = MAD_ATTR_LINEAR_FORWARDING;
	for (uint32_t block = 0; !ret && block * LIDS_OF_BLOCK <= m->top; block++) {
		step.modifier = block;
		ret = add(m, step);
	}
	step.attribute = MAD_ATTR_MULTICAST_FORWARDING;
	for (unsigned position = 0; !ret && position * PORTS_OF_POSITION <= ports; position++) {
		step.modifier = position << 28;
		ret = add(m, step);
	}
	return ret;
}

static int add_ports(struct manager_steps *m, uint32_t node, uint8_t phase)
{
	const struct topology_node *n = &m->s->topology->nodes[node];
	const bool is_switch = n->kind == TOPOLOGY_SWITCH;
	int ret = 0;

	for (unsigned p = is_switch ? 0 : 1; !ret && p <= n->port_count; p++) {
		if ((p && !fabric_link_is_up(m->s->fabric, node, (uint8_t)p)) || (!p && phase == ACTIVATE))
			continue;
		ret = add(m, (struct manager_step){ .node = node, .port = (uint8_t)p, .phase = phase,
						    .attribute = MAD_ATTR_PORT_INFO, .modifier = p });
	}
	return ret;
}

static void make_tables(struct manager_steps *m)
{
	const struct topology *t = m->s->topology;
	uint8_t *ports = malloc(t->node_count + 1);

	memset(m->tables, NO_PORT, (t->node_count + (size_t)1) * m->table_bytes);
	if (!ports)
		return;
	for (uint32_t lid = 1; lid <= m->top; lid++) {
		uint32_t to = UINT32_MAX;

		if (lid <= m->s->host_count)
			to = m->s->hosts[lid - 1].node;
		for (uint32_t i = 0; to == UINT32_MAX && i < t->node_count; i++)
			if (m->switch_lids[i] == lid)
				to = i;
		serve_route_to(m->route, to, lid <= m->s->host_count ? m->s->hosts[lid - 1].port : 0,
			       (uint16_t)lid, ports);
		for (uint32_t i = 0; i < t->node_count; i++)
			m->tables[i * m->table_bytes + lid] = ports[i];
	}
	free(ports);
}

int manager_steps_begin(struct manager_steps *m)
{
	const struct topology *t = m->s->topology;
	int ret = 0;

	m->host = NULL;
	for (uint32_t i = 0; !m->host && i < m->s->host_count; i++)
		if (fabric_link_is_up(m->s->fabric, m->s->hosts[i].node, m->s->hosts[i].port))
			m->host = &m->s->hosts[i];
	if (!m->host)
		return -ENODEV;
	find_paths(m);
	serve_route_free(m->route);
	m->route = serve_route_new(t, m->s->fabric);
	if (!m->route)
		return -ENOMEM;
	make_tables(m);
	m->count = m->at = 0;
	m->phase = TABLES;
	for (unsigned phase = TABLES; phase <= ACTIVATE; phase++)
		for (uint32_t i = 0; !ret && i < t->node_count; i++)
			if (m->via[i] == UINT32_MAX)
				continue;
			else if (phase != TABLES)
				ret = add_ports(m, i, (uint8_t)phase);
			else if (t->nodes[i].kind == TOPOLOGY_SWITCH)
				ret = add_tables(m, i);
	return ret;
}

bool manager_steps_over(const struct manager_steps *m)
{
	return m->at == m->count;
}

bool manager_steps_next(struct manager_steps *m, bool next_phase, struct manager_step *step)
{
	if (m->at == m->count)
		return false;
	if (m->steps[m->at].phase != m->phase) {
		if (!next_phase)
			return false;
		m->phase = m->steps[m->at].phase;
	}
	*step = m->steps[m->at++];
	return true;
}

/* ---- what is set ---- */

static bool fill_port(const struct manager_steps *m, const struct manager_step *step,
		      const uint8_t *got, uint8_t *data)
{
	struct mad_port_info p;

	mad_port_info_unpack(got, &p);
	if (m->switch_lids[step->node]) {
		if (!step->port)
			p.lid = m->switch_lids[step->node];
	} else {
		p.lid = (uint16_t)(m->s->host_of_node[step->node] + step->port);
	}
	if (p.lid) {
		p.master_sm_lid = (uint16_t)(m->host - m->s->hosts + 1);
		p.gid_prefix = PREFIX;
		p.subnet_timeout = SUBNET_TIMEOUT;
	}
	p.lmc = 0;
	p.neighbor_mtu = p.mtu_cap;
	p.operational_vls = p.vl_cap;
	p.hoq_life = HOQ_LIFE;
	p.client_reregister = 0;
	p.port_physical_state = 0;
	/* One step at a time: INIT, ARMED, ACTIVE. */
	if (!step->port || (step->phase == ARM && p.port_state != MAD_PORT_INIT) ||
	    (step->phase == ACTIVATE && p.port_state != MAD_PORT_ARMED)) {
		if (step->phase == ACTIVATE)
			return false;
		p.port_state = 0;
	} else {
		p.port_state = step->phase == ARM ? MAD_PORT_ARMED : MAD_PORT_ACTIVE;
	}
	mad_port_info_pack(&p, data);
	return true;
}

static void fill_multicast(const struct manager_steps *m, const struct manager_step *step, uint8_t *data)
{
	const unsigned first = (step->modifier >> 28) * PORTS_OF_POSITION;
	struct mad_multicast_forwarding f = { 0 };
	uint16_t mask = 0;

	for (unsigned i = 0; i < PORTS_OF_POSITION; i++)
		if (first + i && first + i <= m->s->topology->nodes[step->node].port_count &&
		    serve_route_in_tree(m->route, step->node, (uint8_t)(first + i)))
			mask |= (uint16_t)(1u << i);
	for (unsigned i = 0; i < sizeof(f.ports) / sizeof(f.ports[0]); i++)
		f.ports[i] = mask;
	mad_multicast_forwarding_pack(&f, data);
}

bool manager_steps_fill(struct manager_steps *m, const struct manager_step *step, const uint8_t *got,
			uint8_t *data)
{
	struct mad_switch_info info;

	memset(data, 0, MAD_SMP_DATA_BYTES);
	switch (step->attribute) {
	case MAD_ATTR_LINEAR_FORWARDING:
		memcpy(data, m->tables + step->node * m->table_bytes + step->modifier * LIDS_OF_BLOCK,
		       LIDS_OF_BLOCK);
		return true;
	case MAD_ATTR_MULTICAST_FORWARDING:
		fill_multicast(m, step, data);
		return true;
	case MAD_ATTR_PORT_INFO:
		return got && fill_port(m, step, got, data);
	default:
		if (!got)
			return false;
		mad_switch_info_unpack(got, &info);
		info.linear_fdb_top = m->top;
		info.life_time_value = LIFE_TIME;
		info.port_state_change = 1; /* clears it */
		mad_switch_info_pack(&info, data);
		return true;
	}
}
