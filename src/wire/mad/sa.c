/* SPDX-License-Identifier: BSD-2-Clause */
/* The header and the records of subnet administration; see sa.h. */
#include "wire/mad/sa.h"

#define OF struct mad_sa
static const struct wire_field sa_rows[] = {
	WIRE_BITS(OF, sm_key, 0, 0, 64),
	WIRE_BITS(OF, attribute_offset, 8, 0, 16),
	WIRE_RESERVED(10, 0, 16),
	WIRE_BITS(OF, component_mask, 12, 0, 64),
};
WIRE_LAYOUT(mad_sa, "SA header", sa_rows);

/* ---- records of tables and ports ---- */

#undef OF
#define OF struct mad_node_record
static const struct wire_field node_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_RESERVED(2, 0, 16),
	WIRE_INNER(OF, info, 4, mad_node_info_layout),
	WIRE_INNER(OF, description, 44, mad_node_description_layout),
};
WIRE_LAYOUT(mad_node_record, "NodeRecord", node_rows);

#undef OF
#define OF struct mad_port_info_record
static const struct wire_field port_info_rows[] = {
	WIRE_BITS(OF, endport_lid, 0, 0, 16),
	WIRE_BITS(OF, port_num, 2, 0, 8),
	WIRE_BITS(OF, options, 3, 0, 8),
	WIRE_INNER(OF, info, 4, mad_port_info_layout),
};
WIRE_LAYOUT(mad_port_info_record, "PortInfoRecord", port_info_rows);

#undef OF
#define OF struct mad_sl_to_vl_record
static const struct wire_field sl_to_vl_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, input_port, 2, 0, 8),
	WIRE_BITS(OF, output_port, 3, 0, 8),
	WIRE_RESERVED(4, 0, 32),
	WIRE_INNER(OF, table, 8, mad_sl_to_vl_layout),
};
WIRE_LAYOUT(mad_sl_to_vl_record, "SLtoVLMappingTableRecord", sl_to_vl_rows);

#undef OF
#define OF struct mad_switch_info_record
static const struct wire_field switch_info_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_RESERVED(2, 0, 16),
	WIRE_INNER(OF, info, 4, mad_switch_info_layout),
};
WIRE_LAYOUT(mad_switch_info_record, "SwitchInfoRecord", switch_info_rows);

#undef OF
#define OF struct mad_linear_forwarding_record
static const struct wire_field linear_forwarding_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, block, 2, 0, 16),
	WIRE_RESERVED(4, 0, 32),
	WIRE_INNER(OF, table, 8, mad_linear_forwarding_layout),
};
WIRE_LAYOUT(mad_linear_forwarding_record, "LinearForwardingTableRecord", linear_forwarding_rows);

#undef OF
#define OF struct mad_multicast_forwarding_record
static const struct wire_field multicast_forwarding_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, position, 2, 0, 4),
	WIRE_RESERVED(2, 4, 3),
	WIRE_BITS(OF, block, 2, 7, 9),
	WIRE_RESERVED(4, 0, 32),
	WIRE_INNER(OF, table, 8, mad_multicast_forwarding_layout),
};
WIRE_LAYOUT(mad_multicast_forwarding_record, "MulticastForwardingTableRecord",
	    multicast_forwarding_rows);

#undef OF
#define OF struct mad_sm_info_record
static const struct wire_field sm_info_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_RESERVED(2, 0, 16),
	WIRE_INNER(OF, info, 4, mad_sm_info_layout),
};
WIRE_LAYOUT(mad_sm_info_record, "SMInfoRecord", sm_info_rows);

#undef OF
#define OF struct mad_link_record
static const struct wire_field link_rows[] = {
	WIRE_BITS(OF, from_lid, 0, 0, 16),
	WIRE_BITS(OF, from_port, 2, 0, 8),
	WIRE_BITS(OF, to_port, 3, 0, 8),
	WIRE_BITS(OF, to_lid, 4, 0, 16),
};
WIRE_LAYOUT(mad_link_record, "LinkRecord", link_rows);

#undef OF
#define OF struct mad_guid_info_record
static const struct wire_field guid_info_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, block, 2, 0, 8),
	WIRE_RESERVED(3, 0, 8),
	WIRE_RESERVED(4, 0, 32),
	WIRE_INNER(OF, table, 8, mad_guid_info_layout),
};
WIRE_LAYOUT(mad_guid_info_record, "GUIDInfoRecord", guid_info_rows);

#undef OF
#define OF struct mad_pkey_table_record
static const struct wire_field pkey_table_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, block, 2, 0, 16),
	WIRE_BITS(OF, port_num, 4, 0, 8),
	WIRE_RESERVED(5, 0, 24),
	WIRE_INNER(OF, table, 8, mad_pkey_table_layout),
};
WIRE_LAYOUT(mad_pkey_table_record, "P_KeyTableRecord", pkey_table_rows);

#undef OF
#define OF struct mad_vl_arbitration_record
static const struct wire_field vl_arbitration_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, output_port, 2, 0, 8),
	WIRE_BITS(OF, block, 3, 0, 8),
	WIRE_RESERVED(4, 0, 32),
	WIRE_INNER(OF, table, 8, mad_vl_arbitration_layout),
};
WIRE_LAYOUT(mad_vl_arbitration_record, "VLArbitrationTableRecord", vl_arbitration_rows);

/* ---- paths, groups, services, subscriptions ---- */

#undef OF
#define OF struct mad_path_record
static const struct wire_field path_rows[] = {
	WIRE_BITS(OF, service_id, 0, 0, 64),
	WIRE_BYTES(OF, dgid, 8),
	WIRE_BYTES(OF, sgid, 24),
	WIRE_BITS(OF, dlid, 40, 0, 16),
	WIRE_BITS(OF, slid, 42, 0, 16),
	WIRE_BITS(OF, raw_traffic, 44, 0, 1),
	WIRE_RESERVED(44, 1, 3),
	WIRE_BITS(OF, flow_label, 44, 4, 20),
	WIRE_BITS(OF, hop_limit, 47, 0, 8),
	WIRE_BITS(OF, tclass, 48, 0, 8),
	WIRE_BITS(OF, reversible, 49, 0, 1),
	WIRE_BITS(OF, numb_path, 49, 1, 7),
	WIRE_BITS(OF, pkey, 50, 0, 16),
	WIRE_BITS(OF, qos_class, 52, 0, 12),
	WIRE_BITS(OF, sl, 53, 4, 4),
	WIRE_BITS(OF, mtu_selector, 54, 0, 2),
	WIRE_BITS(OF, mtu, 54, 2, 6),
	WIRE_BITS(OF, rate_selector, 55, 0, 2),
	WIRE_BITS(OF, rate, 55, 2, 6),
	WIRE_BITS(OF, packet_life_selector, 56, 0, 2),
	WIRE_BITS(OF, packet_life, 56, 2, 6),
	WIRE_BITS(OF, preference, 57, 0, 8),
	WIRE_RESERVED(58, 0, 48),
};
WIRE_LAYOUT(mad_path_record, "PathRecord", path_rows);

#undef OF
#define OF struct mad_multi_path_record
static const struct wire_field multi_path_rows[] = {
	WIRE_BITS(OF, raw_traffic, 0, 0, 1),
	WIRE_RESERVED(0, 1, 3),
	WIRE_BITS(OF, flow_label, 0, 4, 20),
	WIRE_BITS(OF, hop_limit, 3, 0, 8),
	WIRE_BITS(OF, tclass, 4, 0, 8),
	WIRE_BITS(OF, reversible, 5, 0, 1),
	WIRE_BITS(OF, numb_path, 5, 1, 7),
	WIRE_BITS(OF, pkey, 6, 0, 16),
	WIRE_BITS(OF, qos_class, 8, 0, 12),
	WIRE_BITS(OF, sl, 9, 4, 4),
	WIRE_BITS(OF, mtu_selector, 10, 0, 2),
	WIRE_BITS(OF, mtu, 10, 2, 6),
	WIRE_BITS(OF, rate_selector, 11, 0, 2),
	WIRE_BITS(OF, rate, 11, 2, 6),
	WIRE_BITS(OF, packet_life_selector, 12, 0, 2),
	WIRE_BITS(OF, packet_life, 12, 2, 6),
	WIRE_BITS(OF, service_id_8msb, 13, 0, 8),
	WIRE_BITS(OF, independence_selector, 14, 0, 2),
	WIRE_RESERVED(14, 2, 6),
	WIRE_BITS(OF, sgid_count, 15, 0, 8),
	WIRE_BITS(OF, dgid_count, 16, 0, 8),
	WIRE_BITS(OF, service_id_56lsb, 17, 0, 56),
	WIRE_BYTE_ARRAYS(OF, gid, 24),
};
WIRE_LAYOUT(mad_multi_path_record, "MultiPathRecord", multi_path_rows);

#undef OF
#define OF struct mad_mc_member_record
static const struct wire_field mc_member_rows[] = {
	WIRE_BYTES(OF, mgid, 0),
	WIRE_BYTES(OF, port_gid, 16),
	WIRE_BITS(OF, qkey, 32, 0, 32),
	WIRE_BITS(OF, mlid, 36, 0, 16),
	WIRE_BITS(OF, mtu_selector, 38, 0, 2),
	WIRE_BITS(OF, mtu, 38, 2, 6),
	WIRE_BITS(OF, tclass, 39, 0, 8),
	WIRE_BITS(OF, pkey, 40, 0, 16),
	WIRE_BITS(OF, rate_selector, 42, 0, 2),
	WIRE_BITS(OF, rate, 42, 2, 6),
	WIRE_BITS(OF, packet_life_selector, 43, 0, 2),
	WIRE_BITS(OF, packet_life, 43, 2, 6),
	WIRE_BITS(OF, sl, 44, 0, 4),
	WIRE_BITS(OF, flow_label, 44, 4, 20),
	WIRE_BITS(OF, hop_limit, 47, 0, 8),
	WIRE_BITS(OF, scope, 48, 0, 4),
	WIRE_BITS(OF, join_state, 48, 4, 4),
	WIRE_BITS(OF, proxy_join, 49, 0, 1),
	WIRE_RESERVED(49, 1, 23),
};
WIRE_LAYOUT(mad_mc_member_record, "MCMemberRecord", mc_member_rows);

#undef OF
#define OF struct mad_service_record
static const struct wire_field service_rows[] = {
	WIRE_BITS(OF, service_id, 0, 0, 64),
	WIRE_BYTES(OF, service_gid, 8),
	WIRE_BITS(OF, service_pkey, 24, 0, 16),
	WIRE_RESERVED(26, 0, 16),
	WIRE_BITS(OF, service_lease, 28, 0, 32),
	WIRE_BYTES(OF, service_key, 32),
	WIRE_BYTES(OF, service_name, 48),
	WIRE_ARRAY(OF, data8, 112, 0, 8, 8),
	WIRE_ARRAY(OF, data16, 128, 0, 16, 16),
	WIRE_ARRAY(OF, data32, 144, 0, 32, 32),
	WIRE_ARRAY(OF, data64, 160, 0, 64, 64),
};
WIRE_LAYOUT(mad_service_record, "ServiceRecord", service_rows);

#undef OF
#define OF struct mad_inform_info
static const struct wire_field inform_info_rows[] = {
	WIRE_BYTES(OF, gid, 0),
	WIRE_BITS(OF, lid_range_begin, 16, 0, 16),
	WIRE_BITS(OF, lid_range_end, 18, 0, 16),
	WIRE_RESERVED(20, 0, 16),
	WIRE_BITS(OF, is_generic, 22, 0, 8),
	WIRE_BITS(OF, subscribe, 23, 0, 8),
	WIRE_BITS(OF, type, 24, 0, 16),
	WIRE_BITS(OF, trap_number, 26, 0, 16),
	WIRE_BITS(OF, qpn, 28, 0, 24),
	WIRE_RESERVED(31, 0, 3),
	WIRE_BITS(OF, resp_time_value, 31, 3, 5),
	WIRE_RESERVED(32, 0, 8),
	WIRE_BITS(OF, producer_type, 33, 0, 24),
};
WIRE_LAYOUT(mad_inform_info, "InformInfo", inform_info_rows);

#undef OF
#define OF struct mad_inform_info_record
static const struct wire_field inform_info_record_rows[] = {
	WIRE_BYTES(OF, subscriber_gid, 0),
	WIRE_BITS(OF, subscriber_enum, 16, 0, 16),
	WIRE_RESERVED(18, 0, 48),
	WIRE_INNER(OF, info, 24, mad_inform_info_layout),
};
WIRE_LAYOUT(mad_inform_info_record, "InformInfoRecord", inform_info_record_rows);
