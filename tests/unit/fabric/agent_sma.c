/* SPDX-License-Identifier: BSD-2-Clause */
/* The subnet management agent: bytes of its attributes, which values a Set takes, M_Keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent_net.h"

/* host-1 at port 1 of switch-1, host-2 at port 2. */
#define SUBNET "single:2,speed=HDR"

static const uint8_t self[] = {0}, to_switch[] = {1, 0}, to_other[] = {1, 2, 0};

struct fixture {
	struct net net;
	uint32_t host, other, sw;
};

static int begin(void **state)
{
	static struct fixture f;

	net_open(&f.net, SUBNET, NULL);
	f.host = net_node(&f.net, "host-1");
	f.other = net_node(&f.net, "host-2");
	f.sw = net_node(&f.net, "switch-1");
	*state = &f;
	return 0;
}

static int end(void **state)
{
	net_close(&((struct fixture *)*state)->net);
	return 0;
}

/* Get or Set of host-1: the status; 0xffff: no answer. */
static uint16_t ask(struct fixture *f, const uint8_t *path, uint8_t method, uint16_t attribute, uint32_t mod,
		    struct mad_smp *smp)
{
	static uint64_t tid;

	smp->method = method;
	smp->attr_id = attribute;
	smp->attr_mod = mod;
	smp->status = 0;
	smp->tid = ++tid;
	return net_directed(&f->net, f->host, path, smp) ? smp->status : 0xffff;
}

static uint16_t get(struct fixture *f, const uint8_t *path, uint16_t attribute, uint32_t mod, struct mad_smp *smp)
{
	return ask(f, path, MAD_GET, attribute, mod, smp);
}

static struct mad_port_info port_info(struct fixture *f, const uint8_t *path, uint32_t port)
{
	struct mad_port_info info;

	assert_int_equal(net_get_port_info(&f->net, f->host, path, port, &info), 0);
	return info;
}

static uint16_t set_port_info(struct fixture *f, const struct mad_port_info *info)
{
	return net_set_port_info(&f->net, f->host, to_other, 0, info);
}

/* What PortInfo has when nothing shall change but one member. */
static struct mad_port_info unchanged(struct fixture *f, const uint8_t *path)
{
	struct mad_port_info info = port_info(f, path, 0);

	info.port_state = info.port_physical_state = 0;
	return info;
}

static void identities_have_the_bytes_of_the_specification(void **state)
{
	static const uint8_t host_info[] = {
		1, 1, 1, 1,                          /* versions, CA, ports */
		0x02, 0, 0, 0, 0, 0, 0x02, 0,        /* SystemImageGUID */
		0x02, 0, 0, 0, 0, 0, 0x02, 0,        /* NodeGUID */
		0x02, 0, 0, 0, 0, 0, 0x02, 0x01,     /* PortGUID */
		0, 32, 0, 0, 0, 0, 0, 0,             /* PartitionCap, DeviceID, Revision */
		1, 0, 0, 0,                          /* LocalPortNum, VendorID */
	};
	static const uint8_t switch_info[] = {
		0xc0, 0, 0, 0, 4, 0,                 /* entries: linear, random, multicast */
		0, 0, 0, 0xff, 0xff,                 /* LinearFDBTop, default ports */
		18 << 3 | 4, 0, 0, 0, 32, 0xc0, 0, 0, 0, /* LifeTimeValue, PortStateChange; enforcement */
	};
	struct fixture *f = *state;
	struct mad_smp smp = {0};

	assert_int_equal(get(f, self, MAD_ATTR_NODE_DESCRIPTION, 0, &smp), 0);
	assert_string_equal((const char *)smp.data, "host-1");
	assert_int_equal(get(f, self, MAD_ATTR_NODE_INFO, 0, &smp), 0);
	assert_memory_equal(smp.data, host_info, sizeof(host_info));
	assert_int_equal(smp.data[63], 0);
	assert_int_equal(get(f, to_switch, MAD_ATTR_NODE_DESCRIPTION, 0, &smp), 0);
	assert_string_equal((const char *)smp.data, "switch-1");
	assert_int_equal(get(f, to_switch, MAD_ATTR_NODE_INFO, 0, &smp), 0);
	assert_int_equal(smp.data[2], MAD_NODE_SWITCH);
	assert_int_equal(smp.data[3], 2);
	assert_int_equal(smp.data[36], 1); /* LocalPortNum: where host-1 is */
	assert_int_equal(get(f, to_switch, MAD_ATTR_SWITCH_INFO, 0, &smp), 0);
	assert_memory_equal(smp.data, switch_info, sizeof(switch_info));
}

static void port_info_shows_the_link(void **state)
{
	static const uint8_t bytes[] = {
		0, 0, 0, 0, 0, 0, 0, 0,
		0xfe, 0x80, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,                      /* LID, MasterSMLID */
		0x02, 0x40, 0xca, 0x68,          /* CapabilityMask */
		0, 0, 0, 0,
		1, 3, 3, 2,                      /* LocalPortNum, widths: 1x and 4x, active 4x */
		7 << 4 | MAD_PORT_INIT,
		MAD_PHYSICAL_LINK_UP << 4 | MAD_PHYSICAL_POLLING,
		0, 4 << 4 | 7,                   /* M_Key, LMC; speeds */
		MAD_MTU_4096 << 4, MAD_VLS_8 << 4, 0, 64, 64,
		MAD_MTU_4096, 16, MAD_VLS_8 << 4,
		0, 0, 0, 0, 0, 0,                /* violations */
		8, 18, 16, 0,                    /* GUIDCap, SubnetTimeOut, RespTimeValue */
		0, 0, 0, 0, 0, 0,                /* MaxCreditHint, latency, reserved */
		0, 1 << 5,                       /* CapabilityMask2: HDR */
		4 << 4 | 7, 7,                   /* extended speeds: active HDR, supported, enabled */
	};
	struct fixture *f = *state;
	struct mad_smp smp = {0};

	assert_int_equal(get(f, self, MAD_ATTR_PORT_INFO, 0, &smp), 0);
	for (size_t i = 0; i < sizeof(bytes) - 3; i++)
		if (smp.data[i] != bytes[i])
			fail_msg("byte %zu: 0x%02x, not 0x%02x", i, smp.data[i], bytes[i]);
	assert_int_equal(port_info(f, self, 0).link_speed_ext_active, MAD_SPEED_EXT_HDR);
	assert_int_equal(port_info(f, self, 0).link_speed_ext_enabled, 7);
	assert_int_equal(port_info(f, to_switch, 0).port_state, MAD_PORT_ACTIVE);
	assert_int_equal(port_info(f, to_switch, 0).guid_cap, 1);
	assert_int_equal(port_info(f, to_switch, 2).port_state, MAD_PORT_INIT);
	assert_int_equal(port_info(f, to_switch, 2).gid_prefix, 0);
}

static void each_speed_has_its_bits_and_its_rate(void **state)
{
	static const struct {
		const char *subnet;
		uint8_t widths, width, speeds, speed, extended, active;
		uint16_t capability2;
		uint32_t mbit;
	} rows[] = {
		{"single:1,speed=SDR", 3, 2, 1, 1, 0, 0, 0, 8000},
		{"single:1,speed=DDR", 3, 2, 3, 2, 0, 0, 0, 16000},
		{"single:1,speed=QDR,width=1x", 1, 1, 7, 4, 0, 0, 0, 8000},
		{"single:1,speed=FDR10", 3, 2, 7, 4, 0, 0, 0, 40000}, /* a vendor's: shown as QDR */
		{"single:1,speed=FDR", 3, 2, 7, 4, 1, 1, 0, 54545},
		{"single:1,speed=EDR,width=12x", 11, 8, 7, 4, 3, 2, 0, 300000},
		{"single:1,speed=HDR,width=2x", 17, 16, 7, 4, 7, 4, 0x30, 100000},
		{"single:1,speed=NDR,width=8x", 7, 4, 7, 4, 15, 8, 0x420, 800000},
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mad_port_info info;
		struct plug_port p;

		net_open(&f.net, rows[i].subnet, NULL);
		f.host = net_node(&f.net, "host-1");
		info = port_info(&f, self, 0);
		assert_int_equal(info.link_width_supported, rows[i].widths);
		assert_int_equal(info.link_width_active, rows[i].width);
		assert_int_equal(info.link_speed_supported, rows[i].speeds);
		assert_int_equal(info.link_speed_active, rows[i].speed);
		assert_int_equal(info.link_speed_ext_supported, rows[i].extended);
		assert_int_equal(info.link_speed_ext_active, rows[i].active);
		assert_int_equal(info.capability_mask2, rows[i].capability2);
		assert_int_equal(fabric_agents_get_port(f.net.agents, f.host, 1, &p), 0);
		assert_in_range(p.link_bps_mbit, rows[i].mbit * 97 / 100, rows[i].mbit * 103 / 100);
		net_close(&f.net);
	}
}

static void what_there_is_not_has_its_status(void **state)
{
	static const struct {
		const uint8_t *path;
		uint8_t method;
		uint16_t attribute;
		uint32_t mod;
		uint16_t status;
	} rows[] = {
		{self, MAD_GET, MAD_ATTR_SWITCH_INFO, 0, MAD_STATUS_BAD_METHOD_ATTRIBUTE},
		{self, MAD_GET, MAD_ATTR_LINEAR_FORWARDING, 0, MAD_STATUS_BAD_METHOD_ATTRIBUTE},
		{to_switch, MAD_GET, MAD_ATTR_RANDOM_FORWARDING, 0, MAD_STATUS_BAD_METHOD_ATTRIBUTE},
		{to_switch, MAD_GET, 0xff90, 0, MAD_STATUS_BAD_METHOD_ATTRIBUTE},
		{self, MAD_SET, MAD_ATTR_NODE_INFO, 0, MAD_STATUS_BAD_METHOD_ATTRIBUTE},
		{self, MAD_GET, MAD_ATTR_SM_INFO, 0, MAD_STATUS_BAD_METHOD_ATTRIBUTE},
		{self, 0x15, MAD_ATTR_NODE_INFO, 0, MAD_STATUS_BAD_METHOD},
		{self, MAD_GET, MAD_ATTR_PORT_INFO, 2, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_PORT_INFO, 3, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_PORT_INFO, 0x101, MAD_STATUS_BAD_VALUE},
		{self, MAD_GET, MAD_ATTR_GUID_INFO, 1, MAD_STATUS_BAD_VALUE},
		{self, MAD_GET, MAD_ATTR_PKEY_TABLE, 1, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_PKEY_TABLE, 3 << 16, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_SL_TO_VL, 0x301, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_SL_TO_VL, 0x10101, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_VL_ARBITRATION, 0x00001, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_VL_ARBITRATION, 0x50001, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_LINEAR_FORWARDING, 768, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_MULTICAST_FORWARDING, 32, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_MULTICAST_FORWARDING, 1u << 28, MAD_STATUS_BAD_VALUE},
		{to_switch, MAD_GET, MAD_ATTR_LED_INFO, 3, MAD_STATUS_BAD_VALUE},
	};
	struct fixture *f = *state;
	struct mad_smp smp = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint16_t status = ask(f, rows[i].path, rows[i].method, rows[i].attribute, rows[i].mod, &smp);

		if (status != rows[i].status)
			fail_msg("row %zu: status 0x%x, not 0x%x", i, status, rows[i].status);
	}
	/* Neither an answer nor a Send is answered. */
	assert_int_equal(ask(f, self, MAD_SEND, MAD_ATTR_NODE_INFO, 0, &smp), 0xffff);
}

static void a_set_takes_right_values_and_nothing_of_wrong_ones(void **state)
{
	struct fixture *f = *state;
	const struct mad_port_info start = unchanged(f, to_other);
	struct mad_port_info want;

#define REFUSED(member, value) \
	do { \
		want = start; \
		want.lid = 77; \
		want.member = value; \
		assert_int_equal(set_port_info(f, &want), MAD_STATUS_BAD_VALUE); \
		assert_int_equal(port_info(f, to_other, 0).lid, 0); \
	} while (0)
	REFUSED(lid, 0xc000);
	REFUSED(lid, 0xffff);
	REFUSED(lmc, 1); /* LID 77 has the lowest bit set */
	REFUSED(master_sm_lid, 0xc001);
	REFUSED(neighbor_mtu, 6);
	REFUSED(neighbor_mtu, 0);
	REFUSED(operational_vls, MAD_VLS_15);
	REFUSED(link_width_enabled, MAD_WIDTH_8X);
	REFUSED(link_speed_enabled, 8);
	REFUSED(link_down_default_state, 3);
	REFUSED(port_state, MAD_PORT_INIT);
	REFUSED(port_state, MAD_PORT_ACTIVE); /* not from INIT */
	REFUSED(port_state, 5);
	REFUSED(port_physical_state, MAD_PHYSICAL_LINK_UP);
#undef REFUSED
	want = start;
	want.lid = 8;
	want.lmc = 2;
	want.master_sm_lid = 3;
	want.master_sm_sl = 1;
	want.neighbor_mtu = MAD_MTU_2048;
	want.operational_vls = MAD_VLS_4;
	want.vl_high_limit = 9;
	want.subnet_timeout = 12;
	want.gid_prefix = 0x1122;
	want.client_reregister = 1;
	assert_int_equal(set_port_info(f, &want), 0);
	want = port_info(f, to_other, 0);
	assert_int_equal(want.lid, 8);
	assert_int_equal(want.lmc, 2);
	assert_int_equal(want.neighbor_mtu, MAD_MTU_2048);
	assert_int_equal(want.client_reregister, 0);
	/* Read-only members stay. */
	want.mtu_cap = want.vl_cap = 1;
	want.capability_mask = want.guid_cap = want.link_width_supported = 1;
	want.port_state = want.port_physical_state = 0;
	assert_int_equal(set_port_info(f, &want), 0);
	assert_int_equal(port_info(f, to_other, 0).capability_mask, start.capability_mask);
	assert_int_equal(port_info(f, to_other, 0).mtu_cap, MAD_MTU_4096);
}

static void settings_reach_the_engine_and_the_processes(void **state)
{
	struct fixture *f = *state;
	struct mad_port_info want = unchanged(f, to_other);
	struct fabric_port_setting s;
	struct plug_port p;

	want.lid = 8;
	want.master_sm_lid = 3;
	want.neighbor_mtu = MAD_MTU_1024;
	want.operational_vls = MAD_VLS_2;
	want.vl_high_limit = 9;
	want.client_reregister = 1;
	want.port_state = MAD_PORT_ARMED;
	assert_int_equal(set_port_info(f, &want), 0);
	assert_int_equal(fabric_get_port(f->net.engine, f->other, 1, &s), 0);
	assert_int_equal(s.state, FABRIC_PORT_ARMED);
	assert_int_equal(s.mtu, 1024);
	assert_int_equal(s.lanes, 2);
	assert_int_equal(s.high_limit, 9);
	assert_int_equal(f->net.changed_node, f->other);
	assert_int_equal(f->net.reregisters, 1);
	assert_int_equal(f->net.changed.client_reregister, 1);
	assert_int_equal(fabric_agents_get_port(f->net.agents, f->other, 1, &p), 0);
	assert_int_equal(p.lid, 8);
	assert_int_equal(p.state, MAD_PORT_ARMED);
	assert_int_equal(p.mtu_active, MAD_MTU_1024);
	assert_int_equal(p.client_reregister, 0);
	assert_int_equal(p.pkeys[0], 0xffff);
	assert_true(p.guids[0] != 0);
	/* 4x HDR: 200 Gbit/s and the code's loss. */
	assert_in_range(p.link_bps_mbit, 190000, 213000);
	want.port_state = MAD_PORT_ACTIVE;
	want.client_reregister = 0;
	assert_int_equal(set_port_info(f, &want), 0);
	assert_int_equal(fabric_get_port(f->net.engine, f->other, 1, &s), 0);
	assert_int_equal(s.state, FABRIC_PORT_ACTIVE);
	assert_int_equal(f->net.reregisters, 1);
	/* Not a host, and no such port. */
	assert_true(fabric_agents_get_port(f->net.agents, f->sw, 1, &p) < 0);
	assert_true(fabric_agents_get_port(f->net.agents, f->host, 2, &p) < 0);
}

static void a_switch_keeps_its_tables(void **state)
{
	struct mad_linear_forwarding linear;
	struct mad_multicast_forwarding multicast = {{0}};
	struct mad_sl_to_vl map;
	struct mad_vl_arbitration arbitration = {.entry = {{0, 10}, {1, 20}, {15, 30}}};
	struct mad_pkey_table pkeys = {.pkey = {0x8001, 0x0002}};
	struct mad_switch_info info;
	struct fixture *f = *state;
	struct mad_smp smp = {0};
	uint8_t ports[3], lanes[16];
	uint16_t masks[32];
	struct fabric_arbitration entries[3];

	memset(linear.port, MAD_FORWARDING_NONE, sizeof(linear.port));
	linear.port[0] = 2;
	linear.port[1] = 1;
	linear.port[2] = 77; /* there is no such port */
	mad_linear_forwarding_pack(&linear, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_LINEAR_FORWARDING, 2, &smp), 0);
	assert_int_equal(fabric_get_forwarding(f->net.engine, f->sw, 128, ports, 3), 0);
	assert_memory_equal(ports, ((const uint8_t[]){2, 1, 255}), 3);
	assert_int_equal(smp.data[2], 255);

	multicast.ports[3] = 0x6;
	mad_multicast_forwarding_pack(&multicast, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_MULTICAST_FORWARDING, 1, &smp), 0);
	assert_int_equal(fabric_get_multicast(f->net.engine, f->sw, 32, 0, masks), 0);
	assert_int_equal(masks[3], 0x6);

	/* At first each service level has a lane of its own, while there are enough. */
	assert_int_equal(get(f, to_switch, MAD_ATTR_SL_TO_VL, 0x102, &smp), 0);
	mad_sl_to_vl_unpack(smp.data, &map);
	for (uint8_t sl = 0; sl < 16; sl++)
		assert_int_equal(map.vl[sl], sl % 8);

	for (uint8_t sl = 0; sl < 16; sl++)
		map.vl[sl] = sl % 4;
	mad_sl_to_vl_pack(&map, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_SL_TO_VL, 0x102, &smp), 0);
	assert_int_equal(fabric_get_sl_to_lane(f->net.engine, f->sw, 1, 2, lanes), 0);
	assert_memory_equal(lanes, map.vl, sizeof(lanes));

	mad_vl_arbitration_pack(&arbitration, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_VL_ARBITRATION, 4 << 16 | 2, &smp), 0);
	assert_int_equal(fabric_get_arbitration(f->net.engine, f->sw, 2, true, 32, entries, 3), 0);
	assert_int_equal(entries[1].weight, 20);
	assert_int_equal(entries[2].weight, 0); /* management is not arbitrated */

	mad_pkey_table_pack(&pkeys, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_PKEY_TABLE, 2 << 16, &smp), 0);
	assert_int_equal(get(f, to_switch, MAD_ATTR_PKEY_TABLE, 2 << 16, &smp), 0);
	assert_memory_equal(smp.data, ((const uint8_t[]){0x80, 1, 0, 2, 0, 0}), 6);

	assert_int_equal(get(f, to_switch, MAD_ATTR_SWITCH_INFO, 0, &smp), 0);
	mad_switch_info_unpack(smp.data, &info);
	info.linear_fdb_top = 300;
	info.linear_fdb_cap = 5;
	mad_switch_info_pack(&info, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_SWITCH_INFO, 0, &smp), 0);
	mad_switch_info_unpack(smp.data, &info);
	assert_int_equal(info.linear_fdb_top, 300);
	assert_int_equal(info.linear_fdb_cap, 0xc000);
	info.linear_fdb_top = 0xc000;
	mad_switch_info_pack(&info, smp.data);
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_SWITCH_INFO, 0, &smp), MAD_STATUS_BAD_VALUE);
}

static void a_host_has_guids_and_keys_of_its_own(void **state)
{
	struct mad_pkey_table pkeys = {.pkey = {0xffff, 0x8005}};
	struct fixture *f = *state;
	struct mad_guid_info guids;
	struct mad_smp smp = {0};
	uint64_t own;

	assert_int_equal(get(f, to_other, MAD_ATTR_GUID_INFO, 0, &smp), 0);
	mad_guid_info_unpack(smp.data, &guids);
	own = guids.guid[0];
	assert_int_equal(guids.guid[1], 0);
	for (uint64_t i = 0; i < 8; i++)
		guids.guid[i] = 0x100 + i;
	mad_guid_info_pack(&guids, smp.data);
	assert_int_equal(ask(f, to_other, MAD_SET, MAD_ATTR_GUID_INFO, 0, &smp), 0);
	mad_guid_info_unpack(smp.data, &guids);
	assert_int_equal(guids.guid[0], own); /* the port's, which nobody changes */
	for (uint64_t i = 1; i < 8; i++) {
		assert_int_equal(guids.guid[i], 0x100 + i);
		assert_int_equal(f->net.changed.guids[i], 0x100 + i);
	}
	mad_pkey_table_pack(&pkeys, smp.data);
	assert_int_equal(ask(f, to_other, MAD_SET, MAD_ATTR_PKEY_TABLE, 0, &smp), 0);
	assert_int_equal(f->net.changed.pkeys[1], 0x8005);
	assert_int_equal(f->net.changed_node, f->other);
	/* One LED for each port. */
	memset(smp.data, 0xff, sizeof(smp.data));
	assert_int_equal(ask(f, to_switch, MAD_SET, MAD_ATTR_LED_INFO, 2, &smp), 0);
	assert_int_equal(smp.data[0], 0x80);
	assert_int_equal(get(f, to_switch, MAD_ATTR_LED_INFO, 1, &smp), 0);
	assert_int_equal(smp.data[0], 0);
}

static void mkeys_protect_a_port_until_their_lease_ends(void **state)
{
	struct fixture *f = *state;
	struct mad_port_info want = unchanged(f, to_other);
	struct fabric_agents_counts c;
	struct mad_smp smp = {0};

	want.mkey = 0x42;
	want.mkey_protect_bits = 1;
	want.mkey_lease_period = 10;
	assert_int_equal(set_port_info(f, &want), 0);

	/* Level 1: everybody reads, nobody sees the key. */
	assert_int_equal(port_info(f, to_other, 0).mkey, 0);
	smp.mkey = 0x42;
	assert_int_equal(get(f, to_other, MAD_ATTR_PORT_INFO, 0, &smp), 0);
	assert_int_equal(smp.data[7], 0x42);
	smp.mkey = 0;
	assert_int_equal(ask(f, to_other, MAD_SET, MAD_ATTR_LED_INFO, 0, &smp), 0xffff);
	fabric_agents_get_counts(f->net.agents, &c);
	assert_int_equal(c.bad_key, 1);
	assert_int_equal(port_info(f, to_other, 0).mkey_violations, 1);

	/* Level 2: nobody reads either. */
	want.mkey_protect_bits = 2;
	mad_port_info_pack(&want, smp.data);
	smp.mkey = 0x42;
	assert_int_equal(ask(f, to_other, MAD_SET, MAD_ATTR_PORT_INFO, 0, &smp), 0);
	smp.mkey = 0x43;
	assert_int_equal(get(f, to_other, MAD_ATTR_NODE_INFO, 0, &smp), 0xffff);

	/* The wrong key started the lease; the right one stops it. */
	f->net.now_ns += 9000000000;
	smp.mkey = 0x42;
	assert_int_equal(get(f, to_other, MAD_ATTR_NODE_INFO, 0, &smp), 0);
	f->net.now_ns += 9000000000;
	smp.mkey = 0x43;
	assert_int_equal(get(f, to_other, MAD_ATTR_NODE_INFO, 0, &smp), 0xffff);
	f->net.now_ns += 9999999999;
	assert_int_equal(get(f, to_other, MAD_ATTR_NODE_INFO, 0, &smp), 0xffff);
	f->net.now_ns += 1;
	assert_int_equal(get(f, to_other, MAD_ATTR_PORT_INFO, 0, &smp), 0);
	assert_int_equal(port_info(f, to_other, 0).mkey_protect_bits, 0);
	/* The key still protects what can be set. */
	assert_int_equal(ask(f, to_other, MAD_SET, MAD_ATTR_LED_INFO, 0, &smp), 0xffff);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(identities_have_the_bytes_of_the_specification),
		TEST(port_info_shows_the_link),
		cmocka_unit_test(each_speed_has_its_bits_and_its_rate),
		TEST(what_there_is_not_has_its_status),
		TEST(a_set_takes_right_values_and_nothing_of_wrong_ones),
		TEST(settings_reach_the_engine_and_the_processes),
		TEST(a_switch_keeps_its_tables),
		TEST(a_host_has_guids_and_keys_of_its_own),
		TEST(mkeys_protect_a_port_until_their_lease_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
