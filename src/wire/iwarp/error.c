/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of errors; see error.h. */
#include "wire/iwarp/error.h"

#include <stddef.h>

#include "util/container_of.h"

#define RDMAP IWARP_LAYER_RDMAP
#define DDP IWARP_LAYER_DDP
#define LLP IWARP_LAYER_LLP
#define MD (IWARP_TERMINATE_M | IWARP_TERMINATE_D)

static const struct {
	uint8_t layer, type, code;
	uint16_t headers;
	const char *text;
} errors[IWARP_ERRORS] = {
	[IWARP_OK] = { RDMAP, 0, 0, 0, "no error" },

	[IWARP_MPA_KEY] = { LLP, 0, 4, 0, "no MPA frame: wrong key" },
	[IWARP_MPA_REVISION] = { LLP, 0, 4, 0, "MPA revision above 2" },
	[IWARP_MPA_PRIVATE_DATA] = { LLP, 0, 4, 0,
				     "private data of the MPA frame longer than 512 bytes" },
	[IWARP_MPA_ENHANCED] = { LLP, 0, 4, 0, "enhanced MPA frame without IRD and ORD" },
	[IWARP_MPA_IRD] = { LLP, 0, 6, 0, "insufficient IRD resources" },
	[IWARP_MPA_RTR] = { LLP, 0, 7, 0, "no matching RTR option" },
	[IWARP_MPA_CATASTROPHIC] = { LLP, 0, 5, 0, "local catastrophic error in MPA" },
	[IWARP_MPA_LOST] = { LLP, 0, 1, 0, "TCP connection closed, terminated or lost" },
	[IWARP_FPDU_CRC] = { LLP, 0, 2, 0, "wrong CRC of an FPDU" },
	[IWARP_FPDU_MARKER] = { LLP, 0, 3, 0,
				"MPA marker and ULPDU length disagree on the start of an FPDU" },

	[IWARP_DDP_CATASTROPHIC] = { DDP, 0, 0, 0, "local catastrophic error in DDP" },
	[IWARP_DDP_SHORT] = { DDP, 0, 0, 0, "DDP segment shorter than its header" },
	[IWARP_DDP_STAG] = { DDP, 1, 0, MD, "invalid STag" },
	[IWARP_DDP_BOUNDS] = { DDP, 1, 1, MD, "base or bounds violation of a tagged buffer" },
	[IWARP_DDP_STAG_STREAM] = { DDP, 1, 2, MD, "STag not associated with the DDP stream" },
	[IWARP_DDP_TO_WRAP] = { DDP, 1, 3, MD, "tagged offset wraps" },
	[IWARP_DDP_TAGGED_VERSION] = { DDP, 1, 4, 0, "invalid DDP version of a tagged segment" },
	[IWARP_DDP_QN] = { DDP, 2, 1, MD, "invalid queue number" },
	[IWARP_DDP_NO_BUFFER] = { DDP, 2, 2, MD, "no buffer for this message" },
	[IWARP_DDP_MSN] = { DDP, 2, 3, MD, "message sequence number out of range" },
	[IWARP_DDP_MO] = { DDP, 2, 4, MD, "invalid message offset" },
	[IWARP_DDP_TOO_LONG] = { DDP, 2, 5, MD, "message too long for its buffer" },
	[IWARP_DDP_UNTAGGED_VERSION] = { DDP, 2, 6, 0,
					 "invalid DDP version of an untagged segment" },

	[IWARP_RDMAP_CATASTROPHIC] = { RDMAP, 0, 0, 0, "local catastrophic error in RDMAP" },
	[IWARP_RDMAP_STAG] = { RDMAP, 1, 0, MD, "invalid STag of a request" },
	[IWARP_RDMAP_BOUNDS] = { RDMAP, 1, 1, MD, "base or bounds violation of a request" },
	[IWARP_RDMAP_ACCESS] = { RDMAP, 1, 2, MD, "access rights violation" },
	[IWARP_RDMAP_STAG_STREAM] = { RDMAP, 1, 3, MD,
				      "STag not associated with the RDMAP stream" },
	[IWARP_RDMAP_TO_WRAP] = { RDMAP, 1, 4, MD, "tagged offset of a request wraps" },
	[IWARP_RDMAP_INVALIDATE] = { RDMAP, 1, 9, MD, "STag cannot be invalidated" },
	[IWARP_RDMAP_PROTECTION] = { RDMAP, 1, 0xff, MD, "remote protection error" },
	[IWARP_RDMAP_VERSION] = { RDMAP, 2, 5, 0, "invalid RDMAP version" },
	[IWARP_RDMAP_OPCODE] = { RDMAP, 2, 6, 0, "unexpected RDMAP opcode" },
	[IWARP_RDMAP_ATOMIC] = { RDMAP, 2, 6, 0, "unknown atomic operation" },
	[IWARP_RDMAP_LENGTH] = { RDMAP, 2, 7, MD, "RDMAP message shorter than its header" },
	[IWARP_RDMAP_NOT_LAST] = { RDMAP, 2, 7, MD,
				   "RDMAP message of one segment is not marked as the last" },
	[IWARP_RDMAP_STREAM] = { RDMAP, 2, 7, MD, "catastrophic error of the RDMAP stream" },
	[IWARP_RDMAP_GLOBAL] = { RDMAP, 2, 8, MD, "global catastrophic error" },
	[IWARP_RDMAP_OPERATION] = { RDMAP, 2, 0xff, MD, "remote operation error" },
};

const char *iwarp_error_text(enum iwarp_error error)
{
	return (unsigned)error < IWARP_ERRORS ? errors[error].text : "unknown error";
}

uint32_t iwarp_error_control(enum iwarp_error error)
{
	return (uint32_t)errors[error].layer << 28 | (uint32_t)errors[error].type << 24 |
	       (uint32_t)errors[error].code << 16 | errors[error].headers;
}

/* ---- names: RFC 5040, 4.8; RFC 5041, 8.2; RFC 5044, 8; RFC 6581 ---- */

static const struct {
	uint8_t layer, type;
	const char *text;
} types[] = {
	{ RDMAP, 0, "Local Catastrophic Error" },
	{ RDMAP, 1, "Remote Protection Error" },
	{ RDMAP, 2, "Remote Operation Error" },
	{ DDP, 0, "Local Catastrophic Error" },
	{ DDP, 1, "Tagged Buffer Error" },
	{ DDP, 2, "Untagged Buffer Error" },
	{ DDP, 3, "Reserved for the use by the LLP" },
	{ LLP, 0, "MPA Error" },
};

static const struct {
	uint8_t layer, type, code;
	const char *text;
} codes[] = {
	{ RDMAP, 0, 0x00, "Local Catastrophic Error" },
	{ RDMAP, 0, 0xff, "Unspecified Error" }, /* of Linux's siw, when a program disconnects */
	{ RDMAP, 1, 0x00, "Invalid STag" },
	{ RDMAP, 1, 0x01, "Base or bounds violation" },
	{ RDMAP, 1, 0x02, "Access rights violation" },
	{ RDMAP, 1, 0x03, "STag not associated with RDMAP Stream" },
	{ RDMAP, 1, 0x04, "TO wrap" },
	{ RDMAP, 1, 0x09, "STag cannot be Invalidated" },
	{ RDMAP, 1, 0xff, "Unspecified Error" },
	{ RDMAP, 2, 0x05, "Invalid RDMAP version" },
	{ RDMAP, 2, 0x06, "Unexpected OpCode" },
	{ RDMAP, 2, 0x07, "Catastrophic error, localized to RDMAP Stream" },
	{ RDMAP, 2, 0x08, "Catastrophic error, global" },
	{ RDMAP, 2, 0x09, "STag cannot be Invalidated" },
	{ RDMAP, 2, 0xff, "Unspecified Error" },
	{ DDP, 0, 0x00, "Local Catastrophic Error" },
	{ DDP, 1, 0x00, "Invalid STag" },
	{ DDP, 1, 0x01, "Base or bounds violation" },
	{ DDP, 1, 0x02, "STag not associated with DDP Stream" },
	{ DDP, 1, 0x03, "TO wrap" },
	{ DDP, 1, 0x04, "Invalid DDP version" },
	{ DDP, 2, 0x01, "Invalid QN" },
	{ DDP, 2, 0x02, "Invalid MSN - no buffer available" },
	{ DDP, 2, 0x03, "Invalid MSN - MSN range is not valid" },
	{ DDP, 2, 0x04, "Invalid MO" },
	{ DDP, 2, 0x05, "DDP Message too long for available buffer" },
	{ DDP, 2, 0x06, "Invalid DDP version" },
	{ LLP, 0, 0x01, "TCP connection closed, terminated or lost" },
	{ LLP, 0, 0x02, "MPA CRC Error" },
	{ LLP, 0, 0x03, "MPA Marker and ULPDU Length field mismatch" },
	{ LLP, 0, 0x04, "Invalid MPA Request Frame or MPA Response Frame" },
	{ LLP, 0, 0x05, "Local Catastrophic Error" },
	{ LLP, 0, 0x06, "Insufficient IRD Resources" },
	{ LLP, 0, 0x07, "No Matching RTR Option" },
};

const char *iwarp_layer_text(uint8_t layer)
{
	static const char *const names[] = { "RDMAP", "DDP", "LLP" };

	return layer < ARRAY_SIZE(names) ? names[layer] : "reserved";
}

const char *iwarp_type_text(uint8_t layer, uint8_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].layer == layer && types[i].type == type)
			return types[i].text;
	return "reserved";
}

static const char *code_find(uint8_t layer, uint8_t type, uint8_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].layer == layer && codes[i].type == type && codes[i].code == code)
			return codes[i].text;
	return NULL;
}

bool iwarp_code_known(uint8_t layer, uint8_t type, uint8_t code)
{
	return code_find(layer, type, code) != NULL;
}

const char *iwarp_code_text(uint8_t layer, uint8_t type, uint8_t code)
{
	const char *text = code_find(layer, type, code);

	return text ? text : "reserved";
}
