/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams with MADs, and notifications; see datagram.h. */
#include "fabric/serve/datagram.h"

#include <string.h>

#include "fabric/agent/agent.h"

#define OPCODE_UD_SEND (IB_SERVICE_UD | IB_SEND_ONLY)
#define BTH_FECN_AT 4 /* bit 7 */

/* Pad and ICRC behind the payload, which lies there. */
static size_t finish(const struct ib_native *n, size_t headers, uint8_t *to)
{
	return ib_native_finish(n, headers, to) - IB_VCRC_BYTES;
}

size_t serve_datagram_mad(const uint8_t *mad, const struct agent_address *a, struct ib_native *n,
			  uint8_t *to)
{
	size_t headers;

	*n = (struct ib_native){
		.lrh = {
			.vl = a->dest_qp ? 0 : IB_VL_MANAGEMENT, .sl = a->sl, .dlid = a->dlid,
			.slid = a->slid,
		},
		.has_bth = true,
		.has_grh = a->grh,
		.grh = {
			.traffic_class = a->traffic_class, .hop_limit = a->hop_limit,
			.flow_label = a->flow_label,
		},
		.packet = {
			.opcode = OPCODE_UD_SEND, .migrated = true, .dest_qpn = a->dest_qp,
			.pkey = a->dest_qp ? a->pkey : IB_PKEY_DEFAULT, .bytes = MAD_BYTES,
			.deth = { .qkey = a->qkey, .src_qpn = a->src_qp },
		},
	};
	memcpy(n->grh.sgid, a->sgid, sizeof(a->sgid));
	memcpy(n->grh.dgid, a->dgid, sizeof(a->dgid));
	headers = ib_native_encode(n, to);
	memcpy(to + headers, mad, MAD_BYTES);
	return finish(n, headers, to);
}

bool serve_datagram_address(const struct ib_native *n, struct agent_address *a)
{
	if (!n->has_bth || n->packet.opcode != OPCODE_UD_SEND || n->packet.bytes != MAD_BYTES ||
	    n->packet.dest_qpn > 1)
		return false;
	*a = (struct agent_address){
		.slid = n->lrh.slid, .dlid = n->lrh.dlid, .sl = n->lrh.sl, .pkey = n->packet.pkey,
		.src_qp = n->packet.deth.src_qpn, .dest_qp = n->packet.dest_qpn,
		.qkey = n->packet.deth.qkey, .grh = n->has_grh,
	};
	if (n->has_grh) {
		a->flow_label = n->grh.flow_label;
		a->traffic_class = n->grh.traffic_class;
		a->hop_limit = n->grh.hop_limit;
		memcpy(a->sgid, n->grh.sgid, sizeof(a->sgid));
		memcpy(a->dgid, n->grh.dgid, sizeof(a->dgid));
	}
	return true;
}

size_t serve_datagram_notice(const struct ib_native *of, uint16_t pkey, struct ib_native *n,
			     uint8_t *to)
{
	size_t headers;

	if (of->lrh.dlid >= IB_LID_MULTICAST)
		return 0;
	*n = (struct ib_native){
		.lrh = { .sl = of->lrh.sl, .dlid = of->lrh.slid, .slid = of->lrh.dlid },
		.has_bth = true,
		.packet = {
			.opcode = IB_OPCODE_CNP, .becn = true, .migrated = true, .pkey = pkey,
			.dest_qpn = of->packet.headers & IB_HAS_DETH ? of->packet.deth.src_qpn : 0,
		},
	};
	headers = ib_native_encode(n, to);
	return finish(n, headers, to);
}

void serve_datagram_mark(uint8_t *packet, const struct ib_native *n)
{
	packet[n->bth_at + BTH_FECN_AT] |= 0x80;
}
