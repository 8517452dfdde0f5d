/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices, which traps carry: IBA volume 1, 13.4.8.2 and 14.2.5.1 (data details of each
 * trap). An SMP has the 64 bytes of struct mad_notice; a Report of subnet administration has
 * the 80 of struct mad_report, with the GID of the issuer.
 */
#ifndef WIRE_MAD_NOTICE_H
#define WIRE_MAD_NOTICE_H

#include <stdint.h>

#include "wire/mad/mad.h"

enum mad_notice_type {
	MAD_NOTICE_FATAL = 0,
	MAD_NOTICE_URGENT = 1,
	MAD_NOTICE_SECURITY = 2,
	MAD_NOTICE_SUBN_MGT = 3,
	MAD_NOTICE_INFORMATION = 4,
	MAD_NOTICE_EMPTY = 0x7f,
};

enum mad_trap {
	MAD_TRAP_GID_IN_SERVICE = 64,      /* of the subnet manager, as the next three */
	MAD_TRAP_GID_OUT_OF_SERVICE = 65,
	MAD_TRAP_MC_GROUP_CREATED = 66,
	MAD_TRAP_MC_GROUP_DELETED = 67,
	MAD_TRAP_LINK_STATE_CHANGE = 128,  /* of a switch */
	MAD_TRAP_LOCAL_LINK_INTEGRITY = 129,
	MAD_TRAP_BUFFER_OVERRUN = 130,
	MAD_TRAP_FLOW_CONTROL_UPDATE = 131, /* the watchdog expired */
	MAD_TRAP_CAPABILITY_CHANGE = 144,
	MAD_TRAP_SYSTEM_IMAGE_GUID_CHANGE = 145,
	MAD_TRAP_BAD_MKEY = 256,
	MAD_TRAP_BAD_PKEY = 257,
	MAD_TRAP_BAD_QKEY = 258,
	MAD_TRAP_SWITCH_BAD_PKEY = 259,    /* at an external port of a switch */
};

#define MAD_NOTICE_DETAILS_BYTES 54

struct mad_notice {
	uint8_t is_generic;     /* 1 bit; 0: the next two are vendor ID and device ID */
	uint8_t type;           /* 7 bits, enum mad_notice_type */
	uint32_t producer_type; /* 24 bits, enum mad_node_type */
	uint16_t trap_number;   /* enum mad_trap */
	uint16_t issuer_lid;
	uint8_t toggle;         /* 1 bit */
	uint16_t count;         /* 15 bits */
	uint8_t details[MAD_NOTICE_DETAILS_BYTES]; /* one of the structures below */
};
WIRE_CODEC(mad_notice, 64)

struct mad_report {
	struct mad_notice notice;
	uint8_t issuer_gid[16];
};
WIRE_CODEC(mad_report, 80)

/* ---- details; each is packed into, and unpacked from, mad_notice.details ---- */

struct mad_trap_gid { /* 64 to 67 */
	uint8_t gid[16];
};
WIRE_CODEC(mad_trap_gid, MAD_NOTICE_DETAILS_BYTES)

struct mad_trap_link_state { /* 128 */
	uint16_t lid; /* of the switch */
};
WIRE_CODEC(mad_trap_link_state, MAD_NOTICE_DETAILS_BYTES)

struct mad_trap_port { /* 129 to 131 */
	uint16_t lid;
	uint8_t port;
};
WIRE_CODEC(mad_trap_port, MAD_NOTICE_DETAILS_BYTES)

enum mad_trap_change { /* of mad_trap_capability.changes, where other_local_changes is 1 */
	MAD_CHANGE_NODE_DESCRIPTION = 1 << 0,
	MAD_CHANGE_LINK_WIDTH_ENABLED = 1 << 1,
	MAD_CHANGE_LINK_SPEED_ENABLED = 1 << 2,
	MAD_CHANGE_SM_PRIORITY = 1 << 3,
	MAD_CHANGE_LINK_SPEED_EXT_ENABLED = 1 << 4,
	MAD_CHANGE_CAPABILITY_MASK2 = 1 << 5,
};
struct mad_trap_capability { /* 144 */
	uint16_t lid;
	uint8_t other_local_changes; /* 1 bit */
	uint32_t capability_mask;
	uint16_t changes;            /* enum mad_trap_change */
	uint16_t capability_mask2;
};
WIRE_CODEC(mad_trap_capability, MAD_NOTICE_DETAILS_BYTES)

struct mad_trap_system_image { /* 145 */
	uint16_t lid;
	uint64_t system_image_guid;
};
WIRE_CODEC(mad_trap_system_image, MAD_NOTICE_DETAILS_BYTES)

struct mad_trap_mkey { /* 256 */
	uint16_t lid, dr_slid;       /* of the port; of the refused SMP */
	uint8_t method;
	uint16_t attr_id;
	uint32_t attr_mod;
	uint64_t mkey;
	uint8_t dr_notice;           /* 1 bit: it was a directed route SMP */
	uint8_t dr_path_truncated;   /* 1 bit */
	uint8_t dr_hop_count;        /* 6 bits */
	uint8_t dr_return_path[30];
};
WIRE_CODEC(mad_trap_mkey, MAD_NOTICE_DETAILS_BYTES)

struct mad_trap_key { /* 257 (P_Key) and 258 (Q_Key) */
	uint16_t lid1, lid2;         /* source, destination */
	uint32_t key;
	uint8_t sl;                  /* 4 bits */
	uint32_t qp1, qp2;           /* 24 bits */
	uint8_t gid1[16], gid2[16];
};
WIRE_CODEC(mad_trap_key, MAD_NOTICE_DETAILS_BYTES)

struct mad_trap_switch_pkey { /* 259 */
	uint16_t data_valid;         /* bits: lid1, lid2, pkey, sl, qp1, qp2, gid1, gid2 from bit 0 */
	uint16_t lid1, lid2, pkey;
	uint8_t sl;                  /* 4 bits */
	uint32_t qp1, qp2;           /* 24 bits */
	uint8_t gid1[16], gid2[16];
	uint16_t switch_lid;
	uint8_t port;
};
WIRE_CODEC(mad_trap_switch_pkey, MAD_NOTICE_DETAILS_BYTES)

/* The layout of a trap's details; NULL: unknown trap. */
const struct wire_layout *mad_trap_layout(uint16_t trap_number);

#endif
