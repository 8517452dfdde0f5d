/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet manager on simulated subnets, with the real agents and engine: a sweep brings all ports to ACTIVE
 * and every end port to a LID that all tables lead to, also where datagrams get lost; a cut link is routed
 * around; queries of subnet administration say what the description says; joins become trees.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent_net.h"
#include "fabric/manager/manager.h"
#include "util/container_of.h"
#include "util/prng.h"
#include "wire/mad/port.h"
#include "wire/mad/rmpp.h"
#include "wire/mad/sa.h"

#define INBOX 4096
#define CLIENT_TID UINT64_C(0x100000001)

struct inbox_mad {
	struct manager_address from;
	uint8_t mad[MAD_BYTES];
};

/* A subnet with a manager at host-1, and a process at the same port that asks. */
struct subnet {
	struct net net;
	struct manager *manager;
	struct manager_report report;
	unsigned sweeps;
	uint32_t node;
	uint32_t asker; /* where the process is */
	struct inbox_mad inbox[INBOX];
	unsigned head, tail;
	struct prng random;
	unsigned lose; /* of 1000 datagrams of the manager */
	/* The answer to the process' query: headers and data. */
	struct mad_rmpp_receiver receiver;
	uint8_t answer[1 << 20];
	uint8_t first[MAD_BYTES];
	bool answered;
};

static void on_send(void *arg, const struct manager_address *to, const uint8_t mad[MAD_BYTES])
{
	struct subnet *s = arg;
	const struct agent_address a = { .dlid = to->lid, .sl = to->sl, .src_qp = to->qpn,
					 .dest_qp = to->qpn ? to->remote_qpn : 0, .qkey = to->qkey,
					 .pkey = 0xffff };

	if (prng_below(&s->random, 1000) < s->lose)
		return;
	fabric_agents_submit(s->net.agents, s->node, 1, mad, &a, s->net.now_ns);
}

static void on_swept(void *arg, const struct manager_report *r)
{
	struct subnet *s = arg;

	s->report = *r;
	s->sweeps++;
}

/* An answer of subnet administration for the process. */
static void take_answer(struct subnet *s, const struct net_mad *m)
{
	uint8_t reply[MAD_BYTES];
	struct mad_rmpp rmpp;

	mad_rmpp_unpack(m->mad + MAD_RMPP_AT, &rmpp);
	if (!(rmpp.flags & MAD_RMPP_ACTIVE)) {
		memcpy(s->first, m->mad, MAD_BYTES);
		s->answered = true;
		return;
	}
	if (rmpp.segment == 1)
		memcpy(s->first, m->mad, MAD_BYTES);
	if (mad_rmpp_receive(&s->receiver, m->mad, s->net.now_ns, reply)) {
		const struct agent_address to = { .dlid = m->address.slid, .src_qp = 1, .dest_qp = 1,
						  .qkey = 0x80010000, .pkey = 0xffff };

		fabric_agents_submit(s->net.agents, s->asker, 1, reply, &to, s->net.now_ns);
	}
	s->answered = s->receiver.state == MAD_RMPP_DONE;
}

static void on_delivered(void *arg, const struct net_mad *m)
{
	struct subnet *s = arg;
	struct mad_header h;

	assert_true(mad_header_read(m->mad, MAD_BYTES, &h));
	if (h.mgmt_class == MAD_CLASS_SUBN_ADM && h.method & MAD_RESPONSE) {
		assert_int_equal(m->node, s->asker);
		take_answer(s, m);
		return;
	}
	if (m->node != s->node)
		return;
	assert_true(s->tail - s->head < INBOX);
	struct inbox_mad *in = &s->inbox[s->tail++ % INBOX];

	in->from = (struct manager_address){ .lid = m->address.slid, .qpn = (uint8_t)m->address.dest_qp,
					     .remote_qpn = m->address.src_qp, .qkey = m->address.qkey };
	memcpy(in->mad, m->mad, MAD_BYTES);
}

/* Until nothing is on its way; then the time goes on to what is due next, up to `until_ns`. */
static void run(struct subnet *s, uint64_t until_ns)
{
	for (;;) {
		net_run(&s->net);
		if (s->head != s->tail) {
			const struct inbox_mad in = s->inbox[s->head++ % INBOX];

			manager_receive(s->manager, &in.from, in.mad, s->net.now_ns);
			continue;
		}
		uint64_t due_ns = MIN(manager_due_ns(s->manager), fabric_agents_next_ns(s->net.agents));

		if (due_ns > until_ns)
			return;
		s->net.now_ns = MAX(s->net.now_ns, due_ns);
		fabric_agents_tick(s->net.agents, s->net.now_ns);
		manager_turn(s->manager, s->net.now_ns);
	}
}

static struct subnet *subnet_open(const char *what, enum manager_routing routing, unsigned lose,
				  uint64_t seed)
{
	struct subnet *s = calloc(1, sizeof(*s));
	struct manager_config config = { .routing = routing, .lanes = 4, .retries = 9,
					 .sweep_ns = UINT64_C(10000000000) };
	const struct manager_ops ops = { on_send, on_swept, s };

	assert_non_null(s);
	net_open(&s->net, what, NULL);
	s->net.delivered = on_delivered;
	s->net.arg = s;
	s->random = prng_from(seed);
	s->lose = lose;
	s->node = s->asker = net_node(&s->net, "host-1");
	config.port_guid = s->net.topology->nodes[s->node].ports[1].guid;
	assert_int_equal(manager_open(&config, &ops, &s->manager), 0);
	fabric_agents_set_capability(s->net.agents, s->node, 1, MAD_CAP_SM, 0, s->net.now_ns);
	run(s, s->net.now_ns + UINT64_C(9000000000));
	assert_int_equal(s->sweeps, 1);
	return s;
}

static void subnet_close(struct subnet *s)
{
	manager_close(s->manager);
	net_close(&s->net);
	free(s);
}

/* ---- what has to hold after a sweep ---- */

static void expect_up(const struct subnet *s)
{
	const struct topology *t = s->net.topology;
	unsigned hosts = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		hosts += t->nodes[i].kind == TOPOLOGY_HCA;
	assert_true(s->report.up);
	assert_int_equal(s->report.hosts, hosts);
	assert_int_equal(s->report.switches, t->node_count - hosts);
	assert_int_equal(s->report.unanswered, 0);
}

/* Each host's LID leads to it from host-1: its NodeInfo comes by LID, with its GUID. */
static void expect_reachable(struct subnet *s)
{
	const struct topology *t = s->net.topology;

	for (uint32_t i = 0; i < t->node_count; i++) {
		struct mad_smp smp = { .mgmt_class = MAD_CLASS_SUBN_LID, .class_version = 1,
				       .method = MAD_GET, .tid = 7, .attr_id = MAD_ATTR_NODE_INFO };
		struct mad_node_info info;
		struct plug_port port;
		uint8_t mad[MAD_BYTES];

		if (t->nodes[i].kind != TOPOLOGY_HCA)
			continue;
		assert_int_equal(fabric_agents_get_port(s->net.agents, i, 1, &port), 0);
		assert_int_equal(port.state, MAD_PORT_ACTIVE);
		assert_true(mad_smp_pack(&smp, mad));
		s->net.delivered = NULL;
		assert_true(net_by_lid(&s->net, s->node, port.lid, 0, mad));
		s->net.delivered = on_delivered;
		assert_true(mad_smp_unpack(mad, MAD_BYTES, &smp));
		mad_node_info_unpack(smp.data, &info);
		assert_int_equal(info.node_guid, t->nodes[i].guid);
	}
}

static void sweeps_bring_subnets_up(void **state)
{
	static const char *const kinds[] = { "single:3", "ring:6", "mesh:3x3", "fat-tree:4x4",
					     "fat-tree:k=4", "dragonfly:4x2x2", EXAMPLES "/office.topo",
					     SUBNETS "/close_guids.topo" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct subnet *s = subnet_open(kinds[i], i % 2 ? MANAGER_UP_DOWN : MANAGER_MIN_HOP, 0, i);

		expect_up(s);
		expect_reachable(s);
		subnet_close(s);
	}
}

static void sweeps_survive_lost_datagrams(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct subnet *s = subnet_open("fat-tree:3x2", MANAGER_UP_DOWN, 150, seed);

		expect_up(s);
		expect_reachable(s);
		subnet_close(s);
	}
}

static void a_cut_link_is_routed_around(void **state)
{
	struct subnet *s = subnet_open("fat-tree:4x2", MANAGER_MIN_HOP, 0, 1);
	const uint32_t leaf = net_node(&s->net, "leaf-2");
	const unsigned before = s->sweeps;
	const uint8_t up = 3; /* behind the two hosts */

	assert_int_equal(fabric_agents_cable(s->net.agents, leaf, up, false, s->net.now_ns), 0);
	/* The switches say so by trap 128, so no light sweep is waited for. */
	run(s, s->net.now_ns + UINT64_C(2000000000));
	assert_true(s->sweeps > before);
	assert_true(s->report.up);
	expect_reachable(s);
	assert_int_equal(fabric_agents_cable(s->net.agents, leaf, up, true, s->net.now_ns), 0);
	run(s, s->net.now_ns + UINT64_C(2000000000));
	expect_up(s);
	expect_reachable(s);
	subnet_close(s);
}

/* ---- subnet administration ---- */

/* Asks, and gives the number of records of `bytes`; their data is at s->answer. -1: a status. */
static int ask(struct subnet *s, uint8_t method, uint16_t attr_id, uint64_t mask, const uint8_t *query,
	       size_t query_bytes, size_t record_bytes)
{
	static const struct mad_rmpp_config config = MAD_RMPP_CONFIG_SA;
	struct mad_header h = { .base_version = 1, .mgmt_class = MAD_CLASS_SUBN_ADM, .class_version = 2,
				.method = method, .tid = CLIENT_TID, .attr_id = attr_id };
	const struct mad_sa sa = { .component_mask = mask };
	struct plug_port port;
	uint8_t mad[MAD_BYTES] = { 0 };

	assert_int_equal(fabric_agents_get_port(s->net.agents, s->asker, 1, &port), 0);
	const struct agent_address to = { .dlid = port.sm_lid, .src_qp = 1, .dest_qp = 1,
					  .qkey = 0x80010000, .pkey = 0xffff };

	mad_header_pack(&h, mad);
	mad_sa_pack(&sa, mad + MAD_SA_HEADER_AT);
	if (query_bytes)
		memcpy(mad + MAD_SA_DATA_AT, query, query_bytes);
	s->answered = false;
	assert_int_equal(mad_rmpp_receive_begin(&s->receiver, &config, s->answer, sizeof(s->answer),
						s->net.now_ns), 0);
	assert_int_equal(fabric_agents_submit(s->net.agents, s->asker, 1, mad, &to, s->net.now_ns), 0);
	run(s, s->net.now_ns + UINT64_C(1000000000));
	assert_true(s->answered);
	mad_header_unpack(s->first, &h);
	if (h.status)
		return -1;
	if (method != MAD_GET_TABLE) {
		memcpy(s->answer, s->first + MAD_SA_DATA_AT, MAD_SA_DATA_BYTES);
		return 1;
	}
	return (int)(s->receiver.bytes / (8u * mad_sa_offset((unsigned)record_bytes)));
}

static void queries_say_what_is_there(void **state)
{
	struct subnet *s = subnet_open("fat-tree:4x4", MANAGER_MIN_HOP, 0, 1);
	struct mad_path_record path = { 0 };
	uint8_t query[200] = { 0 };
	struct plug_port a, b;

	assert_int_equal(ask(s, MAD_GET_TABLE, MAD_ATTR_NODE_RECORD, 0, NULL, 0, 108), 24);
	assert_int_equal(ask(s, MAD_GET_TABLE, MAD_ATTR_LINK_RECORD, 0, NULL, 0, 6), 64);
	assert_int_equal(ask(s, MAD_GET_TABLE, MAD_ATTR_PATH_RECORD, 0, NULL, 0, 64), 24 * 24);
	assert_int_equal(ask(s, MAD_GET, MAD_ATTR_NODE_RECORD, 0, NULL, 0, 108), -1); /* too many */
	assert_int_equal(ask(s, MAD_GET_TABLE, 0x7777, 0, NULL, 0, 8), -1);
	fabric_agents_get_port(s->net.agents, s->node, 1, &a);
	fabric_agents_get_port(s->net.agents, net_node(&s->net, "host-14"), 1, &b);
	path.slid = a.lid;
	path.dlid = b.lid;
	assert_true(mad_path_record_pack(&path, query));
	assert_int_equal(ask(s, MAD_GET, MAD_ATTR_PATH_RECORD,
			     MAD_COMPONENT(MAD_PATH_SLID) | MAD_COMPONENT(MAD_PATH_DLID), query, 64, 64), 1);
	mad_path_record_unpack(s->answer, &path);
	assert_int_equal(path.mtu, MAD_MTU_4096);
	assert_int_equal(path.rate, MAD_RATE_100);
	assert_int_equal(path.pkey, 0xffff);
	/* One that nobody has. */
	path.dlid = 0x7777;
	assert_true(mad_path_record_pack(&path, query));
	assert_int_equal(ask(s, MAD_GET, MAD_ATTR_PATH_RECORD,
			     MAD_COMPONENT(MAD_PATH_SLID) | MAD_COMPONENT(MAD_PATH_DLID), query, 64, 64), -1);
	subnet_close(s);
}

/* One question must not keep the process of a fabric busy for long. */
static void paths_between_all_ports_of_a_large_subnet_are_refused(void **state)
{
	struct subnet *s = subnet_open("fat-tree:12x12", MANAGER_MIN_HOP, 0, 1);
	const int nodes = (int)s->net.topology->node_count;
	struct mad_path_record path = { 0 };
	uint8_t query[200] = { 0 };
	struct plug_port a;

	assert_true(nodes > 128);
	assert_int_equal(ask(s, MAD_GET_TABLE, MAD_ATTR_PATH_RECORD, 0, NULL, 0, 64), -1);
	fabric_agents_get_port(s->net.agents, s->node, 1, &a);
	path.slid = a.lid;
	assert_true(mad_path_record_pack(&path, query));
	assert_int_equal(ask(s, MAD_GET_TABLE, MAD_ATTR_PATH_RECORD, MAD_COMPONENT(MAD_PATH_SLID), query, 64, 64), nodes);
	subnet_close(s);
}

/* ---- multicast ---- */

static int join(struct subnet *s, uint8_t method, const char *host, struct mad_mc_member_record *r)
{
	const uint64_t mask = MAD_COMPONENT(MAD_MC_MGID) | MAD_COMPONENT(MAD_MC_PORT_GID) |
			      MAD_COMPONENT(MAD_MC_QKEY) | MAD_COMPONENT(MAD_MC_PKEY) |
			      MAD_COMPONENT(MAD_MC_SL) | MAD_COMPONENT(MAD_MC_TCLASS) |
			      MAD_COMPONENT(MAD_MC_FLOW_LABEL) | MAD_COMPONENT(MAD_MC_JOIN_STATE);
	const uint64_t guid = s->net.topology->nodes[net_node(&s->net, host)].ports[1].guid;
	uint8_t query[200] = { 0 };
	int ret;

	for (unsigned i = 0; i < 8; i++) {
		r->port_gid[i] = (uint8_t)(UINT64_C(0xfe80000000000000) >> (56 - 8 * i));
		r->port_gid[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
	}
	assert_true(mad_mc_member_record_pack(r, query));
	ret = ask(s, method, MAD_ATTR_MC_MEMBER_RECORD, mask, query, 52, 52);
	if (ret == 1)
		mad_mc_member_record_unpack(s->answer, r);
	return ret;
}

/* The hosts to which switches copy a packet of host-1 for the group; each once. */
static unsigned reached(struct subnet *s, uint16_t mlid, uint32_t node, uint8_t in, unsigned depth)
{
	const struct topology *t = s->net.topology;
	unsigned n = 0;

	assert_true(depth < 16); /* a circle */
	if (t->nodes[node].kind == TOPOLOGY_HCA)
		return 1;
	for (unsigned p = 1; p <= t->nodes[node].port_count; p++) {
		uint16_t masks[32];
		struct topology_end peer;

		assert_int_equal(fabric_get_multicast(s->net.engine, node, (uint16_t)(mlid - 0xc000) / 32 * 32,
						      (uint8_t)(p / 16), masks), 0);
		if (p == in || !(masks[(mlid - 0xc000) % 32] >> p % 16 & 1) ||
		    !topology_peer(t, node, (uint8_t)p, &peer))
			continue;
		n += reached(s, mlid, peer.node, peer.port, depth + 1);
	}
	return n;
}

static unsigned members_reached(struct subnet *s, uint16_t mlid)
{
	struct topology_end peer;

	assert_true(topology_peer(s->net.topology, s->node, 1, &peer));
	return reached(s, mlid, peer.node, peer.port, 0);
}

static void joins_become_trees(void **state)
{
	struct subnet *s = subnet_open("fat-tree:4x4", MANAGER_UP_DOWN, 0, 1);
	struct mad_mc_member_record r = { .mgid = { 0xff, 0x12, 0x40, 0x1b }, .pkey = 0xffff,
					  .qkey = 0xb1b, .join_state = MAD_JOIN_FULL };
	struct mad_mc_member_record other = r;

	assert_int_equal(join(s, MAD_SET, "host-1", &r), 1);
	assert_true(r.mlid >= 0xc000);
	for (unsigned i = 2; i <= 16; i += 3) {
		char name[16];

		snprintf(name, sizeof(name), "host-%u", i);
		assert_int_equal(join(s, MAD_SET, name, &other), 1);
		assert_int_equal(other.mlid, r.mlid);
	}
	assert_int_equal(members_reached(s, r.mlid), 5);
	other.join_state = MAD_JOIN_FULL;
	assert_int_equal(join(s, MAD_DELETE, "host-5", &other), 1);
	assert_int_equal(members_reached(s, r.mlid), 4);
	/* Who is no member cannot leave. */
	assert_int_equal(join(s, MAD_DELETE, "host-5", &other), -1);
	/* A port that joined by itself stays when another port asks for its end. */
	other.join_state = MAD_JOIN_FULL;
	s->asker = net_node(&s->net, "host-8");
	assert_int_equal(join(s, MAD_SET, "host-8", &other), 1);
	s->asker = net_node(&s->net, "host-1");
	other.join_state = MAD_JOIN_FULL;
	assert_int_equal(join(s, MAD_DELETE, "host-8", &other), -1);
	assert_int_equal(members_reached(s, r.mlid), 4);
	s->asker = net_node(&s->net, "host-8");
	other.join_state = MAD_JOIN_FULL;
	assert_int_equal(join(s, MAD_DELETE, "host-8", &other), 1);
	s->asker = net_node(&s->net, "host-1");
	assert_int_equal(members_reached(s, r.mlid), 3);
	/* Another Q_Key than the group's. */
	other.qkey = 1;
	assert_int_equal(join(s, MAD_SET, "host-6", &other), -1);
	subnet_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweeps_bring_subnets_up),
		cmocka_unit_test(sweeps_survive_lost_datagrams),
		cmocka_unit_test(a_cut_link_is_routed_around),
		cmocka_unit_test(queries_say_what_is_there),
		cmocka_unit_test(paths_between_all_ports_of_a_large_subnet_are_refused),
		cmocka_unit_test(joins_become_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
