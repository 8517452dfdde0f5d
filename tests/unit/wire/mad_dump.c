/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random packets of an InfiniBand link with MADs, and flow control packets, for mad_tshark.py:
 * a capture file, and lines "FRAME FIELD VALUE" with what our decoders say, in hex, under the
 * names of tshark's fields. Left out, because tshark 4.0 reads them wrongly: the D bit, RRespTime
 * (as of four bits), trap 259, and ports behind the 16th LID of a MulticastForwardingTable.
 *
 * usage: mad_dump CAPTURE LINES COUNT SEED
 */
#include <stdio.h>
#include <stdlib.h>

#include "mad_rows.h"
#include "wire/bytes.h"
#include "wire/ib/native.h"
#include "wire/mad/perf.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define SHOWN 16 /* elements of an array of integers */
#define QKEY_GSI 0x80010000u
/* tshark 4.0 looks for headers of data packets in those of flow control, and takes the latter for
 * malformed if there are not enough bytes. */
#define FLOW_PADDED 64

/* A member of the layout and the name of tshark's field behind its prefix. */
struct pair {
	const char *member, *field;
};

struct kind {
	uint8_t mgmt_class;
	uint16_t attr_id, trap;    /* a trap's number; its details are `layout` */
	const struct wire_layout *layout;
	const char *prefix;        /* behind "infiniband." */
	const struct pair *pairs;
};

#define PAIRS(...) (const struct pair[]){ __VA_ARGS__, { NULL, NULL } }
#define SMP(attr, NAME, prefix, ...) \
	{ MAD_CLASS_SUBN_DIRECTED, MAD_ATTR_##attr, 0, &NAME##_layout, prefix, PAIRS(__VA_ARGS__) }
#define PERF(attr, NAME, prefix, ...) \
	{ MAD_CLASS_PERF, MAD_ATTR_##attr, 0, &NAME##_layout, prefix, PAIRS(__VA_ARGS__) }
#define SA(attr, NAME, prefix, ...) \
	{ MAD_CLASS_SUBN_ADM, MAD_ATTR_##attr, 0, &NAME##_layout, prefix, PAIRS(__VA_ARGS__) }
#define TRAP(number, NAME, ...) \
	{ MAD_CLASS_SUBN_DIRECTED, MAD_ATTR_NOTICE, number, &NAME##_layout, "trap", PAIRS(__VA_ARGS__) }

static const struct kind kinds[] = {
	SMP(NODE_INFO, mad_node_info, "nodeinfo", { "base_version", "baseversion" },
	    { "class_version", "classversion" }, { "node_type", "nodetype" },
	    { "num_ports", "numports" }, { "system_image_guid", "systemimageguid" },
	    { "node_guid", "nodeguid" }, { "port_guid", "portguid" },
	    { "partition_cap", "partitioncap" }, { "device_id", "deviceid" },
	    { "revision", "revision" }, { "local_port_num", "localportnum" },
	    { "vendor_id", "vendorid" }),
	SMP(SWITCH_INFO, mad_switch_info, "switchinfo", { "linear_fdb_cap", "linearfdbcap" },
	    { "random_fdb_cap", "randomfdbcap" }, { "multicast_fdb_cap", "multicastfdbcap" },
	    { "linear_fdb_top", "linearfdbtop" }, { "default_port", "defaultport" },
	    { "default_multicast_primary_port", "defaultmulticastprimaryport" },
	    { "default_multicast_not_primary_port", "defaultmulticastnotprimaryport" },
	    { "life_time_value", "lifetimevalue" }, { "port_state_change", "portstatechange" },
	    { "optimized_sl_to_vl_mapping", "optimizedsltovlmappingprogramming" },
	    { "lids_per_port", "lidsperport" },
	    { "partition_enforcement_cap", "partitionenforcementcap" },
	    { "inbound_enforcement_cap", "inboundenforcementcap" },
	    { "outbound_enforcement_cap", "outboundenforcementcap" },
	    { "filter_raw_inbound_cap", "filterrawinboundcap" },
	    { "filter_raw_outbound_cap", "filterrawoutboundcap" },
	    { "enhanced_port0", "enhancedportzero" }),
	SMP(PORT_INFO, mad_port_info, "portinfo", { "mkey", "m_key" }, { "gid_prefix", "guid" },
	    { "lid", "lid" }, { "master_sm_lid", "mastersmlid" },
	    { "capability_mask", "capabilitymask" }, { "diag_code", "diagcode" },
	    { "mkey_lease_period", "m_keyleaseperiod" }, { "local_port_num", "localportnum" },
	    { "link_width_enabled", "linkwidthenabled" },
	    { "link_width_supported", "linkwidthsupported" },
	    { "link_width_active", "linkwidthactive" },
	    { "link_speed_supported", "linkspeedsupported" }, { "port_state", "portstate" },
	    { "port_physical_state", "portphysicalstate" },
	    { "link_down_default_state", "linkdowndefaultstate" },
	    { "mkey_protect_bits", "m_keyprotectbits" }, { "lmc", "lmc" },
	    { "link_speed_active", "linkspeedactive" }, { "link_speed_enabled", "linkspeedenabled" },
	    { "neighbor_mtu", "neighbormtu" }, { "master_sm_sl", "mastersmsl" },
	    { "vl_cap", "vlcap" }, { "init_type", "inittype" }, { "vl_high_limit", "vlhighlimit" },
	    { "vl_arbitration_high_cap", "vlarbitrationhighcap" },
	    { "vl_arbitration_low_cap", "vlarbitrationlowcap" },
	    { "init_type_reply", "inittypereply" }, { "mtu_cap", "mtucap" },
	    { "vl_stall_count", "vlstallcount" }, { "hoq_life", "hoqlife" },
	    { "operational_vls", "operationalvls" },
	    { "partition_enforcement_inbound", "partitionenforcementinbound" },
	    { "partition_enforcement_outbound", "partitionenforcementoutbound" },
	    { "filter_raw_inbound", "filterrawinbound" },
	    { "filter_raw_outbound", "filterrawoutbound" },
	    { "mkey_violations", "m_keyviolations" }, { "pkey_violations", "p_keyviolations" },
	    { "qkey_violations", "q_keyviolations" }, { "guid_cap", "guidcap" },
	    { "client_reregister", "clientreregister" }, { "subnet_timeout", "subnettimeout" },
	    { "resp_time_value", "resptimevalue" }, { "local_phy_errors", "localphyerrors" },
	    { "overrun_errors", "overrunerrors" }, { "max_credit_hint", "maxcredithint" },
	    { "link_round_trip_latency", "linkroundtriplatency" }),
	SMP(LINEAR_FORWARDING, mad_linear_forwarding, "linearforwardingtable", { "port", "port" }),
	SMP(MULTICAST_FORWARDING, mad_multicast_forwarding, "multicastforwardingtable",
	    { "ports", "portmask" }),
	SMP(RANDOM_FORWARDING, mad_random_forwarding, "randomforwardingtable", { "entry.lid", "lid" },
	    { "entry.valid", "valid" }, { "entry.lmc", "lmc" }, { "entry.port", "port" }),
	SMP(VL_ARBITRATION, mad_vl_arbitration, "vlarbitrationtable", { "entry.vl", "vl" },
	    { "entry.weight", "weight" }),
	SMP(SM_INFO, mad_sm_info, "sminfo", { "guid", "guid" }, { "sm_key", "sm_key" },
	    { "act_count", "actcount" }, { "priority", "priority" }, { "state", "smstate" }),
	SMP(LED_INFO, mad_led_info, "ledinfo", { "on", "ledmask" }),
	TRAP(64, mad_trap_gid, { "gid", "gidaddr" }),
	TRAP(67, mad_trap_gid, { "gid", "gidaddr" }),
	TRAP(128, mad_trap_link_state, { "lid", "lidaddr" }),
	TRAP(130, mad_trap_port, { "lid", "lidaddr" }, { "port", "portno" }),
	TRAP(144, mad_trap_capability, { "lid", "lidaddr" },
	     { "other_local_changes", "otherlocalchanges" }, { "capability_mask", "capabilitymask" }),
	TRAP(145, mad_trap_system_image, { "lid", "lidaddr" },
	     { "system_image_guid", "systemimageguid" }),
	TRAP(256, mad_trap_mkey, { "lid", "lidaddr" }, { "dr_slid", "drslid" }, { "method", "method" },
	     { "attr_id", "attributeid" }, { "attr_mod", "attributemodifier" }, { "mkey", "mkey" },
	     { "dr_notice", "drnotice" }, { "dr_path_truncated", "drpathtruncated" },
	     { "dr_hop_count", "drhopcount" }, { "dr_return_path", "drnoticereturnpath" }),
	TRAP(257, mad_trap_key, { "lid1", "lidaddr1" }, { "lid2", "lidaddr2" }, { "key", "key" },
	     { "sl", "sl" }, { "qp1", "qp1" }, { "qp2", "qp2" }, { "gid1", "gidaddr1" },
	     { "gid2", "gidaddr2" }),
	PERF(CLASS_PORT_INFO, mad_class_port_info, "classportinfo",
	     { "base_version", "baseversion" }, { "class_version", "classversion" },
	     { "capability_mask", "capabilitymask" }, { "capability_mask2", "capabilitymask2" },
	     { "resp_time_value", "resptimevalue" }, { "redirect_gid", "redirectgid" },
	     { "redirect_tc", "redirecttc" }, { "redirect_sl", "redirectsl" },
	     { "redirect_fl", "redirectfl" }, { "redirect_lid", "redirectlid" },
	     { "redirect_pkey", "redirectpkey" }, { "redirect_qp", "redirectqp" },
	     { "redirect_qkey", "redirectqkey" }, { "trap_gid", "trapgid" }, { "trap_tc", "traptc" },
	     { "trap_sl", "trapsl" }, { "trap_fl", "trapfl" }, { "trap_lid", "traplid" },
	     { "trap_pkey", "trappkey" }, { "trap_qp", "trapqp" }, { "trap_qkey", "trapqkey" }),
	PERF(PORT_COUNTERS, mad_port_counters, "portcounters", { "port_select", "portselect" },
	     { "counter_select", "counterselect" }, { "symbol_errors", "symbolerrorcounter" },
	     { "link_error_recoveries", "linkerrorrecoverycounter" },
	     { "link_downed", "linkdownedcounter" }, { "rcv_errors", "portrcverrors" },
	     { "rcv_remote_physical_errors", "portrcvremotephysicalerrors" },
	     { "rcv_switch_relay_errors", "portrcvswitchrelayerrors" },
	     { "xmit_discards", "portxmitdiscards" },
	     { "xmit_constraint_errors", "portxmitconstrainterrors" },
	     { "rcv_constraint_errors", "portrcvconstrainterrors" },
	     { "local_link_integrity_errors", "locallinkintegrityerrors" },
	     { "excessive_buffer_overrun_errors", "excessivebufferoverrunerrors" },
	     { "vl15_dropped", "vl15dropped" }, { "xmit_data", "portxmitdata" },
	     { "rcv_data", "portrcvdata" }, { "xmit_pkts", "portxmitpkts" },
	     { "rcv_pkts", "portrcvpkts" }),
	PERF(PORT_COUNTERS_EXTENDED, mad_port_counters_extended, "portcounters_ext",
	     { "port_select", "portselect" }, { "counter_select", "counterselect" },
	     { "xmit_data", "portxmitdata" }, { "rcv_data", "portrcvdata" },
	     { "xmit_pkts", "portxmitpkts" }, { "rcv_pkts", "portrcvpkts" },
	     { "unicast_xmit_pkts", "portunicastxmitpkts" },
	     { "unicast_rcv_pkts", "portunicastrcvpkts" },
	     { "multicast_xmit_pkts", "portmulticastxmitpkts" },
	     { "multicast_rcv_pkts", "portmulticastrcvpkts" }),
	SA(NODE_RECORD, mad_node_record, "nodeinfo", { "info.node_type", "nodetype" },
	   { "info.node_guid", "nodeguid" }, { "info.vendor_id", "vendorid" }),
	SA(PORT_INFO_RECORD, mad_port_info_record, "portinfo", { "info.lid", "lid" },
	   { "info.port_state", "portstate" },
	   { "info.link_round_trip_latency", "linkroundtriplatency" }),
	SA(LINK_RECORD, mad_link_record, "linkrecord", { "from_port", "fromport" },
	   { "to_port", "toport" }, { "to_lid", "tolid" }),
	SA(SM_INFO_RECORD, mad_sm_info_record, "sminfo", { "info.guid", "guid" },
	   { "info.state", "smstate" }),
	SA(PATH_RECORD, mad_path_record, "pathrecord", { "dgid", "dgid" }, { "sgid", "sgid" },
	   { "dlid", "dlid" }, { "slid", "slid" }, { "raw_traffic", "rawtraffic" },
	   { "flow_label", "flowlabel" }, { "hop_limit", "hoplimit" }, { "tclass", "tclass" },
	   { "reversible", "reversible" }, { "numb_path", "numbpath" }, { "pkey", "p_key" },
	   { "sl", "sl" }, { "mtu_selector", "mtuselector" }, { "mtu", "mtu" },
	   { "rate_selector", "rateselector" }, { "rate", "rate" },
	   { "packet_life_selector", "packetlifetimeselector" },
	   { "packet_life", "packetlifetime" }, { "preference", "preference" }),
	SA(MC_MEMBER_RECORD, mad_mc_member_record, "mcmemberrecord", { "mgid", "mgid" },
	   { "port_gid", "portgid" }, { "qkey", "q_key" }, { "mlid", "mlid" },
	   { "mtu_selector", "mtuselector" }, { "mtu", "mtu" }, { "tclass", "tclass" },
	   { "pkey", "p_key" }, { "rate_selector", "rateselector" }, { "rate", "rate" },
	   { "packet_life_selector", "packetlifetimeselector" },
	   { "packet_life", "packetlifetime" }, { "sl", "sl" }, { "flow_label", "flowlabel" },
	   { "hop_limit", "hoplimit" }, { "scope", "scope" }, { "join_state", "joinstate" },
	   { "proxy_join", "proxyjoin" }),
	SA(SERVICE_RECORD, mad_service_record, "linkrecord", { "service_id", "serviceid" },
	   { "service_gid", "servicegid" }, { "service_pkey", "servicep_key" },
	   { "service_lease", "servicelease" }, { "service_key", "servicekey" }),
	SA(INFORM_INFO, mad_inform_info, "informinfo", { "gid", "gid" },
	   { "lid_range_begin", "lidrangebegin" }, { "lid_range_end", "lidrangeend" },
	   { "is_generic", "isgeneric" }, { "subscribe", "subscribe" }, { "type", "type" },
	   { "trap_number", "trapnumberdeviceid" }, { "qpn", "qpn" },
	   { "resp_time_value", "resptimevalue" }, { "producer_type", "producertypevendorid" }),
};

static FILE *lines;
static unsigned frame;

static void say(const char *prefix, const char *field, uint64_t value)
{
	fprintf(lines, "%u infiniband%s%s.%s %llx\n", frame, *prefix == '_' ? "" : ".", prefix, field,
		(unsigned long long)value);
}

/* All elements of a member, of the bytes that wire_pack() made of what was unpacked. */
static void say_member(const struct kind *k, const struct pair *p, const uint8_t *bytes)
{
	const size_t len = strcspn(p->member, ".");
	unsigned bit = 0, repeat = 1, every = 0;
	const struct wire_field *f;
	size_t host = 0;

	f = mad_row(k->layout, p->member, &host, &bit);
	if (!f)
		abort();
	/* An array of structures: the member of each. */
	for (unsigned i = 0; i < k->layout->count && p->member[len]; i++)
		if (k->layout->fields[i].inner && k->layout->fields[i].count > 1) {
			repeat = k->layout->fields[i].count;
			every = k->layout->fields[i].stride;
		}
	for (unsigned n = 0; n < repeat; n++, bit += every) {
		if (f->bytes && k->layout == &mad_linear_forwarding_layout) {
			for (unsigned i = 0; i < f->size; i++)
				say(k->prefix, p->field, bytes[i]);
			continue;
		}
		if (f->bytes) {
			fprintf(lines, "%u infiniband.%s.%s ", frame, k->prefix, p->field);
			for (unsigned i = 0; i < f->size; i++)
				fprintf(lines, "%02x", bytes[bit / 8 + i]);
			fprintf(lines, "\n");
			continue;
		}
		for (unsigned i = 0; i < f->count && i < SHOWN; i++)
			say(k->prefix, p->field, wire_get_bits(bytes, bit + i * f->stride, f->width));
	}
}

/* Fills the attribute at `at` by way of the structure. */
static void attribute_make(struct prng *random, const struct kind *k, uint8_t *at)
{
	uint64_t structure[MAD_HOST_MAX / 8];
	uint8_t bytes[MAD_BYTES];

	mad_random_bytes(random, bytes, sizeof(bytes));
	wire_unpack(k->layout, bytes, structure);
	if (!wire_pack(k->layout, structure, at))
		abort();
	for (const struct pair *p = k->pairs; p->member; p++)
		say_member(k, p, at);
}

static void smp_make(struct prng *random, const struct kind *k, uint8_t mad[MAD_BYTES])
{
	struct mad_smp smp = {
		.mgmt_class = MAD_CLASS_SUBN_DIRECTED, .class_version = MAD_VERSION_SUBN,
		.method = k->trap ? MAD_TRAP : MAD_GET_RESP,
		.status = (uint16_t)(prng_next(random) & 0x7fff), .tid = prng_next(random),
		.attr_id = k->attr_id, .attr_mod = (uint32_t)prng_next(random),
		.mkey = prng_next(random), .returning = prng_next(random) & 1,
		.hop_pointer = (uint8_t)prng_next(random), .hop_count = prng_next(random) & 63,
		.dr_slid = (uint16_t)prng_next(random), .dr_dlid = (uint16_t)prng_next(random),
	};
	struct mad_notice notice = { .is_generic = 1, .type = MAD_NOTICE_URGENT,
				     .producer_type = MAD_NODE_SWITCH, .trap_number = k->trap,
				     .issuer_lid = (uint16_t)prng_next(random),
				     .count = prng_next(random) & 0x7fff };

	mad_random_bytes(random, smp.initial_path, sizeof(smp.initial_path));
	if (k->trap) {
		attribute_make(random, k, notice.details);
		mad_notice_pack(&notice, smp.data);
		say("notice", "trapnumberdeviceid", k->trap);
		say("notice", "issuerlid", notice.issuer_lid);
		say("notice", "noticecount", notice.count);
	} else {
		attribute_make(random, k, smp.data);
	}
	if (!mad_smp_pack(&smp, mad))
		abort();
	say("smpdirected", "smpstatus", get_16(mad + MAD_SMP_AT_DIRECTION)); /* with D */
	say("smpdirected", "hoppointer", smp.hop_pointer);
	say("smpdirected", "hopcount", smp.hop_count);
	say("smpdirected", "drslid", smp.dr_slid);
	say("smpdirected", "drdlid", smp.dr_dlid);
}

static void gmp_make(struct prng *random, const struct kind *k, uint8_t mad[MAD_BYTES])
{
	const bool sa = k->mgmt_class == MAD_CLASS_SUBN_ADM;
	const struct mad_header header = {
		.base_version = MAD_BASE_VERSION, .mgmt_class = k->mgmt_class,
		.class_version = sa ? MAD_VERSION_SUBN_ADM : MAD_VERSION_PERF, .method = MAD_GET_RESP,
		.status = (uint16_t)prng_next(random), .tid = prng_next(random),
		.attr_id = k->attr_id, .attr_mod = (uint32_t)prng_next(random),
	};
	const struct mad_rmpp rmpp = { .version = 1, .type = MAD_RMPP_DATA,
				       .resp_time = prng_next(random) & 31,
				       .flags = MAD_RMPP_ACTIVE | MAD_RMPP_FIRST | MAD_RMPP_LAST,
				       .segment = 1, .length = 220 };
	const struct mad_sa sa_header = { prng_next(random), (uint16_t)prng_next(random),
					  prng_next(random) };

	memset(mad, 0, MAD_BYTES);
	mad_header_pack(&header, mad);
	say("mad", "mgmtclass", header.mgmt_class);
	say("mad", "status", header.status);
	say("mad", "transactionid", header.tid);
	say("mad", "attributemodifier", header.attr_mod);
	attribute_make(random, k, mad + (sa ? MAD_SA_DATA_AT : MAD_DATA_AT));
	if (!sa)
		return;
	mad_rmpp_pack(&rmpp, mad + MAD_RMPP_AT);
	mad_sa_pack(&sa_header, mad + MAD_SA_HEADER_AT);
	say("rmpp", "rmpptype", rmpp.type);
	say("rmpp", "segmentnumber", rmpp.segment);
	say("sa", "smkey", sa_header.sm_key);
	say("sa", "attributeoffset", sa_header.attribute_offset);
	say("sa", "componentmask", sa_header.component_mask);
}

/* A packet of the link; its length. */
static size_t packet_make(struct prng *random, uint8_t *to)
{
	const struct kind *k = &kinds[prng_below(random, sizeof(kinds) / sizeof(kinds[0]))];
	const bool smp = k->mgmt_class == MAD_CLASS_SUBN_DIRECTED;
	struct ib_native n = {
		.lrh = { .vl = smp ? 15 : prng_next(random) & 7, .sl = prng_next(random) & 15,
			 .dlid = 1 + (uint16_t)prng_below(random, 0xbfff),
			 .slid = 1 + (uint16_t)prng_below(random, 0xbfff) },
		.has_grh = !smp && prng_next(random) & 1, .has_bth = true,
		.grh = { .traffic_class = (uint8_t)prng_next(random),
			 .flow_label = prng_next(random) & 0xfffff,
			 .hop_limit = (uint8_t)prng_next(random), .sgid = { 0xfe, 0x80, [15] = 1 },
			 .dgid = { 0xfe, 0x80, [15] = 2 } },
		.packet = { .opcode = IB_SERVICE_UD | IB_SEND_ONLY, .pkey = 0xffff,
			    .psn = prng_next(random) & IB_QPN_MASK, .dest_qpn = !smp,
			    .bytes = MAD_BYTES,
			    .deth = { smp ? 0 : QKEY_GSI, !smp } },
	};
	size_t headers = ib_native_encode(&n, to), bytes;

	(smp ? smp_make : gmp_make)(random, k, to + headers);
	bytes = ib_native_finish(&n, headers, to);
	if (ib_native_decode(to, bytes, IB_CHECK_ALL, &n))
		abort();
	say("lrh", "vl", n.lrh.vl);
	say("lrh", "sl", n.lrh.sl);
	say("lrh", "lnh", n.lrh.lnh);
	say("lrh", "dlid", n.lrh.dlid);
	say("lrh", "slid", n.lrh.slid);
	say("lrh", "pktlen", n.lrh.words);
	say("bth", "psn", n.packet.psn);
	if (smp) { /* of others it does not find the end of the MAD */
		say("invariant", "crc", get_32(to + bytes - 6));
		say("variant", "crc", get_16(to + bytes - 2));
	}
	if (n.has_grh) {
		say("grh", "tclass", n.grh.traffic_class);
		say("grh", "flowlabel", n.grh.flow_label);
		say("grh", "hoplmt", n.grh.hop_limit);
		say("grh", "paylen", n.grh.payload_length);
	}
	return bytes;
}

static size_t flow_make(struct prng *random, uint8_t *to)
{
	const struct ib_flow flow = { .op = prng_next(random) & 1,
				      .vl = (uint8_t)prng_below(random, 15),
				      .fctbs = prng_next(random) & 0xfff,
				      .fccl = prng_next(random) & 0xfff };

	memset(to, 0, FLOW_PADDED);
	ib_flow_encode(&flow, to);
	say("_link", "op", flow.op);
	say("_link", "vl", flow.vl);
	say("_link", "fctbs", flow.fctbs);
	say("_link", "fccl", flow.fccl);
	say("_link", "lpcrc", get_16(to + 4));
	return FLOW_PADDED;
}

int main(int argc, char **argv)
{
	/* The classic file format of libpcap, of the order of this machine, for records of ERF. */
	static const uint32_t head[] = { 0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, 197 };
	enum { ERF_BYTES = 16, ERF_INFINIBAND = 21, ERF_INFINIBAND_LINK = 25 };
	static uint8_t record[ERF_BYTES + IB_NATIVE_BYTES_MAX];
	struct prng random;
	FILE *capture;

	if (argc != 5)
		return 2;
	capture = fopen(argv[1], "we");
	lines = fopen(argv[2], "we");
	if (!capture || !lines)
		return 1;
	random = prng_from(strtoull(argv[4], NULL, 0));
	fwrite(head, sizeof(head), 1, capture);
	for (frame = 1; frame <= strtoul(argv[3], NULL, 0); frame++) {
		const bool link = !prng_below(&random, 20);
		const uint32_t bytes = (uint32_t)(link ? flow_make : packet_make)(&random,
										  record + ERF_BYTES);
		const uint32_t total = ERF_BYTES + bytes, lengths[] = { frame, 0, total, total };

		memset(record, 0, ERF_BYTES);
		record[8] = link ? ERF_INFINIBAND_LINK : ERF_INFINIBAND;
		record[9] = 4; /* records of varying length */
		put_16(record + 10, (uint16_t)total);
		put_16(record + 14, (uint16_t)bytes);
		fwrite(lengths, sizeof(lengths), 1, capture);
		fwrite(record, total, 1, capture);
	}
	return fclose(capture) || fclose(lines);
}
