/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of congestion control: IBA volume 1, annex A10. CC_Key stands at byte 24 of the
 * MAD; attributes begin at byte MAD_DATA_AT, but a CongestionLog at MAD_CC_LOG_AT.
 */
#ifndef WIRE_MAD_CC_H
#define WIRE_MAD_CC_H

#include <stdint.h>

#include "wire/mad/mad.h"

enum {
	MAD_CC_KEY_AT = 24,
	MAD_CC_LOG_AT = 32,
	MAD_CC_TABLE_ENTRIES = 64, /* of a block */
	MAD_CC_SWITCH_EVENTS = 15,
	MAD_CC_CA_EVENTS = 13,
};

struct mad_congestion_info {
	uint16_t congestion_info;   /* bit 0: a switch has credit starvation marking */
	uint8_t control_table_cap;  /* blocks of 64 entries */
};
WIRE_CODEC(mad_congestion_info, 3)

struct mad_congestion_key_info {
	uint64_t cc_key;
	uint8_t cc_key_protect;     /* 1 bit */
	uint16_t cc_key_lease_period; /* seconds; 0: no end */
	uint16_t cc_key_violations;
};
WIRE_CODEC(mad_congestion_key_info, 14)

enum mad_congestion_log_type {
	MAD_LOG_SWITCH = 1,
	MAD_LOG_CA = 2,
};

struct mad_congestion_event_switch {
	uint16_t slid, dlid;
	uint8_t sl;                 /* 4 bits */
	uint32_t time_stamp;        /* units of 1.024 us */
};
struct mad_congestion_log_switch {
	uint8_t log_type;           /* MAD_LOG_SWITCH */
	uint8_t congestion_flags;   /* bit 0: a port is congested, bit 1: one lacks credits */
	uint16_t log_events_counter;
	uint32_t current_time_stamp;
	uint8_t port_map[32];       /* port p: byte 31 - p / 8, bit p % 8; see mad_cc_port() */
	struct mad_congestion_event_switch event[MAD_CC_SWITCH_EVENTS];
};
WIRE_CODEC(mad_congestion_log_switch, 220)

struct mad_congestion_event_ca {
	uint32_t local_qp;          /* 24 bits */
	uint8_t sl;                 /* 4 bits */
	uint8_t service_type;       /* 4 bits: 0 RC, 1 UC, 2 RD, 3 UD */
	uint32_t remote_qp;         /* 24 bits */
	uint16_t local_lid, remote_lid;
	uint32_t time_stamp;        /* units of 1.024 us */
};
struct mad_congestion_log_ca {
	uint8_t log_type;           /* MAD_LOG_CA */
	uint8_t congestion_flags;
	uint16_t threshold_event_counter;
	uint16_t threshold_event_map; /* bit for each SL */
	uint32_t current_time_stamp;
	struct mad_congestion_event_ca event[MAD_CC_CA_EVENTS];
};
WIRE_CODEC(mad_congestion_log_ca, 220)

enum mad_switch_control { /* control_map: which of the other fields are valid */
	MAD_CONTROL_VICTIM_MASK = 1 << 0,
	MAD_CONTROL_CREDIT_MASK = 1 << 1,
	MAD_CONTROL_THRESHOLD = 1 << 2,     /* and packet_size */
	MAD_CONTROL_CS_THRESHOLD = 1 << 3,  /* and cs_return_delay */
	MAD_CONTROL_MARKING_RATE = 1 << 4,
};
struct mad_switch_congestion_setting {
	uint32_t control_map;       /* enum mad_switch_control */
	uint8_t victim_mask[32], credit_mask[32]; /* ports as in port_map */
	uint8_t threshold;          /* 4 bits: 0 marks nothing, 15 earliest */
	uint8_t packet_size;        /* units of 64 bytes: smaller packets are not marked */
	uint8_t cs_threshold;       /* 4 bits */
	uint16_t cs_return_delay;   /* credit return delay: 2 bits shift, 14 bits multiplier */
	uint16_t marking_rate;      /* packets that are not marked between two that are */
};
WIRE_CODEC(mad_switch_congestion_setting, 76)

struct mad_switch_port_congestion {
	uint8_t valid;              /* 1 bit */
	uint8_t control_type;       /* 1 bit: 0 congestion control, 1 credit starvation */
	uint8_t threshold;          /* 4 bits */
	uint8_t packet_size;        /* units of 64 bytes */
	uint16_t marking_rate;      /* with control_type 1: the credit return delay */
};
struct mad_switch_port_congestion_setting { /* modifier: block of 32 ports */
	struct mad_switch_port_congestion port[32];
};
WIRE_CODEC(mad_switch_port_congestion_setting, 128)

struct mad_ca_congestion {
	uint16_t ccti_timer;        /* units of 1.024 us; 0: never */
	uint8_t ccti_increase, trigger_threshold, ccti_min;
};
struct mad_ca_congestion_setting {
	uint16_t port_control;      /* bit 0: by SL, else by queue pair */
	uint16_t control_map;       /* bit for each SL whose entry is valid */
	struct mad_ca_congestion sl[16];
};
WIRE_CODEC(mad_ca_congestion_setting, 132)

struct mad_congestion_control {
	uint8_t shift;              /* 2 bits */
	uint16_t multiplier;        /* 14 bits: delay = multiplier >> shift times of the packet */
};
struct mad_congestion_control_table { /* modifier: block of 64 entries */
	uint16_t ccti_limit;        /* the last entry that is used, of all blocks */
	struct mad_congestion_control entry[MAD_CC_TABLE_ENTRIES];
};
WIRE_CODEC(mad_congestion_control_table, 132)

struct mad_time_stamp {
	uint32_t time_stamp;        /* units of 1.024 us */
};
WIRE_CODEC(mad_time_stamp, 4)

/* Is the bit of `port` set in a map of 256 ports? */
static inline bool mad_cc_port(const uint8_t map[32], uint8_t port)
{
	return map[31 - port / 8] >> port % 8 & 1;
}

#endif
