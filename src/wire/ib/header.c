/* SPDX-License-Identifier: BSD-2-Clause */
/* BTH and extended headers; see header.h. */
#include "wire/ib/header.h"

#include <string.h>

#include "wire/bytes.h"

/* ---- which opcode has what: table 38 of 9.2, annexes A14 and A19 ---- */

#define BYTES_IF(headers, one, bytes) ((headers) & (one) ? (bytes) : 0)
#define BYTES_OF(headers)                                                   \
	(IB_BTH_BYTES + BYTES_IF(headers, IB_HAS_XRCETH, IB_XRCETH_BYTES) + \
	 BYTES_IF(headers, IB_HAS_DETH, IB_DETH_BYTES) +                    \
	 BYTES_IF(headers, IB_HAS_FETH, IB_FETH_BYTES) +                    \
	 BYTES_IF(headers, IB_HAS_RETH, IB_RETH_BYTES) +                    \
	 BYTES_IF(headers, IB_HAS_ATOMICETH, IB_ATOMICETH_BYTES) +          \
	 BYTES_IF(headers, IB_HAS_AETH, IB_AETH_BYTES) +                    \
	 BYTES_IF(headers, IB_HAS_ATOMICACKETH, IB_ATOMICACKETH_BYTES) +    \
	 BYTES_IF(headers, IB_HAS_IMMDT, IB_IMMDT_BYTES) +                  \
	 BYTES_IF(headers, IB_HAS_IETH, IB_IETH_BYTES) +                    \
	 BYTES_IF(headers, IB_HAS_RESERVED, IB_CNP_RESERVED_BYTES))

#define ROW(of_service, operation, has, has_payload)                            \
	[(of_service) | (operation)] = { .known = true, .payload = has_payload, \
					 .service = of_service,                 \
					 .bytes = BYTES_OF(has),                \
					 .headers = has }
#define WITH(s, operation, has) ROW(s, operation, has, true)
#define BARE(s, operation, has) ROW(s, operation, has, false)

/* `each`: a header that every request of the service has. */
#define SENDS_AND_WRITES(s, each)                                      \
	WITH(s, IB_SEND_FIRST, each),                                  \
	WITH(s, IB_SEND_MIDDLE, each),                                 \
	WITH(s, IB_SEND_LAST, each),                                   \
	WITH(s, IB_SEND_LAST_IMM, each | IB_HAS_IMMDT),                \
	WITH(s, IB_SEND_ONLY, each),                                   \
	WITH(s, IB_SEND_ONLY_IMM, each | IB_HAS_IMMDT),                \
	WITH(s, IB_WRITE_FIRST, each | IB_HAS_RETH),                   \
	WITH(s, IB_WRITE_MIDDLE, each),                                \
	WITH(s, IB_WRITE_LAST, each),                                  \
	WITH(s, IB_WRITE_LAST_IMM, each | IB_HAS_IMMDT),               \
	WITH(s, IB_WRITE_ONLY, each | IB_HAS_RETH),                    \
	WITH(s, IB_WRITE_ONLY_IMM, each | IB_HAS_RETH | IB_HAS_IMMDT)

#define RELIABLE(s, each)                                                        \
	SENDS_AND_WRITES(s, each),                                               \
	WITH(s, IB_SEND_LAST_INVALIDATE, each | IB_HAS_IETH),                    \
	WITH(s, IB_SEND_ONLY_INVALIDATE, each | IB_HAS_IETH),                    \
	BARE(s, IB_READ_REQUEST, each | IB_HAS_RETH),                            \
	BARE(s, IB_COMPARE_SWAP, each | IB_HAS_ATOMICETH),                       \
	BARE(s, IB_FETCH_ADD, each | IB_HAS_ATOMICETH),                          \
	BARE(s, IB_FLUSH, each | IB_HAS_FETH | IB_HAS_RETH),                     \
	WITH(s, IB_ATOMIC_WRITE, each | IB_HAS_RETH),                            \
	WITH(s, IB_READ_RESPONSE_FIRST, IB_HAS_AETH),                            \
	WITH(s, IB_READ_RESPONSE_MIDDLE, 0),                                     \
	WITH(s, IB_READ_RESPONSE_LAST, IB_HAS_AETH),                             \
	WITH(s, IB_READ_RESPONSE_ONLY, IB_HAS_AETH),                             \
	BARE(s, IB_ACKNOWLEDGE, IB_HAS_AETH),                                    \
	BARE(s, IB_ATOMIC_ACKNOWLEDGE, IB_HAS_AETH | IB_HAS_ATOMICACKETH)

const struct ib_opcode ib_opcodes[256] = {
	RELIABLE(IB_SERVICE_RC, 0),
	RELIABLE(IB_SERVICE_XRC, IB_HAS_XRCETH),
	SENDS_AND_WRITES(IB_SERVICE_UC, 0),
	WITH(IB_SERVICE_UD, IB_SEND_ONLY, IB_HAS_DETH),
	WITH(IB_SERVICE_UD, IB_SEND_ONLY_IMM, IB_HAS_DETH | IB_HAS_IMMDT),
	BARE(IB_SERVICE_CNP, IB_OPCODE_CNP & IB_OPERATION_MASK, IB_HAS_RESERVED),
};

/* ---- integers ---- */

/* A byte of flags and a number of 24 bits. */
static uint8_t *put8_24(uint8_t *to, uint8_t high, uint32_t v)
{
	return put_32(to, (uint32_t)high << 24 | (v & IB_QPN_MASK));
}

static uint32_t get24(const uint8_t *from)
{
	return (uint32_t)from[0] << 16 | get_16(from + 1);
}

/* ---- BTH (9.2) ---- */

enum {
	SE = 0x80, MIGREQ = 0x40, PAD_SHIFT = 4, TVER = 0x0f, /* byte 1 */
	FECN = 0x80, BECN = 0x40,                             /* byte 4 */
	ACK_REQ = 0x80,                                       /* byte 8 */
};

static uint8_t *put_bth(const struct ib_packet *p, uint8_t *to)
{
	to[0] = p->opcode;
	to[1] = (uint8_t)((p->solicited ? SE : 0) | (p->migrated ? MIGREQ : 0) |
			  ib_pad(p->bytes) << PAD_SHIFT);
	to = put_16(to + 2, p->pkey);
	to = put8_24(to, (uint8_t)((p->fecn ? FECN : 0) | (p->becn ? BECN : 0)),
		     p->dest_qpn);
	return put8_24(to, p->ack_req ? ACK_REQ : 0, p->psn);
}

static void get_bth(const uint8_t *from, struct ib_packet *p)
{
	p->opcode = from[0];
	p->solicited = from[1] & SE;
	p->migrated = from[1] & MIGREQ;
	p->pkey = get_16(from + 2);
	p->fecn = from[4] & FECN;
	p->becn = from[4] & BECN;
	p->dest_qpn = get24(from + 5);
	p->ack_req = from[8] & ACK_REQ;
	p->psn = get24(from + 9);
}

/* ---- extended headers (9.3) ---- */

static uint8_t *put_requests(const struct ib_packet *p, unsigned has, uint8_t *to)
{
	if (has & IB_HAS_XRCETH)
		to = put8_24(to, 0, p->xrceth.srqn);
	if (has & IB_HAS_DETH) {
		to = put_32(to, p->deth.qkey);
		to = put8_24(to, 0, p->deth.src_qpn);
	}
	if (has & IB_HAS_FETH)
		to = put_32(to, (p->feth.selectivity & 3u) << 4 |
				       (p->feth.placement & 15u));
	if (has & IB_HAS_RETH) {
		to = put_64(to, p->reth.va);
		to = put_32(to, p->reth.rkey);
		to = put_32(to, p->reth.length);
	}
	if (has & IB_HAS_ATOMICETH) {
		to = put_64(to, p->atomiceth.va);
		to = put_32(to, p->atomiceth.rkey);
		to = put_64(to, p->atomiceth.swap_add);
		to = put_64(to, p->atomiceth.compare);
	}
	return to;
}

size_t ib_encode(const struct ib_packet *packet, uint8_t *to)
{
	const struct ib_opcode *op = &ib_opcodes[packet->opcode];
	unsigned has = op->headers;

	if (!op->known)
		return 0;
	to = put_requests(packet, has, put_bth(packet, to));
	if (has & IB_HAS_AETH)
		to = put8_24(to, packet->aeth.syndrome, packet->aeth.msn);
	if (has & IB_HAS_ATOMICACKETH)
		to = put_64(to, packet->atomicacketh.original);
	if (has & IB_HAS_IMMDT)
		to = put_32(to, packet->immdt);
	if (has & IB_HAS_IETH)
		put_32(to, packet->ieth.rkey);
	if (has & IB_HAS_RESERVED)
		memset(to, 0, IB_CNP_RESERVED_BYTES);
	return op->bytes;
}

static const uint8_t *get_requests(const uint8_t *from, unsigned has,
				   struct ib_packet *p)
{
	if (has & IB_HAS_XRCETH) {
		p->xrceth.srqn = get24(from + 1);
		from += IB_XRCETH_BYTES;
	}
	if (has & IB_HAS_DETH) {
		p->deth.qkey = get_32(from);
		p->deth.src_qpn = get24(from + 5);
		from += IB_DETH_BYTES;
	}
	if (has & IB_HAS_FETH) {
		p->feth.placement = from[3] & 15;
		p->feth.selectivity = from[3] >> 4 & 3;
		from += IB_FETH_BYTES;
	}
	if (has & IB_HAS_RETH) {
		p->reth.va = get_64(from);
		p->reth.rkey = get_32(from + 8);
		p->reth.length = get_32(from + 12);
		from += IB_RETH_BYTES;
	}
	if (has & IB_HAS_ATOMICETH) {
		p->atomiceth.va = get_64(from);
		p->atomiceth.rkey = get_32(from + 8);
		p->atomiceth.swap_add = get_64(from + 12);
		p->atomiceth.compare = get_64(from + 20);
		from += IB_ATOMICETH_BYTES;
	}
	return from;
}

static void get_rest(const uint8_t *from, unsigned has, struct ib_packet *p)
{
	if (has & IB_HAS_AETH) {
		p->aeth.syndrome = from[0];
		p->aeth.msn = get24(from + 1);
		from += IB_AETH_BYTES;
	}
	if (has & IB_HAS_ATOMICACKETH) {
		p->atomicacketh.original = get_64(from);
		from += IB_ATOMICACKETH_BYTES;
	}
	if (has & IB_HAS_IMMDT) {
		p->immdt = get_32(from);
		from += IB_IMMDT_BYTES;
	}
	if (has & IB_HAS_IETH)
		p->ieth.rkey = get_32(from);
}

size_t ib_decode(const uint8_t *from, size_t bytes, struct ib_packet *packet)
{
	const struct ib_opcode *op;
	size_t pad, rest;

	if (bytes < IB_BTH_BYTES + IB_ICRC_BYTES || bytes % 4 || bytes > UINT16_MAX)
		return 0;
	op = &ib_opcodes[from[0]];
	if (!op->known || from[1] & TVER || bytes < (size_t)op->bytes + IB_ICRC_BYTES)
		return 0;
	pad = from[1] >> PAD_SHIFT & 3;
	rest = bytes - op->bytes - IB_ICRC_BYTES;
	if (pad > rest || (!op->payload && rest))
		return 0;
	get_bth(from, packet);
	packet->bytes = (uint32_t)(rest - pad);
	packet->headers = op->headers;
	get_rest(get_requests(from + IB_BTH_BYTES, op->headers, packet), op->headers,
		 packet);
	return op->bytes;
}

/* The extended headers of an opcode whose bytes end within `captured`. */
static uint16_t headers_within(uint16_t headers, size_t captured)
{
	uint16_t within = 0;

	for (unsigned one = 1; one <= IB_HAS_RESERVED; one <<= 1) {
		if (!(headers & one))
			continue;
		if ((size_t)(BYTES_OF(within | one)) > captured)
			break;
		within |= (uint16_t)one;
	}
	return within;
}

size_t ib_decode_captured(const uint8_t *from, size_t captured, size_t bytes,
			  struct ib_packet *packet)
{
	uint8_t headers[IB_BTH_BYTES + IB_HEADERS_MAX] = { 0 };
	const struct ib_opcode *op;
	size_t around;

	if (captured < IB_BTH_BYTES)
		return 0;
	op = &ib_opcodes[from[0]];
	if (!op->known || from[1] & TVER)
		return 0;
	memcpy(headers, from, captured < op->bytes ? captured : op->bytes);
	get_bth(headers, packet);
	around = (size_t)op->bytes + IB_ICRC_BYTES + (from[1] >> PAD_SHIFT & 3);
	packet->bytes = op->payload && bytes > around ? (uint32_t)(bytes - around) : 0;
	packet->headers = headers_within(op->headers, captured);
	get_rest(get_requests(headers + IB_BTH_BYTES, op->headers, packet), op->headers, packet);
	return op->bytes;
}

/* ---- GRH (8.3) ---- */

void ib_grh_encode(const struct ib_grh *grh, uint8_t to[IB_GRH_BYTES])
{
	to = put_32(to, UINT32_C(6) << 28 | (uint32_t)grh->traffic_class << 20 |
			       (grh->flow_label & 0xfffff));
	to = put_16(to, grh->payload_length);
	*to++ = grh->next_header;
	*to++ = grh->hop_limit;
	memcpy(to, grh->sgid, sizeof(grh->sgid));
	memcpy(to + sizeof(grh->sgid), grh->dgid, sizeof(grh->dgid));
}

bool ib_grh_decode(const uint8_t from[IB_GRH_BYTES], struct ib_grh *grh)
{
	uint32_t first = get_32(from);

	if (first >> 28 != 6)
		return false;
	grh->traffic_class = (uint8_t)(first >> 20);
	grh->flow_label = first & 0xfffff;
	grh->payload_length = get_16(from + 4);
	grh->next_header = from[6];
	grh->hop_limit = from[7];
	memcpy(grh->sgid, from + 8, sizeof(grh->sgid));
	memcpy(grh->dgid, from + 24, sizeof(grh->dgid));
	return true;
}

/* ---- names ---- */

const char *ib_opcode_name(uint8_t opcode)
{
	static const char *const names[IB_OPERATION_MASK + 1] = {
		[IB_SEND_FIRST] = "SEND first", [IB_SEND_MIDDLE] = "SEND middle",
		[IB_SEND_LAST] = "SEND last", [IB_SEND_LAST_IMM] = "SEND last imm",
		[IB_SEND_ONLY] = "SEND", [IB_SEND_ONLY_IMM] = "SEND imm",
		[IB_WRITE_FIRST] = "WRITE first", [IB_WRITE_MIDDLE] = "WRITE middle",
		[IB_WRITE_LAST] = "WRITE last", [IB_WRITE_LAST_IMM] = "WRITE last imm",
		[IB_WRITE_ONLY] = "WRITE", [IB_WRITE_ONLY_IMM] = "WRITE imm",
		[IB_READ_REQUEST] = "READ request", [IB_READ_RESPONSE_FIRST] = "READ response first",
		[IB_READ_RESPONSE_MIDDLE] = "READ response middle",
		[IB_READ_RESPONSE_LAST] = "READ response last",
		[IB_READ_RESPONSE_ONLY] = "READ response", [IB_ACKNOWLEDGE] = "ACK",
		[IB_ATOMIC_ACKNOWLEDGE] = "atomic response", [IB_COMPARE_SWAP] = "compare and swap",
		[IB_FETCH_ADD] = "fetch and add", [IB_SEND_LAST_INVALIDATE] = "SEND last inv",
		[IB_SEND_ONLY_INVALIDATE] = "SEND inv", [IB_FLUSH] = "FLUSH",
		[IB_ATOMIC_WRITE] = "atomic WRITE",
	};
	const char *name = names[opcode & IB_OPERATION_MASK];

	return name ? name : "unknown operation";
}
