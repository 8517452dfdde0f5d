/* SPDX-License-Identifier: BSD-2-Clause */
/* The session protocol of routed GOOSE and sampled values: what is read, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/container_of.h"
#include "wire/grid/session.h"

static const uint8_t body[] = { 0x61, 3, 0x80, 1, 'a' };

/* By the tables of the standard, version 2. */
static const uint8_t plain[] = {
	1, 0x40, 0xa1, 23, 0x80, 21, 0, 0, 0, 32, 0, 0, 0, 9, 0, 2, /* ... number, version */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,                            /* no keys, no vector */
	0, 0, 0, 11, 0x81, 1, 0x10, 1, 0, 5, 0x61, 3, 0x80, 1, 'a', /* one payload */
};
/* And version 1: with algorithms in place of the vector. */
static const uint8_t older[] = {
	1, 0x40, 0xa2, 24, 0x80, 22, 0, 0, 0, 33, 0, 0, 0, 9, 0, 1,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 11, 0x82, 0, 0x40, 1, 0, 5, 0x61, 3, 0x80, 1, 'a',
};

static void reads_both_versions(void **state)
{
	struct session_part p;
	struct session s;

	assert_null(session_decode(plain, sizeof(plain), &s));
	assert_true(s.kind == SESSION_GOOSE && s.number == 9 && s.version == 2);
	assert_null(session_security(&s));
	assert_int_equal(session_next(&s.payloads, &p), 1);
	assert_true(p.type == SESSION_PAYLOAD_GOOSE && p.simulation && p.appid == 0x1001 && p.body.len == sizeof(body));
	assert_memory_equal(p.body.at, body, sizeof(body));
	assert_int_equal(session_next(&s.payloads, &p), 0);
	assert_null(session_decode(older, sizeof(older), &s));
	assert_true(s.kind == SESSION_SV && s.version == 1);
	assert_int_equal(session_next(&s.payloads, &p), 1);
	assert_true(p.type == SESSION_PAYLOAD_SV && !p.simulation && p.appid == 0x4001);
}

static void writes_what_it_reads(void **state)
{
	const struct session s[] = { { .kind = SESSION_GOOSE, .number = 9, .version = 2 },
				     { .kind = SESSION_SV, .number = 9, .version = 1 } };
	const struct session_part p[] = { { SESSION_PAYLOAD_GOOSE, true, 0x1001, { NULL, 0 } },
					  { SESSION_PAYLOAD_SV, false, 0x4001, { NULL, 0 } } };
	const struct ber wanted[] = { { plain, sizeof(plain) }, { older, sizeof(older) } };

	for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
		uint8_t buffer[SESSION_HEAD_MAX + sizeof(body)], *at = buffer + SESSION_HEAD_MAX;
		size_t len = sizeof(body);

		memcpy(at, body, len);
		at = session_wrap(&s[i], &p[i], at, &len);
		assert_int_equal(len, wanted[i].len);
		assert_true(at >= buffer && at + len == buffer + sizeof(buffer));
		assert_memory_equal(at, wanted[i].at, len);
	}
}

static void several_payloads_come_one_after_the_other(void **state)
{
	uint8_t data[sizeof(plain) + 13];
	struct session_part p;
	struct session s;

	/* The length of the second one counts its own two bytes, as some senders have it. */
	memcpy(data, plain, sizeof(plain));
	memcpy(data + sizeof(plain), "\x81\0\0\2\0\x09\x61\5\x80\3abc", 13);
	data[30] = 24;
	assert_null(session_decode(data, sizeof(data), &s));
	assert_int_equal(session_next(&s.payloads, &p), 1);
	assert_int_equal(session_next(&s.payloads, &p), 1);
	assert_true(p.appid == 2 && p.body.len == 7);
	assert_int_equal(session_next(&s.payloads, &p), 0);
}

static void the_transport_header_may_be_missing(void **state)
{
	struct session s;

	assert_null(session_decode(plain + 2, sizeof(plain) - 2, &s));
	assert_int_equal(s.number, 9);
}

static void security_is_told_apart(void **state)
{
	uint8_t data[100];
	struct session s;

	memcpy(data, plain, sizeof(plain));
	memcpy(data + sizeof(plain), "\xaf\2\0\0\x85\4abcd", 10);
	assert_null(session_decode(data, sizeof(plain) + 10, &s));
	assert_string_equal(session_security(&s), "it is signed");
	assert_int_equal(s.signature.len, 4);
	/* A signature of no bytes, and padding alone, are none. */
	data[sizeof(plain) + 5] = 0;
	assert_null(session_decode(data, sizeof(plain) + 6, &s));
	assert_null(session_security(&s));
	memcpy(data, older, sizeof(older));
	data[22] = 1;
	assert_null(session_decode(data, sizeof(older), &s));
	assert_string_equal(session_security(&s), "it is encrypted");
	data[22] = 0;
	data[23] = 2;
	assert_null(session_decode(data, sizeof(older), &s));
	assert_string_equal(session_security(&s), "it is signed");
	/* Of version 2 a vector says it. */
	memcpy(data, plain, 26);
	memcpy(data + 26, "\2xy", 3);
	memcpy(data + 29, plain + 27, sizeof(plain) - 27);
	assert_null(session_decode(data, sizeof(plain) + 2, &s));
	assert_string_equal(session_security(&s), "it is encrypted");
}

static void what_is_too_short_is_refused(void **state)
{
	struct session s;

	for (size_t len = 0; len < sizeof(plain); len++)
		assert_non_null(session_decode(plain, len, &s));
	for (size_t len = 0; len < sizeof(older); len++)
		assert_non_null(session_decode(older, len, &s));
}

static void wrong_bytes_are_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} cases[] = { { 0, 0 }, { 0, 90 }, { 1, 0x41 }, { 2, 0x9f }, { 2, 0xa4 }, { 4, 0x81 }, { 15, 0 }, { 15, 3 },
		      { 14, 1 }, { 26, 200 }, { 27, 1 }, { 30, 12 }, { 30, 10 } };
	uint8_t data[sizeof(plain)];
	struct session s;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memcpy(data, plain, sizeof(plain));
		data[cases[i].at] = cases[i].value;
		if (!session_decode(data, sizeof(data), &s))
			fail_msg("byte %u", cases[i].at);
	}
}

static void payloads_of_a_wrong_length_are_refused(void **state)
{
	static const uint8_t lengths[] = { 0, 4, 6, 8, 255 };
	uint8_t data[sizeof(plain)];
	struct session_part p;
	struct session s;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memcpy(data, plain, sizeof(plain));
		data[36] = lengths[i];
		assert_null(session_decode(data, sizeof(data), &s));
		assert_true(session_next(&s.payloads, &p) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_both_versions),
		cmocka_unit_test(writes_what_it_reads),
		cmocka_unit_test(several_payloads_come_one_after_the_other),
		cmocka_unit_test(the_transport_header_may_be_missing),
		cmocka_unit_test(security_is_told_apart),
		cmocka_unit_test(what_is_too_short_is_refused),
		cmocka_unit_test(wrong_bytes_are_refused),
		cmocka_unit_test(payloads_of_a_wrong_length_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
