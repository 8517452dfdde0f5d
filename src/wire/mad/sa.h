/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet administration: the header of its MADs and its records. IBA volume 1, 15.2.1
 * (format), 15.2.5 (records). Each record has one structure, on the wire without the bytes
 * that fill it up to a multiple of 8; AttributeOffset counts in units of 8 bytes.
 *
 * Not here: TraceRecord, RandomForwardingTableRecord, ServiceAssociation
 * and the records of release 1.3 for extended PortInfo.
 */
#ifndef WIRE_MAD_SA_H
#define WIRE_MAD_SA_H

#include <stdint.h>

#include "wire/mad/mad.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

enum {
	MAD_SA_RMPP_AT = 24,
	MAD_SA_HEADER_AT = 36,  /* behind the RMPP header */
	MAD_SA_DATA_AT = 56,
	MAD_SA_DATA_BYTES = 200,
};

/* Bytes 36 to 55. The RMPP header in front of it: rmpp.h. */
struct mad_sa {
	uint64_t sm_key;
	uint16_t attribute_offset; /* from record to record, units of 8 bytes; 0: one record */
	uint64_t component_mask;
};
WIRE_CODEC(mad_sa, 20)

/* The attribute offset of records of so many bytes. */
static inline uint16_t mad_sa_offset(unsigned record_bytes)
{
	return (uint16_t)((record_bytes + 7) / 8);
}

enum mad_selector { /* of MTU, rate and packet lifetime in queries */
	MAD_SELECT_GREATER = 0,
	MAD_SELECT_LESS = 1,
	MAD_SELECT_EXACTLY = 2,
	MAD_SELECT_LARGEST = 3, /* lifetime: smallest */
};

enum mad_rate { /* Gbit/s */
	MAD_RATE_2_5 = 2,
	MAD_RATE_10 = 3,
	MAD_RATE_30 = 4,
	MAD_RATE_5 = 5,
	MAD_RATE_20 = 6,
	MAD_RATE_40 = 7,
	MAD_RATE_60 = 8,
	MAD_RATE_80 = 9,
	MAD_RATE_120 = 10,
	MAD_RATE_14 = 11,
	MAD_RATE_56 = 12,
	MAD_RATE_112 = 13,
	MAD_RATE_168 = 14,
	MAD_RATE_25 = 15,
	MAD_RATE_100 = 16,
	MAD_RATE_200 = 17,
	MAD_RATE_300 = 18,
	MAD_RATE_28 = 19,
	MAD_RATE_50 = 20,
	MAD_RATE_400 = 21,
	MAD_RATE_600 = 22,
	MAD_RATE_800 = 23,
	MAD_RATE_1200 = 24,
};

/* ---- records of tables and ports ---- */

struct mad_node_record {
	uint16_t lid;
	struct mad_node_info info;
	struct mad_node_description description;
};
WIRE_CODEC(mad_node_record, 108)

struct mad_port_info_record {
	uint16_t endport_lid;
	uint8_t port_num, options;
	struct mad_port_info info;
};
WIRE_CODEC(mad_port_info_record, 68)

struct mad_sl_to_vl_record {
	uint16_t lid;
	uint8_t input_port, output_port;
	struct mad_sl_to_vl table;
};
WIRE_CODEC(mad_sl_to_vl_record, 16)

struct mad_switch_info_record {
	uint16_t lid;
	struct mad_switch_info info;
};
WIRE_CODEC(mad_switch_info_record, 24)

struct mad_linear_forwarding_record {
	uint16_t lid, block;
	struct mad_linear_forwarding table;
};
WIRE_CODEC(mad_linear_forwarding_record, 72)

struct mad_multicast_forwarding_record {
	uint16_t lid;
	uint8_t position; /* 4 bits */
	uint16_t block;   /* 9 bits */
	struct mad_multicast_forwarding table;
};
WIRE_CODEC(mad_multicast_forwarding_record, 72)

struct mad_sm_info_record {
	uint16_t lid;
	struct mad_sm_info info;
};
WIRE_CODEC(mad_sm_info_record, 25)

struct mad_link_record {
	uint16_t from_lid;
	uint8_t from_port, to_port;
	uint16_t to_lid;
};
WIRE_CODEC(mad_link_record, 6)

struct mad_guid_info_record {
	uint16_t lid;
	uint8_t block;
	struct mad_guid_info table;
};
WIRE_CODEC(mad_guid_info_record, 72)

struct mad_pkey_table_record {
	uint16_t lid, block;
	uint8_t port_num;
	struct mad_pkey_table table;
};
WIRE_CODEC(mad_pkey_table_record, 72)

struct mad_vl_arbitration_record {
	uint16_t lid;
	uint8_t output_port, block;
	struct mad_vl_arbitration table;
};
WIRE_CODEC(mad_vl_arbitration_record, 72)

/* ---- paths, groups, services, subscriptions ---- */

struct mad_path_record {
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint8_t raw_traffic;    /* 1 bit */
	uint32_t flow_label;    /* 20 bits */
	uint8_t hop_limit, tclass;
	uint8_t reversible;     /* 1 bit */
	uint8_t numb_path;      /* 7 bits */
	uint16_t pkey;
	uint16_t qos_class;     /* 12 bits */
	uint8_t sl;             /* 4 bits */
	uint8_t mtu_selector, mtu;                   /* 2 bits, 6 bits: enum mad_selector, mad_mtu */
	uint8_t rate_selector, rate;                 /* 2 bits, 6 bits: enum mad_rate */
	uint8_t packet_life_selector, packet_life;   /* 2 bits, 6 bits: 4.096 us * 2^n */
	uint8_t preference;
};
WIRE_CODEC(mad_path_record, 64)

#define MAD_MULTI_PATH_GIDS 11 /* as many as one MAD holds */

/* A query for paths between several ports; PathRecords answer it. Queries of more than 11 GIDs,
 * which RMPP could carry, are not converted. */
struct mad_multi_path_record {
	uint8_t raw_traffic;    /* 1 bit */
	uint32_t flow_label;    /* 20 bits */
	uint8_t hop_limit, tclass;
	uint8_t reversible;     /* 1 bit */
	uint8_t numb_path;      /* 7 bits */
	uint16_t pkey;
	uint16_t qos_class;     /* 12 bits */
	uint8_t sl;             /* 4 bits */
	uint8_t mtu_selector, mtu;
	uint8_t rate_selector, rate;
	uint8_t packet_life_selector, packet_life;
	uint8_t service_id_8msb;
	uint8_t independence_selector; /* 2 bits */
	uint8_t sgid_count, dgid_count;
	uint64_t service_id_56lsb; /* 56 bits */
	uint8_t gid[MAD_MULTI_PATH_GIDS][16]; /* sources, then destinations */
};
WIRE_CODEC(mad_multi_path_record, 200)

enum mad_join_state { /* bits */
	MAD_JOIN_FULL = 1 << 0,
	MAD_JOIN_NON = 1 << 1,
	MAD_JOIN_SEND_ONLY = 1 << 2,
};

struct mad_mc_member_record {
	uint8_t mgid[16], port_gid[16];
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu_selector, mtu;
	uint8_t tclass;
	uint16_t pkey;
	uint8_t rate_selector, rate;
	uint8_t packet_life_selector, packet_life;
	uint8_t sl;             /* 4 bits */
	uint32_t flow_label;    /* 20 bits */
	uint8_t hop_limit;
	uint8_t scope;          /* 4 bits */
	uint8_t join_state;     /* 4 bits, enum mad_join_state */
	uint8_t proxy_join;     /* 1 bit */
};
WIRE_CODEC(mad_mc_member_record, 52)

struct mad_service_record {
	uint64_t service_id;
	uint8_t service_gid[16];
	uint16_t service_pkey;
	uint32_t service_lease; /* seconds; all ones: no end */
	uint8_t service_key[16];
	char service_name[64];  /* UTF-8; not terminated if it has 64 bytes */
	uint8_t data8[16];
	uint16_t data16[8];
	uint32_t data32[4];
	uint64_t data64[2];
};
WIRE_CODEC(mad_service_record, 176)

struct mad_inform_info {
	uint8_t gid[16];        /* of the producer; 0: see LIDs */
	uint16_t lid_range_begin, lid_range_end; /* begin 0xffff: all */
	uint8_t is_generic;
	uint8_t subscribe;      /* 1, or 0 to end it */
	uint16_t type;          /* enum mad_notice_type; 0xffff: all */
	uint16_t trap_number;   /* 0xffff: all */
	uint32_t qpn;           /* 24 bits: of the subscriber */
	uint8_t resp_time_value; /* 5 bits */
	uint32_t producer_type; /* 24 bits; 0xffffff: all */
};
WIRE_CODEC(mad_inform_info, 36)

struct mad_inform_info_record {
	uint8_t subscriber_gid[16];
	uint16_t subscriber_enum;
	struct mad_inform_info info;
};
WIRE_CODEC(mad_inform_info_record, 60)

/* ---- component masks: which fields of a query count ---- */

#define MAD_COMPONENT(n) (UINT64_C(1) << (n))

enum mad_path_component { /* bit numbers */
	MAD_PATH_SERVICE_ID_8MSB = 0,
	MAD_PATH_SERVICE_ID_56LSB = 1,
	MAD_PATH_DGID = 2,
	MAD_PATH_SGID = 3,
	MAD_PATH_DLID = 4,
	MAD_PATH_SLID = 5,
	MAD_PATH_RAW_TRAFFIC = 6,
	MAD_PATH_FLOW_LABEL = 8,
	MAD_PATH_HOP_LIMIT = 9,
	MAD_PATH_TCLASS = 10,
	MAD_PATH_REVERSIBLE = 11,
	MAD_PATH_NUMB_PATH = 12,
	MAD_PATH_PKEY = 13,
	MAD_PATH_QOS_CLASS = 14,
	MAD_PATH_SL = 15,
	MAD_PATH_MTU_SELECTOR = 16,
	MAD_PATH_MTU = 17,
	MAD_PATH_RATE_SELECTOR = 18,
	MAD_PATH_RATE = 19,
	MAD_PATH_PACKET_LIFE_SELECTOR = 20,
	MAD_PATH_PACKET_LIFE = 21,
};

enum mad_mc_component {
	MAD_MC_MGID = 0,
	MAD_MC_PORT_GID = 1,
	MAD_MC_QKEY = 2,
	MAD_MC_MLID = 3,
	MAD_MC_MTU_SELECTOR = 4,
	MAD_MC_MTU = 5,
	MAD_MC_TCLASS = 6,
	MAD_MC_PKEY = 7,
	MAD_MC_RATE_SELECTOR = 8,
	MAD_MC_RATE = 9,
	MAD_MC_PACKET_LIFE_SELECTOR = 10,
	MAD_MC_PACKET_LIFE = 11,
	MAD_MC_SL = 12,
	MAD_MC_FLOW_LABEL = 13,
	MAD_MC_HOP_LIMIT = 14,
	MAD_MC_SCOPE = 15,
	MAD_MC_JOIN_STATE = 16,
	MAD_MC_PROXY_JOIN = 17,
};

/* Does a record have the values of the query in all components of `mask`? Both are bytes as
 * on the wire, of the length of the record's layout. The number of a component is that of its
 * field in the record; fields of inner structures, elements of arrays and reserved fields
 * count. Reserved fields are not compared; a bit beyond the last component, or an attribute
 * that is no record, never matches. Selectors are compared like other fields: the caller
 * takes them, and the fields that they belong to, out of the mask. */
bool mad_sa_matches(uint16_t attr_id, uint64_t mask, const uint8_t *query, const uint8_t *record);

#endif
