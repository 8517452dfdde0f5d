/* SPDX-License-Identifier: BSD-2-Clause */
/* A manager finds a subnet by directed routes, gives LIDs and tables, and then reaches each node by LID. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent_net.h"
#include "wire/bytes.h"

#define FIRST_LID 10

struct found {
	bool seen;
	uint8_t path[MAD_SMP_PATH_BYTES];
	uint8_t entry; /* the port at which SMPs come in */
};

struct manager {
	struct net net;
	uint32_t host;
	struct found *found; /* of all nodes, by their number in the description */
	uint32_t *order;     /* numbers, in the order of discovery */
	uint32_t count, links;
};

static bool ask(struct manager *m, const uint8_t *path, uint8_t method, uint16_t attribute, uint32_t mod,
		struct mad_smp *smp)
{
	static uint64_t tid;

	smp->method = method;
	smp->attr_id = attribute;
	smp->attr_mod = mod;
	smp->status = 0;
	smp->tid = ++tid;
	return net_directed(&m->net, m->host, path, smp) && !smp->status;
}

/* Asks the node at the end of the path, and keeps it if it is new. */
static uint32_t look(struct manager *m, const uint8_t *path)
{
	struct mad_smp smp = {0};
	struct mad_node_info info;
	uint32_t node;

	assert_true(ask(m, path, MAD_GET, MAD_ATTR_NODE_INFO, 0, &smp));
	mad_node_info_unpack(smp.data, &info);
	node = topology_find_guid(m->net.topology, info.node_guid);
	assert_int_not_equal(node, TOPOLOGY_NONE);
	assert_int_equal(info.num_ports, m->net.topology->nodes[node].port_count);
	if (!m->found[node].seen) {
		m->found[node] = (struct found){.seen = true, .entry = info.local_port_num};
		strcpy((char *)m->found[node].path, (const char *)path);
		m->order[m->count++] = node;
	}
	return node;
}

static void discover(struct manager *m, const char *subnet)
{
	net_open(&m->net, subnet, NULL);
	m->host = net_node(&m->net, "host-1");
	m->found = calloc(m->net.topology->node_count, sizeof(*m->found));
	m->order = calloc(m->net.topology->node_count, sizeof(*m->order));
	m->count = m->links = 0;
	look(m, (const uint8_t *)"");
	for (uint32_t i = 0; i < m->count; i++) {
		const uint32_t node = m->order[i];
		const struct topology_node *what = &m->net.topology->nodes[node];

		for (unsigned port = 1; port <= what->port_count; port++) {
			uint8_t path[MAD_SMP_PATH_BYTES] = "";
			struct topology_end peer;
			size_t hops;

			if (!topology_peer(m->net.topology, node, (uint8_t)port, &peer))
				continue;
			if (what->kind == TOPOLOGY_HCA && i)
				continue;
			strcpy((char *)path, (const char *)m->found[node].path);
			hops = strlen((const char *)path);
			path[hops] = (uint8_t)port;
			assert_int_equal(look(m, path), peer.node);
			m->links++;
		}
	}
}

static void forget(struct manager *m)
{
	free(m->found);
	free(m->order);
	net_close(&m->net);
}

/* LIDs in the order of discovery, and shortest ways. */
static void configure(struct manager *m)
{
	const struct topology *t = m->net.topology;
	uint32_t *hops = calloc(t->node_count, sizeof(*hops));

	for (uint32_t i = 0; i < m->count; i++) {
		const struct found *f = &m->found[m->order[i]];
		struct mad_smp smp = {0};
		struct mad_port_info info;

		assert_true(ask(m, f->path, MAD_GET, MAD_ATTR_PORT_INFO, 0, &smp));
		mad_port_info_unpack(smp.data, &info);
		info.lid = (uint16_t)(FIRST_LID + i);
		info.master_sm_lid = FIRST_LID;
		info.port_state = info.port_physical_state = 0;
		mad_port_info_pack(&info, smp.data);
		assert_true(ask(m, f->path, MAD_SET, MAD_ATTR_PORT_INFO, 0, &smp));
	}
	for (uint32_t target = 0; target < m->count; target++) {
		const uint32_t lid = FIRST_LID + target;

		assert_int_equal(topology_hops(t, m->order[target], hops), 0);
		for (uint32_t i = 0; i < m->count; i++) {
			const uint32_t node = m->order[i];
			struct mad_smp smp = {0};
			struct topology_end peer;
			uint8_t way = 0;

			if (t->nodes[node].kind != TOPOLOGY_SWITCH)
				continue;
			for (unsigned port = 1; i != target && port <= t->nodes[node].port_count && !way; port++)
				if (topology_peer(t, node, (uint8_t)port, &peer) &&
				    hops[peer.node] + 1 == hops[node] &&
				    (peer.node == m->order[target] || t->nodes[peer.node].kind == TOPOLOGY_SWITCH))
					way = (uint8_t)port;
			assert_true(i == target || way);
			assert_true(ask(m, m->found[node].path, MAD_GET, MAD_ATTR_LINEAR_FORWARDING, lid / 64, &smp));
			smp.data[lid % 64] = way;
			assert_true(ask(m, m->found[node].path, MAD_SET, MAD_ATTR_LINEAR_FORWARDING, lid / 64, &smp));
		}
	}
	free(hops);
}

static void all_nodes_and_links_are_found(void **state)
{
	static const char *const subnets[] = {"ring:6,hosts=2", "fat-tree:4x4", "torus:3x3", "line:5"};

	(void)state;
	for (size_t i = 0; i < sizeof(subnets) / sizeof(subnets[0]); i++) {
		struct manager m;
		uint32_t switches = 0;

		discover(&m, subnets[i]);
		assert_int_equal(m.count, m.net.topology->node_count);
		for (uint32_t k = 0; k < m.count; k++)
			switches += m.net.topology->nodes[k].kind == TOPOLOGY_SWITCH;
		/* Links of switches from both ends, of hosts from the switch's, and the manager's own. */
		assert_int_equal(m.links, 2 * (m.net.topology->link_count - (m.count - switches)) +
				 (m.count - switches) + 1);
		forget(&m);
	}
}

static void each_node_is_reached_by_lid(void **state)
{
	struct fabric_agents_counts before, after;
	struct manager m;

	(void)state;
	discover(&m, "fat-tree:3x4");
	configure(&m);
	fabric_agents_get_counts(m.net.agents, &before);
	for (uint32_t i = 0; i < m.count; i++) {
		struct mad_smp smp = {.mgmt_class = MAD_CLASS_SUBN_LID, .class_version = 1, .method = MAD_GET,
				      .tid = 1000 + i, .attr_id = MAD_ATTR_NODE_DESCRIPTION};
		uint8_t mad[MAD_BYTES];

		assert_true(mad_smp_pack(&smp, mad));
		assert_true(net_by_lid(&m.net, m.host, (uint16_t)(FIRST_LID + i), 0, mad));
		assert_true(mad_smp_unpack(mad, sizeof(mad), &smp));
		assert_int_equal(smp.status, 0);
		assert_string_equal((const char *)smp.data, m.net.topology->nodes[m.order[i]].name);
	}
	fabric_agents_get_counts(m.net.agents, &after);
	assert_int_equal(after.answered - before.answered, m.count);
	assert_int_equal(after.delivered - before.delivered, m.count);
	/* Submitted, received by the agent, and the answer received by the host; its own is not carried. */
	assert_int_equal(after.received - before.received, m.count + 2 * (m.count - 1));
	forget(&m);
}

/* By LID to a switch, a hop by its port, and, if it ends at a switch, by LID to another node. */
static void routes_may_be_mixed(void **state)
{
	struct manager m;
	uint32_t start, middle = 0, last;
	uint8_t mad[MAD_BYTES];
	unsigned tried = 0;

	(void)state;
	discover(&m, "ring:5");
	configure(&m);
	while (m.order[middle] != net_node(&m.net, "switch-3"))
		middle++;
	last = m.count - 1;
	start = m.order[middle];
	for (unsigned port = 1; port <= 3; port++) {
		struct topology_end peer;

		assert_true(topology_peer(m.net.topology, start, (uint8_t)port, &peer));
		for (int tail = 0; tail < 2; tail++) {
			const bool to_switch = m.net.topology->nodes[peer.node].kind == TOPOLOGY_SWITCH;
			const uint32_t expected = tail ? m.order[last] : peer.node;
			struct mad_smp smp = {
				.mgmt_class = MAD_CLASS_SUBN_DIRECTED, .class_version = 1, .method = MAD_GET,
				.tid = 2000 + 2 * port + (unsigned)tail, .attr_id = MAD_ATTR_NODE_DESCRIPTION,
				.hop_count = 1, .initial_path = {0, (uint8_t)port}, .dr_slid = FIRST_LID,
				.dr_dlid = (uint16_t)(tail ? FIRST_LID + last : MAD_LID_PERMISSIVE),
			};

			assert_true(mad_smp_pack(&smp, mad));
			/* An adapter passes nothing on. */
			assert_int_equal(net_by_lid(&m.net, m.host, (uint16_t)(FIRST_LID + middle), 0, mad),
					 !tail || to_switch);
			if (tail && !to_switch)
				continue;
			assert_true(mad_smp_unpack(mad, sizeof(mad), &smp));
			assert_string_equal((const char *)smp.data, m.net.topology->nodes[expected].name);
			assert_int_equal(smp.hop_pointer, 0);
			tried++;
		}
	}
	assert_int_equal(tried, 5);
	forget(&m);
}

static void sm_info_goes_to_a_manager(void **state)
{
	const uint8_t other[] = {1, 2, 0};
	struct mad_smp smp = {0};
	struct manager m;
	uint32_t node;

	(void)state;
	discover(&m, "single:2");
	node = net_node(&m.net, "host-2");
	assert_false(ask(&m, other, MAD_GET, MAD_ATTR_SM_INFO, 0, &smp));
	assert_int_equal(smp.status, MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	assert_int_equal(fabric_agents_set_capability(m.net.agents, node, 1, MAD_CAP_SM, 0, 1), 0);
	assert_true(ask(&m, other, MAD_GET, MAD_ATTR_PORT_INFO, 0, &smp));
	assert_int_equal(smp.data[23] & MAD_CAP_SM, MAD_CAP_SM);
	/* Nobody answers in the place of the process. */
	assert_false(ask(&m, other, MAD_GET, MAD_ATTR_SM_INFO, 0, &smp));
	assert_int_equal(m.net.got[(m.net.got_count - 1) % NET_LOG].node, node);
	assert_true(fabric_agents_set_capability(m.net.agents, node, 1, MAD_CAP_TRAP, 0, 1) < 0);
	forget(&m);
}

static void what_a_process_may_not_send_is_refused(void **state)
{
	struct agent_address to = {.dlid = MAD_LID_PERMISSIVE};
	struct mad_smp smp = {.mgmt_class = MAD_CLASS_SUBN_DIRECTED, .class_version = 1, .method = MAD_GET,
			      .attr_id = MAD_ATTR_NODE_INFO, .hop_count = 1, .initial_path = {0, 2},
			      .dr_slid = MAD_LID_PERMISSIVE, .dr_dlid = MAD_LID_PERMISSIVE};
	struct fabric_agents_counts c;
	uint8_t mad[MAD_BYTES];
	struct net net;

	(void)state;
	net_open(&net, "single:2", NULL);
	assert_true(mad_smp_pack(&smp, mad));
	/* Out of a port that the host has not; on queue pair 1; with a LID before there is one. */
	assert_int_equal(fabric_agents_submit(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1), -22);
	mad[MAD_SMP_AT_INITIAL_PATH + 1] = 1;
	to.dest_qp = 1;
	assert_int_equal(fabric_agents_submit(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1), -22);
	to.dest_qp = 0;
	assert_int_equal(fabric_agents_submit(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1), 0);
	assert_int_equal(fabric_agents_submit(net.agents, net_node(&net, "host-1"), 2, mad, &to, 1), -22);
	assert_int_equal(fabric_agents_submit(net.agents, net_node(&net, "switch-1"), 1, mad, &to, 1), -22);
	assert_int_equal(fabric_agents_submit(net.agents, 77, 1, mad, &to, 1), -22);
	to = (struct agent_address){.dlid = 5, .dest_qp = 1, .src_qp = 1};
	mad[1] = MAD_CLASS_PERF;
	assert_int_equal(fabric_agents_submit(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1), -100);
	/* An SMP is not answered at queue pair 1, nor another class at queue pair 0. */
	fabric_agents_get_counts(net.agents, &c);
	to = (struct agent_address){.slid = MAD_LID_PERMISSIVE, .dlid = MAD_LID_PERMISSIVE, .dest_qp = 1};
	mad[1] = MAD_CLASS_SUBN_DIRECTED;
	fabric_agents_receive(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1);
	to.dest_qp = 0;
	mad[1] = MAD_CLASS_PERF;
	fabric_agents_receive(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1);
	mad[0] = 2;
	fabric_agents_receive(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1);
	const uint64_t before = c.bad_mad;
	fabric_agents_get_counts(net.agents, &c);
	assert_int_equal(c.bad_mad, before + 3);
	/* Not for this LID. */
	to.dlid = 9;
	mad[0] = 1;
	fabric_agents_receive(net.agents, net_node(&net, "host-1"), 1, mad, &to, 1);
	fabric_agents_receive(net.agents, net_node(&net, "host-1"), 9, mad, &to, 1);
	fabric_agents_receive(net.agents, 99, 1, mad, &to, 1);
	fabric_agents_get_counts(net.agents, &c);
	assert_int_equal(c.bad_lid, 3);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_nodes_and_links_are_found),
		cmocka_unit_test(each_node_is_reached_by_lid),
		cmocka_unit_test(routes_may_be_mixed),
		cmocka_unit_test(sm_info_goes_to_a_manager),
		cmocka_unit_test(what_a_process_may_not_send_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
