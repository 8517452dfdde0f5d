/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding and decoding of the messages of communication management.
 *
 * They are 256-byte MADs as in the InfiniBand Architecture Specification, volume 1,
 * chapter 12 (communication management) and annex A11 (RDMA IP CM service). The
 * functions are pure: no socket, no state. engine/cm/state.h decides which message may
 * follow which.
 *
 * Integers in the structures are in host order; GIDs and private data are the bytes of
 * the message. The decoder checks every length and field: anything that is no message
 * by the tables is -EBADMSG.
 */
#ifndef WIRE_CM_H
#define WIRE_CM_H

#include <stddef.h>
#include <stdint.h>

#define CM_MAD_SIZE 256
#define CM_IP_HEADER_SIZE 36

/* Bytes of private data in each message. */
#define CM_REQ_PRIVATE 92
#define CM_MRA_PRIVATE 222
#define CM_REJ_PRIVATE 148
#define CM_REP_PRIVATE 196
#define CM_RTU_PRIVATE 224
#define CM_DREQ_PRIVATE 220
#define CM_DREP_PRIVATE 224
#define CM_SIDR_REQ_PRIVATE 216
#define CM_SIDR_REP_PRIVATE 136
#define CM_LAP_PRIVATE 168
#define CM_APR_PRIVATE 148
#define CM_INFO_SIZE 72 /* additional information of REJ, SIDR_REP and APR */

/* Attribute identifier of the MAD: the kind of message. */
enum cm_type {
	CM_REQ = 0x0010,
	CM_MRA = 0x0011,
	CM_REJ = 0x0012,
	CM_REP = 0x0013,
	CM_RTU = 0x0014,
	CM_DREQ = 0x0015,
	CM_DREP = 0x0016,
	CM_SIDR_REQ = 0x0017,
	CM_SIDR_REP = 0x0018,
	CM_LAP = 0x0019,
	CM_APR = 0x001a,
};

enum cm_service {
	CM_SERVICE_RC = 0,
	CM_SERVICE_UC = 1,
	CM_SERVICE_RD = 2,
	CM_SERVICE_EXTENDED = 3,
};

/* With CM_SERVICE_EXTENDED. */
enum cm_extended_service {
	CM_EXTENDED_XRC = 1,
};

/* Which message a REJ or MRA answers. */
enum cm_answered {
	CM_ANSWERED_REQ = 0,
	CM_ANSWERED_REP = 1,
	CM_ANSWERED_OTHER = 2, /* REJ: no particular message; MRA: a LAP */
};

/* Why a REJ was sent. */
enum cm_reason {
	CM_REASON_NO_QP = 1,
	CM_REASON_NO_EEC = 2,
	CM_REASON_NO_RESOURCES = 3,
	CM_REASON_TIMEOUT = 4,
	CM_REASON_UNSUPPORTED = 5,
	CM_REASON_INVALID_COMM_ID = 6,
	CM_REASON_INVALID_COMM_INSTANCE = 7,
	CM_REASON_INVALID_SERVICE_ID = 8,
	CM_REASON_INVALID_SERVICE_TYPE = 9,
	CM_REASON_STALE_CONNECTION = 10,
	CM_REASON_RDC_MISSING = 11,
	CM_REASON_INVALID_GID = 12,
	CM_REASON_INVALID_LID = 13,
	CM_REASON_INVALID_SL = 14,
	CM_REASON_INVALID_TRAFFIC_CLASS = 15,
	CM_REASON_INVALID_HOP_LIMIT = 16,
	CM_REASON_INVALID_PACKET_RATE = 17,
	CM_REASON_INVALID_ALT_GID = 18,
	CM_REASON_INVALID_ALT_LID = 19,
	CM_REASON_INVALID_ALT_SL = 20,
	CM_REASON_INVALID_ALT_TRAFFIC_CLASS = 21,
	CM_REASON_INVALID_ALT_HOP_LIMIT = 22,
	CM_REASON_INVALID_ALT_PACKET_RATE = 23,
	CM_REASON_PORT_CM_REDIRECT = 24,
	CM_REASON_PORT_REDIRECT = 25,
	CM_REASON_INVALID_MTU = 26,
	CM_REASON_INSUFFICIENT_RESPONDER = 27,
	CM_REASON_CONSUMER = 28,
	CM_REASON_INVALID_RNR_RETRY = 29,
	CM_REASON_DUPLICATE_COMM_ID = 30,
	CM_REASON_INVALID_CLASS_VERSION = 31,
	CM_REASON_INVALID_FLOW_LABEL = 32,
	CM_REASON_INVALID_ALT_FLOW_LABEL = 33,
	CM_REASON_VENDOR_OPTION = 35,
};

/* The result of loading a LAP's alternate path. */
enum cm_path_status {
	CM_PATH_LOADED = 0,
	CM_PATH_INVALID_COMM_ID = 1,
	CM_PATH_UNSUPPORTED = 2,
	CM_PATH_REJECTED = 3,
	CM_PATH_REDIRECT = 4,
	CM_PATH_IS_PRIMARY = 5,
	CM_PATH_INVALID_QPN = 6,
	CM_PATH_INVALID_LID = 7,
	CM_PATH_INVALID_GID = 8,
	CM_PATH_INVALID_FLOW_LABEL = 9,
	CM_PATH_INVALID_TRAFFIC_CLASS = 10,
	CM_PATH_INVALID_HOP_LIMIT = 11,
	CM_PATH_INVALID_PACKET_RATE = 12,
	CM_PATH_INVALID_SL = 13,
};

enum cm_sidr_status {
	CM_SIDR_SUCCESS = 0,
	CM_SIDR_UNSUPPORTED = 1,
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_VERSION = 5,
};

struct cm_path {
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;      /* 20 bits */
	uint8_t packet_rate;      /* 6 bits */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;               /* 4 bits */
	uint8_t subnet_local;     /* 1 bit */
	uint8_t local_ack_timeout; /* 5 bits: 4.096 us * 2^n */
};

struct cm_req {
	uint32_t local_comm_id;
	uint32_t vendor_id;       /* 24 bits, enhanced connection (ECE) */
	uint64_t service_id;
	uint64_t local_ca_guid;
	uint32_t local_qkey;
	uint32_t local_qpn;       /* 24 bits */
	uint8_t responder_resources;
	uint32_t local_eecn;      /* 24 bits */
	uint8_t initiator_depth;
	uint32_t remote_eecn;     /* 24 bits */
	uint8_t remote_response_timeout; /* 5 bits: 4.096 us * 2^n */
	uint8_t service;          /* enum cm_service */
	uint8_t flow_control;
	uint32_t starting_psn;    /* 24 bits */
	uint8_t local_response_timeout; /* 5 bits */
	uint8_t retry_count;      /* 3 bits */
	uint16_t pkey;
	uint8_t path_mtu;         /* 1: 256 ... 5: 4096 */
	uint8_t rdc_exists;
	uint8_t rnr_retry_count;  /* 3 bits */
	uint8_t max_cm_retries;   /* 4 bits */
	uint8_t srq;
	uint8_t extended_service; /* 3 bits */
	struct cm_path primary, alternate;
	uint8_t private_data[CM_REQ_PRIVATE];
};

struct cm_mra {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t answered;         /* enum cm_answered */
	uint8_t service_timeout;  /* 5 bits */
	uint8_t private_data[CM_MRA_PRIVATE];
};

struct cm_rej {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t answered;         /* enum cm_answered */
	uint8_t info_len;         /* 7 bits, at most CM_INFO_SIZE */
	uint16_t reason;          /* enum cm_reason and others */
	uint8_t info[CM_INFO_SIZE];
	uint8_t private_data[CM_REJ_PRIVATE];
};

struct cm_rep {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t local_qkey;
	uint32_t local_qpn;       /* 24 bits */
	uint32_t local_eecn;      /* 24 bits */
	uint32_t starting_psn;    /* 24 bits */
	uint8_t vendor_id_high, vendor_id_middle, vendor_id_low;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* 5 bits */
	uint8_t failover_accepted; /* 2 bits */
	uint8_t flow_control;
	uint8_t rnr_retry_count;  /* 3 bits */
	uint8_t srq;
	uint64_t local_ca_guid;
	uint8_t private_data[CM_REP_PRIVATE];
};

struct cm_rtu {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t private_data[CM_RTU_PRIVATE];
};

struct cm_dreq {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;      /* 24 bits */
	uint8_t private_data[CM_DREQ_PRIVATE];
};

struct cm_drep {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t private_data[CM_DREP_PRIVATE];
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status;           /* enum cm_sidr_status */
	uint8_t info_len;         /* at most CM_INFO_SIZE */
	uint32_t qpn;             /* 24 bits */
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[CM_INFO_SIZE];
	uint8_t private_data[CM_SIDR_REP_PRIVATE];
};

struct cm_lap {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;      /* 24 bits */
	uint8_t remote_response_timeout; /* 5 bits */
	struct cm_path alternate;
	uint8_t private_data[CM_LAP_PRIVATE];
};

struct cm_apr {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t info_len;         /* at most CM_INFO_SIZE */
	uint8_t status;           /* enum cm_path_status */
	uint8_t info[CM_INFO_SIZE];
	uint8_t private_data[CM_APR_PRIVATE];
};

struct cm_mad {
	enum cm_type type;
	uint64_t tid;             /* transaction of the request and its answer */
	uint32_t attr_mod;        /* ECE options in REQ and REP, else 0 */
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_rtu rtu;
		struct cm_dreq dreq;
		struct cm_drep drep;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
		struct cm_lap lap;
		struct cm_apr apr;
	};
};

/* 0, or -EINVAL: unknown type, or a value that does not fit its field. */
int wire_cm_encode(const struct cm_mad *mad, uint8_t out[CM_MAD_SIZE]);

/*
 * 0, or -EBADMSG: not CM_MAD_SIZE bytes, not a CM MAD of class version 2, of a
 * type that is not encoded here, or with a field outside its range. `mad` is
 * written on success only.
 */
int wire_cm_decode(const void *bytes, size_t len, struct cm_mad *mad);

/* "REQ"; "unknown" for other values. */
const char *wire_cm_name(enum cm_type type);

/*
 * The IP addresses of caller and listener, at the beginning of the private data of a REQ
 * or SIDR_REQ of an IP port space. An IPv4 address is in the last 4 of the 16 bytes.
 */
struct cm_ip_header {
	uint8_t ip_version;       /* 4 or 6 */
	uint16_t src_port;
	uint8_t src[16], dst[16];
};

/* 0, or -EINVAL: ip_version is neither 4 nor 6. */
int wire_cm_ip_encode(const struct cm_ip_header *header,
		      uint8_t out[CM_IP_HEADER_SIZE]);
/* 0 or -EBADMSG. */
int wire_cm_ip_decode(const void *bytes, size_t len, struct cm_ip_header *header);

/*
 * Service identifier of a port of a port space (RDMA_PS_TCP 0x0106, ...):
 * 0x0000000001060000 + port.
 */
static inline uint64_t wire_cm_service_id(uint16_t port_space, uint16_t port)
{
	return ((uint64_t)port_space << 16) | port;
}

/* 0, or -EBADMSG: the identifier does not belong to an IP port space. */
int wire_cm_service_parse(uint64_t service_id, uint16_t *port_space,
			  uint16_t *port);

#endif
