/* SPDX-License-Identifier: BSD-2-Clause */
/* SMPs and the attributes of nodes and switches; see smp.h. */
#include "wire/mad/smp.h"

#include <string.h>

#include "wire/bytes.h"

/* ---- SMPs ---- */

#define STATUS_MASK 0x7fff

static bool is_directed(uint8_t mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_DIRECTED;
}

bool mad_smp_pack(const struct mad_smp *from, uint8_t to[MAD_BYTES])
{
	const bool directed = is_directed(from->mgmt_class);
	const struct mad_header header = {
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = from->mgmt_class,
		.class_version = from->class_version,
		.method = from->method,
		.status = (uint16_t)(from->status | (directed && from->returning ? 0x8000 : 0)),
		.class_specific = (uint16_t)(directed ? from->hop_pointer << 8 | from->hop_count : 0),
		.tid = from->tid,
		.attr_id = from->attr_id,
		.attr_mod = from->attr_mod,
	};

	if ((!directed && from->mgmt_class != MAD_CLASS_SUBN_LID) ||
	    (directed && (from->status & ~STATUS_MASK || from->hop_count >= MAD_SMP_PATH_BYTES)))
		return false;
	memset(to, 0, MAD_BYTES);
	mad_header_pack(&header, to);
	put_64(to + MAD_SMP_AT_MKEY, from->mkey);
	memcpy(to + MAD_DATA_AT, from->data, MAD_SMP_DATA_BYTES);
	if (!directed)
		return true;
	put_16(to + MAD_SMP_AT_DR_SLID, from->dr_slid);
	put_16(to + MAD_SMP_AT_DR_DLID, from->dr_dlid);
	memcpy(to + MAD_SMP_AT_INITIAL_PATH, from->initial_path, MAD_SMP_PATH_BYTES);
	memcpy(to + MAD_SMP_AT_RETURN_PATH, from->return_path, MAD_SMP_PATH_BYTES);
	return true;
}

bool mad_smp_unpack(const uint8_t *from, size_t len, struct mad_smp *to)
{
	struct mad_header header;
	bool directed;

	if (!mad_header_read(from, len, &header))
		return false;
	directed = is_directed(header.mgmt_class);
	if ((!directed && header.mgmt_class != MAD_CLASS_SUBN_LID) ||
	    (directed && from[MAD_SMP_AT_HOP_COUNT] >= MAD_SMP_PATH_BYTES))
		return false;
	memset(to, 0, sizeof(*to));
	to->mgmt_class = header.mgmt_class;
	to->class_version = header.class_version;
	to->method = header.method;
	to->status = header.status;
	to->tid = header.tid;
	to->attr_id = header.attr_id;
	to->attr_mod = header.attr_mod;
	to->mkey = get_64(from + MAD_SMP_AT_MKEY);
	memcpy(to->data, from + MAD_DATA_AT, MAD_SMP_DATA_BYTES);
	if (!directed)
		return true;
	to->returning = from[MAD_SMP_AT_DIRECTION] & MAD_SMP_D;
	to->status &= STATUS_MASK;
	to->hop_pointer = from[MAD_SMP_AT_HOP_POINTER];
	to->hop_count = from[MAD_SMP_AT_HOP_COUNT];
	to->dr_slid = get_16(from + MAD_SMP_AT_DR_SLID);
	to->dr_dlid = get_16(from + MAD_SMP_AT_DR_DLID);
	memcpy(to->initial_path, from + MAD_SMP_AT_INITIAL_PATH, MAD_SMP_PATH_BYTES);
	memcpy(to->return_path, from + MAD_SMP_AT_RETURN_PATH, MAD_SMP_PATH_BYTES);
	return true;
}

/* ---- attributes ---- */

#define OF struct mad_node_description
static const struct wire_field node_description_rows[] = {
	WIRE_BYTES(OF, text, 0),
};
WIRE_LAYOUT(mad_node_description, "NodeDescription", node_description_rows);

#undef OF
#define OF struct mad_node_info
static const struct wire_field node_info_rows[] = {
	WIRE_BITS(OF, base_version, 0, 0, 8),
	WIRE_BITS(OF, class_version, 1, 0, 8),
	WIRE_BITS(OF, node_type, 2, 0, 8),
	WIRE_BITS(OF, num_ports, 3, 0, 8),
	WIRE_BITS(OF, system_image_guid, 4, 0, 64),
	WIRE_BITS(OF, node_guid, 12, 0, 64),
	WIRE_BITS(OF, port_guid, 20, 0, 64),
	WIRE_BITS(OF, partition_cap, 28, 0, 16),
	WIRE_BITS(OF, device_id, 30, 0, 16),
	WIRE_BITS(OF, revision, 32, 0, 32),
	WIRE_BITS(OF, local_port_num, 36, 0, 8),
	WIRE_BITS(OF, vendor_id, 37, 0, 24),
};
WIRE_LAYOUT(mad_node_info, "NodeInfo", node_info_rows);

#undef OF
#define OF struct mad_switch_info
static const struct wire_field switch_info_rows[] = {
	WIRE_BITS(OF, linear_fdb_cap, 0, 0, 16),
	WIRE_BITS(OF, random_fdb_cap, 2, 0, 16),
	WIRE_BITS(OF, multicast_fdb_cap, 4, 0, 16),
	WIRE_BITS(OF, linear_fdb_top, 6, 0, 16),
	WIRE_BITS(OF, default_port, 8, 0, 8),
	WIRE_BITS(OF, default_multicast_primary_port, 9, 0, 8),
	WIRE_BITS(OF, default_multicast_not_primary_port, 10, 0, 8),
	WIRE_BITS(OF, life_time_value, 11, 0, 5),
	WIRE_BITS(OF, port_state_change, 11, 5, 1),
	WIRE_BITS(OF, optimized_sl_to_vl_mapping, 11, 6, 2),
	WIRE_BITS(OF, lids_per_port, 12, 0, 16),
	WIRE_BITS(OF, partition_enforcement_cap, 14, 0, 16),
	WIRE_BITS(OF, inbound_enforcement_cap, 16, 0, 1),
	WIRE_BITS(OF, outbound_enforcement_cap, 16, 1, 1),
	WIRE_BITS(OF, filter_raw_inbound_cap, 16, 2, 1),
	WIRE_BITS(OF, filter_raw_outbound_cap, 16, 3, 1),
	WIRE_BITS(OF, enhanced_port0, 16, 4, 1),
	WIRE_RESERVED(16, 5, 11),
	WIRE_BITS(OF, multicast_fdb_top, 18, 0, 16),
};
WIRE_LAYOUT(mad_switch_info, "SwitchInfo", switch_info_rows);

static const struct wire_field guid_info_rows[] = {
	WIRE_ARRAY(struct mad_guid_info, guid, 0, 0, 64, 64),
};
WIRE_LAYOUT(mad_guid_info, "GUIDInfo", guid_info_rows);

static const struct wire_field pkey_table_rows[] = {
	WIRE_ARRAY(struct mad_pkey_table, pkey, 0, 0, 16, 16),
};
WIRE_LAYOUT(mad_pkey_table, "P_KeyTable", pkey_table_rows);

static const struct wire_field sl_to_vl_rows[] = {
	WIRE_ARRAY(struct mad_sl_to_vl, vl, 0, 0, 4, 4),
};
WIRE_LAYOUT(mad_sl_to_vl, "SLtoVLMappingTable", sl_to_vl_rows);

enum { VL_WEIGHT_BYTES = 2, RANDOM_ENTRY_BYTES = 4 };

static const struct wire_field vl_weight_rows[] = {
	WIRE_RESERVED(0, 0, 4),
	WIRE_BITS(struct mad_vl_weight, vl, 0, 4, 4),
	WIRE_BITS(struct mad_vl_weight, weight, 1, 0, 8),
};
static const struct wire_layout vl_weight = WIRE_ELEMENT(
	struct mad_vl_weight, "VLArbitration entry", vl_weight_rows, VL_WEIGHT_BYTES);

static const struct wire_field vl_arbitration_rows[] = {
	WIRE_INNERS(struct mad_vl_arbitration, entry, 0, VL_WEIGHT_BYTES, vl_weight),
};
WIRE_LAYOUT(mad_vl_arbitration, "VLArbitrationTable", vl_arbitration_rows);

static const struct wire_field linear_forwarding_rows[] = {
	WIRE_BYTES(struct mad_linear_forwarding, port, 0),
};
WIRE_LAYOUT(mad_linear_forwarding, "LinearForwardingTable", linear_forwarding_rows);

#undef OF
#define OF struct mad_random_entry
static const struct wire_field random_entry_rows[] = {
	WIRE_BITS(OF, lid, 0, 0, 16),
	WIRE_BITS(OF, valid, 2, 0, 1),
	WIRE_BITS(OF, lmc, 2, 1, 3),
	WIRE_RESERVED(2, 4, 4),
	WIRE_BITS(OF, port, 3, 0, 8),
};
static const struct wire_layout random_entry = WIRE_ELEMENT(
	struct mad_random_entry, "RandomForwarding entry", random_entry_rows, RANDOM_ENTRY_BYTES);

static const struct wire_field random_forwarding_rows[] = {
	WIRE_INNERS(struct mad_random_forwarding, entry, 0, RANDOM_ENTRY_BYTES, random_entry),
};
WIRE_LAYOUT(mad_random_forwarding, "RandomForwardingTable", random_forwarding_rows);

static const struct wire_field multicast_forwarding_rows[] = {
	WIRE_ARRAY(struct mad_multicast_forwarding, ports, 0, 0, 16, 16),
};
WIRE_LAYOUT(mad_multicast_forwarding, "MulticastForwardingTable", multicast_forwarding_rows);

#undef OF
#define OF struct mad_sm_info
static const struct wire_field sm_info_rows[] = {
	WIRE_BITS(OF, guid, 0, 0, 64),
	WIRE_BITS(OF, sm_key, 8, 0, 64),
	WIRE_BITS(OF, act_count, 16, 0, 32),
	WIRE_BITS(OF, priority, 20, 0, 4),
	WIRE_BITS(OF, state, 20, 4, 4),
};
WIRE_LAYOUT(mad_sm_info, "SMInfo", sm_info_rows);

static const struct wire_field led_info_rows[] = {
	WIRE_BITS(struct mad_led_info, on, 0, 0, 1),
	WIRE_RESERVED(0, 1, 31),
};
WIRE_LAYOUT(mad_led_info, "LedInfo", led_info_rows);
