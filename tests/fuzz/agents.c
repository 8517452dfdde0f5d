/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs into the management agents of a small subnet, with cables that are cut, violations and time between
 * them. No input makes an agent fail or read elsewhere; each MAD causes at most one MAD besides traps, and
 * those are rare; what PortInfo shows is possible, and the engine has the same.
 *
 * usage: fuzz_agents [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "agent_net.h"
#include "drive.h"
#include "tape.h"
#include "wire/bytes.h"
#include "wire/mad/port.h"

#define INPUT_BYTES 4096
#define TRAPS_MAX 3u /* of one MAD: a link with two switches, and a wrong key */

static void must(bool good)
{
	if (!good)
		abort();
}

static uint8_t pick(struct tape *t, const uint8_t *from, size_t count)
{
	return from[next_byte(t) % count];
}

/* ---- MADs ---- */

static void make_mad(struct tape *t, uint8_t mad[MAD_BYTES])
{
	static const uint8_t classes[] = {MAD_CLASS_SUBN_DIRECTED, MAD_CLASS_SUBN_DIRECTED, MAD_CLASS_SUBN_LID,
					  MAD_CLASS_PERF, MAD_CLASS_CONG_MGT, MAD_CLASS_SUBN_ADM, 0, 0x32};
	static const uint8_t methods[] = {MAD_GET, MAD_SET, MAD_SET, MAD_SET, MAD_GET_RESP, MAD_TRAP,
					  MAD_TRAP_REPRESS, MAD_SEND, 0x15, 0xff};
	static const uint32_t modifiers[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 0x101, 0x10001, 0x20001, 0x30002, 0x40002, 0x80000001,
					     0x80000002, 255, 256, 767, 768, 0x10000000, 0xffffffff};
	static const uint8_t smp_attributes[] = {0x10, 0x11, 0x12, 0x14, 0x15, 0x15, 0x15, 0x15, 0x15, 0x15, 0x16,
						 0x17, 0x18, 0x19, 0x1b, 0x1a, 0x20, 0x31, 0x02};
	static const uint8_t attributes[] = {0x01, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1d};
	const unsigned known = next_byte(t);
	unsigned count;
	bool smp;

	memset(mad, 0, MAD_BYTES);
	mad[0] = known % 64 ? MAD_BASE_VERSION : next_byte(t);
	mad[1] = pick(t, classes, sizeof(classes));
	mad[2] = known % 32 == 1 ? next_byte(t) : mad[1] == MAD_CLASS_CONG_MGT ? 2 : 1;
	mad[3] = pick(t, methods, sizeof(methods));
	put_64(mad + 8, next_word(t));
	smp = mad[1] == MAD_CLASS_SUBN_LID || mad[1] == MAD_CLASS_SUBN_DIRECTED;
	put_16(mad + 16, known % 32 == 2 ? (uint16_t)next_word(t) :
	       smp ? pick(t, smp_attributes, sizeof(smp_attributes)) : pick(t, attributes, sizeof(attributes)));
	put_32(mad + 20, modifiers[next_byte(t) % (sizeof(modifiers) / sizeof(modifiers[0]))]);
	if (known % 8 == 3)
		put_64(mad + 24, next_byte(t) % 4);
	/* Few bytes differ from 0, so that many settings are right. */
	count = next_byte(t) % 16;
	for (unsigned i = 0; i < count; i++) {
		const unsigned at = MAD_DATA_AT + next_byte(t) % (known % 4 ? 64 : 192);

		mad[at] = next_byte(t);
	}
	if (mad[1] != MAD_CLASS_SUBN_DIRECTED)
		return;
	mad[6] = next_byte(t) % (known % 16 == 4 ? 256 : 4);
	mad[7] = known % 16 == 5 ? next_byte(t) : known % 4 == 2 ? next_byte(t) % 4 : mad[6];
	mad[4] = known % 4 == 1 ? MAD_SMP_D : 0;
	put_16(mad + MAD_SMP_AT_DR_SLID, known % 8 ? MAD_LID_PERMISSIVE : next_byte(t) % 8);
	put_16(mad + MAD_SMP_AT_DR_DLID, known % 8 != 1 ? MAD_LID_PERMISSIVE : next_byte(t) % 8);
	for (unsigned i = 1; i < 5; i++) {
		mad[MAD_SMP_AT_INITIAL_PATH + i] = next_byte(t) % 5;
		mad[MAD_SMP_AT_RETURN_PATH + i] = next_byte(t) % 5;
	}
}

/* ---- what must hold ---- */

static bool is_trap(const uint8_t mad[MAD_BYTES])
{
	return mad[3] == MAD_TRAP && mad[1] == MAD_CLASS_SUBN_LID;
}

/* What the agents sent and delivered since then. */
static void must_be_one(const struct net *n, unsigned tail, unsigned got, bool was_trap)
{
	unsigned answers = 0, traps = 0;

	for (; tail != n->tail; tail++)
		is_trap(n->queue[tail % NET_QUEUE].mad) ? traps++ : answers++;
	for (; got != n->got_count; got++)
		is_trap(n->got[got % NET_LOG].mad) ? traps++ : answers++;
	must(answers <= 1 && traps <= TRAPS_MAX + (was_trap ? 1u : 0u));
}

static void must_be_possible(const struct net *n)
{
	for (uint32_t node = 0; node < n->topology->node_count; node++) {
		struct fabric_port_setting s;
		struct plug_port p;

		if (fabric_agents_get_port(n->agents, node, 1, &p))
			continue;
		must(!fabric_get_port(n->engine, node, 1, &s));
		must(p.state == s.state && s.mtu == 128u << p.mtu_active);
		must((p.state == MAD_PORT_DOWN) == !fabric_link_is_up(n->engine, node, 1));
		must(p.lid < FABRIC_LID_MULTICAST && !(p.lid & ((1u << p.lmc) - 1)));
		must(p.mtu_active >= 1 && p.mtu_active <= p.mtu_max && p.guids[0]);
	}
}

/* Carries what waits; it ends, because each MAD causes at most one. */
static void carry(struct net *n)
{
	const unsigned limit = n->tail + 1000;

	net_run(n);
	must(n->tail < limit);
}

/* The data of the last MAD that an agent sent or delivered since then, if there is one. */
static void take_data(const struct net *n, unsigned tail, unsigned got, uint8_t mad[MAD_BYTES])
{
	const uint8_t *from = n->tail != tail ? n->queue[(n->tail - 1) % NET_QUEUE].mad :
		n->got_count != got ? n->got[(n->got_count - 1) % NET_LOG].mad : NULL;

	if (from && from[3] == MAD_GET_RESP)
		memcpy(mad + MAD_DATA_AT, from + MAD_DATA_AT,
		       mad[1] == MAD_CLASS_SUBN_DIRECTED ? 64 : MAD_BYTES - MAD_DATA_AT);
}

/* Makes of a Set one that changes some bytes of what a Get shows. */
static void make_change(struct net *n, struct tape *t, uint32_t node, uint8_t port, uint8_t mad[MAD_BYTES],
			const struct agent_address *address)
{
	const unsigned tail = n->tail, got = n->got_count, count = next_byte(t) % 4;

	mad[3] = MAD_GET;
	fabric_agents_receive(n->agents, node, port, mad, address, n->now_ns);
	take_data(n, tail, got, mad);
	carry(n);
	mad[3] = MAD_SET;
	if (get_16(mad + 16) == MAD_ATTR_PORT_INFO && next_byte(t) % 4)
		mad[MAD_DATA_AT + 32] &= 0xf0, mad[MAD_DATA_AT + 33] &= 0x0f; /* no change of the states */
	for (unsigned i = 0; i < count; i++) {
		const unsigned at = MAD_DATA_AT + next_byte(t) % 64;

		mad[at] = next_byte(t) % 2 ? next_byte(t) : mad[at] ^ (uint8_t)(1u << next_byte(t) % 8);
	}
}

static void visit(struct net *n, struct tape *t, uint32_t node, uint8_t port)
{
	struct agent_address address = {.slid = next_byte(t) % 8, .dlid = next_byte(t) % 8, .src_qp = 1};
	uint8_t mad[MAD_BYTES];
	unsigned tail, got;

	make_mad(t, mad);
	address.dest_qp = mad[1] != MAD_CLASS_SUBN_LID && mad[1] != MAD_CLASS_SUBN_DIRECTED;
	if (address.dlid >= 4)
		address.slid = address.dlid = MAD_LID_PERMISSIVE;
	else if (next_byte(t) % 8)
		address.dlid = (uint16_t)(node + 1);
	if (mad[3] == MAD_SET && next_byte(t) % 2)
		make_change(n, t, node, port, mad, &address);
	tail = n->tail;
	got = n->got_count;
	if (next_byte(t) % 2)
		fabric_agents_submit(n->agents, node, port, mad, &address, n->now_ns);
	else
		fabric_agents_receive(n->agents, node, port, mad, &address, n->now_ns);
	must_be_one(n, tail, got, is_trap(mad));
	carry(n);
}

static void other(struct net *n, struct tape *t, uint32_t node, uint8_t port)
{
	struct agent_violation v = {.key = next_byte(t), .slid = next_byte(t), .qkey = next_byte(t) % 2};
	const struct agent_becn b = {.local_qp = next_byte(t), .sl = next_byte(t) % 20};

	switch (next_byte(t) % 8) {
	case 0:
		fabric_agents_cable(n->agents, node, port, false, n->now_ns);
		break;
	case 1:
		fabric_agents_cable(n->agents, node, port, true, n->now_ns);
		break;
	case 2:
		fabric_agents_violation(n->agents, node, port, &v, n->now_ns);
		break;
	case 3:
		fabric_agents_switch_violation(n->agents, node, port, &v, n->now_ns);
		break;
	case 4:
		fabric_agents_set_capability(n->agents, node, port, next_byte(t), next_byte(t), n->now_ns);
		fabric_agents_set_capability(n->agents, node, port, MAD_CAP_SM, 0, n->now_ns);
		break;
	case 5:
		fabric_agents_becn(n->agents, node, port, &b, n->now_ns);
		fabric_agents_marked(n->agents, node, port, 1, 2, b.sl, n->now_ns);
		break;
	default:
		n->now_ns += UINT64_C(1) << next_byte(t) % 36;
		fabric_agents_tick(n->agents, n->now_ns);
		must(fabric_agents_next_ns(n->agents) > n->now_ns);
	}
	carry(n);
}

/* As a manager leaves it: LIDs from 1, a manager at LID 1, ports that are active. */
static void set_port(struct net *n, uint32_t node, uint8_t number, uint16_t lid, uint8_t state)
{
	const struct agent_address address = {.slid = MAD_LID_PERMISSIVE, .dlid = MAD_LID_PERMISSIVE};
	struct mad_smp smp = {.mgmt_class = MAD_CLASS_SUBN_DIRECTED, .class_version = 1, .method = MAD_GET,
			      .attr_id = MAD_ATTR_PORT_INFO, .attr_mod = number, .hop_pointer = 1,
			      .hop_count = 1, .dr_slid = MAD_LID_PERMISSIVE, .dr_dlid = MAD_LID_PERMISSIVE};
	struct mad_port_info info;
	uint8_t mad[MAD_BYTES];

	for (int i = 0; i < 2; i++) {
		must(mad_smp_pack(&smp, mad));
		fabric_agents_receive(n->agents, node, 1, mad, &address, n->now_ns);
		take_data(n, n->tail - 1, n->got_count, mad);
		mad_port_info_unpack(mad + MAD_DATA_AT, &info);
		info.lid = lid;
		info.master_sm_lid = lid ? 1 : 0;
		info.port_physical_state = 0;
		info.port_state = number || lid > 0 ? state : 0;
		mad_port_info_pack(&info, smp.data);
		smp.method = MAD_SET;
	}
	carry(n);
}

static void prepare(struct net *n, struct tape *t)
{
	for (uint8_t state = MAD_PORT_ARMED; state <= MAD_PORT_ACTIVE; state++)
		for (uint32_t node = 0; node < n->topology->node_count; node++) {
			const struct topology_node *what = &n->topology->nodes[node];
			const bool is_switch = what->kind == TOPOLOGY_SWITCH;

			set_port(n, node, 0, (uint16_t)(node + 1), state);
			for (unsigned port = 1; is_switch && port <= what->port_count; port++)
				set_port(n, node, (uint8_t)port, 0, state);
		}
	for (uint32_t node = 0; node < n->topology->node_count; node++)
		for (uint16_t lid = 1; lid <= n->topology->node_count; lid++) {
			const uint8_t way = lid == node + 1u ? 0 : next_byte(t) % (n->topology->nodes[node].port_count + 1u);

			fabric_set_forwarding(n->engine, node, lid, &way, 1);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const subnets[] = {"single:2", "ring:3", "line:2,width=12x,speed=SDR",
					      "single:2,width=2x,speed=NDR"};
	struct tape t = {data, data + size};
	struct net n;

	net_open(&n, subnets[next_byte(&t) % (sizeof(subnets) / sizeof(subnets[0]))], NULL);
	if (next_byte(&t) % 4)
		prepare(&n, &t);
	while (t.at < t.end) {
		const uint32_t node = next_byte(&t) % (n.topology->node_count + 1);
		const uint8_t port = pick(&t, (const uint8_t[]){1, 1, 1, 1, 2, 3, 0, 4}, 8);

		if (next_byte(&t) % 8)
			visit(&n, &t, node, port);
		else
			other(&n, &t, node, port);
		must_be_possible(&n);
	}
	net_close(&n);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	for (size_t i = 0; i < capacity; i++)
		bytes[i] = (uint8_t)random_below(256);
	return capacity;
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 5000, INPUT_BYTES, make);
}
#endif
