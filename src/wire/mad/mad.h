/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams (MADs): the header that all of them share, and the numbers of
 * classes, methods, status values and attributes. IBA volume 1, 13.4 (format), 13.4.5
 * (methods), 13.4.7 (status), 14.2.5, 15.2.5, 16.1.3 and annex A10 (attributes).
 *
 * Pure: bytes to structures in host order and back, no state. Who may ask what, and what is
 * answered, is decided elsewhere. Every attribute has a structure, and functions made by
 * WIRE_CODEC (wire/fields.h):
 *
 *     bool mad_port_info_pack(const struct mad_port_info *from, uint8_t *to);
 *     void mad_port_info_unpack(const uint8_t *from, struct mad_port_info *to);
 *
 * GUIDs, GID prefixes and keys are integers in host order; GIDs and texts are bytes.
 *
 * smp.h has subnet management, port.h PortInfo, notice.h traps, perf.h counters, cc.h
 * congestion control, sa.h the records of subnet administration, rmpp.h answers of more than
 * one datagram. wire/cm.h has communication management.
 */
#ifndef WIRE_MAD_MAD_H
#define WIRE_MAD_MAD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/fields.h"

#define MAD_BYTES 256
#define MAD_HEADER_BYTES 24
#define MAD_BASE_VERSION 1
/* Where attributes of classes other than subnet administration begin: 64 bytes of data in an
 * SMP, 192 in others. */
#define MAD_DATA_AT 64

enum mad_class {
	MAD_CLASS_SUBN_LID = 0x01,
	MAD_CLASS_SUBN_ADM = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_BM = 0x05,
	MAD_CLASS_DEV_MGT = 0x06,
	MAD_CLASS_COMM_MGT = 0x07,
	MAD_CLASS_SNMP = 0x08,
	MAD_CLASS_VENDOR_1_FIRST = 0x09,
	MAD_CLASS_VENDOR_1_LAST = 0x0f,
	MAD_CLASS_CONG_MGT = 0x21,
	MAD_CLASS_VENDOR_2_FIRST = 0x30, /* with OUI; they may use RMPP */
	MAD_CLASS_VENDOR_2_LAST = 0x4f,
	MAD_CLASS_SUBN_DIRECTED = 0x81,
};

/* Class versions. */
enum {
	MAD_VERSION_SUBN = 1,
	MAD_VERSION_SUBN_ADM = 2,
	MAD_VERSION_PERF = 1,
	MAD_VERSION_COMM_MGT = 2,
	MAD_VERSION_CONG_MGT = 2,
};

enum mad_method {
	MAD_GET = 0x01,
	MAD_SET = 0x02,
	MAD_SEND = 0x03,
	MAD_TRAP = 0x05,
	MAD_REPORT = 0x06,
	MAD_TRAP_REPRESS = 0x07,
	MAD_GET_TABLE = 0x12,
	MAD_GET_TRACE_TABLE = 0x13,
	MAD_GET_MULTI = 0x14,
	MAD_DELETE = 0x15,
	MAD_RESPONSE = 0x80, /* bit */
	MAD_GET_RESP = 0x81,
	MAD_REPORT_RESP = 0x86,
	MAD_GET_TABLE_RESP = 0x92,
	MAD_GET_MULTI_RESP = 0x94,
	MAD_DELETE_RESP = 0x95,
};

/* Common bits of the status; the upper byte is of the class. */
enum mad_status {
	MAD_STATUS_OK = 0,
	MAD_STATUS_BUSY = 1 << 0,
	MAD_STATUS_REDIRECT = 1 << 1,
	MAD_STATUS_BAD_VERSION = 1 << 2,
	MAD_STATUS_BAD_METHOD = 2 << 2,
	MAD_STATUS_BAD_METHOD_ATTRIBUTE = 3 << 2,
	MAD_STATUS_BAD_VALUE = 7 << 2, /* of the attribute, or of its modifier */
};

/* Class-specific status of subnet administration (15.2.2). */
enum mad_sa_status {
	MAD_SA_NO_RESOURCES = 1 << 8,
	MAD_SA_REQ_INVALID = 2 << 8,
	MAD_SA_NO_RECORDS = 3 << 8,
	MAD_SA_TOO_MANY_RECORDS = 4 << 8,
	MAD_SA_REQ_INVALID_GID = 5 << 8,
	MAD_SA_INSUFFICIENT_COMPONENTS = 6 << 8,
	MAD_SA_REQ_DENIED = 7 << 8,
};

enum mad_attribute_id {
	/* all classes */
	MAD_ATTR_CLASS_PORT_INFO = 0x0001,
	MAD_ATTR_NOTICE = 0x0002,
	MAD_ATTR_INFORM_INFO = 0x0003,

	/* subnet management */
	MAD_ATTR_NODE_DESCRIPTION = 0x0010,
	MAD_ATTR_NODE_INFO = 0x0011,
	MAD_ATTR_SWITCH_INFO = 0x0012,
	MAD_ATTR_GUID_INFO = 0x0014,
	MAD_ATTR_PORT_INFO = 0x0015,
	MAD_ATTR_PKEY_TABLE = 0x0016,
	MAD_ATTR_SL_TO_VL = 0x0017,
	MAD_ATTR_VL_ARBITRATION = 0x0018,
	MAD_ATTR_LINEAR_FORWARDING = 0x0019,
	MAD_ATTR_RANDOM_FORWARDING = 0x001a,
	MAD_ATTR_MULTICAST_FORWARDING = 0x001b,
	MAD_ATTR_SM_INFO = 0x0020,
	MAD_ATTR_VENDOR_DIAG = 0x0030,
	MAD_ATTR_LED_INFO = 0x0031,

	/* performance */
	MAD_ATTR_PORT_SAMPLES_CONTROL = 0x0010,
	MAD_ATTR_PORT_SAMPLES_RESULT = 0x0011,
	MAD_ATTR_PORT_COUNTERS = 0x0012,
	MAD_ATTR_PORT_COUNTERS_EXTENDED = 0x001d,

	/* congestion control */
	MAD_ATTR_CONGESTION_INFO = 0x0011,
	MAD_ATTR_CONGESTION_KEY_INFO = 0x0012,
	MAD_ATTR_CONGESTION_LOG = 0x0013,
	MAD_ATTR_SWITCH_CONGESTION_SETTING = 0x0014,
	MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING = 0x0015,
	MAD_ATTR_CA_CONGESTION_SETTING = 0x0016,
	MAD_ATTR_CONGESTION_CONTROL_TABLE = 0x0017,
	MAD_ATTR_TIME_STAMP = 0x0018,

	/* subnet administration */
	MAD_ATTR_NODE_RECORD = 0x0011,
	MAD_ATTR_PORT_INFO_RECORD = 0x0012,
	MAD_ATTR_SL_TO_VL_RECORD = 0x0013,
	MAD_ATTR_SWITCH_INFO_RECORD = 0x0014,
	MAD_ATTR_LINEAR_FORWARDING_RECORD = 0x0015,
	MAD_ATTR_MULTICAST_FORWARDING_RECORD = 0x0017,
	MAD_ATTR_SM_INFO_RECORD = 0x0018,
	MAD_ATTR_LINK_RECORD = 0x0020,
	MAD_ATTR_GUID_INFO_RECORD = 0x0030,
	MAD_ATTR_SERVICE_RECORD = 0x0031,
	MAD_ATTR_PKEY_TABLE_RECORD = 0x0033,
	MAD_ATTR_PATH_RECORD = 0x0035,
	MAD_ATTR_VL_ARBITRATION_RECORD = 0x0036,
	MAD_ATTR_MC_MEMBER_RECORD = 0x0038,
	MAD_ATTR_MULTI_PATH_RECORD = 0x003a,
	MAD_ATTR_INFORM_INFO_RECORD = 0x00f3,
};

/* The first 24 bytes. */
struct mad_header {
	uint8_t base_version;
	uint8_t mgmt_class;      /* enum mad_class */
	uint8_t class_version;
	uint8_t method;          /* with the bit MAD_RESPONSE */
	uint16_t status;         /* enum mad_status; directed route: bit 15 is D, see smp.h */
	uint16_t class_specific; /* directed route: hop pointer and hop count, see smp.h */
	uint64_t tid;            /* transaction: of request and answer */
	uint16_t attr_id;        /* enum mad_attribute_id */
	uint32_t attr_mod;
};
WIRE_CODEC(mad_header, MAD_HEADER_BYTES)

/* ClassPortInfo (13.4.8.1): of every class but subnet management. */
struct mad_class_port_info {
	uint8_t base_version, class_version;
	uint16_t capability_mask;
	uint32_t capability_mask2;  /* 27 bits */
	uint8_t resp_time_value;    /* 5 bits: 4.096 us * 2^n */
	uint8_t redirect_gid[16];
	uint8_t redirect_tc;
	uint8_t redirect_sl;        /* 4 bits */
	uint32_t redirect_fl;       /* 20 bits */
	uint16_t redirect_lid, redirect_pkey;
	uint32_t redirect_qp;       /* 24 bits */
	uint32_t redirect_qkey;
	uint8_t trap_gid[16];
	uint8_t trap_tc;
	uint8_t trap_sl;            /* 4 bits */
	uint32_t trap_fl;           /* 20 bits */
	uint16_t trap_lid, trap_pkey;
	uint8_t trap_hl;
	uint32_t trap_qp;           /* 24 bits */
	uint32_t trap_qkey;
};
WIRE_CODEC(mad_class_port_info, 72)

/* Is `len` bytes at `mad` one MAD of base version 1? Fills *header if so. */
bool mad_header_read(const uint8_t *mad, size_t len, struct mad_header *header);

/* Makes the MAD at `mad` the answer to itself: GetResp for Get and Set, the R bit for the
 * others; `status` replaces the lower 15 bits. False, and unchanged: its method has no
 * answer (Send, Trap, TrapRepress, and answers). */
bool mad_make_response(uint8_t mad[MAD_BYTES], uint16_t status);

/* What is behind an attribute number in a class: its layout and where it begins in the MAD.
 * False: no such attribute, or it has no structure here. A CongestionLog is that of a
 * switch or adapter by its first byte: *layout is that of switches. */
struct mad_attribute {
	const struct wire_layout *layout;
	uint16_t at;
};
bool mad_attribute_find(uint8_t mgmt_class, uint16_t attr_id, struct mad_attribute *attribute);

#endif
