/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of classes, methods, attributes and status values (umad_class_str(3) and so on). */
#include <endian.h>
#include <infiniband/umad_str.h>
#include <stddef.h>

#include "umad/umad.h"
#include "util/container_of.h"

struct name {
	uint16_t number;
	const char *text;
};

static const char *find(const struct name *names, size_t count, uint16_t number,
			const char *unknown)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].number == number)
			return names[i].text;
	return unknown;
}
#define FIND(names, number, unknown) find(names, ARRAY_SIZE(names), number, unknown)

static bool is_vendor(uint8_t class)
{
	return (class >= MAD_CLASS_VENDOR_1_FIRST && class <= MAD_CLASS_VENDOR_1_LAST) ||
	       (class >= MAD_CLASS_VENDOR_2_FIRST && class <= MAD_CLASS_VENDOR_2_LAST);
}

UMAD_EXPORT const char *umad_class_str(uint8_t class)
{
	static const struct name names[] = {
		{ MAD_CLASS_SUBN_LID, "Subn" }, { MAD_CLASS_SUBN_DIRECTED, "SubnDR" },
		{ MAD_CLASS_SUBN_ADM, "SA" }, { MAD_CLASS_PERF, "Perf" },
		{ MAD_CLASS_BM, "BM" }, { MAD_CLASS_DEV_MGT, "DevMgt" },
		{ MAD_CLASS_COMM_MGT, "CM" }, { MAD_CLASS_SNMP, "SNMP" },
		{ 0x10, "DevAdm" }, { 0x11, "BootMgt" }, { 0x12, "BIS" },
		{ MAD_CLASS_CONG_MGT, "CongestionManagment" },
	};

	return FIND(names, class, is_vendor(class) ? "Vendor" : "<unknown>");
}

UMAD_EXPORT const char *umad_method_str(uint8_t class, uint8_t method)
{
	static const struct name names[] = {
		{ MAD_GET, "Get" }, { MAD_SET, "Set" }, { MAD_GET_RESP, "GetResp" },
		{ MAD_SEND, "Send" }, { MAD_TRAP, "Trap" }, { MAD_REPORT, "Report" },
		{ MAD_REPORT_RESP, "ReportResp" }, { MAD_TRAP_REPRESS, "TrapRepress" },
	};
	static const struct name of_sa[] = {
		{ MAD_GET_TABLE, "GetTable" }, { MAD_GET_TABLE_RESP, "GetTableResp" },
		{ MAD_DELETE, "Delete" }, { MAD_DELETE_RESP, "DeleteResp" },
		{ MAD_GET_MULTI, "GetMulti" }, { MAD_GET_MULTI_RESP, "GetMultiResp" },
		{ MAD_GET_TRACE_TABLE, "GetTraceTable" },
	};
	const char *text = class == MAD_CLASS_SUBN_ADM ? FIND(of_sa, method, NULL) : NULL;

	return text ? text : FIND(names, method, "<unknown>");
}

static const char *subnet_attribute(uint16_t id)
{
	static const struct name names[] = {
		{ MAD_ATTR_NODE_DESCRIPTION, "NodeDescription" },
		{ MAD_ATTR_NODE_INFO, "NodeInfo" }, { MAD_ATTR_SWITCH_INFO, "SwitchInfo" },
		{ MAD_ATTR_GUID_INFO, "GUIDInfo" }, { MAD_ATTR_PORT_INFO, "PortInfo" },
		{ MAD_ATTR_PKEY_TABLE, "PKeyTable" }, { MAD_ATTR_SL_TO_VL, "SLtoVLMappingTable" },
		{ MAD_ATTR_VL_ARBITRATION, "VLArbitrationTable" },
		{ MAD_ATTR_LINEAR_FORWARDING, "LinearForwardingTable" },
		{ MAD_ATTR_RANDOM_FORWARDING, "RandomForwardingTable" },
		{ MAD_ATTR_MULTICAST_FORWARDING, "MulticastForwardingTable" },
		{ 0x001c, "LinkSpeedWidthPairsTable" }, { 0x001d, "VendorMADStable" },
		{ MAD_ATTR_SM_INFO, "SMInfo" }, { MAD_ATTR_VENDOR_DIAG, "VendorDiag" },
		{ MAD_ATTR_LED_INFO, "LedInfo" },
	};

	return FIND(names, id, "<unknown>");
}

static const char *administration_attribute(uint16_t id)
{
	static const struct name names[] = {
		{ MAD_ATTR_NODE_RECORD, "NodeRecord" },
		{ MAD_ATTR_PORT_INFO_RECORD, "PortInfoRecord" },
		{ MAD_ATTR_SL_TO_VL_RECORD, "SLtoVLMappingTableRecord" },
		{ MAD_ATTR_SWITCH_INFO_RECORD, "SwitchInfoRecord" },
		{ MAD_ATTR_LINEAR_FORWARDING_RECORD, "LinearForwardingTableRecord" },
		{ 0x0016, "RandomForwardingTableRecord" },
		{ MAD_ATTR_MULTICAST_FORWARDING_RECORD, "MulticastForwardingTableRecord" },
		{ MAD_ATTR_SM_INFO_RECORD, "SMInfoRecord" },
		{ 0x0019, "LinkSpeedWidthPairsTableRecord" },
		{ MAD_ATTR_INFORM_INFO_RECORD, "InformInfoRecord" },
		{ MAD_ATTR_LINK_RECORD, "LinkRecord" },
		{ MAD_ATTR_GUID_INFO_RECORD, "GuidInfoRecord" },
		{ MAD_ATTR_SERVICE_RECORD, "ServiceRecord" },
		{ MAD_ATTR_PKEY_TABLE_RECORD, "PKeyTableRecord" },
		{ MAD_ATTR_PATH_RECORD, "PathRecord" },
		{ MAD_ATTR_VL_ARBITRATION_RECORD, "VLArbitrationTableRecord" },
		{ MAD_ATTR_MC_MEMBER_RECORD, "MCMemberRecord" }, { 0x0039, "TraceRecord" },
		{ MAD_ATTR_MULTI_PATH_RECORD, "MultiPathRecord" },
		{ 0x003b, "ServiceAssociationRecord" },
	};

	return FIND(names, id, "<unknown>");
}

UMAD_EXPORT const char *umad_attribute_str(uint8_t class, __be16 attr_id)
{
	static const struct name common[] = {
		{ MAD_ATTR_CLASS_PORT_INFO, "ClassPortInfo" }, { MAD_ATTR_NOTICE, "Notice" },
		{ MAD_ATTR_INFORM_INFO, "InformInfo" },
	};
	uint16_t id = be16toh(attr_id);
	const char *text = FIND(common, id, NULL);

	if (text)
		return text;
	switch (class) {
	case MAD_CLASS_SUBN_LID:
	case MAD_CLASS_SUBN_DIRECTED:
		return subnet_attribute(id);
	case MAD_CLASS_SUBN_ADM:
		return administration_attribute(id);
	default:
		return "<unknown>";
	}
}

UMAD_EXPORT const char *umad_common_mad_status_str(__be16 status)
{
	static const struct name names[] = {
		{ MAD_STATUS_BAD_VERSION, "Bad version" },
		{ MAD_STATUS_BAD_METHOD, "Method not supported" },
		{ MAD_STATUS_BAD_METHOD_ATTRIBUTE, "Method/Attribute combo not supported" },
		{ MAD_STATUS_BAD_VALUE, "Invalid attribute/modifier value" },
	};
	uint16_t number = be16toh(status);

	if (number & MAD_STATUS_BUSY)
		return "Busy";
	if (number & MAD_STATUS_REDIRECT)
		return "Redirection required";
	return FIND(names, number & 0x1c, number & 0x1c ? "<unknown>" : "Success");
}

UMAD_EXPORT const char *umad_sa_mad_status_str(__be16 status)
{
	static const struct name names[] = {
		{ 0, "Success" }, { MAD_SA_NO_RESOURCES, "No resources" },
		{ MAD_SA_REQ_INVALID, "Request invalid" }, { MAD_SA_NO_RECORDS, "No records" },
		{ MAD_SA_TOO_MANY_RECORDS, "Too many records" },
		{ MAD_SA_REQ_INVALID_GID, "Invalid GID" },
		{ MAD_SA_INSUFFICIENT_COMPONENTS, "Insufficient components" },
		{ MAD_SA_REQ_DENIED, "Request denied" }, { 0x0800, "Priority suggested" },
	};

	return FIND(names, be16toh(status) & 0xff00, "Undefined error");
}
