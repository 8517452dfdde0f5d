/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTH and extended headers: bytes that were counted by hand from chapter 9, which opcode
 * has which length, round trips of all opcodes, and refusal of what is no packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "util/prng.h"
#include "wire/ib/header.h"

static struct prng prng = { 3 };

#define ICRC 0, 0, 0, 0

static const uint8_t bth[] = {
	0x0a, 0xc0 | 2 << 4, 0x12, 0x34, 0xc0, 0xa1, 0xa2, 0xa3, 0x80, 0xb1, 0xb2, 0xb3,
};

static void bth_and_reth_stand_where_chapter_9_puts_them(void **state)
{
	const struct ib_packet p = {
		.opcode = IB_SERVICE_RC | IB_WRITE_ONLY_IMM, .solicited = true,
		.migrated = true, .fecn = true, .becn = true, .ack_req = true,
		.pkey = 0x1234, .dest_qpn = 0xffa1a2a3, .psn = 0xffb1b2b3, .bytes = 6,
		.reth = { 0x1112131415161718, 0x21222324, 0x31323334 },
		.immdt = 0x41424344,
	};
	const uint8_t want[] = {
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
		0x41, 0x42, 0x43, 0x44,
	};
	uint8_t out[IB_HEADERS_MAX];

	(void)state;
	assert_int_equal(ib_encode(&p, out), 12 + 16 + 4);
	assert_int_equal(out[0], 0x0b);
	assert_memory_equal(out + 1, bth + 1, 11);
	assert_memory_equal(out + 12, want, sizeof(want));
}

static size_t header_of(struct ib_packet p, uint8_t *to)
{
	uint8_t out[IB_HEADERS_MAX];
	size_t bytes = ib_encode(&p, out);

	assert_in_range(bytes, 12, IB_HEADERS_MAX);
	memcpy(to, out + 12, bytes - 12);
	return bytes - 12;
}

static void extended_headers_stand_where_chapter_9_puts_them(void **state)
{
	static const uint8_t atomic[] = {
		0, 0x51, 0x52, 0x53, /* XRCETH */
		1, 2, 3, 4, 5, 6, 7, 8, 0x21, 0x22, 0x23, 0x24,
		0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
	};
	static const uint8_t flush[] = {
		0, 0, 0, 0x13, 1, 2, 3, 4, 5, 6, 7, 8,
		0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	};
	static const uint8_t datagram[] = {
		0x80, 0x01, 0, 0, 0, 0x61, 0x62, 0x63, 0x41, 0x42, 0x43, 0x44,
	};
	static const uint8_t response[] = {
		0x1f, 0x71, 0x72, 0x73, 1, 2, 3, 4, 5, 6, 7, 8,
	};
	static const uint8_t invalidate[] = { 0x81, 0x82, 0x83, 0x84 };
	uint8_t out[IB_HEADERS_MAX];

	(void)state;
	assert_int_equal(header_of((struct ib_packet){
			.opcode = IB_SERVICE_XRC | IB_COMPARE_SWAP,
			.xrceth = { 0x99515253 },
			.atomiceth = { .va = 0x0102030405060708, .rkey = 0x21222324,
				       .swap_add = 0x3132333435363738,
				       .compare = 0x4142434445464748 },
		}, out), sizeof(atomic));
	assert_memory_equal(out, atomic, sizeof(atomic));
	assert_int_equal(header_of((struct ib_packet){
			.opcode = IB_SERVICE_RC | IB_FLUSH,
			.feth = { .placement = 3, .selectivity = IB_FLUSH_REGION },
			.reth = { 0x0102030405060708, 0x21222324, 0x31323334 },
		}, out), sizeof(flush));
	assert_memory_equal(out, flush, sizeof(flush));
	assert_int_equal(header_of((struct ib_packet){
			.opcode = IB_SERVICE_UD | IB_SEND_ONLY_IMM,
			.deth = { 0x80010000, 0x99616263 }, .immdt = 0x41424344,
		}, out), sizeof(datagram));
	assert_memory_equal(out, datagram, sizeof(datagram));
	assert_int_equal(header_of((struct ib_packet){
			.opcode = IB_SERVICE_RC | IB_ATOMIC_ACKNOWLEDGE,
			.aeth = { 0x1f, 0x99717273 },
			.atomicacketh = { 0x0102030405060708 },
		}, out), sizeof(response));
	assert_memory_equal(out, response, sizeof(response));
	assert_int_equal(header_of((struct ib_packet){
			.opcode = IB_SERVICE_RC | IB_SEND_LAST_INVALIDATE,
			.ieth = { 0x81828384 },
		}, out), sizeof(invalidate));
	assert_memory_equal(out, invalidate, sizeof(invalidate));
}

/* Bytes behind the BTH, from table 38 and annexes A14 and A19; -1: reserved. */
static int length_of(unsigned opcode)
{
	static const int8_t rc[32] = {
		0, 0, 0, 4, 0, 4,           /* SEND */
		16, 0, 0, 4, 16, 20,        /* WRITE */
		16, 4, 0, 4, 4, 4, 12,      /* READ, ACK, ATOMIC ACK */
		28, 28, -1, 4, 4,           /* atomics, SEND with invalidate */
		-1, -1, -1, -1, 20, 16,     /* FLUSH, ATOMIC WRITE */
		-1, -1,
	};
	unsigned operation = opcode & 31;
	bool answer = operation >= 0x0d && operation <= 0x12;

	switch (opcode >> 5) {
	case 0: return rc[operation];
	case 1: return operation <= 0x0b ? rc[operation] : -1;
	case 3: return operation == 4 ? 8 : operation == 5 ? 12 : -1;
	case 4: return opcode == 0x81 ? 16 : -1;
	case 5: return rc[operation] < 0 || answer ? rc[operation] : 4 + rc[operation];
	default: return -1;
	}
}

static bool has_payload(unsigned opcode)
{
	unsigned operation = opcode & 31;

	return opcode != 0x81 && operation != 0x0c && operation != 0x1c &&
	       !(operation >= 0x11 && operation <= 0x14);
}

static void each_opcode_has_its_headers_and_no_others(void **state)
{
	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct ib_opcode *op = &ib_opcodes[opcode];
		const struct ib_packet p = { .opcode = (uint8_t)opcode };
		uint8_t out[IB_HEADERS_MAX];
		int want = length_of(opcode);

		assert_int_equal(op->known, want >= 0);
		assert_int_equal(ib_encode(&p, out), want < 0 ? 0 : 12 + want);
		if (want < 0)
			continue;
		assert_int_equal(op->bytes, 12 + want);
		assert_int_equal(op->service, opcode & IB_SERVICE_MASK);
		assert_int_equal(op->payload, has_payload(opcode));
		assert_in_range(op->bytes, 0, IB_HEADERS_MAX);
	}
}

static struct ib_packet random_packet(unsigned opcode)
{
	const unsigned has = ib_opcodes[opcode].headers;
	struct ib_packet p;
	uint64_t bits = prng_next(&prng);

	memset(&p, 0, sizeof(p));
	p.opcode = (uint8_t)opcode;
	p.solicited = bits & 1;
	p.migrated = bits & 2;
	p.fecn = bits & 4;
	p.becn = bits & 8;
	p.ack_req = bits & 16;
	p.pkey = (uint16_t)prng_next(&prng);
	p.dest_qpn = prng_next(&prng) & IB_QPN_MASK;
	p.psn = prng_next(&prng) & IB_QPN_MASK;
	p.headers = (uint16_t)has;
	if (ib_opcodes[opcode].payload)
		p.bytes = (uint32_t)prng_below(&prng, bits & 32 ? 20 : 4097);
	if (has & IB_HAS_XRCETH)
		p.xrceth.srqn = prng_next(&prng) & IB_QPN_MASK;
	if (has & IB_HAS_DETH) {
		p.deth.qkey = (uint32_t)prng_next(&prng);
		p.deth.src_qpn = prng_next(&prng) & IB_QPN_MASK;
	}
	if (has & IB_HAS_FETH) {
		p.feth.placement = prng_next(&prng) & 15;
		p.feth.selectivity = prng_next(&prng) & 3;
	}
	if (has & IB_HAS_RETH) {
		p.reth.va = prng_next(&prng);
		p.reth.rkey = (uint32_t)prng_next(&prng);
		p.reth.length = (uint32_t)prng_next(&prng);
	}
	if (has & IB_HAS_ATOMICETH) {
		p.atomiceth.va = prng_next(&prng);
		p.atomiceth.rkey = (uint32_t)prng_next(&prng);
		p.atomiceth.swap_add = prng_next(&prng);
		p.atomiceth.compare = prng_next(&prng);
	}
	if (has & IB_HAS_AETH) {
		p.aeth.syndrome = (uint8_t)prng_next(&prng);
		p.aeth.msn = prng_next(&prng) & IB_QPN_MASK;
	}
	if (has & IB_HAS_ATOMICACKETH)
		p.atomicacketh.original = prng_next(&prng);
	if (has & IB_HAS_IMMDT)
		p.immdt = (uint32_t)prng_next(&prng);
	if (has & IB_HAS_IETH)
		p.ieth.rkey = (uint32_t)prng_next(&prng);
	return p;
}

static void every_opcode_comes_back_as_it_was(void **state)
{
	static uint8_t bytes[IB_HEADERS_MAX + 4100 + 4];
	uint8_t again[IB_HEADERS_MAX];

	(void)state;
	for (unsigned run = 0; run < 256 * 50; run++) {
		struct ib_packet p = random_packet(run % 256), back;
		size_t header = ib_encode(&p, bytes);

		if (!header)
			continue;
		assert_int_equal(ib_decode(bytes, header + p.bytes + ib_pad(p.bytes) + 4,
					   &back), header);
		assert_int_equal(back.headers, p.headers);
		assert_int_equal(back.bytes, p.bytes);
		/* Where encode puts each field is known from above. */
		assert_int_equal(ib_encode(&back, again), header);
		assert_memory_equal(again, bytes, header);
	}
}

static void reserved_bits_do_not_count(void **state)
{
	/* A CNP with the reserved bits of the BTH and its reserved bytes set. */
	uint8_t packet[12 + 16 + 4] = {
		0x81, 0, 0xff, 0xff, 0x7f, 0, 1, 2, 0x7f, 0, 0, 0,
		[12 ... 27] = 0xee,
	};
	uint8_t datagram[] = {
		0x64, 0, 0xff, 0xff, 0, 0, 1, 2, 0, 0, 0, 0,
		0, 0, 0, 1, 0xff, 0, 0, 7, ICRC,
	};
	struct ib_packet p;

	(void)state;
	assert_int_equal(ib_decode(packet, sizeof(packet), &p), 28);
	assert_true(p.becn && !p.fecn && !p.ack_req);
	assert_int_equal(p.dest_qpn, 0x0102);
	assert_int_equal(p.psn, 0);
	assert_int_equal(p.bytes, 0);
	assert_int_equal(ib_decode(datagram, sizeof(datagram), &p), 20);
	assert_int_equal(p.deth.src_qpn, 7);
}

static void what_is_no_packet_is_refused(void **state)
{
	uint8_t send[12 + 4 + 4] = { 0x04, 3 << 4, 0xff, 0xff }; /* 1 byte and 3 of pad */
	uint8_t ack[12 + 4 + 4 + 4] = { 0x11, 0, 0xff, 0xff };
	struct ib_packet p;

	(void)state;
	assert_int_equal(ib_decode(send, sizeof(send), &p), 12);
	assert_int_equal(p.bytes, 1);
	for (uint8_t version = 1; version < 16; version++) {
		send[1] = version;
		assert_int_equal(ib_decode(send, sizeof(send), &p), 0);
	}
	send[1] = 1 << 4;
	assert_int_equal(ib_decode(send, 12 + 4, &p), 0); /* pad without payload */
	assert_int_equal(ib_decode(ack, 12 + 4 + 4, &p), 16);
	assert_int_equal(ib_decode(ack, sizeof(ack), &p), 0); /* a payload */
	ack[1] = 1 << 4;
	assert_int_equal(ib_decode(ack, 12 + 4 + 4, &p), 0);
	ack[0] = 0x15;
	ack[1] = 0;
	assert_int_equal(ib_decode(ack, 12 + 4 + 4, &p), 0); /* reserved opcode */
}

/* In memory of exactly the length, so that a sanitizer sees what is read beyond. */
static void truncated_packets_are_refused_or_are_shorter(void **state)
{
	uint8_t whole[IB_HEADERS_MAX + 12 + 4];

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		struct ib_packet p = random_packet(opcode);
		size_t header;

		p.bytes = ib_opcodes[opcode].payload ? 9 : 0;
		header = ib_encode(&p, whole);
		if (!header)
			continue;
		for (size_t n = 0; n < header + p.bytes + ib_pad(p.bytes) + 4; n++) {
			uint8_t *data = malloc(n ? n : 1);
			struct ib_packet back;
			bool is_one = n % 4 == 0 && n >= header + ib_pad(p.bytes) + 4;

			assert_non_null(data);
			memcpy(data, whole, n);
			assert_int_equal(ib_decode(data, n, &back), is_one ? header : 0);
			if (is_one)
				assert_int_equal(header + back.bytes + ib_pad(p.bytes) + 4,
						 n);
			free(data);
		}
	}
}

static void grh_stands_where_chapter_8_puts_it(void **state)
{
	const struct ib_grh grh = {
		.traffic_class = 0xab, .flow_label = 0xc1234, .payload_length = 0x5678,
		.next_header = IB_GRH_NEXT_BTH, .hop_limit = 64,
		.sgid = { [0] = 1, [15] = 2 }, .dgid = { [0] = 3, [15] = 4 },
	};
	const uint8_t want[IB_GRH_BYTES] = {
		0x6a, 0xbc, 0x12, 0x34, 0x56, 0x78, 0x1b, 64, 1, [23] = 2, 3, [39] = 4,
	};
	uint8_t out[IB_GRH_BYTES];
	struct ib_grh back;

	(void)state;
	ib_grh_encode(&grh, out);
	assert_memory_equal(out, want, sizeof(want));
	assert_true(ib_grh_decode(out, &back));
	memset(out, 0, sizeof(out));
	ib_grh_encode(&back, out);
	assert_memory_equal(out, want, sizeof(want));
	out[0] = 0x4a;
	assert_false(ib_grh_decode(out, &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bth_and_reth_stand_where_chapter_9_puts_them),
		cmocka_unit_test(extended_headers_stand_where_chapter_9_puts_them),
		cmocka_unit_test(each_opcode_has_its_headers_and_no_others),
		cmocka_unit_test(every_opcode_comes_back_as_it_was),
		cmocka_unit_test(reserved_bits_do_not_count),
		cmocka_unit_test(what_is_no_packet_is_refused),
		cmocka_unit_test(truncated_packets_are_refused_or_are_shorter),
		cmocka_unit_test(grh_stands_where_chapter_8_puts_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
