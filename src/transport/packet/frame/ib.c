/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts between frames and RoCE v2 packets; see ib.h. */
#include "transport/packet/frame/ib.h"

#include <endian.h>

#include "wire/ib/header.h"

#define PKEY_NUMBER 0x7fff /* without the bit for full members (10.9) */
#define SYNDROME_BITS 0x7f /* bit 7 is reserved */
#define SYNDROME_RESERVED 0x40
#define ATOMIC_BYTES 8
#define PLACEMENT_BITS 0xf
#define SELECTIVITY_SHIFT 4

enum { ONLY = RC_FIRST | RC_LAST };

static const uint8_t services[] = {
	[PACKET_RC] = IB_SERVICE_RC,
	[PACKET_UC] = IB_SERVICE_UC,
	[PACKET_UD] = IB_SERVICE_UD,
	[PACKET_XRC] = IB_SERVICE_XRC,
};

/* The engine's operation and flags for each operation of the wire. */
static const struct {
	uint8_t op, flags;
} engine_ops[IB_OPERATION_MASK + 1] = {
	[IB_SEND_FIRST] = { RC_SEND, RC_FIRST },
	[IB_SEND_MIDDLE] = { RC_SEND, 0 },
	[IB_SEND_LAST] = { RC_SEND, RC_LAST },
	[IB_SEND_LAST_IMM] = { RC_SEND, RC_LAST | RC_IMM },
	[IB_SEND_ONLY] = { RC_SEND, ONLY },
	[IB_SEND_ONLY_IMM] = { RC_SEND, ONLY | RC_IMM },
	[IB_SEND_LAST_INVALIDATE] = { RC_SEND, RC_LAST | RC_INVALIDATE },
	[IB_SEND_ONLY_INVALIDATE] = { RC_SEND, ONLY | RC_INVALIDATE },
	[IB_WRITE_FIRST] = { RC_WRITE, RC_FIRST },
	[IB_WRITE_MIDDLE] = { RC_WRITE, 0 },
	[IB_WRITE_LAST] = { RC_WRITE, RC_LAST },
	[IB_WRITE_LAST_IMM] = { RC_WRITE, RC_LAST | RC_IMM },
	[IB_WRITE_ONLY] = { RC_WRITE, ONLY },
	[IB_WRITE_ONLY_IMM] = { RC_WRITE, ONLY | RC_IMM },
	[IB_ATOMIC_WRITE] = { RC_WRITE, ONLY | RC_WORD },
	[IB_READ_REQUEST] = { RC_READ, ONLY },
	[IB_READ_RESPONSE_FIRST] = { RC_READ_RESPONSE, RC_FIRST },
	[IB_READ_RESPONSE_MIDDLE] = { RC_READ_RESPONSE, 0 },
	[IB_READ_RESPONSE_LAST] = { RC_READ_RESPONSE, RC_LAST },
	[IB_READ_RESPONSE_ONLY] = { RC_READ_RESPONSE, ONLY },
	[IB_ACKNOWLEDGE] = { RC_ACK, ONLY },
	[IB_ATOMIC_ACKNOWLEDGE] = { RC_ATOMIC_RESPONSE, ONLY },
	[IB_COMPARE_SWAP] = { RC_COMPARE_SWAP, ONLY },
	[IB_FETCH_ADD] = { RC_FETCH_ADD, ONLY },
	[IB_FLUSH] = { RC_FLUSH, ONLY },
};

/* ---- to bytes ---- */

/* Index: RC_FIRST | RC_LAST. */
static const uint8_t sends[] = {
	IB_SEND_MIDDLE, IB_SEND_FIRST, IB_SEND_LAST, IB_SEND_ONLY,
};
static const uint8_t writes[] = {
	IB_WRITE_MIDDLE, IB_WRITE_FIRST, IB_WRITE_LAST, IB_WRITE_ONLY,
};
static const uint8_t read_responses[] = {
	IB_READ_RESPONSE_MIDDLE, IB_READ_RESPONSE_FIRST,
	IB_READ_RESPONSE_LAST, IB_READ_RESPONSE_ONLY,
};

static uint8_t operation_of(const struct rc_packet *p)
{
	unsigned part = p->flags & ONLY;

	/* Only a last packet has an immediate or a key; the opcode with an immediate is
	 * that without one, plus one. */
	switch ((enum rc_op)p->op) {
	case RC_SEND:
		if ((p->flags & RC_INVALIDATE) && (part & RC_LAST))
			return part == ONLY ? IB_SEND_ONLY_INVALIDATE :
					      IB_SEND_LAST_INVALIDATE;
		return (uint8_t)(sends[part] +
				 ((p->flags & RC_IMM) && (part & RC_LAST)));
	case RC_WRITE:
		if (p->flags & RC_WORD)
			return IB_ATOMIC_WRITE;
		return (uint8_t)(writes[part] +
				 ((p->flags & RC_IMM) && (part & RC_LAST)));
	case RC_READ: return IB_READ_REQUEST;
	case RC_COMPARE_SWAP: return IB_COMPARE_SWAP;
	case RC_FETCH_ADD: return IB_FETCH_ADD;
	case RC_FLUSH: return IB_FLUSH;
	case RC_READ_RESPONSE: return read_responses[part];
	case RC_ATOMIC_RESPONSE: return IB_ATOMIC_ACKNOWLEDGE;
	case RC_ACK:
	case RC_CNP: break; /* its opcode belongs to no service */
	}
	return IB_ACKNOWLEDGE;
}

/* 9.2: only a packet that completes a receive asks for a solicited event. */
static bool may_solicit(const struct rc_packet *p)
{
	return p->op == RC_SEND || (p->flags & RC_IMM);
}

size_t packet_ib_encode(const struct packet_frame *f, uint8_t to[PACKET_HEADER_BYTES])
{
	const struct rc_packet *rc = &f->rc;
	struct ib_packet p = {
		.opcode = rc->op == RC_CNP ? IB_OPCODE_CNP :
					     services[f->service] | operation_of(rc),
		.solicited = (rc->flags & RC_SOLICITED) && may_solicit(rc),
		.migrated = true,
		.becn = rc->op == RC_CNP,
		.ack_req = rc->flags & RC_ACK_REQ,
		.pkey = IB_PKEY_DEFAULT,
		.dest_qpn = f->dst_qpn,
		.psn = rc->psn,
		.bytes = rc->bytes,
		.xrceth = { f->srqn },
		.deth = { .qkey = f->qkey, .src_qpn = f->src_qpn },
		.feth = { .placement = rc->flush & PLACEMENT_BITS,
			  .selectivity = rc->flush >> SELECTIVITY_SHIFT },
		.reth = { .va = rc->remote_addr, .rkey = rc->rkey, .length = rc->length },
		.atomiceth = { .va = rc->remote_addr, .rkey = rc->rkey },
		.aeth = { .syndrome = rc->syndrome, .msn = rc->msn },
		.atomicacketh = { rc->compare_add },
		.immdt = be32toh(rc->imm),
		.ieth = { rc->imm },
	};

	if (rc->op == RC_FETCH_ADD) {
		p.atomiceth.swap_add = rc->compare_add;
	} else {
		p.atomiceth.swap_add = rc->swap;
		p.atomiceth.compare = rc->compare_add;
	}
	return ib_encode(&p, to);
}

_Static_assert(IB_HEADERS_MAX <= PACKET_HEADER_BYTES, "has room");

/* ---- from bytes ---- */

static void take_atomic(const struct ib_packet *p, struct rc_packet *rc)
{
	rc->remote_addr = p->atomiceth.va;
	rc->rkey = p->atomiceth.rkey;
	rc->length = ATOMIC_BYTES;
	if (rc->op == RC_FETCH_ADD) {
		rc->compare_add = p->atomiceth.swap_add;
	} else {
		rc->compare_add = p->atomiceth.compare;
		rc->swap = p->atomiceth.swap_add;
	}
}

/* Takes the fields of those extended headers that the packet has. */
static void take_headers(const struct ib_packet *p, struct packet_frame *f)
{
	if (p->headers & IB_HAS_XRCETH)
		f->srqn = p->xrceth.srqn;
	if (p->headers & IB_HAS_DETH) {
		f->qkey = p->deth.qkey;
		f->src_qpn = p->deth.src_qpn;
	}
	if (p->headers & IB_HAS_FETH)
		f->rc.flush = (uint8_t)(p->feth.placement |
					p->feth.selectivity << SELECTIVITY_SHIFT);
	if (p->headers & IB_HAS_RETH) {
		f->rc.remote_addr = p->reth.va;
		f->rc.rkey = p->reth.rkey;
		f->rc.length = p->reth.length;
	}
	if (p->headers & IB_HAS_ATOMICETH)
		take_atomic(p, &f->rc);
	if (p->headers & IB_HAS_AETH) {
		f->rc.syndrome = p->aeth.syndrome & SYNDROME_BITS;
		f->rc.msn = p->aeth.msn;
	}
	if (p->headers & IB_HAS_ATOMICACKETH)
		f->rc.compare_add = p->atomicacketh.original;
	if (p->headers & IB_HAS_IMMDT)
		f->rc.imm = htobe32(p->immdt);
	if (p->headers & IB_HAS_IETH)
		f->rc.imm = p->ieth.rkey;
}

static bool find_service(uint8_t opcode, uint8_t *service)
{
	for (unsigned i = 0; i < sizeof(services); i++)
		if (services[i] == (opcode & IB_SERVICE_MASK)) {
			*service = (uint8_t)i;
			return true;
		}
	return false;
}

static inline size_t decode(const uint8_t *from, size_t bytes, bool any_partition,
			    struct packet_frame *f)
{
	struct ib_packet p;
	size_t header = ib_decode(from, bytes, &p);
	uint8_t operation, service;

	if (!header || (!any_partition && (p.pkey & PKEY_NUMBER) != PKEY_NUMBER))
		return 0;
	if (p.opcode == IB_OPCODE_CNP) {
		*f = (struct packet_frame){
			.dst_qpn = p.dest_qpn, .rc = { .op = RC_CNP, .flags = ONLY },
		};
		return header;
	}
	if (!find_service(p.opcode, &service) || p.bytes > PACKET_MTU ||
	    ((p.headers & IB_HAS_AETH) &&
	     (p.aeth.syndrome & RC_SYN_KIND) == SYNDROME_RESERVED))
		return 0;
	operation = p.opcode & IB_OPERATION_MASK;
	*f = (struct packet_frame){
		.service = service,
		.dst_qpn = p.dest_qpn,
		.rc = {
			.op = engine_ops[operation].op,
			.flags = (uint8_t)(engine_ops[operation].flags |
					   (p.ack_req ? RC_ACK_REQ : 0) |
					   (p.solicited ? RC_SOLICITED : 0)),
			.psn = p.psn,
			.bytes = p.bytes,
		},
	};
	take_headers(&p, f);
	return header;
}

size_t packet_ib_decode(const uint8_t *from, size_t bytes, struct packet_frame *f)
{
	return decode(from, bytes, false, f);
}

size_t packet_ib_decode_any(const uint8_t *from, size_t bytes, struct packet_frame *f)
{
	return decode(from, bytes, true, f);
}
