/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM messages: offsets on the wire by hand-counted golden bytes, round trips
 * with random values, and refusal of everything that is no message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/cm.h"

#define BODY 24

static void req_stands_where_chapter_12_puts_it(void **state)
{
	struct cm_mad m = {
		.type = CM_REQ,
		.tid = 0x1122334455667788,
		.req = {
			.local_comm_id = 0xa1a2a3a4,
			.service_id = 0x0000000001061234,
			.local_ca_guid = 0x0102030405060708,
			.local_qpn = 0xb1b2b3,
			.responder_resources = 0xc1,
			.initiator_depth = 0xc2,
			.remote_response_timeout = 20,
			.service = CM_SERVICE_UC,
			.flow_control = 1,
			.starting_psn = 0xd1d2d3,
			.local_response_timeout = 21,
			.retry_count = 5,
			.pkey = 0xffff,
			.path_mtu = 5,
			.rnr_retry_count = 6,
			.max_cm_retries = 15,
			.srq = 1,
			.primary = {
				.local_gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
				.remote_gid = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
				.flow_label = 0xabcde,
				.packet_rate = 0x12,
				.traffic_class = 0xe1,
				.hop_limit = 64,
				.sl = 9,
				.subnet_local = 1,
				.local_ack_timeout = 17,
			},
			.private_data = { 0xf1, [91] = 0xf2 },
		},
	};
	uint8_t out[CM_MAD_SIZE], want[CM_MAD_SIZE] = {
		[0] = 1, 0x07, 2, 0x03,
		[8] = 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		[16] = 0x00, 0x10,
		[BODY + 0] = 0xa1, 0xa2, 0xa3, 0xa4,
		[BODY + 8] = 0, 0, 0, 0, 0x01, 0x06, 0x12, 0x34,
		[BODY + 16] = 1, 2, 3, 4, 5, 6, 7, 8,
		[BODY + 32] = 0xb1, 0xb2, 0xb3, 0xc1,
		[BODY + 39] = 0xc2,
		[BODY + 43] = 20 << 3 | 1 << 1 | 1,
		[BODY + 44] = 0xd1, 0xd2, 0xd3, 21 << 3 | 5,
		[BODY + 48] = 0xff, 0xff, 5 << 4 | 6, 15 << 4 | 1 << 3,
		[BODY + 66] = 0xff, 0xff, 127, 0, 0, 1,
		[BODY + 82] = 0xff, 0xff, 10, 1, 2, 3,
		[BODY + 88] = 0xab, 0xcd, 0xe0, 0x12,
		[BODY + 92] = 0xe1, 64, 9 << 4 | 1 << 3, 17 << 3,
		[BODY + 140] = 0xf1, [BODY + 231] = 0xf2,
	};

	(void)state;
	assert_int_equal(wire_cm_encode(&m, out), 0);
	assert_memory_equal(out, want, CM_MAD_SIZE);
}

static void rep_stands_where_chapter_12_puts_it(void **state)
{
	struct cm_mad m = {
		.type = CM_REP,
		.tid = 1,
		.rep = {
			.local_comm_id = 0x01020304,
			.remote_comm_id = 0x11121314,
			.local_qkey = 0x21222324,
			.local_qpn = 0x313233,
			.starting_psn = 0x414243,
			.responder_resources = 0x51,
			.initiator_depth = 0x52,
			.target_ack_delay = 15,
			.failover_accepted = 1,
			.flow_control = 1,
			.rnr_retry_count = 7,
			.srq = 1,
			.local_ca_guid = 0x6162636465666768,
			.private_data = { [195] = 0x71 },
		},
	};
	uint8_t out[CM_MAD_SIZE], want[CM_MAD_SIZE] = {
		[0] = 1, 0x07, 2, 0x03, [15] = 1, [17] = 0x13,
		[BODY + 0] = 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14,
		[BODY + 8] = 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33,
		[BODY + 20] = 0x41, 0x42, 0x43,
		[BODY + 24] = 0x51, 0x52, 15 << 3 | 1 << 1 | 1, 7 << 5 | 1 << 4,
		[BODY + 28] = 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
		[255] = 0x71,
	};

	(void)state;
	assert_int_equal(wire_cm_encode(&m, out), 0);
	assert_memory_equal(out, want, CM_MAD_SIZE);
}

static void lap_stands_where_chapter_12_puts_it(void **state)
{
	struct cm_mad m = {
		.type = CM_LAP,
		.tid = 2,
		.lap = {
			.local_comm_id = 0x01020304,
			.remote_comm_id = 0x11121314,
			.remote_qpn = 0x212223,
			.remote_response_timeout = 19,
			.alternate = {
				.local_lid = 0x3132,
				.remote_lid = 0x4142,
				.local_gid = { 0x51, [15] = 0x52 },
				.remote_gid = { 0x61, [15] = 0x62 },
				.flow_label = 0xabcde,
				.packet_rate = 0x12,
				.traffic_class = 0xe1,
				.hop_limit = 64,
				.sl = 9,
				.subnet_local = 1,
				.local_ack_timeout = 17,
			},
			.private_data = { 0xf1, [167] = 0xf2 },
		},
	};
	uint8_t out[CM_MAD_SIZE], want[CM_MAD_SIZE] = {
		[0] = 1, 0x07, 2, 0x03, [15] = 2, [17] = 0x19,
		[BODY + 0] = 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14,
		[BODY + 12] = 0x21, 0x22, 0x23, 19 << 3,
		[BODY + 20] = 0x31, 0x32, 0x41, 0x42,
		[BODY + 24] = 0x51, [BODY + 39] = 0x52,
		[BODY + 40] = 0x61, [BODY + 55] = 0x62,
		[BODY + 56] = 0xab, 0xcd, 0xe0, 0xe1, 64, 0x12,
		[BODY + 62] = 9 << 4 | 1 << 3, 17 << 3, 0xf1,
		[255] = 0xf2,
	};

	(void)state;
	assert_int_equal(wire_cm_encode(&m, out), 0);
	assert_memory_equal(out, want, CM_MAD_SIZE);
}

static void short_messages_stand_where_chapter_12_puts_them(void **state)
{
	static const struct {
		struct cm_mad m;
		uint8_t want[CM_MAD_SIZE - BODY];
	} cases[] = {
		{ { .type = CM_REJ,
		    .rej = { 1, 2, CM_ANSWERED_REP, 2, CM_REASON_CONSUMER,
			     { 0xaa, 0xbb }, { 0xcc } } },
		  { 0, 0, 0, 1, 0, 0, 0, 2, 1 << 6, 2 << 1, 0, 28, 0xaa, 0xbb,
		    [84] = 0xcc } },
		{ { .type = CM_MRA, .mra = { 1, 2, CM_ANSWERED_REP, 24, { 9 } } },
		  { 0, 0, 0, 1, 0, 0, 0, 2, 1 << 6, 24 << 3, 9 } },
		{ { .type = CM_RTU, .rtu = { 1, 2, { 9 } } },
		  { 0, 0, 0, 1, 0, 0, 0, 2, 9 } },
		{ { .type = CM_DREQ, .dreq = { 1, 2, 0x030405, { 9 } } },
		  { 0, 0, 0, 1, 0, 0, 0, 2, 3, 4, 5, 0, 9 } },
		{ { .type = CM_DREP, .drep = { 1, 2, { 9 } } },
		  { 0, 0, 0, 1, 0, 0, 0, 2, 9 } },
		{ { .type = CM_SIDR_REQ,
		    .sidr_req = { 7, 0xffff, 0x01110005, { 9 } } },
		  { 0, 0, 0, 7, 0xff, 0xff, [12] = 1, 0x11, 0, 5, 9 } },
		{ { .type = CM_SIDR_REP,
		    .sidr_rep = { 7, CM_SIDR_REJECTED, 1, 0x010203, 0x01110005,
				  0x01234567, { 8 }, { 9 } } },
		  { 0, 0, 0, 7, 2, 1, 0, 0, 1, 2, 3, 0, [16] = 1, 0x11, 0, 5,
		    0x01, 0x23, 0x45, 0x67, [24] = 8, [96] = 9 } },
		{ { .type = CM_APR,
		    .apr = { 1, 2, 1, CM_PATH_UNSUPPORTED, { 8 }, { 9 } } },
		  { 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, [12] = 8, [84] = 9 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t out[CM_MAD_SIZE];

		assert_int_equal(wire_cm_encode(&cases[i].m, out), 0);
		assert_memory_equal(out + BODY, cases[i].want,
				    CM_MAD_SIZE - BODY);
	}
}

static const enum cm_type all_types[] = {
	CM_REQ, CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REQ,
	CM_SIDR_REP, CM_LAP, CM_APR,
};

/* Encoding a decoded message gives the same bytes in all defined fields. */
static void decoded_bytes_encode_to_the_same_message(void **state)
{
	unsigned seed = 1, accepted = 0;

	(void)state;
	for (unsigned run = 0; run < 2000; run++) {
		uint8_t in[CM_MAD_SIZE], out[CM_MAD_SIZE];
		struct cm_mad first, second;

		for (size_t i = 0; i < sizeof(in); i++)
			in[i] = (uint8_t)rand_r(&seed);
		memcpy(in, (uint8_t[]){ 1, 7, 2, 3 }, 4);
		in[16] = 0;
		in[17] = (uint8_t)all_types[run % ARRAY_SIZE(all_types)];
		if (wire_cm_decode(in, sizeof(in), &first))
			continue;
		accepted++;
		assert_int_equal(wire_cm_encode(&first, out), 0);
		assert_int_equal(wire_cm_decode(out, sizeof(out), &second), 0);
		assert_memory_equal(&first, &second, sizeof(first));
	}
	assert_true(accepted > 500);
}

static void refuses_what_is_no_cm_message(void **state)
{
	struct cm_mad m = { .type = CM_RTU }, got = { .tid = 5 };
	uint8_t good[CM_MAD_SIZE], bad[CM_MAD_SIZE + 1] = { 0 };
	static const struct { uint8_t at, value; } damage[] = {
		{ 0, 2 }, { 1, 4 }, { 2, 1 }, { 3, 0x81 }, { 16, 1 },
		{ 17, 0x1b }, { 17, 0x0f },
	};

	(void)state;
	assert_int_equal(wire_cm_encode(&m, good), 0);
	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		memcpy(bad, good, CM_MAD_SIZE);
		bad[damage[i].at] = damage[i].value;
		assert_int_equal(wire_cm_decode(bad, CM_MAD_SIZE, &got), -EBADMSG);
	}
	assert_int_equal(wire_cm_decode(good, CM_MAD_SIZE - 1, &got), -EBADMSG);
	assert_int_equal(wire_cm_decode(bad, CM_MAD_SIZE + 1, &got), -EBADMSG);
	assert_int_equal(wire_cm_decode(good, 0, &got), -EBADMSG);
	assert_int_equal(got.tid, 5); /* failures do not change it */
}

static void refuses_fields_out_of_range(void **state)
{
	static const struct { enum cm_type type; uint8_t at, value; } damage[] = {
		{ CM_REQ, BODY + 50, 0 }, { CM_REQ, BODY + 50, 6 << 4 },
		{ CM_REJ, BODY + 8, 3 << 6 }, { CM_REJ, BODY + 9, 73 << 1 },
		{ CM_MRA, BODY + 8, 3 << 6 }, { CM_SIDR_REP, BODY + 4, 6 },
		{ CM_SIDR_REP, BODY + 5, 73 },
		{ CM_APR, BODY + 8, 73 }, { CM_APR, BODY + 9, 14 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		struct cm_mad m = { .type = damage[i].type }, got;
		uint8_t bytes[CM_MAD_SIZE];

		if (m.type == CM_REQ)
			m.req.path_mtu = 1;
		assert_int_equal(wire_cm_encode(&m, bytes), 0);
		bytes[damage[i].at] = damage[i].value;
		assert_int_equal(wire_cm_decode(bytes, sizeof(bytes), &got),
				 -EBADMSG);
	}
}

static void does_not_encode_values_wider_than_their_field(void **state)
{
	uint8_t out[CM_MAD_SIZE];
	struct cm_mad m = { .type = CM_REQ, .req.path_mtu = 5 };

	(void)state;
	m.req.local_qpn = 1 << 24;
	assert_int_equal(wire_cm_encode(&m, out), -EINVAL);
	m.req.local_qpn = 0;
	m.req.retry_count = 8;
	assert_int_equal(wire_cm_encode(&m, out), -EINVAL);
	m.req.retry_count = 0;
	m.req.path_mtu = 6;
	assert_int_equal(wire_cm_encode(&m, out), -EINVAL);
	m = (struct cm_mad){ .type = CM_LAP, .lap.alternate.packet_rate = 64 };
	assert_int_equal(wire_cm_encode(&m, out), -EINVAL);
	m = (struct cm_mad){ .type = CM_APR, .apr.status = 14 };
	assert_int_equal(wire_cm_encode(&m, out), -EINVAL);
	m.type = 0x1b;
	assert_int_equal(wire_cm_encode(&m, out), -EINVAL);
}

static void ip_header_names_both_ends(void **state)
{
	struct cm_ip_header h = { 4, 0x1234, { [12] = 10, 0, 0, 1 },
				  { [12] = 10, 0, 0, 2 } };
	struct cm_ip_header got;
	uint8_t out[CM_IP_HEADER_SIZE], want[CM_IP_HEADER_SIZE] = {
		0, 0x40, 0x12, 0x34, [16] = 10, 0, 0, 1, [32] = 10, 0, 0, 2,
	};

	(void)state;
	assert_int_equal(wire_cm_ip_encode(&h, out), 0);
	assert_memory_equal(out, want, sizeof(want));
	assert_int_equal(wire_cm_ip_decode(out, sizeof(out), &got), 0);
	assert_int_equal(got.ip_version, h.ip_version);
	assert_int_equal(got.src_port, h.src_port);
	assert_memory_equal(got.src, h.src, sizeof(h.src));
	assert_memory_equal(got.dst, h.dst, sizeof(h.dst));
	assert_int_equal(wire_cm_ip_decode(out, sizeof(out) - 1, &got), -EBADMSG);
	out[1] = 0x50;
	assert_int_equal(wire_cm_ip_decode(out, sizeof(out), &got), -EBADMSG);
	out[1] = 0x60;
	out[0] = 1;
	assert_int_equal(wire_cm_ip_decode(out, sizeof(out), &got), -EBADMSG);
}

static void service_id_carries_port_space_and_port(void **state)
{
	uint16_t ps = 0, port = 0;

	(void)state;
	assert_true(wire_cm_service_id(0x0106, 18515) == 0x0000000001064853);
	assert_int_equal(wire_cm_service_parse(0x01114853, &ps, &port), 0);
	assert_int_equal(ps, 0x0111);
	assert_int_equal(port, 18515);
	assert_int_equal(wire_cm_service_parse(0x1000000001064853, &ps, &port),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(req_stands_where_chapter_12_puts_it),
		cmocka_unit_test(rep_stands_where_chapter_12_puts_it),
		cmocka_unit_test(lap_stands_where_chapter_12_puts_it),
		cmocka_unit_test(short_messages_stand_where_chapter_12_puts_them),
		cmocka_unit_test(decoded_bytes_encode_to_the_same_message),
		cmocka_unit_test(refuses_what_is_no_cm_message),
		cmocka_unit_test(refuses_fields_out_of_range),
		cmocka_unit_test(does_not_encode_values_wider_than_their_field),
		cmocka_unit_test(ip_header_names_both_ends),
		cmocka_unit_test(service_id_carries_port_space_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
