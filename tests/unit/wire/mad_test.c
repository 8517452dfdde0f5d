/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs: that the tables of fields are whole, golden bytes, round trips, answers, and which
 * records match a query.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "mad_rows.h"
#include "wire/mad/perf.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

/* ---- the tables ---- */

/* Marks the bits of each row; no bit may belong to two. */
static void mark(const struct wire_layout *layout, unsigned base, uint8_t *owned)
{
	for (unsigned i = 0; i < layout->count; i++) {
		const struct wire_field *f = &layout->fields[i];

		for (unsigned n = 0; n < f->count; n++) {
			const unsigned bit = base + f->bit + n * f->stride;

			if (f->inner) {
				mark(f->inner, bit, owned);
				continue;
			}
			for (unsigned b = bit; b < bit + f->width; b++) {
				if (owned[b]++)
					fail_msg("%s: bit %u of byte %u belongs to two fields, %s",
						 layout->name, b % 8, b / 8,
						 f->name ? f->name : "reserved");
			}
		}
	}
}

static void row_check(const struct wire_layout *layout, const struct wire_field *f)
{
	if (!f->name)
		return;
	assert_true(f->host + f->size * f->count <= layout->size);
	assert_true(f->bit + (f->count - 1) * f->stride + f->width <= layout->bytes * 8);
	if (f->inner) {
		assert_int_equal(f->size, f->inner->size);
		assert_int_equal(f->bit % 8 | f->stride % 8, 0);
		for (unsigned i = 0; i < f->inner->count; i++)
			row_check(f->inner, &f->inner->fields[i]);
	} else if (!f->bytes) {
		assert_true(f->width <= f->size * 8);
		assert_true(f->bit % 8 + f->width <= 64);
	}
}

static void layout_is_whole(const struct wire_layout *layout, void *context)
{
	uint8_t *owned = test_calloc(1, MAD_BYTES * 8);

	(void)context;
	assert_true(layout->bytes <= MAD_BYTES && layout->size <= MAD_HOST_MAX);
	for (unsigned i = 0; i < layout->count; i++)
		row_check(layout, &layout->fields[i]);
	mark(layout, 0, owned);
	for (unsigned b = 0; b < MAD_BYTES * 8; b++)
		if (owned[b] != (b < layout->bytes * 8u))
			fail_msg("%s: bit %u of byte %u belongs to no field or lies behind the end",
				 layout->name, b % 8, b / 8);
	test_free(owned);
}

static void every_bit_belongs_to_one_field(void **state)
{
	(void)state;
	mad_layouts(layout_is_whole, NULL);
}

static void round_trip(const struct wire_layout *layout, void *context)
{
	uint8_t in[MAD_BYTES], out[MAD_BYTES], again[MAD_BYTES];
	uint64_t host[MAD_HOST_MAX / 8];

	for (unsigned i = 0; i < 20; i++) {
		mad_random_bytes(context, in, sizeof(in));
		wire_unpack(layout, in, host);
		assert_true(wire_pack(layout, host, out));
		/* Other bits than those of reserved fields are as before. */
		memcpy(again, in, sizeof(again));
		assert_true(wire_pack_fields(layout, host, again));
		assert_memory_equal(again, in, sizeof(in));
		wire_unpack(layout, out, host);
		wire_pack(layout, host, again);
		assert_memory_equal(again, out, layout->bytes);
	}
}

static void what_is_unpacked_is_packed_again(void **state)
{
	struct prng random = prng_from(1);

	(void)state;
	mad_layouts(round_trip, &random);
}

static void values_that_do_not_fit_are_cut_and_told(void **state)
{
	struct mad_sm_info info = { .priority = 2, .state = 3 };
	uint8_t out[mad_sm_info_bytes];

	(void)state;
	assert_true(mad_sm_info_pack(&info, out));
	info.state = 0x13;
	assert_false(mad_sm_info_pack(&info, out));
	assert_int_equal(out[20], 0x23);
}

/* ---- golden bytes ---- */

static void directed_route_smp_stands_where_chapter_14_puts_it(void **state)
{
	struct mad_smp smp = {
		.mgmt_class = MAD_CLASS_SUBN_DIRECTED, .class_version = 1, .method = MAD_GET,
		.status = 0x1c, .tid = 0x0102030405060708, .attr_id = MAD_ATTR_PORT_INFO,
		.attr_mod = 9, .mkey = 0x1112131415161718, .returning = true,
		.hop_pointer = 2, .hop_count = 3, .dr_slid = 0xffff, .dr_dlid = 0xfffe,
		.data = { 0xd0, [63] = 0xd1 },
		.initial_path = { 0, 1, 17, 4 }, .return_path = { 0, 5, 6, [63] = 0x3f },
	};
	struct mad_smp back;
	uint8_t out[MAD_BYTES], want[MAD_BYTES] = {
		1, 0x81, 1, 1, 0x80, 0x1c, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x15, 0, 0, 0, 0, 0, 9,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0xff, 0xff, 0xff, 0xfe,
		[64] = 0xd0, [127] = 0xd1, [129] = 1, 17, 4, [193] = 5, 6, [255] = 0x3f,
	};

	(void)state;
	assert_true(mad_smp_pack(&smp, out));
	assert_memory_equal(out, want, sizeof(want));
	assert_true(mad_smp_unpack(out, sizeof(out), &back));
	assert_int_equal(back.status, 0x1c);
	assert_true(back.returning);
	assert_int_equal(back.hop_pointer, 2);
	memset(out, 0, sizeof(out));
	assert_true(mad_smp_pack(&back, out));
	assert_memory_equal(out, want, sizeof(want));
}

static void lid_routed_smp_has_no_route(void **state)
{
	struct mad_smp smp = { .mgmt_class = MAD_CLASS_SUBN_LID, .class_version = 1,
			       .method = MAD_SET, .mkey = 1, .data = { 7 },
			       .returning = true, .hop_count = 3, .initial_path = { 0, 1 } };
	struct mad_smp back;
	uint8_t out[MAD_BYTES], zeros[128] = { 0 };

	(void)state;
	assert_true(mad_smp_pack(&smp, out));
	assert_memory_equal(out + 4, zeros, 4);
	assert_memory_equal(out + 128, zeros, 128);
	assert_true(mad_smp_unpack(out, sizeof(out), &back));
	assert_false(back.returning);
	assert_int_equal(back.hop_count | back.initial_path[1], 0);
}

static void what_is_no_smp_is_refused(void **state)
{
	struct mad_smp smp = { .mgmt_class = MAD_CLASS_SUBN_DIRECTED, .hop_count = 63 };
	uint8_t out[MAD_BYTES];

	(void)state;
	assert_true(mad_smp_pack(&smp, out));
	assert_true(mad_smp_unpack(out, sizeof(out), &smp));
	assert_false(mad_smp_unpack(out, sizeof(out) - 1, &smp));
	out[MAD_SMP_AT_HOP_COUNT] = 64;
	assert_false(mad_smp_unpack(out, sizeof(out), &smp));
	out[1] = MAD_CLASS_SUBN_ADM;
	assert_false(mad_smp_unpack(out, sizeof(out), &smp));
	out[1] = MAD_CLASS_SUBN_LID; /* these bytes are of no meaning there */
	assert_true(mad_smp_unpack(out, sizeof(out), &smp));
	out[0] = 2;
	assert_false(mad_smp_unpack(out, sizeof(out), &smp));
	smp = (struct mad_smp){ .mgmt_class = MAD_CLASS_SUBN_DIRECTED, .hop_count = 64 };
	assert_false(mad_smp_pack(&smp, out));
	smp = (struct mad_smp){ .mgmt_class = MAD_CLASS_SUBN_DIRECTED, .status = 0x8000 };
	assert_false(mad_smp_pack(&smp, out));
}

static void port_info_stands_where_chapter_14_puts_it(void **state)
{
	const struct mad_port_info info = {
		.mkey = 1, .gid_prefix = 0xfe80000000000000, .lid = 0x1234, .master_sm_lid = 0x5678,
		.capability_mask = MAD_CAP_SM | MAD_CAP_TRAP, .local_port_num = 3,
		.link_width_enabled = MAD_WIDTH_1X | MAD_WIDTH_4X,
		.link_width_supported = MAD_WIDTH_1X | MAD_WIDTH_4X,
		.link_width_active = MAD_WIDTH_4X, .link_speed_supported = 7,
		.port_state = MAD_PORT_ACTIVE, .port_physical_state = MAD_PHYSICAL_LINK_UP,
		.link_down_default_state = 2, .mkey_protect_bits = 2, .lmc = 5,
		.link_speed_active = 4, .link_speed_enabled = 7, .neighbor_mtu = MAD_MTU_4096,
		.master_sm_sl = 1, .vl_cap = MAD_VLS_8, .vl_high_limit = 255,
		.vl_arbitration_high_cap = 8, .mtu_cap = MAD_MTU_4096, .vl_stall_count = 7,
		.hoq_life = 18, .operational_vls = MAD_VLS_4, .filter_raw_outbound = 1,
		.subnet_timeout = 18, .client_reregister = 1, .resp_time_value = 16,
		.overrun_errors = 8, .link_round_trip_latency = 0xffffff,
		.link_speed_ext_active = MAD_SPEED_EXT_EDR, .link_speed_ext_supported = 7,
		.link_speed_ext_enabled = 31,
	};
	static const uint8_t want[64] = {
		[7] = 1, 0xfe, 0x80, [16] = 0x12, 0x34, 0x56, 0x78, [23] = 0x0a, [28] = 3,
		3, 3, 2, 0x74, 0x52, 0x85, 0x47, 0x51, 0x40, 255, 8, 0, 0x05, 0xf2, 0x31,
		[51] = 0x92, 16, 8, [57] = 0xff, 0xff, 0xff, [62] = 0x27, 0x1f,
	};
	uint8_t out[64];

	(void)state;
	assert_true(mad_port_info_pack(&info, out));
	assert_memory_equal(out, want, sizeof(want));
}

static void tables_are_packed_in_their_order(void **state)
{
	struct mad_sl_to_vl sl = { { 1, 2, 3, [15] = 15 } };
	struct mad_vl_arbitration vl = { { { 4, 100 }, { 0, 0 }, { 7, 255 } } };
	struct mad_switch_port_congestion_setting setting = { { { 1, 0, 15, 8, 10 } } };
	struct mad_congestion_control_table table = { 5, { { 3, 0x3fff }, { 0, 1 } } };
	uint8_t out[MAD_BYTES];

	(void)state;
	mad_sl_to_vl_pack(&sl, out);
	assert_memory_equal(out, ((uint8_t[]){ 0x12, 0x30, 0, 0, 0, 0, 0, 0x0f }), 8);
	mad_vl_arbitration_pack(&vl, out);
	assert_memory_equal(out, ((uint8_t[]){ 4, 100, 0, 0, 7, 255, 0 }), 7);
	mad_switch_port_congestion_setting_pack(&setting, out);
	assert_memory_equal(out, ((uint8_t[]){ 0x8f, 8, 0, 10, 0 }), 5);
	mad_congestion_control_table_pack(&table, out);
	assert_memory_equal(out, ((uint8_t[]){ 0, 5, 0, 0, 0xff, 0xff, 0, 1, 0 }), 9);
}

static void ports_are_found_in_maps(void **state)
{
	uint8_t map[32] = { [31] = 1 << 1, [27] = 1 << 4, [0] = 0x80 };

	(void)state;
	for (unsigned port = 0; port < 256; port++)
		assert_int_equal(mad_cc_port(map, (uint8_t)port), port == 1 || port == 36 || port == 255);
}

/* ---- answers ---- */

static void answers_have_their_method_and_keep_the_direction(void **state)
{
	static const struct { uint8_t ask, answer; } methods[] = {
		{ MAD_GET, MAD_GET_RESP }, { MAD_SET, MAD_GET_RESP },
		{ MAD_GET_TABLE, MAD_GET_TABLE_RESP }, { MAD_DELETE, MAD_DELETE_RESP },
		{ MAD_REPORT, MAD_REPORT_RESP },
	};
	static const uint8_t unanswered[] = { MAD_SEND, MAD_TRAP, MAD_TRAP_REPRESS, MAD_GET_RESP };
	uint8_t mad[MAD_BYTES] = { 1, MAD_CLASS_SUBN_DIRECTED, 1, 0, 0x80, 0 }, before[MAD_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		mad[3] = methods[i].ask;
		assert_true(mad_make_response(mad, MAD_STATUS_BAD_VALUE));
		assert_int_equal(mad[3], methods[i].answer);
		assert_int_equal(mad[4], 0x80);
		assert_int_equal(mad[5], 0x1c);
	}
	for (unsigned i = 0; i < sizeof(unanswered); i++) {
		mad[3] = unanswered[i];
		memcpy(before, mad, sizeof(mad));
		assert_false(mad_make_response(mad, 0));
		assert_memory_equal(mad, before, sizeof(mad));
	}
	mad[1] = MAD_CLASS_SUBN_ADM;
	mad[3] = MAD_GET;
	assert_true(mad_make_response(mad, MAD_SA_NO_RECORDS));
	assert_int_equal(mad[4] << 8 | mad[5], 0x0300);
}

static void attributes_belong_to_classes(void **state)
{
	struct mad_attribute a;

	(void)state;
	assert_true(mad_attribute_find(MAD_CLASS_SUBN_DIRECTED, MAD_ATTR_PORT_INFO, &a));
	assert_ptr_equal(a.layout, &mad_port_info_layout);
	assert_int_equal(a.at, MAD_DATA_AT);
	assert_true(mad_attribute_find(MAD_CLASS_SUBN_ADM, MAD_ATTR_PORT_INFO_RECORD, &a));
	assert_ptr_equal(a.layout, &mad_port_info_record_layout);
	assert_int_equal(a.at, MAD_SA_DATA_AT);
	assert_true(mad_attribute_find(MAD_CLASS_CONG_MGT, MAD_ATTR_CONGESTION_LOG, &a));
	assert_int_equal(a.at, MAD_CC_LOG_AT);
	assert_false(mad_attribute_find(MAD_CLASS_SUBN_LID, MAD_ATTR_CLASS_PORT_INFO, &a));
	assert_false(mad_attribute_find(MAD_CLASS_COMM_MGT, MAD_ATTR_NODE_INFO, &a));
	assert_false(mad_attribute_find(MAD_CLASS_SUBN_ADM, 0x0042, &a));
}

/* ---- queries ---- */

/* Numbers of components as subnet managers use them, and the member that each means. */
static const struct {
	uint16_t attr_id;
	uint8_t component;
	const char *member;
	uint8_t from, bits; /* of the member's bits; 0: all */
} components[] = {
	{ MAD_ATTR_NODE_RECORD, 0, "lid", 0, 0 },
	{ MAD_ATTR_NODE_RECORD, 4, "info.node_type", 0, 0 },
	{ MAD_ATTR_NODE_RECORD, 7, "info.node_guid", 0, 0 },
	{ MAD_ATTR_NODE_RECORD, 8, "info.port_guid", 0, 0 },
	{ MAD_ATTR_NODE_RECORD, 13, "info.vendor_id", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 0, "endport_lid", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 1, "port_num", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 3, "info.mkey", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 7, "info.capability_mask", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 15, "info.port_state", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 18, "info.mkey_protect_bits", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 20, "info.lmc", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 31, "info.mtu_cap", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 42, "info.guid_cap", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 44, "info.subnet_timeout", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 46, "info.resp_time_value", 0, 0 },
	{ MAD_ATTR_PORT_INFO_RECORD, 48, "info.overrun_errors", 0, 0 },
	{ MAD_ATTR_SL_TO_VL_RECORD, 2, "output_port", 0, 0 },
	{ MAD_ATTR_LINEAR_FORWARDING_RECORD, 1, "block", 0, 0 },
	{ MAD_ATTR_MULTICAST_FORWARDING_RECORD, 1, "position", 0, 0 },
	{ MAD_ATTR_MULTICAST_FORWARDING_RECORD, 3, "block", 0, 0 },
	{ MAD_ATTR_SM_INFO_RECORD, 2, "info.guid", 0, 0 },
	{ MAD_ATTR_SM_INFO_RECORD, 6, "info.state", 0, 0 },
	{ MAD_ATTR_LINK_RECORD, 3, "to_lid", 0, 0 },
	{ MAD_ATTR_GUID_INFO_RECORD, 1, "block", 0, 0 },
	{ MAD_ATTR_PKEY_TABLE_RECORD, 2, "port_num", 0, 0 },
	{ MAD_ATTR_VL_ARBITRATION_RECORD, 2, "block", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_SERVICE_ID_8MSB, "service_id", 0, 8 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_SERVICE_ID_56LSB, "service_id", 8, 56 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_DGID, "dgid", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_SLID, "slid", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_FLOW_LABEL, "flow_label", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_NUMB_PATH, "numb_path", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_PKEY, "pkey", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_SL, "sl", 0, 0 },
	{ MAD_ATTR_PATH_RECORD, MAD_PATH_PACKET_LIFE, "packet_life", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_MGID, "mgid", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_MLID, "mlid", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_PKEY, "pkey", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_SL, "sl", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_HOP_LIMIT, "hop_limit", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_JOIN_STATE, "join_state", 0, 0 },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_MC_PROXY_JOIN, "proxy_join", 0, 0 },
	{ MAD_ATTR_SERVICE_RECORD, 4, "service_lease", 0, 0 },
	{ MAD_ATTR_SERVICE_RECORD, 6, "service_name", 0, 0 },
	{ MAD_ATTR_SERVICE_RECORD, 7, "data8", 0, 8 },
	{ MAD_ATTR_SERVICE_RECORD, 22, "data8", 120, 8 },
	{ MAD_ATTR_SERVICE_RECORD, 23, "data16", 0, 16 },
	{ MAD_ATTR_SERVICE_RECORD, 34, "data32", 96, 32 },
	{ MAD_ATTR_SERVICE_RECORD, 36, "data64", 64, 64 },
	{ MAD_ATTR_MULTI_PATH_RECORD, 9, "sl", 0, 0 },
	{ MAD_ATTR_MULTI_PATH_RECORD, 16, "service_id_8msb", 0, 0 },
	{ MAD_ATTR_MULTI_PATH_RECORD, 20, "dgid_count", 0, 0 },
	{ MAD_ATTR_MULTI_PATH_RECORD, 21, "service_id_56lsb", 0, 0 },
	{ MAD_ATTR_INFORM_INFO_RECORD, 1, "subscriber_enum", 0, 0 },
	{ MAD_ATTR_INFORM_INFO_RECORD, 4, "info.lid_range_begin", 0, 0 },
	{ MAD_ATTR_INFORM_INFO_RECORD, 9, "info.type", 0, 0 },
	{ MAD_ATTR_INFORM_INFO_RECORD, 11, "info.qpn", 0, 0 },
	{ MAD_ATTR_INFORM_INFO_RECORD, 13, "info.resp_time_value", 0, 0 },
	{ MAD_ATTR_INFORM_INFO_RECORD, 15, "info.producer_type", 0, 0 },
};

static void components_have_the_numbers_of_chapter_15(void **state)
{
	struct prng random = prng_from(2);

	(void)state;
	for (unsigned i = 0; i < sizeof(components) / sizeof(components[0]); i++) {
		const uint64_t mask = MAD_COMPONENT(components[i].component);
		uint8_t query[MAD_BYTES], record[MAD_BYTES];
		const struct wire_field *f;
		struct mad_attribute a;
		unsigned first = 0, width;
		size_t host = 0;

		assert_true(mad_attribute_find(MAD_CLASS_SUBN_ADM, components[i].attr_id, &a));
		f = mad_row(a.layout, components[i].member, &host, &first);
		assert_non_null(f);
		first += components[i].from;
		width = components[i].bits ? components[i].bits : f->width;
		mad_random_bytes(&random, query, sizeof(query));
		memcpy(record, query, sizeof(record));
		assert_true(mad_sa_matches(components[i].attr_id, mask, query, record));
		/* Exactly the bits of the member count. */
		for (unsigned bit = 0; bit < a.layout->bytes * 8u; bit++) {
			record[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			if (mad_sa_matches(components[i].attr_id, mask, query, record) !=
			    (bit < first || bit >= first + width))
				fail_msg("%s, component %u, %s: bit %u", a.layout->name,
					 components[i].component, components[i].member, bit);
			record[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		}
	}
}

static void reserved_fields_are_not_compared(void **state)
{
	uint8_t query[mad_node_record_bytes] = { 0 }, record[mad_node_record_bytes] = { [3] = 1 };

	(void)state;
	assert_true(mad_sa_matches(MAD_ATTR_NODE_RECORD, MAD_COMPONENT(0) | MAD_COMPONENT(1), query,
				   record));
	record[1] = 1;
	assert_false(mad_sa_matches(MAD_ATTR_NODE_RECORD, MAD_COMPONENT(0) | MAD_COMPONENT(1), query,
				    record));
}

static void several_components_must_all_match(void **state)
{
	const struct mad_path_record query = { .dlid = 5, .sl = 3, .mtu = MAD_MTU_2048 };
	struct mad_path_record found = { .dlid = 5, .slid = 9, .sl = 3, .mtu = MAD_MTU_4096 };
	const uint64_t mask = MAD_COMPONENT(MAD_PATH_DLID) | MAD_COMPONENT(MAD_PATH_SL);
	uint8_t q[mad_path_record_bytes], r[mad_path_record_bytes];

	(void)state;
	mad_path_record_pack(&query, q);
	mad_path_record_pack(&found, r);
	assert_true(mad_sa_matches(MAD_ATTR_PATH_RECORD, mask, q, r));
	assert_true(mad_sa_matches(MAD_ATTR_PATH_RECORD, 0, q, r));
	assert_false(mad_sa_matches(MAD_ATTR_PATH_RECORD, mask | MAD_COMPONENT(MAD_PATH_MTU), q, r));
	assert_false(mad_sa_matches(MAD_ATTR_PATH_RECORD, mask | MAD_COMPONENT(63), q, r));
	assert_false(mad_sa_matches(0x0042, 0, q, r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bit_belongs_to_one_field),
		cmocka_unit_test(what_is_unpacked_is_packed_again),
		cmocka_unit_test(values_that_do_not_fit_are_cut_and_told),
		cmocka_unit_test(directed_route_smp_stands_where_chapter_14_puts_it),
		cmocka_unit_test(lid_routed_smp_has_no_route),
		cmocka_unit_test(what_is_no_smp_is_refused),
		cmocka_unit_test(port_info_stands_where_chapter_14_puts_it),
		cmocka_unit_test(tables_are_packed_in_their_order),
		cmocka_unit_test(ports_are_found_in_maps),
		cmocka_unit_test(answers_have_their_method_and_keep_the_direction),
		cmocka_unit_test(attributes_belong_to_classes),
		cmocka_unit_test(components_have_the_numbers_of_chapter_15),
		cmocka_unit_test(reserved_fields_are_not_compared),
		cmocka_unit_test(several_components_must_all_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
