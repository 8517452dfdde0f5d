/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of an InfiniBand link; see native.h. */
#include "wire/ib/native.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/ib/icrc.h"

enum {
	LID_MULTICAST_LAST = 0xfffe,
	WORDS_MIN = 5,
	WORDS_MASK = 0x7ff,
	GID_MULTICAST = 0xff, /* first byte */
	BTH_AT_MARKS = 4,     /* FECN, BECN and reserved bits */
};

/* ---- LRH (7.7) ---- */

void ib_lrh_encode(const struct ib_lrh *lrh, uint8_t to[IB_LRH_BYTES])
{
	to[0] = (uint8_t)(lrh->vl << 4 | (lrh->version & 15));
	to[1] = (uint8_t)(lrh->sl << 4 | (lrh->lnh & 3));
	to = put_16(to + 2, lrh->dlid);
	to = put_16(to, lrh->words & WORDS_MASK);
	put_16(to, lrh->slid);
}

void ib_lrh_decode(const uint8_t from[IB_LRH_BYTES], struct ib_lrh *lrh)
{
	lrh->vl = from[0] >> 4;
	lrh->version = from[0] & 15;
	lrh->sl = from[1] >> 4;
	lrh->lnh = from[1] & 3;
	lrh->dlid = get_16(from + 2);
	lrh->words = get_16(from + 4) & WORDS_MASK;
	lrh->slid = get_16(from + 6);
}

static bool has_grh(uint8_t lnh)
{
	return lnh == IB_LNH_GLOBAL || lnh == IB_LNH_IP;
}

static bool has_bth(uint8_t lnh)
{
	return lnh == IB_LNH_GLOBAL || lnh == IB_LNH_LOCAL;
}

/* ---- ICRC (7.8.1) ---- */

/* Writes the headers up to the BTH, with ones for what changes on the way. */
static size_t masked_headers(const uint8_t *packet, bool grh, uint8_t *to)
{
	const size_t bth_at = IB_LRH_BYTES + (grh ? IB_GRH_BYTES : 0);

	memcpy(to, packet, bth_at + IB_BTH_BYTES);
	to[bth_at + BTH_AT_MARKS] = 0xff;
	if (!grh) {
		to[0] |= 0xf0; /* VL */
		return bth_at + IB_BTH_BYTES;
	}
	memset(to, 0xff, IB_LRH_BYTES);
	to += IB_LRH_BYTES;
	to[0] |= 0x0f;             /* traffic class */
	memset(to + 1, 0xff, 3);   /* the rest of it, flow label */
	to[7] = 0xff;              /* hop limit */
	return bth_at + IB_BTH_BYTES;
}

bool ib_native_icrc(const uint8_t *packet, size_t bytes, uint8_t icrc[IB_ICRC_BYTES])
{
	uint8_t headers[IB_LRH_BYTES + IB_GRH_BYTES + IB_BTH_BYTES];
	struct icrc c = { .crc = UINT32_MAX };
	struct ib_lrh lrh;
	size_t masked;

	if (bytes < IB_LRH_BYTES)
		return false;
	ib_lrh_decode(packet, &lrh);
	if (!has_bth(lrh.lnh) ||
	    bytes < (size_t)IB_LRH_BYTES + (has_grh(lrh.lnh) ? IB_GRH_BYTES : 0) + IB_BTH_BYTES)
		return false;
	masked = masked_headers(packet, has_grh(lrh.lnh), headers);
	icrc_add(&c, headers, masked);
	icrc_add(&c, packet + masked, bytes - masked);
	icrc_end(&c, icrc);
	return true;
}

/* ---- VCRC (7.8.2) ---- */

static void vcrc_put(uint8_t *to, uint16_t vcrc)
{
	to[0] = (uint8_t)vcrc;
	to[1] = (uint8_t)(vcrc >> 8);
}

static bool vcrc_matches(const uint8_t *data, size_t bytes, const uint8_t *received)
{
	return (received[0] | received[1] << 8) == ib_vcrc(data, bytes);
}

void ib_native_set_vcrc(uint8_t *packet, size_t bytes)
{
	if (bytes >= IB_VCRC_BYTES)
		vcrc_put(packet + bytes - IB_VCRC_BYTES, ib_vcrc(packet, bytes - IB_VCRC_BYTES));
}

/* ---- flow control packets (7.9.4) ---- */

enum { FLOW_CRC_AT = 4, FLOW_CREDITS_MASK = 0xfff };

void ib_flow_encode(const struct ib_flow *flow, uint8_t to[IB_FLOW_BYTES])
{
	put_16(to, (uint16_t)(flow->op << 12 | (flow->fctbs & FLOW_CREDITS_MASK)));
	put_16(to + 2, (uint16_t)(flow->vl << 12 | (flow->fccl & FLOW_CREDITS_MASK)));
	vcrc_put(to + FLOW_CRC_AT, ib_vcrc(to, FLOW_CRC_AT));
}

bool ib_flow_decode(const uint8_t from[IB_FLOW_BYTES], struct ib_flow *flow)
{
	const struct ib_flow got = {
		.op = from[0] >> 4,
		.vl = from[2] >> 4,
		.fctbs = get_16(from) & FLOW_CREDITS_MASK,
		.fccl = get_16(from + 2) & FLOW_CREDITS_MASK,
	};

	if (!vcrc_matches(from, FLOW_CRC_AT, from + FLOW_CRC_AT) || got.op > IB_FLOW_INIT ||
	    got.vl == IB_VL_MANAGEMENT)
		return false;
	*flow = got;
	return true;
}

/* ---- whole packets ---- */

const char *ib_native_fault_name(enum ib_native_fault fault)
{
	static const char *const names[IB_NATIVE_FAULTS] = {
		[IB_NATIVE_GOOD] = "good",
		[IB_NATIVE_SHORT] = "shorter than LRH and VCRC",
		[IB_NATIVE_VCRC] = "VCRC is wrong",
		[IB_NATIVE_VERSION] = "link version is not 0",
		[IB_NATIVE_LENGTH] = "length is wrong",
		[IB_NATIVE_DLID] = "destination LID is wrong",
		[IB_NATIVE_SLID] = "source LID is wrong",
		[IB_NATIVE_GRH] = "GRH is wrong",
		[IB_NATIVE_BTH] = "BTH is wrong",
		[IB_NATIVE_ICRC] = "ICRC is wrong",
		[IB_NATIVE_MULTICAST] = "multicast LID, GID and lane contradict",
	};

	return (unsigned)fault < IB_NATIVE_FAULTS ? names[fault] : "no such fault";
}

static bool lid_is_multicast(uint16_t lid)
{
	return lid >= IB_LID_MULTICAST && lid <= LID_MULTICAST_LAST;
}

static enum ib_native_fault lrh_check(const struct ib_lrh *lrh, size_t bytes)
{
	const bool permissive_allowed = lrh->vl == IB_VL_MANAGEMENT;

	if (lrh->version)
		return IB_NATIVE_VERSION;
	if (lrh->words < WORDS_MIN || bytes > IB_NATIVE_BYTES_MAX ||
	    bytes != lrh->words * 4u + IB_VCRC_BYTES)
		return IB_NATIVE_LENGTH;
	if (!lrh->dlid || (lrh->dlid == IB_LID_PERMISSIVE && !permissive_allowed))
		return IB_NATIVE_DLID;
	if (lid_is_multicast(lrh->slid) || (lrh->slid == IB_LID_PERMISSIVE && !permissive_allowed))
		return IB_NATIVE_SLID;
	return IB_NATIVE_GOOD;
}

/* `bytes` from the GRH to the ICRC. */
static enum ib_native_fault grh_check(const uint8_t *from, size_t bytes, struct ib_native *n)
{
	if (bytes < IB_GRH_BYTES || !ib_grh_decode(from, &n->grh) ||
	    n->grh.payload_length != bytes - IB_GRH_BYTES)
		return IB_NATIVE_GRH;
	if (n->has_bth != (n->grh.next_header == IB_GRH_NEXT_BTH))
		return IB_NATIVE_GRH;
	return IB_NATIVE_GOOD;
}

static enum ib_native_fault bth_check(const uint8_t *packet, size_t bytes, unsigned checks,
				      struct ib_native *n)
{
	const size_t headers = ib_decode(packet + n->bth_at, bytes - n->bth_at, &n->packet);
	uint8_t icrc[IB_ICRC_BYTES];

	if (!headers)
		return IB_NATIVE_BTH;
	if (n->packet.bytes > IB_MTU_MAX)
		return IB_NATIVE_LENGTH;
	n->payload_at = (uint16_t)(n->bth_at + headers);
	n->payload_bytes = (uint16_t)n->packet.bytes;
	if (checks & IB_CHECK_ICRC && (!ib_native_icrc(packet, bytes - IB_ICRC_BYTES, icrc) ||
				       memcmp(icrc, packet + bytes - IB_ICRC_BYTES, IB_ICRC_BYTES)))
		return IB_NATIVE_ICRC;
	return IB_NATIVE_GOOD;
}

/* Datagrams of multicast have a GRH; raw ones without it have no GID that could contradict. */
static enum ib_native_fault multicast_check(const struct ib_native *n)
{
	const bool multicast = lid_is_multicast(n->lrh.dlid);

	if (multicast && (n->lrh.vl == IB_VL_MANAGEMENT || (n->has_bth && !n->has_grh)))
		return IB_NATIVE_MULTICAST;
	if (n->has_grh && multicast != (n->grh.dgid[0] == GID_MULTICAST))
		return IB_NATIVE_MULTICAST;
	return IB_NATIVE_GOOD;
}

enum ib_native_fault ib_native_decode(const uint8_t *packet, size_t bytes, unsigned checks,
				      struct ib_native *native)
{
	struct ib_native n = { 0 };
	enum ib_native_fault fault;

	if (bytes < IB_LRH_BYTES + IB_VCRC_BYTES)
		return IB_NATIVE_SHORT;
	bytes -= IB_VCRC_BYTES;
	if (checks & IB_CHECK_VCRC && !vcrc_matches(packet, bytes, packet + bytes))
		return IB_NATIVE_VCRC;
	ib_lrh_decode(packet, &n.lrh);
	fault = lrh_check(&n.lrh, bytes + IB_VCRC_BYTES);
	if (fault)
		return fault;
	n.has_grh = has_grh(n.lrh.lnh);
	n.has_bth = has_bth(n.lrh.lnh);
	if (n.has_grh) {
		fault = grh_check(packet + IB_LRH_BYTES, bytes - IB_LRH_BYTES, &n);
		if (fault)
			return fault;
	}
	n.payload_at = (uint16_t)(IB_LRH_BYTES + (n.has_grh ? IB_GRH_BYTES : 0));
	n.payload_bytes = (uint16_t)(bytes - n.payload_at);
	if (n.has_bth) {
		n.bth_at = n.payload_at;
		fault = bth_check(packet, bytes, checks, &n);
		if (fault)
			return fault;
	}
	fault = multicast_check(&n);
	if (!fault)
		*native = n;
	return fault;
}

size_t ib_native_encode(const struct ib_native *native, uint8_t *to)
{
	const struct ib_opcode *op = &ib_opcodes[native->packet.opcode];
	const size_t grh_bytes = native->has_grh ? IB_GRH_BYTES : 0;
	const size_t payload = (size_t)native->packet.bytes + ib_pad(native->packet.bytes);
	const size_t from_bth = op->bytes + payload + IB_ICRC_BYTES;
	struct ib_lrh lrh = native->lrh;

	if (!native->has_bth || !op->known || native->packet.bytes > IB_MTU_MAX ||
	    (!op->payload && payload))
		return 0;
	lrh.lnh = native->has_grh ? IB_LNH_GLOBAL : IB_LNH_LOCAL;
	lrh.words = (uint16_t)((IB_LRH_BYTES + grh_bytes + from_bth) / 4);
	ib_lrh_encode(&lrh, to);
	if (native->has_grh) {
		struct ib_grh grh = native->grh;

		grh.next_header = IB_GRH_NEXT_BTH;
		grh.payload_length = (uint16_t)from_bth;
		ib_grh_encode(&grh, to + IB_LRH_BYTES);
	}
	return IB_LRH_BYTES + grh_bytes + ib_encode(&native->packet, to + IB_LRH_BYTES + grh_bytes);
}

size_t ib_native_finish(const struct ib_native *native, size_t headers, uint8_t *packet)
{
	const unsigned pad = ib_pad(native->packet.bytes);
	size_t bytes = headers + native->packet.bytes;

	memset(packet + bytes, 0, pad);
	bytes += pad;
	ib_native_icrc(packet, bytes, packet + bytes);
	bytes += IB_ICRC_BYTES + IB_VCRC_BYTES;
	ib_native_set_vcrc(packet, bytes);
	return bytes;
}
