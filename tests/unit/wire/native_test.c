/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of an InfiniBand link: the CRCs by the specification's example and by a shift
 * register, headers, flow control packets, and why bytes are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "util/prng.h"
#include "wire/ib/native.h"

/* The packet of the examples in 7.8 of the specification, up to its ICRC: RDMA WRITE Only of 14
 * bytes. */
static const uint8_t example[52] = {
	0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1,
	0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2,
	0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72,
	0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00,
};
static const uint8_t example_icrc[4] = { 0x96, 0x25, 0xb7, 0x5a };

static size_t example_packet(uint8_t *to)
{
	memcpy(to, example, sizeof(example));
	memcpy(to + sizeof(example), example_icrc, sizeof(example_icrc));
	ib_native_set_vcrc(to, sizeof(example) + 6);
	return sizeof(example) + 6;
}

/* ---- CRCs ---- */

static void icrc_is_that_of_the_specifications_example(void **state)
{
	uint8_t icrc[4];

	(void)state;
	assert_true(ib_native_icrc(example, sizeof(example), icrc));
	assert_memory_equal(icrc, example_icrc, 4);
}

/* A register that is shifted once for each bit, the first bit of a byte being its lowest one. */
static uint16_t vcrc_by_bits(const uint8_t *data, size_t bytes)
{
	unsigned reg = 0xffff, sent = 0;

	for (size_t i = 0; i < bytes * 8; i++) {
		const unsigned bit = data[i / 8] >> i % 8 & 1;

		reg = reg << 1 ^ ((reg >> 15 ^ bit) & 1 ? 0x1100b : 0);
		reg &= 0xffff;
	}
	for (unsigned i = 0; i < 16; i++) /* x^15 goes first, in the lowest bit */
		sent |= (~reg >> (15 - i) & 1) << i;
	return (uint16_t)sent;
}

static void vcrc_is_that_of_a_shift_register(void **state)
{
	struct prng random = prng_from(1);
	uint8_t data[300];

	(void)state;
	for (unsigned len = 0; len < sizeof(data); len++) {
		for (unsigned i = 0; i < len; i++)
			data[i] = (uint8_t)prng_next(&random);
		assert_int_equal(ib_vcrc(data, len), vcrc_by_bits(data, len));
	}
}

static void icrc_leaves_out_what_switches_change(void **state)
{
	uint8_t packet[sizeof(example)], icrc[4];

	(void)state;
	for (unsigned bit = 0; bit < sizeof(packet) * 8; bit++) {
		const bool vl = bit < 4, marks = bit / 8 == 8 + 4;
		/* LNH says what follows: another example. */
		if (bit == 14 || bit == 15)
			continue;
		memcpy(packet, example, sizeof(packet));
		packet[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		assert_true(ib_native_icrc(packet, sizeof(packet), icrc));
		assert_int_equal(!memcmp(icrc, example_icrc, 4), vl || marks);
	}
}

static struct ib_native datagram(bool grh)
{
	return (struct ib_native){
		.lrh = { .vl = 2, .sl = 3, .dlid = 5, .slid = 7 },
		.has_grh = grh, .has_bth = true,
		.grh = { .traffic_class = 1, .flow_label = 2, .hop_limit = 64,
			 .sgid = { 0xfe, 0x80 }, .dgid = { 0xfe, 0x80, [15] = 1 } },
		.packet = { .opcode = IB_SERVICE_UD | IB_SEND_ONLY, .pkey = 0xffff, .migrated = true,
			    .dest_qpn = 1, .psn = 9, .bytes = 5, .deth = { 0x80010000, 1 } },
	};
}

static size_t make(const struct ib_native *n, uint8_t packet[IB_NATIVE_BYTES_MAX])
{
	size_t headers = ib_native_encode(n, packet);

	assert_true(headers > 0);
	memset(packet + headers, 0xa5, n->packet.bytes);
	return ib_native_finish(n, headers, packet);
}

static void with_a_grh_the_lrh_does_not_count(void **state)
{
	struct ib_native n = datagram(true);
	uint8_t packet[IB_NATIVE_BYTES_MAX], before[4], icrc[4];
	const size_t bytes = make(&n, packet) - 6;

	(void)state;
	assert_true(ib_native_icrc(packet, bytes, before));
	for (unsigned bit = 0; bit < bytes * 8; bit++) {
		const unsigned grh = bit - 64;
		const bool varies = bit < 64 || (grh >= 4 && grh < 32) || grh / 8 == 7 ||
				    bit / 8 == 48 + 4;

		if (bit == 14 || bit == 15)
			continue;
		packet[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		assert_true(ib_native_icrc(packet, bytes, icrc));
		assert_int_equal(!memcmp(icrc, before, 4), varies);
		packet[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
	}
}

static void packets_without_bth_or_too_short_have_no_icrc(void **state)
{
	uint8_t packet[sizeof(example)], icrc[4];

	(void)state;
	memcpy(packet, example, sizeof(packet));
	assert_false(ib_native_icrc(packet, 7, icrc));
	assert_false(ib_native_icrc(packet, 19, icrc));
	assert_true(ib_native_icrc(packet, 20, icrc));
	packet[1] |= IB_LNH_GLOBAL;
	assert_false(ib_native_icrc(packet, 51, icrc));
	packet[1] = IB_LNH_IP;
	assert_false(ib_native_icrc(packet, sizeof(packet), icrc));
}

/* ---- flow control packets ---- */

static void flow_control_packet_stands_where_7_9_puts_it(void **state)
{
	const struct ib_flow flow = { .op = IB_FLOW_INIT, .vl = 7, .fctbs = 0xabc, .fccl = 0x123 };
	struct ib_flow back;
	uint8_t out[IB_FLOW_BYTES];

	(void)state;
	ib_flow_encode(&flow, out);
	assert_memory_equal(out, ((uint8_t[]){ 0x1a, 0xbc, 0x71, 0x23 }), 4);
	assert_int_equal(out[4] | out[5] << 8, vcrc_by_bits(out, 4));
	assert_true(ib_flow_decode(out, &back));
	assert_memory_equal(&back, &flow, sizeof(flow));
	for (unsigned bit = 0; bit < sizeof(out) * 8; bit++) {
		out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(ib_flow_decode(out, &back));
		out[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void reserved_operations_and_vl_15_are_refused(void **state)
{
	uint8_t out[IB_FLOW_BYTES];
	struct ib_flow back;

	(void)state;
	ib_flow_encode(&(struct ib_flow){ .op = 2 }, out);
	assert_false(ib_flow_decode(out, &back));
	ib_flow_encode(&(struct ib_flow){ .vl = 15 }, out);
	assert_false(ib_flow_decode(out, &back));
}

/* ---- whole packets ---- */

static void the_example_is_read(void **state)
{
	uint8_t packet[64];
	const size_t bytes = example_packet(packet);
	struct ib_native n;

	(void)state;
	assert_int_equal(ib_native_decode(packet, bytes, IB_CHECK_ALL, &n), IB_NATIVE_GOOD);
	assert_int_equal(n.lrh.vl, 7);
	assert_int_equal(n.lrh.sl, 1);
	assert_int_equal(n.lrh.dlid, 0x375c);
	assert_int_equal(n.lrh.slid, 0x17d2);
	assert_int_equal(n.lrh.words, 14);
	assert_false(n.has_grh);
	assert_int_equal(n.packet.dest_qpn, 0x87b1b3);
	assert_int_equal(n.packet.psn, 0x0dec2a);
	assert_int_equal(n.packet.reth.length, 14);
	assert_int_equal(n.payload_at, 36);
	assert_int_equal(n.payload_bytes, 14);
}

static void what_is_made_is_read(void **state)
{
	uint8_t packet[IB_NATIVE_BYTES_MAX], again[IB_NATIVE_BYTES_MAX];
	struct ib_native back;

	(void)state;
	for (unsigned bytes = 0; bytes <= IB_MTU_MAX; bytes += bytes < 9 ? 1 : 511)
		for (unsigned grh = 0; grh < 2; grh++) {
			struct ib_native n = datagram(grh);
			size_t len, headers;

			n.packet.bytes = bytes;
			len = make(&n, packet);
			assert_int_equal(ib_native_decode(packet, len, IB_CHECK_ALL, &back),
					 IB_NATIVE_GOOD);
			assert_int_equal(back.has_grh, grh);
			assert_int_equal(back.payload_bytes, bytes);
			assert_int_equal(packet[back.payload_at], bytes ? 0xa5 : packet[len - 6]);
			headers = ib_native_encode(&back, again);
			assert_int_equal(headers, back.payload_at);
			memset(again + headers, 0xa5, bytes);
			assert_int_equal(ib_native_finish(&back, headers, again), len);
			assert_memory_equal(again, packet, len);
		}
}

static void packets_that_would_be_too_long_are_not_made(void **state)
{
	struct ib_native n = datagram(true);
	uint8_t packet[IB_NATIVE_BYTES_MAX];

	(void)state;
	n.packet.bytes = IB_MTU_MAX + 1;
	assert_int_equal(ib_native_encode(&n, packet), 0);
	n = datagram(false);
	n.packet.opcode = 0xff;
	assert_int_equal(ib_native_encode(&n, packet), 0);
	n.packet.opcode = IB_ACKNOWLEDGE; /* has no payload */
	assert_int_equal(ib_native_encode(&n, packet), 0);
	n.packet.bytes = 0;
	assert_int_equal(ib_native_encode(&n, packet), 8 + 16);
}

static void a_switch_may_change_the_lane_and_the_marks(void **state)
{
	struct ib_native n = datagram(false), back;
	uint8_t packet[IB_NATIVE_BYTES_MAX];
	const size_t bytes = make(&n, packet);

	(void)state;
	packet[0] = 0x50;
	packet[8 + 4] |= 0x80;
	assert_int_equal(ib_native_decode(packet, bytes, IB_CHECK_ALL, &back), IB_NATIVE_VCRC);
	ib_native_set_vcrc(packet, bytes);
	assert_int_equal(ib_native_decode(packet, bytes, IB_CHECK_ALL, &back), IB_NATIVE_GOOD);
	assert_int_equal(back.lrh.vl, 5);
	assert_true(back.packet.fecn);
}

/* Each changes one thing of a good packet; the VCRC is right again afterwards, the ICRC not. */
static void each_fault_has_its_name(void **state)
{
	static const struct {
		bool grh;
		uint8_t at, value;
		enum ib_native_fault fault;
	} faults[] = {
		{ false, 0, 0x21, IB_NATIVE_VERSION },
		{ false, 5, 1, IB_NATIVE_LENGTH },
		{ false, 5, 200, IB_NATIVE_LENGTH },
		{ false, 3, 0, IB_NATIVE_DLID },
		{ false, 6, 0xc0, IB_NATIVE_SLID },
		{ false, 2, 0xc0, IB_NATIVE_MULTICAST }, /* no GRH */
		{ false, 8, 0xff, IB_NATIVE_BTH },       /* opcode */
		{ false, 9, 0x01, IB_NATIVE_BTH },       /* TVer */
		{ false, 11, 0x00, IB_NATIVE_ICRC },
		{ true, 8, 0x40, IB_NATIVE_GRH },        /* version */
		{ true, 13, 1, IB_NATIVE_GRH },          /* length */
		{ true, 14, 17, IB_NATIVE_GRH },         /* next header */
		{ true, 8 + 24, 0xff, IB_NATIVE_MULTICAST }, /* GID and not LID; ICRC not checked */
		{ true, 2, 0xc0, IB_NATIVE_MULTICAST },      /* LID and not GID */
	};
	uint8_t packet[IB_NATIVE_BYTES_MAX];
	struct ib_native n, back;
	size_t bytes;

	(void)state;
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		unsigned checks = faults[i].fault == IB_NATIVE_MULTICAST ? IB_CHECK_VCRC : IB_CHECK_ALL;

		n = datagram(faults[i].grh);
		bytes = make(&n, packet);
		packet[faults[i].at] = faults[i].value;
		ib_native_set_vcrc(packet, bytes);
		assert_int_equal(ib_native_decode(packet, bytes, checks, &back), faults[i].fault);
	}
	assert_int_equal(ib_native_decode(packet, 9, 0, &back), IB_NATIVE_SHORT);
	for (unsigned f = 0; f < IB_NATIVE_FAULTS; f++)
		assert_string_not_equal(ib_native_fault_name(f), "no such fault");
	assert_string_equal(ib_native_fault_name(IB_NATIVE_FAULTS), "no such fault");
}

static void management_packets_have_permissive_lids(void **state)
{
	struct ib_native n = datagram(false), back;
	uint8_t packet[IB_NATIVE_BYTES_MAX];
	size_t bytes;

	(void)state;
	n.lrh.dlid = n.lrh.slid = IB_LID_PERMISSIVE;
	bytes = make(&n, packet);
	assert_int_equal(ib_native_decode(packet, bytes, IB_CHECK_ALL, &back), IB_NATIVE_DLID);
	n.lrh.vl = IB_VL_MANAGEMENT;
	bytes = make(&n, packet);
	assert_int_equal(ib_native_decode(packet, bytes, IB_CHECK_ALL, &back), IB_NATIVE_GOOD);
}

static void raw_packets_have_no_bth(void **state)
{
	uint8_t packet[64] = { 0 };
	struct ib_native back;

	(void)state;
	ib_lrh_encode(&(struct ib_lrh){ .lnh = IB_LNH_RAW, .dlid = 1, .slid = 2, .words = 6 }, packet);
	ib_native_set_vcrc(packet, 26);
	assert_int_equal(ib_native_decode(packet, 26, IB_CHECK_ALL, &back), IB_NATIVE_GOOD);
	assert_false(back.has_bth);
	assert_int_equal(back.payload_at, 8);
	assert_int_equal(back.payload_bytes, 16);
}

static void longer_packets_than_any_mtu_are_refused(void **state)
{
	static uint8_t packet[IB_NATIVE_BYTES_MAX + 8];
	struct ib_native n = datagram(false), back;
	const size_t raw = IB_NATIVE_BYTES_MAX + 4;
	size_t bytes;

	(void)state;
	n.packet.bytes = IB_MTU_MAX;
	bytes = make(&n, packet);
	packet[4] = (uint8_t)((bytes + 2) / 4 >> 8);
	packet[5] = (uint8_t)((bytes + 2) / 4);
	ib_native_set_vcrc(packet, bytes + 4);
	assert_int_equal(ib_native_decode(packet, bytes + 4, IB_CHECK_VCRC, &back), IB_NATIVE_LENGTH);
	ib_lrh_encode(&(struct ib_lrh){ .lnh = IB_LNH_RAW, .dlid = 1, .slid = 2,
					.words = (uint16_t)(raw / 4) }, packet);
	ib_native_set_vcrc(packet, raw);
	assert_int_equal(raw % 4, IB_VCRC_BYTES);
	assert_int_equal(ib_native_decode(packet, raw, IB_CHECK_VCRC, &back), IB_NATIVE_LENGTH);
	packet[5]--;
	ib_native_set_vcrc(packet, raw - 4);
	assert_int_equal(ib_native_decode(packet, raw - 4, IB_CHECK_VCRC, &back), IB_NATIVE_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc_is_that_of_the_specifications_example),
		cmocka_unit_test(vcrc_is_that_of_a_shift_register),
		cmocka_unit_test(icrc_leaves_out_what_switches_change),
		cmocka_unit_test(with_a_grh_the_lrh_does_not_count),
		cmocka_unit_test(packets_without_bth_or_too_short_have_no_icrc),
		cmocka_unit_test(flow_control_packet_stands_where_7_9_puts_it),
		cmocka_unit_test(reserved_operations_and_vl_15_are_refused),
		cmocka_unit_test(the_example_is_read),
		cmocka_unit_test(what_is_made_is_read),
		cmocka_unit_test(packets_that_would_be_too_long_are_not_made),
		cmocka_unit_test(a_switch_may_change_the_lane_and_the_marks),
		cmocka_unit_test(each_fault_has_its_name),
		cmocka_unit_test(management_packets_have_permissive_lids),
		cmocka_unit_test(longer_packets_than_any_mtu_are_refused),
		cmocka_unit_test(raw_packets_have_no_bth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
