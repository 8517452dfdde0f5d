/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modbus of a server: requests and answers against the examples of the specification (Application
 * Protocol 1.1b3, chapter 6; lines, 6.2.2), and all numbers that a request may not have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/grid/modbus.h"

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *request;
	size_t request_len;
	const char *answer;
	size_t answer_len;
	enum modbus_table table;
	struct modbus_range read, write;
	uint16_t values[40];          /* what is read, or what is written */
} examples[] = {
	{ BYTES("\x01\x00\x13\x00\x13"), BYTES("\x01\x03\xcd\x6b\x05"), MODBUS_COILS, { 19, 19 }, { 0 },
	  { 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1 } },
	{ BYTES("\x02\x00\xc4\x00\x16"), BYTES("\x02\x03\xac\xdb\x35"), MODBUS_DISCRETE_INPUTS,
	  { 196, 22 }, { 0 },
	  { 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1 } },
	{ BYTES("\x03\x00\x6b\x00\x03"), BYTES("\x03\x06\x02\x2b\x00\x00\x00\x64"),
	  MODBUS_HOLDING_REGISTERS, { 107, 3 }, { 0 }, { 0x22b, 0, 100 } },
	{ BYTES("\x04\x00\x08\x00\x01"), BYTES("\x04\x02\x00\x0a"), MODBUS_INPUT_REGISTERS, { 8, 1 },
	  { 0 }, { 10 } },
	{ BYTES("\x05\x00\xac\xff\x00"), BYTES("\x05\x00\xac\xff\x00"), MODBUS_COILS, { 0 },
	  { 172, 1 }, { 1 } },
	{ BYTES("\x05\x00\xac\x00\x00"), BYTES("\x05\x00\xac\x00\x00"), MODBUS_COILS, { 0 },
	  { 172, 1 }, { 0 } },
	{ BYTES("\x06\x00\x01\x00\x03"), BYTES("\x06\x00\x01\x00\x03"), MODBUS_HOLDING_REGISTERS, { 0 },
	  { 1, 1 }, { 3 } },
	{ BYTES("\x0f\x00\x13\x00\x0a\x02\xcd\x01"), BYTES("\x0f\x00\x13\x00\x0a"), MODBUS_COILS, { 0 },
	  { 19, 10 }, { 1, 0, 1, 1, 0, 0, 1, 1, 1, 0 } },
	{ BYTES("\x10\x00\x01\x00\x02\x04\x00\x0a\x01\x02"), BYTES("\x10\x00\x01\x00\x02"),
	  MODBUS_HOLDING_REGISTERS, { 0 }, { 1, 2 }, { 10, 0x102 } },
	{ BYTES("\x17\x00\x03\x00\x02\x00\x0e\x00\x03\x06\x00\xff\x00\xff\x00\xff"),
	  BYTES("\x17\x04\x00\xff\x00\xff"), MODBUS_HOLDING_REGISTERS, { 3, 2 }, { 14, 3 },
	  { 0xff, 0xff, 0xff } },
};

static void requests_and_answers_are_those_of_the_specification(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const uint8_t *request = (const uint8_t *)examples[i].request;
		uint8_t bytes[MODBUS_PDU_BYTES];
		struct modbus_pdu p;

		assert_int_equal(modbus_pdu_decode(request, examples[i].request_len, &p),
				 MODBUS_ACCEPTED);
		assert_int_equal(p.table, examples[i].table);
		assert_memory_equal(&p.read, &examples[i].read, sizeof(p.read));
		assert_memory_equal(&p.write, &examples[i].write, sizeof(p.write));
		for (unsigned k = 0; k < p.write.count; k++)
			assert_int_equal(modbus_pdu_value(&p, k), examples[i].values[k]);
		assert_int_equal(modbus_answer_encode(&p, request, examples[i].values, bytes),
				 examples[i].answer_len);
		assert_memory_equal(bytes, examples[i].answer, examples[i].answer_len);
		/* A byte more or less. */
		for (size_t len = 1; len < examples[i].request_len; len++)
			assert_int_equal(modbus_pdu_decode(request, len, &p), MODBUS_NO_VALUE);
		memcpy(bytes, request, examples[i].request_len);
		assert_int_equal(modbus_pdu_decode(bytes, examples[i].request_len + 1, &p),
				 MODBUS_NO_VALUE);
	}
}

static void a_register_is_masked(void **state)
{
	static const uint8_t request[] = { 0x16, 0, 4, 0, 0xf2, 0, 0x25 };
	uint8_t bytes[MODBUS_PDU_BYTES];
	struct modbus_pdu p;

	assert_int_equal(modbus_pdu_decode(request, sizeof(request), &p), MODBUS_ACCEPTED);
	assert_true(p.masks);
	/* The example of 6.16: 12 hex becomes 17 hex. */
	assert_int_equal((0x12 & p.and_mask) | (p.or_mask & ~p.and_mask), 0x17);
	assert_int_equal(modbus_answer_encode(&p, request, NULL, bytes), sizeof(request));
	assert_memory_equal(bytes, request, sizeof(request));
}

/* With `bytes` zero bytes behind the head. */
static enum modbus_refusal decode(uint8_t function, unsigned address, unsigned count, size_t bytes)
{
	uint8_t pdu[300] = { function };
	struct modbus_pdu p;

	put_16(put_16(pdu + 1, (uint16_t)address), (uint16_t)count);
	pdu[5] = (uint8_t)bytes;
	return modbus_pdu_decode(pdu, function < 5 ? 5 : 6 + bytes, &p);
}

static void every_count_beyond_the_limits_is_refused(void **state)
{
	for (unsigned n = 0; n < 65536; n++) {
		assert_int_equal(decode(1, 0, n, 0), n && n <= 2000 ? MODBUS_ACCEPTED : MODBUS_NO_VALUE);
		assert_int_equal(decode(2, 0, n, 0), n && n <= 2000 ? MODBUS_ACCEPTED : MODBUS_NO_VALUE);
		assert_int_equal(decode(3, 0, n, 0), n && n <= 125 ? MODBUS_ACCEPTED : MODBUS_NO_VALUE);
		assert_int_equal(decode(4, 0, n, 0), n && n <= 125 ? MODBUS_ACCEPTED : MODBUS_NO_VALUE);
		if (n > 2100)
			continue;
		assert_int_equal(decode(15, 0, n, (n + 7) / 8),
				 n && n <= 1968 ? MODBUS_ACCEPTED : MODBUS_NO_VALUE);
		if (n < 128)
			assert_int_equal(decode(16, 0, n, 2 * n),
					 n && n <= 123 ? MODBUS_ACCEPTED : MODBUS_NO_VALUE);
	}
	/* The number of bytes says something else than the count. */
	assert_int_equal(decode(16, 0, 2, 3), MODBUS_NO_VALUE);
	assert_int_equal(decode(15, 0, 9, 1), MODBUS_NO_VALUE);
	/* Neither on nor off. */
	assert_int_equal(modbus_pdu_decode((const uint8_t *)"\x05\0\0\0\1", 5, &(struct modbus_pdu){ 0 }),
			 MODBUS_NO_VALUE);
}

static void addresses_end_at_65535(void **state)
{
	assert_int_equal(decode(3, 65535, 1, 0), MODBUS_ACCEPTED);
	assert_int_equal(decode(3, 65535, 2, 0), MODBUS_NO_ADDRESS);
	assert_int_equal(decode(1, 63536, 2000, 0), MODBUS_ACCEPTED);
	assert_int_equal(decode(1, 63537, 2000, 0), MODBUS_NO_ADDRESS);
	assert_int_equal(decode(16, 65534, 3, 6), MODBUS_NO_ADDRESS);
}

static void other_functions_are_refused_by_their_number(void **state)
{
	uint8_t bytes[MODBUS_PDU_BYTES];

	for (unsigned f = 0; f < 256; f++) {
		const uint8_t pdu[10] = { (uint8_t)f };
		bool known = (f >= 1 && f <= 6) || f == 15 || f == 16 || f == 22 || f == 23;
		struct modbus_pdu p;

		assert_int_equal(modbus_pdu_decode(pdu, 2, &p) == MODBUS_NO_FUNCTION, !known);
		assert_int_equal(modbus_refusal_encode(p.function, MODBUS_NO_FUNCTION, bytes), 2);
		assert_int_equal(bytes[0], f | 0x80);
		assert_int_equal(bytes[1], 1);
	}
}

static void frames_of_tcp_come_in_any_pieces(void **state)
{
	static const uint8_t request[] = { 0x12, 0x34, 0, 0, 0, 6, 0x11, 3, 0, 0x6b, 0, 3, 0xee };
	uint8_t bytes[MODBUS_TCP_BYTES];
	struct modbus_frame f;
	const char *why = NULL;

	for (size_t len = 0; len < 12; len++)
		assert_int_equal(modbus_tcp_decode(request, len, &f, &why), 0);
	assert_int_equal(modbus_tcp_decode(request, sizeof(request), &f, &why), 12);
	assert_int_equal(f.transaction, 0x1234);
	assert_int_equal(f.unit, 0x11);
	assert_int_equal(f.len, 5);
	assert_ptr_equal(f.pdu, request + 7);
	memcpy(bytes + MODBUS_TCP_HEAD, request + 7, 5);
	assert_int_equal(modbus_tcp_encode(0x1234, 0x11, 5, bytes), 12);
	assert_memory_equal(bytes, request, 12);
	assert_null(why);
}

static void streams_of_something_else_end_at_once(void **state)
{
	static const uint8_t protocol[] = { 0, 1, 0, 1 }, none[] = { 0, 1, 0, 0, 0, 1 },
			     too_long[] = { 0, 1, 0, 0, 0, 255 };
	const char *why = NULL;
	struct modbus_frame f;

	assert_int_equal(modbus_tcp_decode((const uint8_t *)"GET / HTTP/1.1", 4, &f, &why), -1);
	assert_int_equal(modbus_tcp_decode(protocol, sizeof(protocol), &f, &why), -1);
	assert_int_equal(modbus_tcp_decode(none, sizeof(none), &f, &why), -1);
	assert_int_equal(modbus_tcp_decode(too_long, sizeof(too_long), &f, &why), -1);
	assert_non_null(why);
}

static void frames_of_a_line_are_found_between_those_of_others(void **state)
{
	/* A request for unit 2, its answer, and a request for unit 17, with known check sums. */
	static const uint8_t line[] = { 2, 3, 0, 0, 0, 1, 0x84, 0x39, 2, 3, 2, 0, 7, 0xbd, 0x86,
					17, 3, 0, 0x6b, 0, 3, 0x76, 0x87 };
	static const uint8_t units[] = { 2, 2, 17 };
	struct modbus_frame f;
	size_t at = 0;

	for (unsigned i = 0; i < 3; i++) {
		int n = modbus_rtu_decode(line + at, sizeof(line) - at, false, &f);

		assert_true(n > 0);
		assert_int_equal(f.unit, units[i]);
		for (size_t len = 0; len < (size_t)n; len++)
			assert_int_equal(modbus_rtu_decode(line + at, len, false, &f), 0);
		at += (size_t)n;
	}
	assert_int_equal(at, sizeof(line));
}

static void noise_on_a_line_is_skipped(void **state)
{
	static const uint8_t line[] = { 0x55, 17, 3, 0, 0x6b, 0, 3, 0x76, 0x87 },
			     wrong[] = { 17, 3, 0, 0x6b, 0, 3, 0x76, 0x88 };
	/* Function 7 has no length that is known here: the silence tells it. */
	uint8_t other[MODBUS_RTU_BYTES] = { 17, 7 };
	struct modbus_frame f;

	assert_int_equal(modbus_rtu_decode(line, sizeof(line), true, &f), -1);
	assert_int_equal(modbus_rtu_decode(line + 1, sizeof(line) - 1, true, &f), 8);
	assert_int_equal(modbus_rtu_decode(wrong, sizeof(wrong), true, &f), -1);
	assert_int_equal(modbus_rtu_encode(17, 1, other), 4);
	assert_int_equal(modbus_rtu_decode(other, 4, false, &f), 0);
	assert_int_equal(modbus_rtu_decode(other, 4, true, &f), 4);
	assert_int_equal(f.len, 1);
	other[3] ^= 1;
	assert_int_equal(modbus_rtu_decode(other, 4, true, &f), -1);
}

static void a_line_full_of_noise_makes_room(void **state)
{
	uint8_t noise[MODBUS_RTU_BYTES];
	struct modbus_frame f;

	for (unsigned byte = 0; byte < 256; byte++) {
		memset(noise, (int)byte, sizeof(noise));
		assert_true(modbus_rtu_decode(noise, sizeof(noise), false, &f) != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_and_answers_are_those_of_the_specification),
		cmocka_unit_test(a_register_is_masked),
		cmocka_unit_test(every_count_beyond_the_limits_is_refused),
		cmocka_unit_test(addresses_end_at_65535),
		cmocka_unit_test(other_functions_are_refused_by_their_number),
		cmocka_unit_test(frames_of_tcp_come_in_any_pieces),
		cmocka_unit_test(streams_of_something_else_end_at_once),
		cmocka_unit_test(frames_of_a_line_are_found_between_those_of_others),
		cmocka_unit_test(noise_on_a_line_is_skipped),
		cmocka_unit_test(a_line_full_of_noise_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
