/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibmad as referee: of random bytes its table of fields and our layouts read the same
 * values. Skipped where the test was built without it.
 */
#include <stdio.h>

#ifndef HAVE_LIBIBMAD
int main(void)
{
	printf("built without libibmad\n");
	return 77;
}
#else
#include <infiniband/mad.h>

#include "mad_rows.h"
#include "wire/mad/perf.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define ROUNDS 50

struct pair {
	const char *member;
	int field; /* enum MAD_FIELDS */
};

#define TABLE(NAME, at_byte, ...)                                                \
	{ &NAME##_layout, at_byte, (const struct pair[]){ __VA_ARGS__, { NULL, 0 } } }

/* Where the attribute begins in what libibmad counts from. */
enum { ATTRIBUTE = 0 };

static const struct {
	const struct wire_layout *layout;
	unsigned at;
	const struct pair *pairs;
} tables[] = {
	TABLE(mad_header, ATTRIBUTE, { "base_version", IB_MAD_BASEVER_F },
	      { "mgmt_class", IB_MAD_MGMTCLASS_F }, { "class_version", IB_MAD_CLASSVER_F },
	      { "status", IB_MAD_STATUS_F }, { "tid", IB_MAD_TRID_F },
	      { "attr_id", IB_MAD_ATTRID_F }, { "attr_mod", IB_MAD_ATTRMOD_F }),
	TABLE(mad_rmpp, MAD_RMPP_AT, { "version", IB_SA_RMPP_VERS_F }, { "type", IB_SA_RMPP_TYPE_F },
	      { "resp_time", IB_SA_RMPP_RESP_F }, { "flags", IB_SA_RMPP_FLAGS_F },
	      { "status", IB_SA_RMPP_STATUS_F }, { "segment", IB_SA_RMPP_SEGNUM_F },
	      { "length", IB_SA_RMPP_LEN_F }),
	TABLE(mad_sa, MAD_SA_HEADER_AT, { "sm_key", IB_SA_MKEY_F },
	      { "attribute_offset", IB_SA_ATTROFFS_F }, { "component_mask", IB_SA_COMPMASK_F }),
	TABLE(mad_port_info, ATTRIBUTE, { "mkey", IB_PORT_MKEY_F },
	      { "gid_prefix", IB_PORT_GID_PREFIX_F }, { "lid", IB_PORT_LID_F },
	      { "master_sm_lid", IB_PORT_SMLID_F }, { "capability_mask", IB_PORT_CAPMASK_F },
	      { "diag_code", IB_PORT_DIAG_F }, { "mkey_lease_period", IB_PORT_MKEY_LEASE_F },
	      { "local_port_num", IB_PORT_LOCAL_PORT_F },
	      { "link_width_enabled", IB_PORT_LINK_WIDTH_ENABLED_F },
	      { "link_width_supported", IB_PORT_LINK_WIDTH_SUPPORTED_F },
	      { "link_width_active", IB_PORT_LINK_WIDTH_ACTIVE_F },
	      { "link_speed_supported", IB_PORT_LINK_SPEED_SUPPORTED_F },
	      { "port_state", IB_PORT_STATE_F }, { "port_physical_state", IB_PORT_PHYS_STATE_F },
	      { "link_down_default_state", IB_PORT_LINK_DOWN_DEF_F },
	      { "mkey_protect_bits", IB_PORT_MKEY_PROT_BITS_F }, { "lmc", IB_PORT_LMC_F },
	      { "link_speed_active", IB_PORT_LINK_SPEED_ACTIVE_F },
	      { "link_speed_enabled", IB_PORT_LINK_SPEED_ENABLED_F },
	      { "neighbor_mtu", IB_PORT_NEIGHBOR_MTU_F }, { "master_sm_sl", IB_PORT_SMSL_F },
	      { "vl_cap", IB_PORT_VL_CAP_F }, { "init_type", IB_PORT_INIT_TYPE_F },
	      { "vl_high_limit", IB_PORT_VL_HIGH_LIMIT_F },
	      { "vl_arbitration_high_cap", IB_PORT_VL_ARBITRATION_HIGH_CAP_F },
	      { "vl_arbitration_low_cap", IB_PORT_VL_ARBITRATION_LOW_CAP_F },
	      { "init_type_reply", IB_PORT_INIT_TYPE_REPLY_F }, { "mtu_cap", IB_PORT_MTU_CAP_F },
	      { "vl_stall_count", IB_PORT_VL_STALL_COUNT_F }, { "hoq_life", IB_PORT_HOQ_LIFE_F },
	      { "operational_vls", IB_PORT_OPER_VLS_F },
	      { "partition_enforcement_inbound", IB_PORT_PART_EN_INB_F },
	      { "partition_enforcement_outbound", IB_PORT_PART_EN_OUTB_F },
	      { "filter_raw_inbound", IB_PORT_FILTER_RAW_INB_F },
	      { "filter_raw_outbound", IB_PORT_FILTER_RAW_OUTB_F },
	      { "mkey_violations", IB_PORT_MKEY_VIOL_F }, { "pkey_violations", IB_PORT_PKEY_VIOL_F },
	      { "qkey_violations", IB_PORT_QKEY_VIOL_F }, { "guid_cap", IB_PORT_GUID_CAP_F },
	      { "client_reregister", IB_PORT_CLIENT_REREG_F },
	      { "multicast_pkey_trap_suppression", IB_PORT_MCAST_PKEY_SUPR_ENAB_F },
	      { "subnet_timeout", IB_PORT_SUBN_TIMEOUT_F },
	      { "resp_time_value", IB_PORT_RESP_TIME_VAL_F },
	      { "local_phy_errors", IB_PORT_LOCAL_PHYS_ERR_F },
	      { "overrun_errors", IB_PORT_OVERRUN_ERR_F },
	      { "max_credit_hint", IB_PORT_MAX_CREDIT_HINT_F },
	      { "link_round_trip_latency", IB_PORT_LINK_ROUND_TRIP_F },
	      { "capability_mask2", IB_PORT_CAPMASK2_F },
	      { "link_speed_ext_active", IB_PORT_LINK_SPEED_EXT_ACTIVE_F },
	      { "link_speed_ext_supported", IB_PORT_LINK_SPEED_EXT_SUPPORTED_F },
	      { "link_speed_ext_enabled", IB_PORT_LINK_SPEED_EXT_ENABLED_F }),
	TABLE(mad_node_info, ATTRIBUTE, { "base_version", IB_NODE_BASE_VERS_F },
	      { "class_version", IB_NODE_CLASS_VERS_F }, { "node_type", IB_NODE_TYPE_F },
	      { "num_ports", IB_NODE_NPORTS_F }, { "system_image_guid", IB_NODE_SYSTEM_GUID_F },
	      { "node_guid", IB_NODE_GUID_F }, { "port_guid", IB_NODE_PORT_GUID_F },
	      { "partition_cap", IB_NODE_PARTITION_CAP_F }, { "device_id", IB_NODE_DEVID_F },
	      { "revision", IB_NODE_REVISION_F }, { "local_port_num", IB_NODE_LOCAL_PORT_F },
	      { "vendor_id", IB_NODE_VENDORID_F }),
	TABLE(mad_switch_info, ATTRIBUTE, { "linear_fdb_cap", IB_SW_LINEAR_FDB_CAP_F },
	      { "random_fdb_cap", IB_SW_RANDOM_FDB_CAP_F },
	      { "multicast_fdb_cap", IB_SW_MCAST_FDB_CAP_F },
	      { "linear_fdb_top", IB_SW_LINEAR_FDB_TOP_F }, { "default_port", IB_SW_DEF_PORT_F },
	      { "default_multicast_primary_port", IB_SW_DEF_MCAST_PRIM_F },
	      { "default_multicast_not_primary_port", IB_SW_DEF_MCAST_NOT_PRIM_F },
	      { "life_time_value", IB_SW_LIFE_TIME_F }, { "port_state_change", IB_SW_STATE_CHANGE_F },
	      { "optimized_sl_to_vl_mapping", IB_SW_OPT_SLTOVL_MAPPING_F },
	      { "lids_per_port", IB_SW_LIDS_PER_PORT_F },
	      { "partition_enforcement_cap", IB_SW_PARTITION_ENFORCE_CAP_F },
	      { "inbound_enforcement_cap", IB_SW_PARTITION_ENF_INB_F },
	      { "outbound_enforcement_cap", IB_SW_PARTITION_ENF_OUTB_F },
	      { "filter_raw_inbound_cap", IB_SW_FILTER_RAW_INB_F },
	      { "filter_raw_outbound_cap", IB_SW_FILTER_RAW_OUTB_F },
	      { "enhanced_port0", IB_SW_ENHANCED_PORT0_F },
	      { "multicast_fdb_top", IB_SW_MCAST_FDB_TOP_F }),
	TABLE(mad_sm_info, ATTRIBUTE, { "guid", IB_SMINFO_GUID_F }, { "sm_key", IB_SMINFO_KEY_F },
	      { "act_count", IB_SMINFO_ACT_F }, { "priority", IB_SMINFO_PRIO_F },
	      { "state", IB_SMINFO_STATE_F }),
	TABLE(mad_guid_info, ATTRIBUTE, { "guid", IB_GI_GUID0_F }),
	TABLE(mad_notice, ATTRIBUTE, { "is_generic", IB_NOTICE_IS_GENERIC_F },
	      { "type", IB_NOTICE_TYPE_F }, { "producer_type", IB_NOTICE_PRODUCER_F },
	      { "trap_number", IB_NOTICE_TRAP_NUMBER_F }, { "issuer_lid", IB_NOTICE_ISSUER_LID_F },
	      { "toggle", IB_NOTICE_TOGGLE_F }, { "count", IB_NOTICE_COUNT_F }),
	TABLE(mad_trap_link_state, 10, { "lid", IB_NOTICE_DATA_LID_F }),
	TABLE(mad_trap_capability, 10, { "lid", IB_NOTICE_DATA_144_LID_F },
	      { "capability_mask", IB_NOTICE_DATA_144_CAPMASK_F }),
	/* Its place of QP1Dropped in PortCounters, byte 22, is that of VL15Dropped; left out. */
	TABLE(mad_port_counters, ATTRIBUTE, { "port_select", IB_PC_PORT_SELECT_F },
	      { "counter_select", IB_PC_COUNTER_SELECT_F }, { "symbol_errors", IB_PC_ERR_SYM_F },
	      { "link_error_recoveries", IB_PC_LINK_RECOVERS_F },
	      { "link_downed", IB_PC_LINK_DOWNED_F }, { "rcv_errors", IB_PC_ERR_RCV_F },
	      { "rcv_remote_physical_errors", IB_PC_ERR_PHYSRCV_F },
	      { "rcv_switch_relay_errors", IB_PC_ERR_SWITCH_REL_F },
	      { "xmit_discards", IB_PC_XMT_DISCARDS_F },
	      { "xmit_constraint_errors", IB_PC_ERR_XMTCONSTR_F },
	      { "rcv_constraint_errors", IB_PC_ERR_RCVCONSTR_F },
	      { "counter_select2", IB_PC_COUNTER_SELECT2_F },
	      { "local_link_integrity_errors", IB_PC_ERR_LOCALINTEG_F },
	      { "excessive_buffer_overrun_errors", IB_PC_ERR_EXCESS_OVR_F },
	      { "vl15_dropped", IB_PC_VL15_DROPPED_F }, { "xmit_data", IB_PC_XMT_BYTES_F },
	      { "rcv_data", IB_PC_RCV_BYTES_F }, { "xmit_pkts", IB_PC_XMT_PKTS_F },
	      { "rcv_pkts", IB_PC_RCV_PKTS_F }, { "xmit_wait", IB_PC_XMT_WAIT_F }),
	TABLE(mad_port_counters_extended, ATTRIBUTE, { "port_select", IB_PC_EXT_PORT_SELECT_F },
	      { "counter_select", IB_PC_EXT_COUNTER_SELECT_F }, { "xmit_data", IB_PC_EXT_XMT_BYTES_F },
	      { "rcv_data", IB_PC_EXT_RCV_BYTES_F }, { "xmit_pkts", IB_PC_EXT_XMT_PKTS_F },
	      { "rcv_pkts", IB_PC_EXT_RCV_PKTS_F }, { "unicast_xmit_pkts", IB_PC_EXT_XMT_UPKTS_F },
	      { "unicast_rcv_pkts", IB_PC_EXT_RCV_UPKTS_F },
	      { "multicast_xmit_pkts", IB_PC_EXT_XMT_MPKTS_F },
	      { "multicast_rcv_pkts", IB_PC_EXT_RCV_MPKTS_F },
	      { "counter_select2", IB_PC_EXT_COUNTER_SELECT2_F },
	      { "symbol_errors", IB_PC_EXT_ERR_SYM_F }, { "link_downed", IB_PC_EXT_LINK_DOWNED_F },
	      { "xmit_discards", IB_PC_EXT_XMT_DISCARDS_F }, { "xmit_wait", IB_PC_EXT_XMT_WAIT_F },
	      { "vl15_dropped", IB_PC_EXT_VL15_DROPPED_F },
	      { "qp1_dropped", IB_PC_EXT_QP1_DROP_F }),
	TABLE(mad_class_port_info, ATTRIBUTE, { "base_version", IB_CPI_BASEVER_F },
	      { "class_version", IB_CPI_CLASSVER_F }, { "capability_mask", IB_CPI_CAPMASK_F },
	      { "capability_mask2", IB_CPI_CAPMASK2_F },
	      { "resp_time_value", IB_CPI_RESP_TIME_VALUE_F }, { "redirect_tc", IB_CPI_REDIRECT_TC_F },
	      { "redirect_sl", IB_CPI_REDIRECT_SL_F }, { "redirect_fl", IB_CPI_REDIRECT_FL_F },
	      { "redirect_lid", IB_CPI_REDIRECT_LID_F }, { "redirect_pkey", IB_CPI_REDIRECT_PKEY_F },
	      { "redirect_qp", IB_CPI_REDIRECT_QP_F }, { "redirect_qkey", IB_CPI_REDIRECT_QKEY_F },
	      { "trap_tc", IB_CPI_TRAP_TC_F }, { "trap_sl", IB_CPI_TRAP_SL_F },
	      { "trap_fl", IB_CPI_TRAP_FL_F }, { "trap_lid", IB_CPI_TRAP_LID_F },
	      { "trap_pkey", IB_CPI_TRAP_PKEY_F }, { "trap_hl", IB_CPI_TRAP_HL_F },
	      { "trap_qp", IB_CPI_TRAP_QP_F }, { "trap_qkey", IB_CPI_TRAP_QKEY_F }),
	TABLE(mad_port_samples_control, ATTRIBUTE, { "op_code", IB_PSC_OPCODE_F },
	      { "port_select", IB_PSC_PORT_SELECT_F }, { "tick", IB_PSC_TICK_F },
	      { "counter_width", IB_PSC_COUNTER_WIDTH_F }, { "counter_mask0", IB_PSC_COUNTER_MASK0_F },
	      { "counter_masks1to9", IB_PSC_COUNTER_MASKS1TO9_F },
	      { "counter_masks10to14", IB_PSC_COUNTER_MASKS10TO14_F },
	      { "sample_mechanisms", IB_PSC_SAMPLE_MECHS_F },
	      { "sample_status", IB_PSC_SAMPLE_STATUS_F }, { "option_mask", IB_PSC_OPTION_MASK_F },
	      { "vendor_mask", IB_PSC_VENDOR_MASK_F }, { "sample_start", IB_PSC_SAMPLE_START_F },
	      { "sample_interval", IB_PSC_SAMPLE_INTVL_F }, { "tag", IB_PSC_TAG_F },
	      { "counter_select", IB_PSC_COUNTER_SEL0_F },
	      { "samples_only_option_mask", IB_PSC_SAMPLES_ONLY_OPT_MASK_F }),
	TABLE(mad_congestion_info, ATTRIBUTE, { "congestion_info", IB_CC_CONGESTION_INFO_F },
	      { "control_table_cap", IB_CC_CONGESTION_INFO_CONTROL_TABLE_CAP_F }),
	TABLE(mad_congestion_key_info, ATTRIBUTE, { "cc_key", IB_CC_CONGESTION_KEY_INFO_CC_KEY_F },
	      { "cc_key_protect", IB_CC_CONGESTION_KEY_INFO_CC_KEY_PROTECT_BIT_F },
	      { "cc_key_lease_period", IB_CC_CONGESTION_KEY_INFO_CC_KEY_LEASE_PERIOD_F },
	      { "cc_key_violations", IB_CC_CONGESTION_KEY_INFO_CC_KEY_VIOLATIONS_F }),
	TABLE(mad_congestion_log_switch, ATTRIBUTE, { "log_type", IB_CC_CONGESTION_LOG_LOGTYPE_F },
	      { "congestion_flags", IB_CC_CONGESTION_LOG_CONGESTION_FLAGS_F },
	      { "log_events_counter", IB_CC_CONGESTION_LOG_SWITCH_LOG_EVENTS_COUNTER_F },
	      { "current_time_stamp", IB_CC_CONGESTION_LOG_SWITCH_CURRENT_TIME_STAMP_F }),
	TABLE(mad_congestion_log_ca, ATTRIBUTE,
	      { "threshold_event_counter", IB_CC_CONGESTION_LOG_CA_THRESHOLD_EVENT_COUNTER_F },
	      { "threshold_event_map", IB_CC_CONGESTION_LOG_CA_THRESHOLD_CONGESTION_EVENT_MAP_F },
	      { "current_time_stamp", IB_CC_CONGESTION_LOG_CA_CURRENT_TIMESTAMP_F }),
	TABLE(mad_switch_congestion_setting, ATTRIBUTE,
	      { "control_map", IB_CC_SWITCH_CONGESTION_SETTING_CONTROL_MAP_F },
	      { "threshold", IB_CC_SWITCH_CONGESTION_SETTING_THRESHOLD_F },
	      { "packet_size", IB_CC_SWITCH_CONGESTION_SETTING_PACKET_SIZE_F },
	      { "cs_threshold", IB_CC_SWITCH_CONGESTION_SETTING_CS_THRESHOLD_F },
	      { "cs_return_delay", IB_CC_SWITCH_CONGESTION_SETTING_CS_RETURN_DELAY_F },
	      { "marking_rate", IB_CC_SWITCH_CONGESTION_SETTING_MARKING_RATE_F }),
	TABLE(mad_ca_congestion_setting, ATTRIBUTE,
	      { "port_control", IB_CC_CA_CONGESTION_SETTING_PORT_CONTROL_F },
	      { "control_map", IB_CC_CA_CONGESTION_SETTING_CONTROL_MAP_F }),
	TABLE(mad_congestion_control_table, ATTRIBUTE,
	      { "ccti_limit", IB_CC_CONGESTION_CONTROL_TABLE_CCTI_LIMIT_F }),
	TABLE(mad_time_stamp, ATTRIBUTE, { "time_stamp", IB_CC_TIMESTAMP_F }),
	TABLE(mad_node_record, ATTRIBUTE, { "lid", IB_SA_NR_LID_F },
	      { "info.node_type", IB_SA_NR_TYPE_F }, { "info.node_guid", IB_SA_NR_GUID_F },
	      { "info.vendor_id", IB_SA_NR_VENDORID_F }),
	TABLE(mad_path_record, ATTRIBUTE, { "dlid", IB_SA_PR_DLID_F }, { "slid", IB_SA_PR_SLID_F },
	      { "numb_path", IB_SA_PR_NPATH_F }, { "sl", IB_SA_PR_SL_F }),
	TABLE(mad_multi_path_record, ATTRIBUTE, { "numb_path", IB_SA_MP_NPATH_F },
	      { "sgid_count", IB_SA_MP_NSRC_F }, { "dgid_count", IB_SA_MP_NDEST_F }),
	TABLE(mad_mc_member_record, ATTRIBUTE, { "qkey", IB_SA_MCM_QKEY_F },
	      { "mlid", IB_SA_MCM_MLID_F }, { "sl", IB_SA_MCM_SL_F }, { "mtu", IB_SA_MCM_MTU_F },
	      { "rate", IB_SA_MCM_RATE_F }, { "tclass", IB_SA_MCM_TCLASS_F },
	      { "pkey", IB_SA_MCM_PKEY_F }, { "flow_label", IB_SA_MCM_FLOW_LABEL_F },
	      { "join_state", IB_SA_MCM_JOIN_STATE_F }, { "proxy_join", IB_SA_MCM_PROXY_JOIN_F }),
	TABLE(mad_service_record, ATTRIBUTE, { "service_id", IB_SA_SR_ID_F },
	      { "service_pkey", IB_SA_SR_PKEY_F }, { "service_lease", IB_SA_SR_LEASE_F }),
	TABLE(mad_guid_info_record, ATTRIBUTE, { "lid", IB_SA_GIR_LID_F },
	      { "block", IB_SA_GIR_BLOCKNUM_F }),
};

static unsigned failures;

static void compare(const struct wire_layout *layout, unsigned at, const struct pair *pair,
		    uint8_t *mad)
{
	uint64_t structure[MAD_HOST_MAX / 8], ours, theirs;
	const struct wire_field *f;
	unsigned bit = 0;
	size_t host = 0;

	f = mad_row(layout, pair->member, &host, &bit);
	if (!f) {
		printf("%s has no member %s\n", layout->name, pair->member);
		failures++;
		return;
	}
	wire_unpack(layout, mad + at, structure);
	ours = mad_host_value(structure, host, f->size);
	theirs = f->width > 32 ? mad_get_field64(mad, 0, pair->field) :
				 mad_get_field(mad, 0, pair->field);
	if (ours == theirs)
		return;
	printf("%s, %s: %#llx, libibmad %#llx\n", layout->name, pair->member,
	       (unsigned long long)ours, (unsigned long long)theirs);
	failures++;
}

static void element_compare(const char *name, uint64_t ours, uint64_t theirs)
{
	if (ours == theirs)
		return;
	printf("%s: %#llx, libibmad %#llx\n", name, (unsigned long long)ours,
	       (unsigned long long)theirs);
	failures++;
}

/* Elements of arrays, by which libibmad has no path: its fields count from the element. */
static void elements(struct prng *random)
{
	struct mad_switch_port_congestion_setting setting;
	struct mad_congestion_log_switch log;
	struct mad_congestion_log_ca log_ca;
	struct mad_ca_congestion_setting ca;
	struct mad_congestion_control_table table;
	uint8_t mad[MAD_BYTES];

#define SAME(ours, at, field) element_compare(#field, ours, mad_get_field(mad, at, field))
	mad_random_bytes(random, mad, sizeof(mad));
	mad_switch_port_congestion_setting_unpack(mad, &setting);
	SAME(setting.port[31].valid, 124, IB_CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_VALID_F);
	SAME(setting.port[31].threshold, 124,
	     IB_CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_THRESHOLD_F);
	SAME(setting.port[31].marking_rate, 124,
	     IB_CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_CONG_PARM_MARKING_RATE_F);
	mad_congestion_log_switch_unpack(mad, &log);
	SAME(log.event[14].dlid, 40 + 14 * 12, IB_CC_CONGESTION_LOG_ENTRY_SWITCH_DLID_F);
	SAME(log.event[14].sl, 40 + 14 * 12, IB_CC_CONGESTION_LOG_ENTRY_SWITCH_SL_F);
	SAME(log.event[14].time_stamp, 40 + 14 * 12,
	     IB_CC_CONGESTION_LOG_ENTRY_SWITCH_TIMESTAMP_F);
	mad_congestion_log_ca_unpack(mad, &log_ca);
	SAME(log_ca.event[12].local_qp, 12 + 12 * 16,
	     IB_CC_CONGESTION_LOG_ENTRY_CA_LOCAL_QP_CN_ENTRY_F);
	SAME(log_ca.event[12].service_type, 12 + 12 * 16,
	     IB_CC_CONGESTION_LOG_ENTRY_CA_SERVICE_TYPE_CN_ENTRY_F);
	SAME(log_ca.event[12].remote_lid, 12 + 12 * 16,
	     IB_CC_CONGESTION_LOG_ENTRY_CA_REMOTE_LID_CN_ENTRY_F);
	mad_ca_congestion_setting_unpack(mad, &ca);
	SAME(ca.sl[15].ccti_timer, 4 + 15 * 8, IB_CC_CA_CONGESTION_ENTRY_CCTI_TIMER_F);
	SAME(ca.sl[15].trigger_threshold, 4 + 15 * 8,
	     IB_CC_CA_CONGESTION_ENTRY_TRIGGER_THRESHOLD_F);
	SAME(ca.sl[15].ccti_min, 4 + 15 * 8, IB_CC_CA_CONGESTION_ENTRY_CCTI_MIN_F);
	/* Its fields lie in words of 32 bits: only even entries can be asked. */
	mad_congestion_control_table_unpack(mad, &table);
	SAME(table.entry[62].shift, 4 + 62 * 2, IB_CC_CONGESTION_CONTROL_TABLE_ENTRY_CCT_SHIFT_F);
	SAME(table.entry[62].multiplier, 4 + 62 * 2,
	     IB_CC_CONGESTION_CONTROL_TABLE_ENTRY_CCT_MULTIPLIER_F);
}

int main(void)
{
	struct prng random = prng_from(1);
	unsigned pairs = 0;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
			uint8_t mad[2 * MAD_BYTES];

			mad_random_bytes(&random, mad, sizeof(mad));
			for (const struct pair *p = tables[i].pairs; p->member; p++, pairs++)
				compare(tables[i].layout, tables[i].at, p, mad);
		}
	for (unsigned round = 0; round < ROUNDS; round++)
		elements(&random);
	printf("%u values, %u differ\n", pairs, failures);
	return failures != 0;
}
#endif
