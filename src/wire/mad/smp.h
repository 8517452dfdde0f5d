/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet management packets (SMPs) and the attributes of nodes and switches: IBA volume 1,
 * 14.2.1 (formats), 14.2.2 (directed route), 14.2.5 (attributes). port.h has PortInfo,
 * notice.h Notice. Not here: who forwards or answers an SMP, PortInfoExtended and
 * vendors' attributes.
 */
#ifndef WIRE_MAD_SMP_H
#define WIRE_MAD_SMP_H

#include <stdint.h>

#include "wire/mad/mad.h"

#define MAD_SMP_DATA_BYTES 64
#define MAD_SMP_PATH_BYTES 64 /* entry 0 is not used, so 63 hops at most */
#define MAD_LID_PERMISSIVE 0xffff

/* Bytes of an SMP that switches read and change on the way. */
enum mad_smp_at {
	MAD_SMP_AT_DIRECTION = 4,   /* the most significant bit: D */
	MAD_SMP_AT_HOP_POINTER = 6,
	MAD_SMP_AT_HOP_COUNT = 7,
	MAD_SMP_AT_MKEY = 24,
	MAD_SMP_AT_DR_SLID = 32,
	MAD_SMP_AT_DR_DLID = 34,
	MAD_SMP_AT_INITIAL_PATH = 128,
	MAD_SMP_AT_RETURN_PATH = 192,
};
#define MAD_SMP_D 0x80 /* of that byte: the SMP returns */

struct mad_smp {
	uint8_t mgmt_class;    /* MAD_CLASS_SUBN_LID or MAD_CLASS_SUBN_DIRECTED */
	uint8_t class_version;
	uint8_t method;
	uint16_t status;       /* directed route: 15 bits */
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod;
	uint64_t mkey;
	uint8_t data[MAD_SMP_DATA_BYTES];

	/* Of directed route only; else 0. */
	bool returning;        /* D */
	uint8_t hop_pointer, hop_count;
	uint16_t dr_slid, dr_dlid;
	uint8_t initial_path[MAD_SMP_PATH_BYTES]; /* [i]: the port out of the node after i - 1 hops */
	uint8_t return_path[MAD_SMP_PATH_BYTES];  /* [i]: the port into the node after i hops */
};

/* False: mgmt_class is none of the two, a path is longer than 63 hops, or the status wider
 * than its field. Then `to` is not written. */
bool mad_smp_pack(const struct mad_smp *from, uint8_t to[MAD_BYTES]);
/* False: not MAD_BYTES bytes, another base version or class, or a hop count above 63. A hop
 * pointer beyond hop count + 1 is accepted: what it means depends on the direction. */
bool mad_smp_unpack(const uint8_t *from, size_t len, struct mad_smp *to);

/* ---- attributes ---- */

struct mad_node_description {
	char text[64]; /* UTF-8; not terminated if it has 64 bytes */
};
WIRE_CODEC(mad_node_description, 64)

enum mad_node_type {
	MAD_NODE_CA = 1,
	MAD_NODE_SWITCH = 2,
	MAD_NODE_ROUTER = 3,
};

struct mad_node_info {
	uint8_t base_version, class_version;
	uint8_t node_type;            /* enum mad_node_type */
	uint8_t num_ports;            /* without port 0 of a switch */
	uint64_t system_image_guid, node_guid, port_guid;
	uint16_t partition_cap;       /* entries of the P_Key table */
	uint16_t device_id;
	uint32_t revision;
	uint8_t local_port_num;       /* the port at which the SMP came in */
	uint32_t vendor_id;           /* 24 bits */
};
WIRE_CODEC(mad_node_info, 40)

struct mad_switch_info {
	uint16_t linear_fdb_cap, random_fdb_cap, multicast_fdb_cap; /* entries */
	uint16_t linear_fdb_top;
	uint8_t default_port, default_multicast_primary_port, default_multicast_not_primary_port;
	uint8_t life_time_value;      /* 5 bits: 4.096 us * 2^n */
	uint8_t port_state_change;    /* 1 bit; set writes 1 to clear it */
	uint8_t optimized_sl_to_vl_mapping; /* 2 bits */
	uint16_t lids_per_port;
	uint16_t partition_enforcement_cap;
	uint8_t inbound_enforcement_cap, outbound_enforcement_cap;  /* 1 bit each */
	uint8_t filter_raw_inbound_cap, filter_raw_outbound_cap;
	uint8_t enhanced_port0;
	uint16_t multicast_fdb_top;
};
WIRE_CODEC(mad_switch_info, 20)

/* Blocks of tables: the attribute modifier says which one. */

struct mad_guid_info { /* modifier: block */
	uint64_t guid[8];
};
WIRE_CODEC(mad_guid_info, 64)

struct mad_pkey_table { /* modifier: block; of switches port << 16 | block */
	uint16_t pkey[32];
};
WIRE_CODEC(mad_pkey_table, 64)

struct mad_sl_to_vl { /* modifier: of switches input port << 8 | output port */
	uint8_t vl[16];       /* 4 bits each; 15: packets of this SL are dropped */
};
WIRE_CODEC(mad_sl_to_vl, 8)

enum mad_vl_arbitration_block { /* modifier: block << 16 | port */
	MAD_VL_ARBITRATION_LOW_FIRST = 1,
	MAD_VL_ARBITRATION_LOW_SECOND = 2,
	MAD_VL_ARBITRATION_HIGH_FIRST = 3,
	MAD_VL_ARBITRATION_HIGH_SECOND = 4,
};
struct mad_vl_weight {
	uint8_t vl;     /* 4 bits */
	uint8_t weight; /* units of 64 bytes; 0: the entry is skipped */
};
struct mad_vl_arbitration {
	struct mad_vl_weight entry[32];
};
WIRE_CODEC(mad_vl_arbitration, 64)

#define MAD_FORWARDING_NONE 0xff /* no port: packets to this LID are dropped */
struct mad_linear_forwarding { /* modifier: block of 64 LIDs */
	uint8_t port[64];
};
WIRE_CODEC(mad_linear_forwarding, 64)

struct mad_random_entry {
	uint16_t lid;
	uint8_t valid; /* 1 bit */
	uint8_t lmc;   /* 3 bits */
	uint8_t port;
};
struct mad_random_forwarding { /* modifier: block of 16 entries */
	struct mad_random_entry entry[16];
};
WIRE_CODEC(mad_random_forwarding, 64)

struct mad_multicast_forwarding { /* modifier: position << 28 | block of 32 LIDs from 0xc000 */
	uint16_t ports[32]; /* bit i: port 16 * position + i */
};
WIRE_CODEC(mad_multicast_forwarding, 64)

enum mad_sm_state {
	MAD_SM_NOT_ACTIVE = 0,
	MAD_SM_DISCOVERING = 1,
	MAD_SM_STANDBY = 2,
	MAD_SM_MASTER = 3,
};
enum mad_sm_control { /* modifier of Set(SMInfo) */
	MAD_SM_HANDOVER = 1,
	MAD_SM_ACKNOWLEDGE = 2,
	MAD_SM_DISABLE = 3,
	MAD_SM_STANDBY_REQUEST = 4,
	MAD_SM_DISCOVER = 5,
};
struct mad_sm_info {
	uint64_t guid;
	uint64_t sm_key;
	uint32_t act_count;
	uint8_t priority; /* 4 bits */
	uint8_t state;    /* 4 bits, enum mad_sm_state */
};
WIRE_CODEC(mad_sm_info, 21)

struct mad_led_info {
	uint8_t on; /* 1 bit */
};
WIRE_CODEC(mad_led_info, 4)

#endif
