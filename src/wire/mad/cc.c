/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of congestion control; see cc.h. */
#include "wire/mad/cc.h"

enum {
	SWITCH_EVENT_BYTES = 12,
	CA_EVENT_BYTES = 16,
	SWITCH_PORT_BYTES = 4,
	CA_ENTRY_BYTES = 8,
	TABLE_ENTRY_BYTES = 2,
};

static const struct wire_field congestion_info_rows[] = {
	WIRE_BITS(struct mad_congestion_info, congestion_info, 0, 0, 16),
	WIRE_BITS(struct mad_congestion_info, control_table_cap, 2, 0, 8),
};
WIRE_LAYOUT(mad_congestion_info, "CongestionInfo", congestion_info_rows);

#define OF struct mad_congestion_key_info
static const struct wire_field congestion_key_info_rows[] = {
	WIRE_BITS(OF, cc_key, 0, 0, 64),
	WIRE_BITS(OF, cc_key_protect, 8, 0, 1),
	WIRE_RESERVED(8, 1, 15),
	WIRE_BITS(OF, cc_key_lease_period, 10, 0, 16),
	WIRE_BITS(OF, cc_key_violations, 12, 0, 16),
};
WIRE_LAYOUT(mad_congestion_key_info, "CongestionKeyInfo", congestion_key_info_rows);

#undef OF
#define OF struct mad_congestion_event_switch
static const struct wire_field event_switch_rows[] = {
	WIRE_BITS(OF, slid, 0, 0, 16),
	WIRE_BITS(OF, dlid, 2, 0, 16),
	WIRE_BITS(OF, sl, 4, 0, 4),
	WIRE_RESERVED(4, 4, 28),
	WIRE_BITS(OF, time_stamp, 8, 0, 32),
};
static const struct wire_layout event_switch = WIRE_ELEMENT(
	OF, "CongestionLogEvent of a switch", event_switch_rows, SWITCH_EVENT_BYTES);

#undef OF
#define OF struct mad_congestion_log_switch
static const struct wire_field log_switch_rows[] = {
	WIRE_BITS(OF, log_type, 0, 0, 8),
	WIRE_BITS(OF, congestion_flags, 1, 0, 8),
	WIRE_BITS(OF, log_events_counter, 2, 0, 16),
	WIRE_BITS(OF, current_time_stamp, 4, 0, 32),
	WIRE_BYTES(OF, port_map, 8),
	WIRE_INNERS(OF, event, 40, SWITCH_EVENT_BYTES, event_switch),
};
WIRE_LAYOUT(mad_congestion_log_switch, "CongestionLog of a switch", log_switch_rows);

#undef OF
#define OF struct mad_congestion_event_ca
static const struct wire_field event_ca_rows[] = {
	WIRE_BITS(OF, local_qp, 0, 0, 24),
	WIRE_BITS(OF, sl, 3, 0, 4),
	WIRE_BITS(OF, service_type, 3, 4, 4),
	WIRE_BITS(OF, remote_qp, 4, 0, 24),
	WIRE_RESERVED(7, 0, 8),
	WIRE_BITS(OF, local_lid, 8, 0, 16),
	WIRE_BITS(OF, remote_lid, 10, 0, 16),
	WIRE_BITS(OF, time_stamp, 12, 0, 32),
};
static const struct wire_layout event_ca = WIRE_ELEMENT(
	OF, "CongestionLogEvent of an adapter", event_ca_rows, CA_EVENT_BYTES);

#undef OF
#define OF struct mad_congestion_log_ca
static const struct wire_field log_ca_rows[] = {
	WIRE_BITS(OF, log_type, 0, 0, 8),
	WIRE_BITS(OF, congestion_flags, 1, 0, 8),
	WIRE_BITS(OF, threshold_event_counter, 2, 0, 16),
	WIRE_BITS(OF, threshold_event_map, 4, 0, 16),
	WIRE_RESERVED(6, 0, 16),
	WIRE_BITS(OF, current_time_stamp, 8, 0, 32),
	WIRE_INNERS(OF, event, 12, CA_EVENT_BYTES, event_ca),
};
WIRE_LAYOUT(mad_congestion_log_ca, "CongestionLog of an adapter", log_ca_rows);

#undef OF
#define OF struct mad_switch_congestion_setting
static const struct wire_field switch_setting_rows[] = {
	WIRE_BITS(OF, control_map, 0, 0, 32),
	WIRE_BYTES(OF, victim_mask, 4),
	WIRE_BYTES(OF, credit_mask, 36),
	WIRE_BITS(OF, threshold, 68, 0, 4),
	WIRE_RESERVED(68, 4, 4),
	WIRE_BITS(OF, packet_size, 69, 0, 8),
	WIRE_BITS(OF, cs_threshold, 70, 0, 4),
	WIRE_RESERVED(70, 4, 12),
	WIRE_BITS(OF, cs_return_delay, 72, 0, 16),
	WIRE_BITS(OF, marking_rate, 74, 0, 16),
};
WIRE_LAYOUT(mad_switch_congestion_setting, "SwitchCongestionSetting", switch_setting_rows);

#undef OF
#define OF struct mad_switch_port_congestion
static const struct wire_field switch_port_rows[] = {
	WIRE_BITS(OF, valid, 0, 0, 1),
	WIRE_BITS(OF, control_type, 0, 1, 1),
	WIRE_RESERVED(0, 2, 2),
	WIRE_BITS(OF, threshold, 0, 4, 4),
	WIRE_BITS(OF, packet_size, 1, 0, 8),
	WIRE_BITS(OF, marking_rate, 2, 0, 16),
};
static const struct wire_layout switch_port = WIRE_ELEMENT(
	OF, "SwitchPortCongestionSetting element", switch_port_rows, SWITCH_PORT_BYTES);

static const struct wire_field switch_port_setting_rows[] = {
	WIRE_INNERS(struct mad_switch_port_congestion_setting, port, 0, SWITCH_PORT_BYTES,
		    switch_port),
};
WIRE_LAYOUT(mad_switch_port_congestion_setting, "SwitchPortCongestionSetting",
	    switch_port_setting_rows);

#undef OF
#define OF struct mad_ca_congestion
static const struct wire_field ca_entry_rows[] = {
	WIRE_BITS(OF, ccti_timer, 0, 0, 16),
	WIRE_BITS(OF, ccti_increase, 2, 0, 8),
	WIRE_BITS(OF, trigger_threshold, 3, 0, 8),
	WIRE_BITS(OF, ccti_min, 4, 0, 8),
	WIRE_RESERVED(5, 0, 24),
};
static const struct wire_layout ca_entry = WIRE_ELEMENT(
	OF, "CACongestionEntry", ca_entry_rows, CA_ENTRY_BYTES);

#undef OF
#define OF struct mad_ca_congestion_setting
static const struct wire_field ca_setting_rows[] = {
	WIRE_BITS(OF, port_control, 0, 0, 16),
	WIRE_BITS(OF, control_map, 2, 0, 16),
	WIRE_INNERS(OF, sl, 4, CA_ENTRY_BYTES, ca_entry),
};
WIRE_LAYOUT(mad_ca_congestion_setting, "CACongestionSetting", ca_setting_rows);

static const struct wire_field table_entry_rows[] = {
	WIRE_BITS(struct mad_congestion_control, shift, 0, 0, 2),
	WIRE_BITS(struct mad_congestion_control, multiplier, 0, 2, 14),
};
static const struct wire_layout table_entry =
	WIRE_ELEMENT(struct mad_congestion_control, "CongestionControlTableEntry",
		     table_entry_rows, TABLE_ENTRY_BYTES);

#undef OF
#define OF struct mad_congestion_control_table
static const struct wire_field control_table_rows[] = {
	WIRE_BITS(OF, ccti_limit, 0, 0, 16),
	WIRE_RESERVED(2, 0, 16),
	WIRE_INNERS(OF, entry, 4, TABLE_ENTRY_BYTES, table_entry),
};
WIRE_LAYOUT(mad_congestion_control_table, "CongestionControlTable", control_table_rows);

static const struct wire_field time_stamp_rows[] = {
	WIRE_BITS(struct mad_time_stamp, time_stamp, 0, 0, 32),
};
WIRE_LAYOUT(mad_time_stamp, "TimeStamp", time_stamp_rows);
