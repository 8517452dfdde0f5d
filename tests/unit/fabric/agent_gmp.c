/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance agent, with packets that the engine counts, and the congestion control agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent_net.h"
#include "wire/bytes.h"
#include "wire/mad/cc.h"
#include "wire/mad/perf.h"

#define HOST_LID 1
#define OTHER_LID 2
#define SWITCH_LID 3

struct fixture {
	struct net net;
	uint32_t host, other, sw;
	uint8_t mad[MAD_BYTES];
};

static void set_port(struct fixture *f, const uint8_t *path, uint32_t port, uint16_t lid, uint8_t state)
{
	struct mad_port_info info;

	assert_int_equal(net_get_port_info(&f->net, f->host, path, port, &info), 0);
	info.lid = lid;
	info.port_state = state;
	info.port_physical_state = 0;
	assert_int_equal(net_set_port_info(&f->net, f->host, path, port, &info), 0);
}

/* Two hosts at a switch, with LIDs and all ports active. */
static int begin(void **state)
{
	static const uint8_t self[] = {0}, to_switch[] = {1, 0}, to_other[] = {1, 2, 0};
	static struct fixture f;

	net_open(&f.net, "single:2", NULL);
	f.host = net_node(&f.net, "host-1");
	f.other = net_node(&f.net, "host-2");
	f.sw = net_node(&f.net, "switch-1");
	set_port(&f, to_switch, 0, SWITCH_LID, 0);
	assert_int_equal(fabric_set_forwarding(f.net.engine, f.sw, 0, (const uint8_t[]){255, 1, 2, 0}, 4), 0);
	for (uint8_t port_state = MAD_PORT_ARMED; port_state <= MAD_PORT_ACTIVE; port_state++) {
		set_port(&f, self, 0, HOST_LID, port_state);
		set_port(&f, to_other, 0, OTHER_LID, port_state);
		set_port(&f, to_switch, 1, 0, port_state);
		set_port(&f, to_switch, 2, 0, port_state);
	}
	*state = &f;
	return 0;
}

static int end(void **state)
{
	net_close(&((struct fixture *)*state)->net);
	return 0;
}

/* `bytes` long packets from host-1 to host-2. */
static void traffic(struct fixture *f, unsigned packets, unsigned bytes)
{
	for (unsigned i = 0; i < packets; i++) {
		struct fabric_packet *p = fabric_packet(f->net.engine);

		assert_non_null(p);
		p->bytes = bytes;
		p->slid = HOST_LID;
		p->dlid = OTHER_LID;
		p->pkey = 0xffff;
		assert_int_equal(fabric_send(f->net.engine, f->host, 1, p), 0);
		fabric_run(f->net.engine, fabric_now_ps(f->net.engine) + 1000000000, 0);
	}
}

/* host-1 asks: the status of the answer in f->mad, 0xffff if there is none. */
static uint16_t ask(struct fixture *f, uint16_t lid, uint8_t class, uint8_t method, uint16_t attribute,
		    uint32_t mod)
{
	static uint64_t tid = 100;
	const struct mad_header h = {.base_version = 1, .mgmt_class = class,
				     .class_version = class == MAD_CLASS_PERF ? 1 : 2, .method = method,
				     .tid = ++tid, .attr_id = attribute, .attr_mod = mod};

	mad_header_pack(&h, f->mad);
	return net_by_lid(&f->net, f->host, lid, 1, f->mad) ? get_16(f->mad + 4) : 0xffff;
}

static uint16_t ask_counters(struct fixture *f, uint16_t lid, uint8_t method, struct mad_port_counters *c)
{
	uint16_t status;

	memset(f->mad, 0, sizeof(f->mad));
	mad_port_counters_pack(c, f->mad + MAD_DATA_AT);
	status = ask(f, lid, MAD_CLASS_PERF, method, MAD_ATTR_PORT_COUNTERS, 0);
	mad_port_counters_unpack(f->mad + MAD_DATA_AT, c);
	return status;
}

static void class_port_info_says_what_there_is(void **state)
{
	static const uint8_t perf[] = {1, 1, 0x13, 0, 0, 0, 0, 16};
	struct fixture *f = *state;

	memset(f->mad, 0xee, sizeof(f->mad));
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET, MAD_ATTR_CLASS_PORT_INFO, 0), 0);
	assert_memory_equal(f->mad + MAD_DATA_AT, perf, sizeof(perf));
	for (unsigned i = MAD_DATA_AT + 8; i < MAD_BYTES; i++)
		assert_int_equal(f->mad[i], 0);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_CLASS_PORT_INFO, 0), 0);
	assert_int_equal(f->mad[MAD_DATA_AT + 1], 2);
	/* What is not supported, and a class that a switch has not. */
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET, 0x15, 0), MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET_TABLE, 1, 0), MAD_STATUS_BAD_METHOD);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_DEV_MGT, MAD_GET, 1, 0), MAD_STATUS_BAD_VERSION);
	/* A host's processes get other classes, and answer or not. */
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_DEV_MGT, MAD_GET, 1, 0), 0xffff);
	assert_int_equal(f->net.got[(f->net.got_count - 1) % NET_LOG].node, f->other);
}

static void counters_are_those_of_the_engine(void **state)
{
	struct mad_port_counters c = {.port_select = 1};
	struct mad_port_counters_extended x = {.port_select = 2};
	struct fixture *f = *state;

	/* 10 packets of 108 bytes with a VCRC of 2: 26 words and a half; words are whole. */
	traffic(f, 10, 110);
	assert_int_equal(ask_counters(f, HOST_LID, MAD_GET, &c), 0);
	assert_int_equal(c.xmit_pkts, 10);
	assert_int_equal(c.xmit_data, 10 * 27);
	assert_int_equal(c.rcv_pkts, 0);
	assert_int_equal(ask_counters(f, OTHER_LID, MAD_GET, &c), 0);
	assert_int_equal(c.rcv_pkts, 10);
	assert_int_equal(c.rcv_data, 10 * 27);
	memset(f->mad, 0, sizeof(f->mad));
	mad_port_counters_extended_pack(&x, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET, MAD_ATTR_PORT_COUNTERS_EXTENDED, 0), 0);
	mad_port_counters_extended_unpack(f->mad + MAD_DATA_AT, &x);
	assert_int_equal(x.xmit_pkts, 10);
	assert_int_equal(x.unicast_xmit_pkts, 10);
	assert_int_equal(x.xmit_data, 10 * 27);
	/* All ports of the switch: 10 in, 10 out. */
	c = (struct mad_port_counters){.port_select = 255};
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_GET, &c), 0);
	assert_int_equal(c.rcv_pkts, 10);
	assert_int_equal(c.xmit_pkts, 10);
	c.port_select = 3;
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_GET, &c), MAD_STATUS_BAD_VALUE);
	c.port_select = 0;
	assert_int_equal(ask_counters(f, HOST_LID, MAD_GET, &c), MAD_STATUS_BAD_VALUE);
}

static void a_mask_says_which_counters_are_written(void **state)
{
	struct mad_port_counters c = {.port_select = 2, .counter_select = 1 << 14};
	struct mad_port_counters_extended x = {.port_select = 2};
	struct fixture *f = *state;

	traffic(f, 3, 110);
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_SET, &c), 0);
	assert_int_equal(c.xmit_pkts, 0);
	assert_int_equal(c.xmit_data, 3 * 27); /* not selected */
	traffic(f, 1, 110);
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_GET, &c), 0);
	assert_int_equal(c.xmit_pkts, 1);
	/* The extended ones are others. */
	mad_port_counters_extended_pack(&x, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET, MAD_ATTR_PORT_COUNTERS_EXTENDED, 0), 0);
	mad_port_counters_extended_unpack(f->mad + MAD_DATA_AT, &x);
	assert_int_equal(x.xmit_pkts, 4);
	x.counter_select = 1 << 1 | 1 << 4;
	x.rcv_data = 17;
	x.unicast_xmit_pkts = 0;
	x.xmit_data = 1; /* not selected */
	mad_port_counters_extended_pack(&x, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_SET, MAD_ATTR_PORT_COUNTERS_EXTENDED, 0), 0);
	mad_port_counters_extended_unpack(f->mad + MAD_DATA_AT, &x);
	assert_int_equal(x.xmit_data, 4 * 27);
	assert_int_equal(x.rcv_data, 17);
	assert_int_equal(x.unicast_xmit_pkts, 0);
	assert_int_equal(x.xmit_pkts, 4);
	/* They stop at their greatest value. */
	c = (struct mad_port_counters){.port_select = 2, .counter_select = 0xffff,
				       .xmit_pkts = 0xfffffffe, .link_downed = 0xff};
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_SET, &c), 0);
	assert_int_equal(c.xmit_pkts, 0xfffffffe);
	traffic(f, 5, 110);
	fabric_agents_cable(f->net.agents, f->sw, 2, false, f->net.now_ns);
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_GET, &c), 0);
	assert_int_equal(c.xmit_pkts, 0xffffffff);
	assert_int_equal(c.link_downed, 0xff);
}

/* The switch lets no packet of another partition out of port 2. */
static void partitions_of_a_switch_are_enforced_and_counted(void **state)
{
	struct mad_smp smp = {.method = MAD_SET, .attr_id = MAD_ATTR_PKEY_TABLE, .attr_mod = 2 << 16, .tid = 7};
	struct mad_pkey_table pkeys = {.pkey = {0x8005}};
	struct mad_port_counters c = {.port_select = 2};
	struct fixture *f = *state;
	struct mad_port_info info;

	mad_pkey_table_pack(&pkeys, smp.data);
	assert_true(net_directed(&f->net, f->host, (const uint8_t[]){1, 0}, &smp));
	assert_int_equal(net_get_port_info(&f->net, f->host, (const uint8_t[]){1, 0}, 2, &info), 0);
	info.port_state = info.port_physical_state = 0;
	info.partition_enforcement_outbound = 1;
	assert_int_equal(net_set_port_info(&f->net, f->host, (const uint8_t[]){1, 0}, 2, &info), 0);
	traffic(f, 3, 110);
	assert_int_equal(ask_counters(f, SWITCH_LID, MAD_GET, &c), 0);
	assert_int_equal(c.xmit_pkts, 0);
	assert_int_equal(c.xmit_constraint_errors, 3);
}

static void a_period_of_sampling_counts_between_its_begin_and_its_end(void **state)
{
	struct mad_port_samples_control control = {.port_select = 2, .sample_start = 10,
						   .sample_interval = 1000, .tag = 7,
						   .counter_select = {3, 0, 1, 6}};
	struct mad_port_samples_result result;
	struct fixture *f = *state;

	memset(f->mad, 0, sizeof(f->mad));
	mad_port_samples_control_pack(&control, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_SET, MAD_ATTR_PORT_SAMPLES_CONTROL, 0),
			 MAD_STATUS_BAD_VALUE); /* 6 is none of the mandatory quantities */
	control.counter_select[3] = 5;
	mad_port_samples_control_pack(&control, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_SET, MAD_ATTR_PORT_SAMPLES_CONTROL, 0), 0);
	mad_port_samples_control_unpack(f->mad + MAD_DATA_AT, &control);
	assert_int_equal(control.sample_status, 1); /* it begins later */
	assert_int_equal(control.counter_width, 4);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_SET, MAD_ATTR_PORT_SAMPLES_CONTROL, 0),
			 MAD_STATUS_BUSY);
	traffic(f, 5, 110);
	assert_int_equal(fabric_agents_next_ns(f->net.agents), f->net.now_ns + 200);
	f->net.now_ns += 200;
	fabric_agents_tick(f->net.agents, f->net.now_ns);
	traffic(f, 2, 110);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET, MAD_ATTR_PORT_SAMPLES_RESULT, 0), 0);
	mad_port_samples_result_unpack(f->mad + MAD_DATA_AT, &result);
	assert_int_equal(result.sample_status, 2);
	f->net.now_ns += 20000;
	fabric_agents_tick(f->net.agents, f->net.now_ns);
	traffic(f, 9, 110);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_PERF, MAD_GET, MAD_ATTR_PORT_SAMPLES_RESULT, 0), 0);
	mad_port_samples_result_unpack(f->mad + MAD_DATA_AT, &result);
	assert_int_equal(result.sample_status, 0);
	assert_int_equal(result.tag, 7);
	assert_int_equal(result.counter[0], 2);
	assert_int_equal(result.counter[1], 0);
	assert_int_equal(result.counter[2], 2 * 27);
	assert_int_equal(fabric_agents_next_ns(f->net.agents), UINT64_MAX);
}

/* ---- congestion control ---- */

static void switches_take_what_the_control_map_names(void **state)
{
	struct mad_switch_congestion_setting want = {
		.control_map = MAD_CONTROL_THRESHOLD | MAD_CONTROL_VICTIM_MASK, .threshold = 15,
		.packet_size = 8, .marking_rate = 99, .victim_mask = {[31] = 0x6},
	};
	struct mad_switch_port_congestion_setting ports = {.port = {[1] = {.valid = 1, .threshold = 3}}};
	struct fixture *f = *state;

	memset(f->mad, 0, sizeof(f->mad));
	mad_switch_congestion_setting_pack(&want, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_SWITCH_CONGESTION_SETTING, 0), 0);
	mad_switch_congestion_setting_unpack(f->mad + MAD_DATA_AT, &want);
	assert_int_equal(want.threshold, 15);
	assert_int_equal(want.marking_rate, 0);
	assert_int_equal(want.victim_mask[31], 6);
	mad_switch_port_congestion_setting_pack(&ports, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_SET,
			     MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING, 0), 0);
	ports.port[1].valid = 0;
	ports.port[2] = (struct mad_switch_port_congestion){.valid = 1, .threshold = 5, .marking_rate = 7};
	mad_switch_port_congestion_setting_pack(&ports, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_SET,
			     MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING, 0), 0);
	mad_switch_port_congestion_setting_unpack(f->mad + MAD_DATA_AT, &ports);
	assert_int_equal(ports.port[2].marking_rate, 7); /* the last port */
	/* Without its bit in the control map nothing changes. */
	want.control_map = MAD_CONTROL_MARKING_RATE;
	want.marking_rate = 8;
	want.victim_mask[31] = 0;
	want.threshold = 1;
	mad_switch_congestion_setting_pack(&want, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_SWITCH_CONGESTION_SETTING, 0), 0);
	mad_switch_congestion_setting_unpack(f->mad + MAD_DATA_AT, &want);
	assert_int_equal(want.threshold, 15);
	assert_int_equal(want.marking_rate, 8);
	assert_int_equal(want.victim_mask[31], 6);
	ports.port[1].valid = 1;
	ports.port[1].control_type = 1;
	mad_switch_port_congestion_setting_pack(&ports, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_SET,
			     MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING, 0), MAD_STATUS_BAD_VALUE);
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_GET,
			     MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING, 1), MAD_STATUS_BAD_VALUE);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_SWITCH_CONGESTION_SETTING, 0),
			 MAD_STATUS_BAD_METHOD_ATTRIBUTE);
}

static void adapters_take_tables_and_settings_that_fit(void **state)
{
	struct mad_congestion_control_table table = {.ccti_limit = 70, .entry = {[2] = {3, 5}}};
	struct mad_ca_congestion_setting set = {.port_control = 1, .control_map = 1 << 3,
						.sl = {[3] = {150, 1, 2, 71}}};
	struct fixture *f = *state;

	memset(f->mad, 0, sizeof(f->mad));
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_CONGESTION_INFO, 0), 0);
	assert_memory_equal(f->mad + MAD_DATA_AT, ((const uint8_t[]){0, 0, 2, 0}), 4);
	mad_congestion_control_table_pack(&table, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_CONTROL_TABLE, 1), 0);
	assert_memory_equal(f->mad + MAD_DATA_AT, ((const uint8_t[]){0, 70, 0, 0, 0, 0, 0, 0, 0xc0, 5}), 10);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_CONTROL_TABLE, 2),
			 MAD_STATUS_BAD_VALUE);
	/* CCTI_Min above CCTI_Limit. */
	mad_ca_congestion_setting_pack(&set, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CA_CONGESTION_SETTING, 0),
			 MAD_STATUS_BAD_VALUE);
	assert_false(fabric_agents_by_sl(f->net.agents, f->other, 1));
	set.sl[3].ccti_min = 70;
	mad_ca_congestion_setting_pack(&set, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CA_CONGESTION_SETTING, 0), 0);
	assert_true(fabric_agents_by_sl(f->net.agents, f->other, 1));
	table.ccti_limit = 69;
	mad_congestion_control_table_pack(&table, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_CONTROL_TABLE, 0),
			 MAD_STATUS_BAD_VALUE);
}

static void cc_keys_protect(void **state)
{
	struct mad_congestion_key_info key = {.cc_key = 0x4711, .cc_key_protect = 1, .cc_key_lease_period = 5};
	struct fixture *f = *state;

	memset(f->mad, 0, sizeof(f->mad));
	mad_congestion_key_info_pack(&key, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_KEY_INFO, 0), 0);
	put_64(f->mad + MAD_CC_KEY_AT, 0x4712);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_TIME_STAMP, 0), 0xffff);
	put_64(f->mad + MAD_CC_KEY_AT, 0x4711);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_CONGESTION_KEY_INFO, 0), 0);
	mad_congestion_key_info_unpack(f->mad + MAD_DATA_AT, &key);
	assert_int_equal(key.cc_key_violations, 1);
	assert_int_equal(key.cc_key, 0x4711);
	/* Violations can be cleared, and only so. */
	key.cc_key_violations = 9;
	mad_congestion_key_info_pack(&key, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_KEY_INFO, 0), 0);
	mad_congestion_key_info_unpack(f->mad + MAD_DATA_AT, &key);
	assert_int_equal(key.cc_key_violations, 1);
	key.cc_key_violations = 0;
	mad_congestion_key_info_pack(&key, f->mad + MAD_DATA_AT);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_KEY_INFO, 0), 0);
	mad_congestion_key_info_unpack(f->mad + MAD_DATA_AT, &key);
	assert_int_equal(key.cc_key_violations, 0);
	/* A wrong key starts the lease; when it ends, everybody reads. */
	put_64(f->mad + MAD_CC_KEY_AT, 0);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_TIME_STAMP, 0), 0xffff);
	f->net.now_ns += UINT64_C(5000000000);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_TIME_STAMP, 0), 0);
	assert_int_equal(get_32(f->mad + MAD_DATA_AT), f->net.now_ns / 1024);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_SET, MAD_ATTR_CONGESTION_KEY_INFO, 0), 0xffff);
}

static void logs_have_the_newest_event_first(void **state)
{
	struct agent_becn b = {.local_qp = 5, .remote_qp = 6, .local_lid = 2, .remote_lid = 1, .sl = 3};
	struct mad_congestion_log_ca of_port;
	struct mad_congestion_log_switch of_switch;
	struct fixture *f = *state;

	memset(f->mad, 0xee, sizeof(f->mad));
	put_64(f->mad + MAD_CC_KEY_AT, 0);
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_CONGESTION_LOG, 0), 0);
	assert_memory_equal(f->mad + MAD_CC_LOG_AT, ((const uint8_t[]){MAD_LOG_CA, 0, 0, 0, 0, 0}), 6);
	for (unsigned i = MAD_CC_LOG_AT + 12; i < MAD_BYTES; i++)
		assert_int_equal(f->mad[i], 0);
	for (unsigned i = 0; i < 20; i++) {
		b.local_qp = i;
		assert_int_equal(fabric_agents_becn(f->net.agents, f->other, 1, &b, 1024 * i), 0);
	}
	assert_true(fabric_agents_becn(f->net.agents, f->sw, 1, &b, 1) < 0);
	assert_int_equal(fabric_agents_marked(f->net.agents, f->sw, 2, 1, 2, 0, 2048), 0);
	memset(f->mad, 0, sizeof(f->mad));
	assert_int_equal(ask(f, OTHER_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_CONGESTION_LOG, 0), 0);
	mad_congestion_log_ca_unpack(f->mad + MAD_CC_LOG_AT, &of_port);
	assert_int_equal(of_port.log_type, MAD_LOG_CA);
	assert_int_equal(of_port.threshold_event_counter, 20);
	assert_int_equal(of_port.threshold_event_map, 1 << 3);
	assert_int_equal(of_port.event[0].local_qp, 19);
	assert_int_equal(of_port.event[12].local_qp, 7);
	assert_int_equal(of_port.event[12].time_stamp, 7);
	memset(f->mad, 0, sizeof(f->mad));
	assert_int_equal(ask(f, SWITCH_LID, MAD_CLASS_CONG_MGT, MAD_GET, MAD_ATTR_CONGESTION_LOG, 0), 0);
	mad_congestion_log_switch_unpack(f->mad + MAD_CC_LOG_AT, &of_switch);
	assert_int_equal(of_switch.log_events_counter, 1);
	assert_true(mad_cc_port(of_switch.port_map, 2));
	assert_int_equal(of_switch.event[0].dlid, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(class_port_info_says_what_there_is, begin, end),
		cmocka_unit_test_setup_teardown(counters_are_those_of_the_engine, begin, end),
		cmocka_unit_test_setup_teardown(a_mask_says_which_counters_are_written, begin, end),
		cmocka_unit_test_setup_teardown(partitions_of_a_switch_are_enforced_and_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_period_of_sampling_counts_between_its_begin_and_its_end, begin, end),
		cmocka_unit_test_setup_teardown(switches_take_what_the_control_map_names, begin, end),
		cmocka_unit_test_setup_teardown(adapters_take_tables_and_settings_that_fit, begin, end),
		cmocka_unit_test_setup_teardown(cc_keys_protect, begin, end),
		cmocka_unit_test_setup_teardown(logs_have_the_newest_event_first, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
