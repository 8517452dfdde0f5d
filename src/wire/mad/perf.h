/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of performance management: IBA volume 1, 16.1.3 and 16.1.4. They begin at byte
 * MAD_DATA_AT. Not here: the optional attributes of flow control, of virtual lanes and of
 * service levels. Data counters count words of 4 bytes without the headers of the link.
 */
#ifndef WIRE_MAD_PERF_H
#define WIRE_MAD_PERF_H

#include <stdint.h>

#include "wire/mad/mad.h"

#define MAD_PORT_SELECT_ALL 0xff

enum mad_perf_capability { /* capability_mask of ClassPortInfo */
	MAD_PERF_ALL_PORT_SELECT = 1 << 8,
	MAD_PERF_EXTENDED_WIDTH = 1 << 9,
	MAD_PERF_EXTENDED_WIDTH_NO_IETF = 1 << 10,
	MAD_PERF_XMIT_WAIT = 1 << 12,
};

struct mad_port_samples_control {
	uint8_t op_code, port_select, tick;
	uint8_t counter_width;         /* 3 bits */
	uint8_t counter_mask0;         /* 3 bits */
	uint32_t counter_masks1to9;    /* 27 bits */
	uint16_t counter_masks10to14;  /* 15 bits */
	uint8_t sample_mechanisms;
	uint8_t sample_status;         /* 2 bits */
	uint64_t option_mask, vendor_mask;
	uint32_t sample_start, sample_interval;
	uint16_t tag;
	uint16_t counter_select[15];
	uint64_t samples_only_option_mask;
};
WIRE_CODEC(mad_port_samples_control, 192)

struct mad_port_samples_result {
	uint16_t tag;
	uint8_t sample_status; /* 2 bits */
	uint32_t counter[15];
};
WIRE_CODEC(mad_port_samples_result, 64)

/* Counters stop at their greatest value. */
struct mad_port_counters {
	uint8_t port_select;
	uint16_t counter_select;       /* Set: the counters to write */
	uint16_t symbol_errors;
	uint8_t link_error_recoveries, link_downed;
	uint16_t rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors;
	uint16_t xmit_discards;
	uint8_t xmit_constraint_errors, rcv_constraint_errors;
	uint8_t counter_select2;       /* bit 0: xmit_wait */
	uint8_t local_link_integrity_errors, excessive_buffer_overrun_errors; /* 4 bits each */
	uint16_t qp1_dropped;
	uint16_t vl15_dropped;
	uint32_t xmit_data, rcv_data, xmit_pkts, rcv_pkts;
	uint32_t xmit_wait;            /* ticks */
};
WIRE_CODEC(mad_port_counters, 44)

/* Those behind multicast_rcv_pkts exist since release 1.3 of the specification. */
struct mad_port_counters_extended {
	uint8_t port_select;
	uint16_t counter_select;
	uint32_t counter_select2;
	uint64_t xmit_data, rcv_data, xmit_pkts, rcv_pkts;
	uint64_t unicast_xmit_pkts, unicast_rcv_pkts, multicast_xmit_pkts, multicast_rcv_pkts;
	uint64_t symbol_errors, link_error_recoveries, link_downed;
	uint64_t rcv_errors, rcv_remote_physical_errors, rcv_switch_relay_errors;
	uint64_t xmit_discards, xmit_constraint_errors, rcv_constraint_errors;
	uint64_t local_link_integrity_errors, excessive_buffer_overrun_errors;
	uint64_t vl15_dropped, xmit_wait, qp1_dropped;
};
WIRE_CODEC(mad_port_counters_extended, 184)

#endif
