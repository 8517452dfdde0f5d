/* SPDX-License-Identifier: BSD-2-Clause */
/* mad_attribute_find(): which attribute is which structure. */
#include "util/container_of.h"
#include "wire/mad/cc.h"
#include "wire/mad/mad.h"
#include "wire/mad/notice.h"
#include "wire/mad/perf.h"
#include "wire/mad/port.h"
#include "wire/mad/sa.h"
#include "wire/mad/smp.h"

struct row {
	uint16_t id, at;
	const struct wire_layout *layout;
};

static const struct row subn_rows[] = {
	{ MAD_ATTR_NOTICE, MAD_DATA_AT, &mad_notice_layout },
	{ MAD_ATTR_NODE_DESCRIPTION, MAD_DATA_AT, &mad_node_description_layout },
	{ MAD_ATTR_NODE_INFO, MAD_DATA_AT, &mad_node_info_layout },
	{ MAD_ATTR_SWITCH_INFO, MAD_DATA_AT, &mad_switch_info_layout },
	{ MAD_ATTR_GUID_INFO, MAD_DATA_AT, &mad_guid_info_layout },
	{ MAD_ATTR_PORT_INFO, MAD_DATA_AT, &mad_port_info_layout },
	{ MAD_ATTR_PKEY_TABLE, MAD_DATA_AT, &mad_pkey_table_layout },
	{ MAD_ATTR_SL_TO_VL, MAD_DATA_AT, &mad_sl_to_vl_layout },
	{ MAD_ATTR_VL_ARBITRATION, MAD_DATA_AT, &mad_vl_arbitration_layout },
	{ MAD_ATTR_LINEAR_FORWARDING, MAD_DATA_AT, &mad_linear_forwarding_layout },
	{ MAD_ATTR_RANDOM_FORWARDING, MAD_DATA_AT, &mad_random_forwarding_layout },
	{ MAD_ATTR_MULTICAST_FORWARDING, MAD_DATA_AT, &mad_multicast_forwarding_layout },
	{ MAD_ATTR_SM_INFO, MAD_DATA_AT, &mad_sm_info_layout },
	{ MAD_ATTR_LED_INFO, MAD_DATA_AT, &mad_led_info_layout },
};
static const struct row perf_rows[] = {
	{ MAD_ATTR_CLASS_PORT_INFO, MAD_DATA_AT, &mad_class_port_info_layout },
	{ MAD_ATTR_PORT_SAMPLES_CONTROL, MAD_DATA_AT, &mad_port_samples_control_layout },
	{ MAD_ATTR_PORT_SAMPLES_RESULT, MAD_DATA_AT, &mad_port_samples_result_layout },
	{ MAD_ATTR_PORT_COUNTERS, MAD_DATA_AT, &mad_port_counters_layout },
	{ MAD_ATTR_PORT_COUNTERS_EXTENDED, MAD_DATA_AT, &mad_port_counters_extended_layout },
};
static const struct row cc_rows[] = {
	{ MAD_ATTR_CLASS_PORT_INFO, MAD_DATA_AT, &mad_class_port_info_layout },
	{ MAD_ATTR_NOTICE, MAD_DATA_AT, &mad_report_layout },
	{ MAD_ATTR_CONGESTION_INFO, MAD_DATA_AT, &mad_congestion_info_layout },
	{ MAD_ATTR_CONGESTION_KEY_INFO, MAD_DATA_AT, &mad_congestion_key_info_layout },
	{ MAD_ATTR_CONGESTION_LOG, MAD_CC_LOG_AT, &mad_congestion_log_switch_layout },
	{ MAD_ATTR_SWITCH_CONGESTION_SETTING, MAD_DATA_AT,
	  &mad_switch_congestion_setting_layout },
	{ MAD_ATTR_SWITCH_PORT_CONGESTION_SETTING, MAD_DATA_AT,
	  &mad_switch_port_congestion_setting_layout },
	{ MAD_ATTR_CA_CONGESTION_SETTING, MAD_DATA_AT, &mad_ca_congestion_setting_layout },
	{ MAD_ATTR_CONGESTION_CONTROL_TABLE, MAD_DATA_AT,
	  &mad_congestion_control_table_layout },
	{ MAD_ATTR_TIME_STAMP, MAD_DATA_AT, &mad_time_stamp_layout },
};
static const struct row sa_rows[] = {
	{ MAD_ATTR_CLASS_PORT_INFO, MAD_SA_DATA_AT, &mad_class_port_info_layout },
	{ MAD_ATTR_NOTICE, MAD_SA_DATA_AT, &mad_report_layout },
	{ MAD_ATTR_INFORM_INFO, MAD_SA_DATA_AT, &mad_inform_info_layout },
	{ MAD_ATTR_NODE_RECORD, MAD_SA_DATA_AT, &mad_node_record_layout },
	{ MAD_ATTR_PORT_INFO_RECORD, MAD_SA_DATA_AT, &mad_port_info_record_layout },
	{ MAD_ATTR_SL_TO_VL_RECORD, MAD_SA_DATA_AT, &mad_sl_to_vl_record_layout },
	{ MAD_ATTR_SWITCH_INFO_RECORD, MAD_SA_DATA_AT, &mad_switch_info_record_layout },
	{ MAD_ATTR_LINEAR_FORWARDING_RECORD, MAD_SA_DATA_AT,
	  &mad_linear_forwarding_record_layout },
	{ MAD_ATTR_MULTICAST_FORWARDING_RECORD, MAD_SA_DATA_AT,
	  &mad_multicast_forwarding_record_layout },
	{ MAD_ATTR_SM_INFO_RECORD, MAD_SA_DATA_AT, &mad_sm_info_record_layout },
	{ MAD_ATTR_LINK_RECORD, MAD_SA_DATA_AT, &mad_link_record_layout },
	{ MAD_ATTR_GUID_INFO_RECORD, MAD_SA_DATA_AT, &mad_guid_info_record_layout },
	{ MAD_ATTR_SERVICE_RECORD, MAD_SA_DATA_AT, &mad_service_record_layout },
	{ MAD_ATTR_PKEY_TABLE_RECORD, MAD_SA_DATA_AT, &mad_pkey_table_record_layout },
	{ MAD_ATTR_PATH_RECORD, MAD_SA_DATA_AT, &mad_path_record_layout },
	{ MAD_ATTR_VL_ARBITRATION_RECORD, MAD_SA_DATA_AT, &mad_vl_arbitration_record_layout },
	{ MAD_ATTR_MC_MEMBER_RECORD, MAD_SA_DATA_AT, &mad_mc_member_record_layout },
	{ MAD_ATTR_MULTI_PATH_RECORD, MAD_SA_DATA_AT, &mad_multi_path_record_layout },
	{ MAD_ATTR_INFORM_INFO_RECORD, MAD_SA_DATA_AT, &mad_inform_info_record_layout },
};

/* The attributes of a class; *count is their number. */
static const struct row *rows_of(uint8_t mgmt_class, size_t *count)
{
	switch (mgmt_class) {
	case MAD_CLASS_SUBN_LID:
	case MAD_CLASS_SUBN_DIRECTED:
		*count = ARRAY_SIZE(subn_rows);
		return subn_rows;
	case MAD_CLASS_PERF:
		*count = ARRAY_SIZE(perf_rows);
		return perf_rows;
	case MAD_CLASS_CONG_MGT:
		*count = ARRAY_SIZE(cc_rows);
		return cc_rows;
	case MAD_CLASS_SUBN_ADM:
		*count = ARRAY_SIZE(sa_rows);
		return sa_rows;
	default:
		*count = 0;
		return NULL;
	}
}

bool mad_attribute_find(uint8_t mgmt_class, uint16_t attr_id, struct mad_attribute *attribute)
{
	size_t count;
	const struct row *rows = rows_of(mgmt_class, &count);

	for (size_t i = 0; i < count; i++)
		if (rows[i].id == attr_id) {
			attribute->layout = rows[i].layout;
			attribute->at = rows[i].at;
			return true;
		}
	return false;
}
