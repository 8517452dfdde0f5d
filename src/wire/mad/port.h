/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortInfo: IBA volume 1, 14.2.5.6. The modifier of the attribute is the port; 0 is the
 * port that was asked, or port 0 of a switch. Not here: PortInfoExtended, and the vendor's
 * attribute by which FDR10 is negotiated.
 */
#ifndef WIRE_MAD_PORT_H
#define WIRE_MAD_PORT_H

#include <stdint.h>

#include "wire/mad/mad.h"

enum mad_port_state { /* 0 in a Set: no change */
	MAD_PORT_DOWN = 1,
	MAD_PORT_INIT = 2,
	MAD_PORT_ARMED = 3,
	MAD_PORT_ACTIVE = 4,
};
enum mad_port_physical { /* 0 in a Set: no change */
	MAD_PHYSICAL_SLEEP = 1,
	MAD_PHYSICAL_POLLING = 2,
	MAD_PHYSICAL_DISABLED = 3,
	MAD_PHYSICAL_TRAINING = 4,
	MAD_PHYSICAL_LINK_UP = 5,
	MAD_PHYSICAL_RECOVERY = 6,
	MAD_PHYSICAL_TEST = 7,
};
enum mad_link_width { /* bits; 0 in a Set of "enabled": no change, 255: all that are supported */
	MAD_WIDTH_1X = 1 << 0,
	MAD_WIDTH_4X = 1 << 1,
	MAD_WIDTH_8X = 1 << 2,
	MAD_WIDTH_12X = 1 << 3,
	MAD_WIDTH_2X = 1 << 4,
};
enum mad_link_speed { /* bits; 0 in a Set of "enabled": no change, 15: all that are supported */
	MAD_SPEED_SDR = 1 << 0,  /*  2.5 Gbit/s a lane */
	MAD_SPEED_DDR = 1 << 1,  /*  5 */
	MAD_SPEED_QDR = 1 << 2,  /* 10 */
};
enum mad_link_speed_ext { /* bits; active 0: see link_speed_active; "enabled" 31: all */
	MAD_SPEED_EXT_FDR = 1 << 0, /* 14.0625 */
	MAD_SPEED_EXT_EDR = 1 << 1, /* 25.78125 */
	MAD_SPEED_EXT_HDR = 1 << 2, /* 53.125 */
	MAD_SPEED_EXT_NDR = 1 << 3, /* 106.25 */
};
enum mad_mtu { /* also in records of subnet administration */
	MAD_MTU_256 = 1,
	MAD_MTU_512 = 2,
	MAD_MTU_1024 = 3,
	MAD_MTU_2048 = 4,
	MAD_MTU_4096 = 5,
};
enum mad_vl_cap { /* also of operational_vls */
	MAD_VLS_1 = 1, /* VL 0 */
	MAD_VLS_2 = 2,
	MAD_VLS_4 = 3,
	MAD_VLS_8 = 4,
	MAD_VLS_15 = 5,
};

enum mad_port_cap { /* capability_mask, as in a host's word: bit 0 is the least significant */
	MAD_CAP_SM = 1 << 1,
	MAD_CAP_NOTICE = 1 << 2,
	MAD_CAP_TRAP = 1 << 3,
	MAD_CAP_OPTIONAL_IPD = 1 << 4,
	MAD_CAP_AUTOMATIC_MIGRATION = 1 << 5,
	MAD_CAP_SL_MAPPING = 1 << 6,
	MAD_CAP_MKEY_NVRAM = 1 << 7,
	MAD_CAP_PKEY_NVRAM = 1 << 8,
	MAD_CAP_LED_INFO = 1 << 9,
	MAD_CAP_SM_DISABLED = 1 << 10,
	MAD_CAP_SYSTEM_IMAGE_GUID = 1 << 11,
	MAD_CAP_PKEY_SWITCH_TRAP = 1 << 12,
	MAD_CAP_EXTENDED_SPEEDS = 1 << 14,
	MAD_CAP_CAPABILITY_MASK2 = 1 << 15,
	MAD_CAP_COMM_MGT = 1 << 16,
	MAD_CAP_SNMP_TUNNELING = 1 << 17,
	MAD_CAP_REINIT = 1 << 18,
	MAD_CAP_DEVICE_MANAGEMENT = 1 << 19,
	MAD_CAP_VENDOR_CLASS = 1 << 20,
	MAD_CAP_DR_NOTICE = 1 << 21,
	MAD_CAP_CAPABILITY_MASK_NOTICE = 1 << 22,
	MAD_CAP_BOOT_MANAGEMENT = 1 << 23,
	MAD_CAP_LINK_ROUND_TRIP = 1 << 24,
	MAD_CAP_CLIENT_REREGISTRATION = 1 << 25,
	MAD_CAP_OTHER_LOCAL_CHANGES = 1 << 26,
	MAD_CAP_LINK_SPEED_WIDTH_PAIRS = 1 << 27,
	MAD_CAP_VENDOR_MADS_TABLE = 1 << 28,
	MAD_CAP_MULTICAST_PKEY_TRAP_SUPPRESSION = 1 << 29,
	MAD_CAP_MULTICAST_FDB_TOP = 1 << 30,
};

struct mad_port_info {
	uint64_t mkey;
	uint64_t gid_prefix;
	uint16_t lid, master_sm_lid;
	uint32_t capability_mask;        /* enum mad_port_cap */
	uint16_t diag_code;
	uint16_t mkey_lease_period;      /* seconds; 0: no end */
	uint8_t local_port_num;          /* the port at which the SMP came in */
	uint8_t link_width_enabled, link_width_supported, link_width_active; /* enum mad_link_width */
	uint8_t link_speed_supported;    /* 4 bits, enum mad_link_speed */
	uint8_t port_state;              /* 4 bits, enum mad_port_state */
	uint8_t port_physical_state;     /* 4 bits, enum mad_port_physical */
	uint8_t link_down_default_state; /* 4 bits: 1 sleep, 2 polling */
	uint8_t mkey_protect_bits;       /* 2 bits */
	uint8_t lmc;                     /* 3 bits */
	uint8_t link_speed_active, link_speed_enabled; /* 4 bits, enum mad_link_speed */
	uint8_t neighbor_mtu;            /* 4 bits, enum mad_mtu */
	uint8_t master_sm_sl;            /* 4 bits */
	uint8_t vl_cap;                  /* 4 bits, enum mad_vl_cap */
	uint8_t init_type;               /* 4 bits */
	uint8_t vl_high_limit;           /* units of 4096 bytes; 255: no limit */
	uint8_t vl_arbitration_high_cap, vl_arbitration_low_cap; /* entries */
	uint8_t init_type_reply;         /* 4 bits */
	uint8_t mtu_cap;                 /* 4 bits, enum mad_mtu */
	uint8_t vl_stall_count;          /* 3 bits */
	uint8_t hoq_life;                /* 5 bits: 4.096 us * 2^n, above 19 no limit */
	uint8_t operational_vls;         /* 4 bits, enum mad_vl_cap */
	uint8_t partition_enforcement_inbound, partition_enforcement_outbound; /* 1 bit each */
	uint8_t filter_raw_inbound, filter_raw_outbound;
	uint16_t mkey_violations, pkey_violations, qkey_violations;
	uint8_t guid_cap;                /* entries of GUIDInfo */
	uint8_t client_reregister;       /* 1 bit */
	uint8_t multicast_pkey_trap_suppression; /* 2 bits */
	uint8_t subnet_timeout;          /* 5 bits: 4.096 us * 2^n */
	uint8_t resp_time_value;         /* 5 bits: 4.096 us * 2^n */
	uint8_t local_phy_errors, overrun_errors; /* 4 bits each: thresholds */
	uint16_t max_credit_hint;
	uint32_t link_round_trip_latency; /* 24 bits, units of 4 ns */
	uint16_t capability_mask2;
	uint8_t link_speed_ext_active, link_speed_ext_supported; /* 4 bits, enum mad_link_speed_ext */
	uint8_t link_speed_ext_enabled;  /* 5 bits */
};
WIRE_CODEC(mad_port_info, 64)

#endif
