/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of MADs and ClassPortInfo; see mad.h. */
#include "wire/mad/mad.h"

#include "wire/bytes.h"

enum { AT_CLASS = 1, AT_METHOD = 3, AT_STATUS = 4 };
#define STATUS_D 0x8000 /* of a directed route */

#define OF struct mad_header
static const struct wire_field header_rows[] = {
	WIRE_BITS(OF, base_version, 0, 0, 8),
	WIRE_BITS(OF, mgmt_class, 1, 0, 8),
	WIRE_BITS(OF, class_version, 2, 0, 8),
	WIRE_BITS(OF, method, 3, 0, 8),
	WIRE_BITS(OF, status, 4, 0, 16),
	WIRE_BITS(OF, class_specific, 6, 0, 16),
	WIRE_BITS(OF, tid, 8, 0, 64),
	WIRE_BITS(OF, attr_id, 16, 0, 16),
	WIRE_RESERVED(18, 0, 16),
	WIRE_BITS(OF, attr_mod, 20, 0, 32),
};
WIRE_LAYOUT(mad_header, "MAD header", header_rows);

#undef OF
#define OF struct mad_class_port_info
static const struct wire_field class_port_info_rows[] = {
	WIRE_BITS(OF, base_version, 0, 0, 8),
	WIRE_BITS(OF, class_version, 1, 0, 8),
	WIRE_BITS(OF, capability_mask, 2, 0, 16),
	WIRE_BITS(OF, capability_mask2, 4, 0, 27),
	WIRE_BITS(OF, resp_time_value, 7, 3, 5),
	WIRE_BYTES(OF, redirect_gid, 8),
	WIRE_BITS(OF, redirect_tc, 24, 0, 8),
	WIRE_BITS(OF, redirect_sl, 25, 0, 4),
	WIRE_BITS(OF, redirect_fl, 25, 4, 20),
	WIRE_BITS(OF, redirect_lid, 28, 0, 16),
	WIRE_BITS(OF, redirect_pkey, 30, 0, 16),
	WIRE_RESERVED(32, 0, 8),
	WIRE_BITS(OF, redirect_qp, 33, 0, 24),
	WIRE_BITS(OF, redirect_qkey, 36, 0, 32),
	WIRE_BYTES(OF, trap_gid, 40),
	WIRE_BITS(OF, trap_tc, 56, 0, 8),
	WIRE_BITS(OF, trap_sl, 57, 0, 4),
	WIRE_BITS(OF, trap_fl, 57, 4, 20),
	WIRE_BITS(OF, trap_lid, 60, 0, 16),
	WIRE_BITS(OF, trap_pkey, 62, 0, 16),
	WIRE_BITS(OF, trap_hl, 64, 0, 8),
	WIRE_BITS(OF, trap_qp, 65, 0, 24),
	WIRE_BITS(OF, trap_qkey, 68, 0, 32),
};
WIRE_LAYOUT(mad_class_port_info, "ClassPortInfo", class_port_info_rows);

bool mad_header_read(const uint8_t *mad, size_t len, struct mad_header *header)
{
	if (len != MAD_BYTES || mad[0] != MAD_BASE_VERSION)
		return false;
	mad_header_unpack(mad, header);
	return true;
}

bool mad_make_response(uint8_t mad[MAD_BYTES], uint16_t status)
{
	const uint8_t method = mad[AT_METHOD];
	const bool directed = mad[AT_CLASS] == MAD_CLASS_SUBN_DIRECTED;
	const uint16_t before = get_16(mad + AT_STATUS);

	if (method & MAD_RESPONSE || method == MAD_SEND || method == MAD_TRAP ||
	    method == MAD_TRAP_REPRESS)
		return false;
	mad[AT_METHOD] = method == MAD_SET ? MAD_GET_RESP : method | MAD_RESPONSE;
	put_16(mad + AT_STATUS, directed ? (before & STATUS_D) | (status & ~STATUS_D) : status);
	return true;
}
