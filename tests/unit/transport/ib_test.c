/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames as RoCE v2 packets: what the engine sends has the opcode and the headers of
 * chapter 9, comes back as it was except for what ib.h names, and what arrives and the
 * engine cannot have is dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "transport/packet/frame/ib.h"
#include "wire/ib/header.h"

#define ONLY (RC_FIRST | RC_LAST)

/* Encodes, adds payload, pad and room for the ICRC; how many bytes that are. */
static size_t packet_of(const struct packet_frame *f, uint8_t *to)
{
	size_t header = packet_ib_encode(f, to);

	assert_in_range(header, IB_BTH_BYTES, IB_HEADERS_MAX);
	memset(to + header, 0x77, f->rc.bytes);
	memset(to + header + f->rc.bytes, 0, ib_pad(f->rc.bytes) + IB_ICRC_BYTES);
	return header + f->rc.bytes + ib_pad(f->rc.bytes) + IB_ICRC_BYTES;
}

static const struct rc_packet each = {
	.psn = 0xa1a2a3, .msn = 0xb1b2b3, .syndrome = RC_SYN_ACK | 31,
	.rkey = 0x31323334, .length = 0x41424344, .remote_addr = 0x5152535455565758,
	.compare_add = 0x6162636465666768, .swap = 0x7172737475767778,
	.flush = RC_FLUSH_PERSISTENT | RC_FLUSH_REGION,
};

/* What arrives of a frame with all fields set. */
static struct packet_frame remains_of(const struct packet_frame *f, unsigned headers)
{
	struct packet_frame r = {
		.service = f->service, .dst_qpn = f->dst_qpn,
		.rc = { .op = f->rc.op, .flags = f->rc.flags, .psn = f->rc.psn,
			.bytes = f->rc.bytes },
	};

	if (headers & IB_HAS_XRCETH)
		r.srqn = f->srqn;
	if (headers & IB_HAS_DETH) {
		r.src_qpn = f->src_qpn;
		r.qkey = f->qkey;
	}
	if (headers & (IB_HAS_RETH | IB_HAS_ATOMICETH)) {
		r.rc.rkey = f->rc.rkey;
		r.rc.remote_addr = f->rc.remote_addr;
		r.rc.length = headers & IB_HAS_RETH ? f->rc.length : 8;
	}
	if (headers & IB_HAS_FETH)
		r.rc.flush = f->rc.flush;
	if (headers & (IB_HAS_ATOMICETH | IB_HAS_ATOMICACKETH))
		r.rc.compare_add = f->rc.compare_add;
	if ((headers & IB_HAS_ATOMICETH) && f->rc.op == RC_COMPARE_SWAP)
		r.rc.swap = f->rc.swap;
	if (headers & IB_HAS_AETH) {
		r.rc.syndrome = f->rc.syndrome;
		r.rc.msn = f->rc.msn;
	}
	if (headers & (IB_HAS_IMMDT | IB_HAS_IETH))
		r.rc.imm = f->rc.imm;
	return r;
}

static void are_equal(const struct packet_frame *a, const struct packet_frame *b)
{
	assert_int_equal(a->rc.op, b->rc.op);
	assert_int_equal(a->rc.flags, b->rc.flags);
	assert_int_equal(a->rc.syndrome, b->rc.syndrome);
	assert_int_equal(a->rc.flush, b->rc.flush);
	assert_int_equal(a->rc.psn, b->rc.psn);
	assert_int_equal(a->rc.msn, b->rc.msn);
	assert_int_equal(a->rc.bytes, b->rc.bytes);
	assert_int_equal(a->rc.imm, b->rc.imm);
	assert_int_equal(a->rc.rkey, b->rc.rkey);
	assert_int_equal(a->rc.length, b->rc.length);
	assert_int_equal(a->rc.remote_addr, b->rc.remote_addr);
	assert_int_equal(a->rc.compare_add, b->rc.compare_add);
	assert_int_equal(a->rc.swap, b->rc.swap);
	assert_int_equal(a->service, b->service);
	assert_int_equal(a->dst_qpn, b->dst_qpn);
	assert_int_equal(a->src_qpn, b->src_qpn);
	assert_int_equal(a->srqn, b->srqn);
	assert_int_equal(a->qkey, b->qkey);
	assert_int_equal(a->ipv4, b->ipv4);
	assert_memory_equal(a->grh, b->grh, sizeof(a->grh));
}

struct kind {
	uint8_t op, flags, operation;
	uint32_t bytes;
	uint8_t services; /* bits of enum packet_service */
};

#define RC_XRC (1 << PACKET_RC | 1 << PACKET_XRC)
#define CONNECTED (RC_XRC | 1 << PACKET_UC)

/* All that the engine sends. */
static const struct kind kinds[] = {
	{ RC_SEND, RC_FIRST, IB_SEND_FIRST, 1024, CONNECTED },
	{ RC_SEND, 0, IB_SEND_MIDDLE, 1024, CONNECTED },
	{ RC_SEND, RC_LAST, IB_SEND_LAST, 5, CONNECTED },
	{ RC_SEND, RC_LAST | RC_IMM, IB_SEND_LAST_IMM, 6, CONNECTED },
	{ RC_SEND, RC_LAST | RC_INVALIDATE, IB_SEND_LAST_INVALIDATE, 7, RC_XRC },
	{ RC_SEND, ONLY, IB_SEND_ONLY, 0, CONNECTED | 1 << PACKET_UD },
	{ RC_SEND, ONLY | RC_SOLICITED, IB_SEND_ONLY, 9, CONNECTED | 1 << PACKET_UD },
	{ RC_SEND, ONLY | RC_IMM, IB_SEND_ONLY_IMM, 10, CONNECTED | 1 << PACKET_UD },
	{ RC_SEND, ONLY | RC_INVALIDATE, IB_SEND_ONLY_INVALIDATE, 11, RC_XRC },
	{ RC_WRITE, RC_FIRST, IB_WRITE_FIRST, 4096, CONNECTED },
	{ RC_WRITE, 0, IB_WRITE_MIDDLE, 4096, CONNECTED },
	{ RC_WRITE, RC_LAST | RC_ACK_REQ, IB_WRITE_LAST, 1, CONNECTED },
	{ RC_WRITE, RC_LAST | RC_IMM, IB_WRITE_LAST_IMM, 2, CONNECTED },
	{ RC_WRITE, ONLY, IB_WRITE_ONLY, 0, CONNECTED },
	{ RC_WRITE, ONLY | RC_IMM | RC_SOLICITED, IB_WRITE_ONLY_IMM, 3, CONNECTED },
	{ RC_WRITE, ONLY | RC_WORD, IB_ATOMIC_WRITE, 8, RC_XRC },
	{ RC_READ, ONLY | RC_ACK_REQ, IB_READ_REQUEST, 0, RC_XRC },
	{ RC_COMPARE_SWAP, ONLY | RC_ACK_REQ, IB_COMPARE_SWAP, 0, RC_XRC },
	{ RC_FETCH_ADD, ONLY | RC_ACK_REQ, IB_FETCH_ADD, 0, RC_XRC },
	{ RC_FLUSH, ONLY | RC_ACK_REQ, IB_FLUSH, 0, RC_XRC },
	{ RC_ACK, ONLY, IB_ACKNOWLEDGE, 0, RC_XRC },
	{ RC_READ_RESPONSE, RC_FIRST, IB_READ_RESPONSE_FIRST, 256, RC_XRC },
	{ RC_READ_RESPONSE, 0, IB_READ_RESPONSE_MIDDLE, 256, RC_XRC },
	{ RC_READ_RESPONSE, RC_LAST, IB_READ_RESPONSE_LAST, 3, RC_XRC },
	{ RC_READ_RESPONSE, ONLY, IB_READ_RESPONSE_ONLY, 0, RC_XRC },
	{ RC_ATOMIC_RESPONSE, ONLY, IB_ATOMIC_ACKNOWLEDGE, 0, RC_XRC },
};

static void comes_back(const struct kind *k, uint8_t service)
{
	static const uint8_t upper[] = { [PACKET_RC] = 0x00, [PACKET_UC] = 0x20,
					 [PACKET_UD] = 0x60, [PACKET_XRC] = 0xa0 };
	struct packet_frame f = {
		.rc = each, .service = service, .dst_qpn = 0x010203,
		.src_qpn = 0x040506, .srqn = 0x070809, .qkey = 0x81828384,
		.ipv4 = true, .grh = { 1, 2, 3 },
	}, back, want;
	uint8_t bytes[PACKET_HEADER_BYTES + 4096 + 8];
	size_t size, header;

	f.rc.op = k->op;
	f.rc.flags = k->flags;
	f.rc.bytes = k->bytes;
	f.rc.imm = k->flags & RC_IMM ? htonl(0x91929394) : 0x91929394;
	size = packet_of(&f, bytes);
	assert_int_equal(bytes[0], upper[service] | k->operation);
	/* MigReq, pad count; P_Key. */
	assert_int_equal(bytes[1] & 0x7f, 0x40 | ((4 - k->bytes % 4) % 4) << 4);
	assert_int_equal(bytes[2] << 8 | bytes[3], 0xffff);
	memset(&back, 0xee, sizeof(back));
	header = packet_ib_decode(bytes, size, &back);
	assert_int_equal(header, ib_opcodes[bytes[0]].bytes);
	assert_int_equal(header + k->bytes + (4 - k->bytes % 4) % 4 + 4, size);
	want = remains_of(&f, ib_opcodes[bytes[0]].headers);
	are_equal(&back, &want);
	if (k->flags & RC_IMM)
		assert_memory_equal(bytes + header - 4,
				    ((uint8_t[]){ 0x91, 0x92, 0x93, 0x94 }), 4);
}

static void what_the_engine_sends_comes_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (uint8_t service = PACKET_RC; service <= PACKET_XRC; service++)
			if (kinds[i].services & 1 << service)
				comes_back(&kinds[i], service);
}

/* 9.3: for both atomics the first operand is what is written or added. */
static void operands_of_atomics_have_their_places(void **state)
{
	struct packet_frame f = { .rc = each };
	uint8_t bytes[PACKET_HEADER_BYTES];
	struct ib_packet p;

	(void)state;
	f.rc.op = RC_FETCH_ADD;
	assert_int_equal(ib_decode(bytes, packet_of(&f, bytes), &p), 40);
	assert_int_equal(p.atomiceth.swap_add, each.compare_add);
	assert_int_equal(p.atomiceth.compare, 0);
	f.rc.op = RC_COMPARE_SWAP;
	assert_int_equal(ib_decode(bytes, packet_of(&f, bytes), &p), 40);
	assert_int_equal(p.atomiceth.swap_add, each.swap);
	assert_int_equal(p.atomiceth.compare, each.compare_add);
}

static void a_write_that_completes_nothing_solicits_nothing(void **state)
{
	struct packet_frame f = {
		.rc = { .op = RC_WRITE, .flags = ONLY | RC_SOLICITED },
	};
	uint8_t bytes[PACKET_HEADER_BYTES];

	(void)state;
	packet_ib_encode(&f, bytes);
	assert_false(bytes[1] & 0x80);
	f.rc.flags |= RC_IMM;
	packet_ib_encode(&f, bytes);
	assert_true(bytes[1] & 0x80);
}

static void a_service_without_the_operation_has_no_packet(void **state)
{
	const struct packet_frame f = { .service = PACKET_UC,
					.rc = { .op = RC_READ, .flags = ONLY } };
	uint8_t bytes[PACKET_HEADER_BYTES];

	(void)state;
	assert_int_equal(packet_ib_encode(&f, bytes), 0);
}

static size_t header_of(struct ib_packet p, uint8_t *to, struct packet_frame *f)
{
	size_t header = ib_encode(&p, to), pad = ib_pad(p.bytes);

	memset(to + header, 0, p.bytes + pad + IB_ICRC_BYTES);
	return packet_ib_decode(to, header + p.bytes + pad + IB_ICRC_BYTES, f);
}

static void what_is_for_no_queue_pair_is_dropped(void **state)
{
	static uint8_t bytes[IB_HEADERS_MAX + 4200];
	struct packet_frame f;
	struct ib_packet p = { .opcode = IB_SERVICE_RC | IB_ACKNOWLEDGE, .pkey = 0xffff };

	(void)state;
	assert_int_equal(header_of(p, bytes, &f), 16);
	p.pkey = 0x7fff; /* a limited member of the same partition */
	assert_int_equal(header_of(p, bytes, &f), 16);
	p.pkey = 0xfffe;
	assert_int_equal(header_of(p, bytes, &f), 0);
	p.pkey = 0xffff;
	p.aeth.syndrome = 0x80 | RC_SYN_RNR | 5; /* a reserved bit */
	assert_int_equal(header_of(p, bytes, &f), 16);
	assert_int_equal(f.rc.syndrome, RC_SYN_RNR | 5);
	p.aeth.syndrome = 0x40;
	assert_int_equal(header_of(p, bytes, &f), 0);
	p = (struct ib_packet){ .opcode = IB_SEND_ONLY, .pkey = 0xffff, .bytes = 4096 };
	assert_int_equal(header_of(p, bytes, &f), 12);
	p.bytes = 4097;
	assert_int_equal(header_of(p, bytes, &f), 0);
}

static void a_cnp_is_for_a_queue_pair_of_any_service(void **state)
{
	uint8_t bytes[PACKET_HEADER_BYTES + IB_ICRC_BYTES];
	struct packet_frame f = {
		.rc = { .op = RC_CNP, .flags = ONLY }, .dst_qpn = 0x010203,
		.src_qpn = 0x040506, .service = PACKET_UC,
	}, back;

	(void)state;
	assert_int_equal(packet_of(&f, bytes), 12 + 16 + IB_ICRC_BYTES);
	assert_int_equal(bytes[0], 0x81);
	assert_int_equal(bytes[4], 0x40); /* BECN */
	assert_int_equal(packet_ib_decode(bytes, 12 + 16 + IB_ICRC_BYTES, &back), 12 + 16);
	f.src_qpn = 0;
	f.service = PACKET_RC;
	are_equal(&back, &f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_engine_sends_comes_back),
		cmocka_unit_test(operands_of_atomics_have_their_places),
		cmocka_unit_test(a_write_that_completes_nothing_solicits_nothing),
		cmocka_unit_test(a_service_without_the_operation_has_no_packet),
		cmocka_unit_test(what_is_for_no_queue_pair_is_dropped),
		cmocka_unit_test(a_cnp_is_for_a_queue_pair_of_any_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
