/* SPDX-License-Identifier: BSD-2-Clause */
/* Traps and the states of links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent_net.h"
#include "wire/mad/notice.h"

#define SECOND UINT64_C(1000000000)
#define TIMEOUT_NS (UINT64_C(4096) << 18) /* SubnetTimeOut 18 */

/* host-1 with the manager at port 1 of switch-1, host-2 at port 2. */
struct fixture {
	struct net net;
	uint32_t host, other, sw;
	struct mad_notice trap; /* the last */
	struct mad_smp trap_smp;
	unsigned traps;
};

static void on_delivered(void *arg, const struct net_mad *m)
{
	struct fixture *f = arg;
	struct mad_smp smp;

	if (m->node != f->host || !mad_smp_unpack(m->mad, MAD_BYTES, &smp) || smp.method != MAD_TRAP)
		return;
	f->trap_smp = smp;
	mad_notice_unpack(smp.data, &f->trap);
	f->traps++;
}

static struct mad_port_info get_port(struct fixture *f, const uint8_t *path, uint32_t port)
{
	struct mad_port_info info;

	assert_int_equal(net_get_port_info(&f->net, f->host, path, port, &info), 0);
	return info;
}

static uint16_t set_port(struct fixture *f, const uint8_t *path, uint32_t port, const struct mad_port_info *info)
{
	return net_set_port_info(&f->net, f->host, path, port, info);
}

static const uint8_t self[] = {0}, to_switch[] = {1, 0}, to_other[] = {1, 2, 0};

static void give_lid(struct fixture *f, const uint8_t *path, uint16_t lid)
{
	struct mad_port_info info = get_port(f, path, 0);

	info.lid = lid;
	info.master_sm_lid = 1;
	info.port_state = info.port_physical_state = 0;
	assert_int_equal(set_port(f, path, 0, &info), 0);
}

static int begin(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	net_open(&f.net, "single:2", NULL);
	f.host = net_node(&f.net, "host-1");
	f.other = net_node(&f.net, "host-2");
	f.sw = net_node(&f.net, "switch-1");
	f.net.delivered = on_delivered;
	f.net.arg = &f;
	*state = &f;
	assert_int_equal(fabric_set_forwarding(f.net.engine, f.sw, 0, (const uint8_t[]){255, 1, 2, 0}, 4), 0);
	return 0;
}

static int end(void **state)
{
	net_close(&((struct fixture *)*state)->net);
	return 0;
}

static void give_lids(struct fixture *f)
{
	give_lid(f, self, 1);
	give_lid(f, to_other, 2);
	give_lid(f, to_switch, 3);
}

static void tick(struct fixture *f, uint64_t ns)
{
	f->net.now_ns += ns;
	fabric_agents_tick(f->net.agents, f->net.now_ns);
	net_run(&f->net);
}

static void repress(struct fixture *f)
{
	const struct agent_address to = {.dlid = f->trap.issuer_lid};
	uint8_t mad[MAD_BYTES];

	f->trap_smp.method = MAD_TRAP_REPRESS;
	f->trap_smp.tid |= UINT64_C(7) << 32; /* as umad interfaces do */
	assert_true(mad_smp_pack(&f->trap_smp, mad));
	assert_int_equal(fabric_agents_submit(f->net.agents, f->host, 1, mad, &to, f->net.now_ns), 0);
	net_run(&f->net);
}

static void a_switch_repeats_its_trap_until_it_is_repressed(void **state)
{
	struct fixture *f = *state;
	struct mad_trap_link_state details;
	uint8_t toggle;

	give_lids(f);
	assert_int_equal(fabric_agents_cable(f->net.agents, f->other, 1, false, f->net.now_ns), 0);
	net_run(&f->net);
	assert_int_equal(f->traps, 1);
	assert_int_equal(f->trap.trap_number, MAD_TRAP_LINK_STATE_CHANGE);
	assert_int_equal(f->trap.type, MAD_NOTICE_URGENT);
	assert_int_equal(f->trap.producer_type, MAD_NODE_SWITCH);
	assert_int_equal(f->trap.issuer_lid, 3);
	mad_trap_link_state_unpack(f->trap.details, &details);
	assert_int_equal(details.lid, 3);
	toggle = f->trap.toggle;

	/* Each wait is twice as long. */
	tick(f, TIMEOUT_NS - 1);
	assert_int_equal(f->traps, 1);
	tick(f, 1);
	assert_int_equal(f->traps, 2);
	tick(f, 2 * TIMEOUT_NS - 1);
	assert_int_equal(f->traps, 2);
	tick(f, 1);
	assert_int_equal(f->traps, 3);
	/* A manager that is away for long costs little. */
	for (int i = 0; i < 1000; i++)
		tick(f, 4 * SECOND);
	assert_in_range(f->traps, 60, 70);
	repress(f);
	f->traps = 0;
	tick(f, 1000 * SECOND);
	assert_int_equal(f->traps, 0);
	assert_int_equal(fabric_agents_next_ns(f->net.agents), UINT64_MAX);

	fabric_agents_cable(f->net.agents, f->other, 1, true, f->net.now_ns);
	net_run(&f->net);
	assert_int_equal(f->traps, 1);
	assert_int_not_equal(f->trap.toggle, toggle);
}

static void a_repress_does_not_mean_a_later_change(void **state)
{
	struct fixture *f = *state;

	give_lids(f);
	fabric_agents_cable(f->net.agents, f->other, 1, false, f->net.now_ns);
	net_run(&f->net);
	/* The second change happens before the manager represses the trap of the first; there is at most
	 * one trap in a SubnetTimeOut. */
	fabric_agents_cable(f->net.agents, f->other, 1, true, f->net.now_ns + 5);
	net_run(&f->net);
	assert_int_equal(f->traps, 1);
	repress(f);
	tick(f, TIMEOUT_NS);
	assert_int_equal(f->traps, 2);
	repress(f);
	assert_int_equal(f->traps, 2);
	tick(f, 1000 * SECOND);
	assert_int_equal(f->traps, 2);
}

static void without_a_manager_nothing_is_sent(void **state)
{
	struct fixture *f = *state;

	fabric_agents_cable(f->net.agents, f->other, 1, false, f->net.now_ns);
	net_run(&f->net);
	assert_int_equal(f->net.sent, 0);
	assert_int_equal(fabric_agents_next_ns(f->net.agents), UINT64_MAX);
}

static void a_cable_takes_both_ends_down_and_up(void **state)
{
	struct fixture *f = *state;
	struct mad_port_info info;
	struct fabric_port_setting s;
	struct mad_smp smp = {.method = MAD_GET, .attr_id = MAD_ATTR_SWITCH_INFO, .tid = 9};

	give_lids(f);
	fabric_agents_cable(f->net.agents, f->sw, 2, false, f->net.now_ns);
	net_run(&f->net);
	info = get_port(f, to_switch, 2);
	assert_int_equal(info.port_state, MAD_PORT_DOWN);
	assert_int_equal(info.port_physical_state, MAD_PHYSICAL_POLLING);
	assert_int_equal(f->net.changed_node, f->other);
	assert_int_equal(f->net.changed.state, MAD_PORT_DOWN);
	assert_int_equal(f->net.changed.lid, 2); /* it stays */
	assert_false(fabric_link_is_up(f->net.engine, f->sw, 2));
	assert_true(net_directed(&f->net, f->host, to_switch, &smp));
	assert_int_equal(smp.data[11] & 4, 4); /* PortStateChange */
	smp.method = MAD_SET;
	assert_true(net_directed(&f->net, f->host, to_switch, &smp));
	assert_int_equal(smp.data[11] & 4, 0);
	/* ARMED is not for a port that is down. */
	info.port_state = MAD_PORT_ARMED;
	info.port_physical_state = 0;
	assert_int_equal(set_port(f, to_switch, 2, &info), MAD_STATUS_BAD_VALUE);
	fabric_agents_cable(f->net.agents, f->other, 1, true, f->net.now_ns);
	net_run(&f->net);
	assert_int_equal(get_port(f, to_switch, 2).port_state, MAD_PORT_INIT);
	assert_int_equal(get_port(f, to_other, 0).port_state, MAD_PORT_INIT);
	assert_int_equal(fabric_get_port(f->net.engine, f->other, 1, &s), 0);
	assert_int_equal(s.state, FABRIC_PORT_INIT);
	assert_true(fabric_agents_cable(f->net.agents, f->other, 2, true, 0) < 0);
}

/* Not by the agents: the engine says so. */
static void what_the_engine_takes_down_is_down(void **state)
{
	struct fixture *f = *state;

	give_lids(f);
	assert_int_equal(fabric_set_link(f->net.engine, f->other, 1, false), 0);
	net_run(&f->net);
	assert_int_equal(f->traps, 1);
	assert_int_equal(get_port(f, to_switch, 2).port_state, MAD_PORT_DOWN);
	assert_int_equal(fabric_set_link(f->net.engine, f->other, 1, true), 0);
	assert_int_equal(get_port(f, to_switch, 2).port_state, MAD_PORT_INIT);
	assert_int_equal(get_port(f, to_other, 0).port_state, MAD_PORT_INIT);
}

static void a_disabled_port_stays_down(void **state)
{
	struct fixture *f = *state;
	struct mad_port_info want = get_port(f, to_switch, 2);

	want.port_state = MAD_PORT_DOWN;
	want.port_physical_state = MAD_PHYSICAL_DISABLED;
	assert_int_equal(set_port(f, to_switch, 2, &want), 0);
	assert_int_equal(get_port(f, to_switch, 2).port_physical_state, MAD_PHYSICAL_DISABLED);
	assert_false(fabric_link_is_up(f->net.engine, f->sw, 2));
	fabric_agents_cable(f->net.agents, f->sw, 2, false, f->net.now_ns);
	fabric_agents_cable(f->net.agents, f->sw, 2, true, f->net.now_ns);
	assert_int_equal(get_port(f, to_switch, 2).port_state, MAD_PORT_DOWN);
	want.port_state = 0;
	want.port_physical_state = MAD_PHYSICAL_POLLING;
	assert_int_equal(set_port(f, to_switch, 2, &want), 0);
	assert_int_equal(get_port(f, to_switch, 2).port_state, MAD_PORT_INIT);
	assert_true(fabric_link_is_up(f->net.engine, f->sw, 2));
}

/* How long a management packet of 4,000 bytes is on the cable from the switch to host-2. */
static uint64_t flight_ps(struct fixture *f)
{
	const uint64_t start = fabric_now_ps(f->net.engine);
	struct fabric_packet *p = fabric_packet(f->net.engine);

	assert_non_null(p);
	p->bytes = 4000;
	p->dlid = 0xffff;
	p->lane = FABRIC_LANE_MANAGEMENT;
	assert_int_equal(fabric_send(f->net.engine, f->sw, 2, p), 0);
	while (fabric_packets_inside(f->net.engine) && fabric_next_ps(f->net.engine) != FABRIC_NEVER)
		fabric_run(f->net.engine, fabric_next_ps(f->net.engine), 0);
	return fabric_now_ps(f->net.engine) - start;
}

static void ends_agree_on_width_and_speed_when_they_train(void **state)
{
	struct fixture *f = *state;
	struct mad_port_info want = get_port(f, to_switch, 2);

	want.port_state = want.port_physical_state = 0;
	want.link_width_enabled = MAD_WIDTH_1X;
	want.link_speed_ext_enabled = MAD_SPEED_EXT_FDR;
	/* Without the bit of the modifier the manager knows no extended speeds. */
	assert_int_equal(set_port(f, to_switch, 2, &want), 0);
	assert_int_equal(get_port(f, to_switch, 2).link_width_active, MAD_WIDTH_4X);
	assert_int_equal(get_port(f, to_switch, 2).link_speed_ext_enabled, 3);
	want.port_state = MAD_PORT_DOWN;
	assert_int_equal(set_port(f, to_switch, 1u << 31 | 2, &want), 0);
	want = get_port(f, to_other, 0);
	assert_int_equal(want.link_width_active, MAD_WIDTH_1X);
	assert_int_equal(want.link_speed_ext_active, MAD_SPEED_EXT_FDR);
	assert_in_range(f->net.changed.link_bps_mbit, 13600, 14100);
	/* 4,000 bytes take 8 times as long as over 4x EDR, where they take 330 ns. */
	assert_in_range(flight_ps(f), 2200000, 2500000);
	fabric_agents_cable(f->net.agents, f->sw, 2, false, f->net.now_ns);
	want = get_port(f, to_switch, 2);
	want.port_state = 0;
	want.port_physical_state = 0;
	want.link_width_enabled = 255;
	want.link_speed_ext_enabled = 31;
	assert_int_equal(set_port(f, to_switch, 1u << 31 | 2, &want), 0);
	fabric_agents_cable(f->net.agents, f->sw, 2, true, f->net.now_ns);
	assert_int_equal(get_port(f, to_other, 0).link_speed_ext_active, MAD_SPEED_EXT_EDR);
	assert_in_range(flight_ps(f), 300000, 350000);
}

static void keys_and_capabilities_cause_their_traps(void **state)
{
	struct agent_violation v = {.key = 0x7fff, .slid = 9, .dlid = 2, .sl = 3, .src_qp = 17, .dest_qp = 18};
	struct fixture *f = *state;
	struct mad_trap_key key;
	struct mad_trap_switch_pkey at_switch;
	struct mad_trap_capability capability;
	struct mad_trap_mkey mkey;
	struct mad_port_info want;

	give_lids(f);
	assert_int_equal(fabric_agents_violation(f->net.agents, f->other, 1, &v, f->net.now_ns), 0);
	net_run(&f->net);
	assert_int_equal(f->trap.trap_number, MAD_TRAP_BAD_PKEY);
	assert_int_equal(f->trap.producer_type, MAD_NODE_CA);
	mad_trap_key_unpack(f->trap.details, &key);
	assert_int_equal(key.key, 0x7fff);
	assert_int_equal(key.lid1, 9);
	assert_int_equal(key.qp2, 18);
	assert_int_equal(get_port(f, to_other, 0).pkey_violations, 1);
	v.qkey = true;
	assert_int_equal(fabric_agents_violation(f->net.agents, f->other, 1, &v, f->net.now_ns), 0);
	net_run(&f->net);
	assert_int_equal(f->trap.trap_number, MAD_TRAP_BAD_QKEY);
	assert_int_equal(get_port(f, to_other, 0).qkey_violations, 1);
	assert_int_equal(fabric_agents_switch_violation(f->net.agents, f->sw, 2, &v, f->net.now_ns), 0);
	net_run(&f->net);
	assert_int_equal(f->trap.trap_number, MAD_TRAP_SWITCH_BAD_PKEY);
	mad_trap_switch_pkey_unpack(f->trap.details, &at_switch);
	assert_int_equal(at_switch.switch_lid, 3);
	assert_int_equal(at_switch.port, 2);
	assert_int_equal(fabric_agents_set_capability(f->net.agents, f->other, 1, MAD_CAP_COMM_MGT, 0,
						      f->net.now_ns), 0);
	net_run(&f->net);
	assert_int_equal(f->trap.trap_number, MAD_TRAP_CAPABILITY_CHANGE);
	mad_trap_capability_unpack(f->trap.details, &capability);
	assert_true(capability.capability_mask & MAD_CAP_COMM_MGT);

	/* Counters of violations can be cleared, and only so. */
	want = get_port(f, to_other, 0);
	want.port_state = want.port_physical_state = 0;
	want.pkey_violations = 0;
	want.qkey_violations = 7;
	assert_int_equal(set_port(f, to_other, 0, &want), 0);
	assert_int_equal(get_port(f, to_other, 0).pkey_violations, 0);
	assert_int_equal(get_port(f, to_other, 0).qkey_violations, 1);
	want.qkey_violations = 0;
	assert_int_equal(set_port(f, to_other, 0, &want), 0);
	assert_int_equal(get_port(f, to_other, 0).qkey_violations, 0);

	want.mkey = 0x42;
	assert_int_equal(set_port(f, to_other, 0, &want), 0);
	assert_int_equal(set_port(f, to_other, 0, &want), 0xffff);
	assert_int_equal(f->trap.trap_number, MAD_TRAP_BAD_MKEY);
	mad_trap_mkey_unpack(f->trap.details, &mkey);
	assert_int_equal(mkey.method, MAD_SET);
	assert_int_equal(mkey.attr_id, MAD_ATTR_PORT_INFO);
	assert_int_equal(mkey.dr_hop_count, 2);
	assert_int_equal(mkey.dr_return_path[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_switch_repeats_its_trap_until_it_is_repressed, begin, end),
		cmocka_unit_test_setup_teardown(a_repress_does_not_mean_a_later_change, begin, end),
		cmocka_unit_test_setup_teardown(without_a_manager_nothing_is_sent, begin, end),
		cmocka_unit_test_setup_teardown(a_cable_takes_both_ends_down_and_up, begin, end),
		cmocka_unit_test_setup_teardown(what_the_engine_takes_down_is_down, begin, end),
		cmocka_unit_test_setup_teardown(a_disabled_port_stays_down, begin, end),
		cmocka_unit_test_setup_teardown(ends_agree_on_width_and_speed_when_they_train, begin, end),
		cmocka_unit_test_setup_teardown(keys_and_capabilities_cause_their_traps, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
