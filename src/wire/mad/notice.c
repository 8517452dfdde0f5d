/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices and the data details of traps; see notice.h. */
#include "wire/mad/notice.h"

#define OF struct mad_notice
static const struct wire_field notice_rows[] = {
	WIRE_BITS(OF, is_generic, 0, 0, 1),
	WIRE_BITS(OF, type, 0, 1, 7),
	WIRE_BITS(OF, producer_type, 1, 0, 24),
	WIRE_BITS(OF, trap_number, 4, 0, 16),
	WIRE_BITS(OF, issuer_lid, 6, 0, 16),
	WIRE_BITS(OF, toggle, 8, 0, 1),
	WIRE_BITS(OF, count, 8, 1, 15),
	WIRE_BYTES(OF, details, 10),
};
WIRE_LAYOUT(mad_notice, "Notice", notice_rows);

static const struct wire_field report_rows[] = {
	WIRE_INNER(struct mad_report, notice, 0, mad_notice_layout),
	WIRE_BYTES(struct mad_report, issuer_gid, 64),
};
WIRE_LAYOUT(mad_report, "Notice with IssuerGID", report_rows);

static const struct wire_field gid_rows[] = {
	WIRE_RESERVED(0, 0, 48),
	WIRE_BYTES(struct mad_trap_gid, gid, 6),
	WIRE_RESERVED(22, 0, 256),
};
WIRE_LAYOUT(mad_trap_gid, "details of traps 64 to 67", gid_rows);

static const struct wire_field link_state_rows[] = {
	WIRE_BITS(struct mad_trap_link_state, lid, 0, 0, 16),
	WIRE_RESERVED(2, 0, 416),
};
WIRE_LAYOUT(mad_trap_link_state, "details of trap 128", link_state_rows);

static const struct wire_field port_rows[] = {
	WIRE_RESERVED(0, 0, 16),
	WIRE_BITS(struct mad_trap_port, lid, 2, 0, 16),
	WIRE_BITS(struct mad_trap_port, port, 4, 0, 8),
	WIRE_RESERVED(5, 0, 392),
};
WIRE_LAYOUT(mad_trap_port, "details of traps 129 to 131", port_rows);

#undef OF
#define OF struct mad_trap_capability
static const struct wire_field capability_rows[] = {
	WIRE_RESERVED(0, 0, 16),
	WIRE_BITS(OF, lid, 2, 0, 16),
	WIRE_RESERVED(4, 0, 15),
	WIRE_BITS(OF, other_local_changes, 5, 7, 1),
	WIRE_BITS(OF, capability_mask, 6, 0, 32),
	WIRE_BITS(OF, changes, 10, 0, 16),
	WIRE_BITS(OF, capability_mask2, 12, 0, 16),
	WIRE_RESERVED(14, 0, 320),
};
WIRE_LAYOUT(mad_trap_capability, "details of trap 144", capability_rows);

#undef OF
#define OF struct mad_trap_system_image
static const struct wire_field system_image_rows[] = {
	WIRE_RESERVED(0, 0, 16),
	WIRE_BITS(OF, lid, 2, 0, 16),
	WIRE_RESERVED(4, 0, 16),
	WIRE_BITS(OF, system_image_guid, 6, 0, 64),
	WIRE_RESERVED(14, 0, 320),
};
WIRE_LAYOUT(mad_trap_system_image, "details of trap 145", system_image_rows);

#undef OF
#define OF struct mad_trap_mkey
static const struct wire_field mkey_rows[] = {
	WIRE_RESERVED(0, 0, 16),
	WIRE_BITS(OF, lid, 2, 0, 16),
	WIRE_BITS(OF, dr_slid, 4, 0, 16),
	WIRE_BITS(OF, method, 6, 0, 8),
	WIRE_RESERVED(7, 0, 8),
	WIRE_BITS(OF, attr_id, 8, 0, 16),
	WIRE_BITS(OF, attr_mod, 10, 0, 32),
	WIRE_BITS(OF, mkey, 14, 0, 64),
	WIRE_RESERVED(22, 0, 8),
	WIRE_BITS(OF, dr_notice, 23, 0, 1),
	WIRE_BITS(OF, dr_path_truncated, 23, 1, 1),
	WIRE_BITS(OF, dr_hop_count, 23, 2, 6),
	WIRE_BYTES(OF, dr_return_path, 24),
};
WIRE_LAYOUT(mad_trap_mkey, "details of trap 256", mkey_rows);

#undef OF
#define OF struct mad_trap_key
static const struct wire_field key_rows[] = {
	WIRE_RESERVED(0, 0, 16),
	WIRE_BITS(OF, lid1, 2, 0, 16),
	WIRE_BITS(OF, lid2, 4, 0, 16),
	WIRE_BITS(OF, key, 6, 0, 32),
	WIRE_BITS(OF, sl, 10, 0, 4),
	WIRE_RESERVED(10, 4, 4),
	WIRE_BITS(OF, qp1, 11, 0, 24),
	WIRE_RESERVED(14, 0, 8),
	WIRE_BITS(OF, qp2, 15, 0, 24),
	WIRE_BYTES(OF, gid1, 18),
	WIRE_BYTES(OF, gid2, 34),
	WIRE_RESERVED(50, 0, 32),
};
WIRE_LAYOUT(mad_trap_key, "details of traps 257 and 258", key_rows);

#undef OF
#define OF struct mad_trap_switch_pkey
static const struct wire_field switch_pkey_rows[] = {
	WIRE_BITS(OF, data_valid, 0, 0, 16),
	WIRE_BITS(OF, lid1, 2, 0, 16),
	WIRE_BITS(OF, lid2, 4, 0, 16),
	WIRE_BITS(OF, pkey, 6, 0, 16),
	WIRE_BITS(OF, sl, 8, 0, 4),
	WIRE_RESERVED(8, 4, 4),
	WIRE_BITS(OF, qp1, 9, 0, 24),
	WIRE_RESERVED(12, 0, 8),
	WIRE_BITS(OF, qp2, 13, 0, 24),
	WIRE_BYTES(OF, gid1, 16),
	WIRE_BYTES(OF, gid2, 32),
	WIRE_BITS(OF, switch_lid, 48, 0, 16),
	WIRE_BITS(OF, port, 50, 0, 8),
	WIRE_RESERVED(51, 0, 24),
};
WIRE_LAYOUT(mad_trap_switch_pkey, "details of trap 259", switch_pkey_rows);

const struct wire_layout *mad_trap_layout(uint16_t trap_number)
{
	switch (trap_number) {
	case MAD_TRAP_GID_IN_SERVICE:
	case MAD_TRAP_GID_OUT_OF_SERVICE:
	case MAD_TRAP_MC_GROUP_CREATED:
	case MAD_TRAP_MC_GROUP_DELETED:
		return &mad_trap_gid_layout;
	case MAD_TRAP_LINK_STATE_CHANGE:
		return &mad_trap_link_state_layout;
	case MAD_TRAP_LOCAL_LINK_INTEGRITY:
	case MAD_TRAP_BUFFER_OVERRUN:
	case MAD_TRAP_FLOW_CONTROL_UPDATE:
		return &mad_trap_port_layout;
	case MAD_TRAP_CAPABILITY_CHANGE:
		return &mad_trap_capability_layout;
	case MAD_TRAP_SYSTEM_IMAGE_GUID_CHANGE:
		return &mad_trap_system_image_layout;
	case MAD_TRAP_BAD_MKEY:
		return &mad_trap_mkey_layout;
	case MAD_TRAP_BAD_PKEY:
	case MAD_TRAP_BAD_QKEY:
		return &mad_trap_key_layout;
	case MAD_TRAP_SWITCH_BAD_PKEY:
		return &mad_trap_switch_pkey_layout;
	default:
		return NULL;
	}
}
