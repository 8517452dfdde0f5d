/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of performance management; see perf.h. */
#include "wire/mad/perf.h"

#define OF struct mad_port_samples_control
static const struct wire_field samples_control_rows[] = {
	WIRE_BITS(OF, op_code, 0, 0, 8),
	WIRE_BITS(OF, port_select, 1, 0, 8),
	WIRE_BITS(OF, tick, 2, 0, 8),
	WIRE_RESERVED(3, 0, 5),
	WIRE_BITS(OF, counter_width, 3, 5, 3),
	WIRE_RESERVED(4, 0, 2),
	WIRE_BITS(OF, counter_mask0, 4, 2, 3),
	WIRE_BITS(OF, counter_masks1to9, 4, 5, 27),
	WIRE_RESERVED(8, 0, 1),
	WIRE_BITS(OF, counter_masks10to14, 8, 1, 15),
	WIRE_BITS(OF, sample_mechanisms, 10, 0, 8),
	WIRE_RESERVED(11, 0, 6),
	WIRE_BITS(OF, sample_status, 11, 6, 2),
	WIRE_BITS(OF, option_mask, 12, 0, 64),
	WIRE_BITS(OF, vendor_mask, 20, 0, 64),
	WIRE_BITS(OF, sample_start, 28, 0, 32),
	WIRE_BITS(OF, sample_interval, 32, 0, 32),
	WIRE_BITS(OF, tag, 36, 0, 16),
	WIRE_ARRAY(OF, counter_select, 38, 0, 16, 16),
	WIRE_RESERVED(68, 0, 32),
	WIRE_BITS(OF, samples_only_option_mask, 72, 0, 64),
	WIRE_RESERVED(80, 0, 896),
};
WIRE_LAYOUT(mad_port_samples_control, "PortSamplesControl", samples_control_rows);

#undef OF
#define OF struct mad_port_samples_result
static const struct wire_field samples_result_rows[] = {
	WIRE_BITS(OF, tag, 0, 0, 16),
	WIRE_RESERVED(2, 0, 14),
	WIRE_BITS(OF, sample_status, 3, 6, 2),
	WIRE_ARRAY(OF, counter, 4, 0, 32, 32),
};
WIRE_LAYOUT(mad_port_samples_result, "PortSamplesResult", samples_result_rows);

#undef OF
#define OF struct mad_port_counters
static const struct wire_field port_counters_rows[] = {
	WIRE_RESERVED(0, 0, 8),
	WIRE_BITS(OF, port_select, 1, 0, 8),
	WIRE_BITS(OF, counter_select, 2, 0, 16),
	WIRE_BITS(OF, symbol_errors, 4, 0, 16),
	WIRE_BITS(OF, link_error_recoveries, 6, 0, 8),
	WIRE_BITS(OF, link_downed, 7, 0, 8),
	WIRE_BITS(OF, rcv_errors, 8, 0, 16),
	WIRE_BITS(OF, rcv_remote_physical_errors, 10, 0, 16),
	WIRE_BITS(OF, rcv_switch_relay_errors, 12, 0, 16),
	WIRE_BITS(OF, xmit_discards, 14, 0, 16),
	WIRE_BITS(OF, xmit_constraint_errors, 16, 0, 8),
	WIRE_BITS(OF, rcv_constraint_errors, 17, 0, 8),
	WIRE_BITS(OF, counter_select2, 18, 0, 8),
	WIRE_BITS(OF, local_link_integrity_errors, 19, 0, 4),
	WIRE_BITS(OF, excessive_buffer_overrun_errors, 19, 4, 4),
	WIRE_BITS(OF, qp1_dropped, 20, 0, 16),
	WIRE_BITS(OF, vl15_dropped, 22, 0, 16),
	WIRE_BITS(OF, xmit_data, 24, 0, 32),
	WIRE_BITS(OF, rcv_data, 28, 0, 32),
	WIRE_BITS(OF, xmit_pkts, 32, 0, 32),
	WIRE_BITS(OF, rcv_pkts, 36, 0, 32),
	WIRE_BITS(OF, xmit_wait, 40, 0, 32),
};
WIRE_LAYOUT(mad_port_counters, "PortCounters", port_counters_rows);

#undef OF
#define OF struct mad_port_counters_extended
static const struct wire_field port_counters_extended_rows[] = {
	WIRE_RESERVED(0, 0, 8),
	WIRE_BITS(OF, port_select, 1, 0, 8),
	WIRE_BITS(OF, counter_select, 2, 0, 16),
	WIRE_BITS(OF, counter_select2, 4, 0, 32),
	WIRE_BITS(OF, xmit_data, 8, 0, 64),
	WIRE_BITS(OF, rcv_data, 16, 0, 64),
	WIRE_BITS(OF, xmit_pkts, 24, 0, 64),
	WIRE_BITS(OF, rcv_pkts, 32, 0, 64),
	WIRE_BITS(OF, unicast_xmit_pkts, 40, 0, 64),
	WIRE_BITS(OF, unicast_rcv_pkts, 48, 0, 64),
	WIRE_BITS(OF, multicast_xmit_pkts, 56, 0, 64),
	WIRE_BITS(OF, multicast_rcv_pkts, 64, 0, 64),
	WIRE_BITS(OF, symbol_errors, 72, 0, 64),
	WIRE_BITS(OF, link_error_recoveries, 80, 0, 64),
	WIRE_BITS(OF, link_downed, 88, 0, 64),
	WIRE_BITS(OF, rcv_errors, 96, 0, 64),
	WIRE_BITS(OF, rcv_remote_physical_errors, 104, 0, 64),
	WIRE_BITS(OF, rcv_switch_relay_errors, 112, 0, 64),
	WIRE_BITS(OF, xmit_discards, 120, 0, 64),
	WIRE_BITS(OF, xmit_constraint_errors, 128, 0, 64),
	WIRE_BITS(OF, rcv_constraint_errors, 136, 0, 64),
	WIRE_BITS(OF, local_link_integrity_errors, 144, 0, 64),
	WIRE_BITS(OF, excessive_buffer_overrun_errors, 152, 0, 64),
	WIRE_BITS(OF, vl15_dropped, 160, 0, 64),
	WIRE_BITS(OF, xmit_wait, 168, 0, 64),
	WIRE_BITS(OF, qp1_dropped, 176, 0, 64),
};
WIRE_LAYOUT(mad_port_counters_extended, "PortCountersExtended", port_counters_extended_rows);
