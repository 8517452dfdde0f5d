/* SPDX-License-Identifier: BSD-2-Clause */
/* Sampled values: frames of other publishers are read, what was written is read again, and what
 * is damaged is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/grid/sv.h"

/* By hand from tables of IEC 61850-9-2: one ASDU without optional items, two values. */
static const uint8_t plain[] = {
	0x40, 0x00, 0x00, 0x2d, 0x00, 0x00, 0x00, 0x00,   /* APPID, length, reserved */
	0x60, 0x23,                                       /* savPdu */
	0x80, 0x01, 0x01,                                 /* noASDU */
	0xa2, 0x1e, 0x30, 0x1c,                           /* seqASDU, ASDU */
	0x80, 0x03, 'M', 'U', '1',                        /* svID */
	0x82, 0x02, 0x0f, 0x9f,                           /* smpCnt 3999 */
	0x83, 0x04, 0x00, 0x00, 0x00, 0x01,               /* confRev */
	0x85, 0x01, 0x02,                                 /* smpSynch */
	0x87, 0x08, 0x00, 0x00, 0x03, 0xe8, 0, 0, 0, 0,   /* 1000, quality good */
};

/* All optional items, a security item, and a length in two bytes where one would do. */
static const uint8_t full[] = {
	0x40, 0x01, 0x00, 0x5d, 0x80, 0x00, 0x00, 0x07,
	0x60, 0x53,
	0x80, 0x01, 0x01,
	0x81, 0x02, 0xab, 0xcd,                           /* security */
	0xa2, 0x4a, 0x30, 0x48,
	0x80, 0x03, 'M', 'U', '1',
	0x81, 0x04, 'L', 'D', '$', 'S',                   /* datSet */
	0x82, 0x02, 0x00, 0x00,
	0x83, 0x04, 0xff, 0xff, 0xff, 0xff,
	0x84, 0x08, 0x65, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0xaa, /* refrTm, half a second */
	0x85, 0x01, 0x00,
	0x86, 0x02, 0x0f, 0xa0,                           /* smpRate 4000 */
	0x87, 0x81, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
	0x88, 0x02, 0x00, 0x01,                           /* smpMod: per second */
	0x89, 0x08, 1, 2, 3, 4, 5, 6, 7, 8,               /* gmIdentity */
	0, 0, 0,                                          /* of the frame, behind the message */
};

static int decode(const uint8_t *payload, size_t len, struct apdu *head, struct sv_message *m,
		  struct sv_asdu *a, const char **why)
{
	*why = apdu_decode(payload, len, head);
	if (!*why)
		*why = sv_decode(&head->body, m);
	return *why ? -EPROTO : sv_next(m, a, why);
}

static void a_message_without_optional_items_is_read(void **state)
{
	struct sv_message m;
	struct sv_asdu a;
	struct apdu head;
	const char *why;

	assert_int_equal(decode(plain, sizeof(plain), &head, &m, &a, &why), 1);
	assert_int_equal(head.appid, 0x4000);
	assert_false(head.simulation || m.secured || apdu_extension(&head));
	assert_int_equal(a.id.len, 3);
	assert_memory_equal(a.id.at, "MU1", 3);
	assert_int_equal(a.count, 3999);
	assert_int_equal(a.revision, 1);
	assert_int_equal(a.synch, SV_SYNCH_GLOBAL);
	assert_int_equal(a.values.len, 8);
	assert_memory_equal(a.values.at, "\0\0\3\xe8\0\0\0\0", 8);
	assert_false(a.has_time || a.has_rate || a.has_mode || a.has_grandmaster || a.dataset.len);
	assert_int_equal(sv_next(&m, &a, &why), 0);
}

static void a_message_with_all_items_is_read(void **state)
{
	struct sv_message m;
	struct sv_asdu a;
	struct apdu head;
	const char *why;

	assert_int_equal(decode(full, sizeof(full), &head, &m, &a, &why), 1);
	assert_true(m.secured);
	assert_true(head.simulation);
	assert_int_equal(head.reserved1, 0);
	assert_int_equal(head.reserved2, 7);
	assert_int_equal(a.dataset.len, 4);
	assert_int_equal(a.revision, UINT32_MAX);
	assert_true(a.has_time && a.has_rate && a.has_mode && a.has_grandmaster);
	assert_int_equal(a.time.seconds, 0x65000000);
	assert_int_equal(a.time.nanoseconds, 500000000);
	assert_true(a.time.leap_seconds_known && a.time.not_synchronized);
	assert_false(a.time.clock_failure);
	assert_int_equal(a.time.accuracy, 10);
	assert_int_equal(a.rate, 4000);
	assert_int_equal(a.mode, SV_PER_SECOND);
	assert_int_equal(a.values.len, 17);
	assert_int_equal(a.grandmaster[7], 8);
	assert_int_equal(sv_next(&m, &a, &why), 0);
}

static void what_is_written_is_what_stands_in_the_standard(void **state)
{
	const struct apdu head = { .appid = 0x4000 };
	const struct sv_asdu a = {
		.id = { (const uint8_t *)"MU1", 3 }, .count = 3999, .revision = 1,
		.synch = SV_SYNCH_GLOBAL,
		.values = { (const uint8_t *)"\0\0\3\xe8\0\0\0\0", 8 },
	};
	uint8_t buffer[200], *at;
	size_t len;

	at = sv_encode(&head, &a, 1, buffer, sizeof(buffer), &len);
	assert_non_null(at);
	assert_int_equal(len, sizeof(plain));
	assert_memory_equal(at, plain, len);
	/* It has no room for one byte less, and writes nothing outside. */
	for (size_t size = 0; size < len; size++) {
		uint8_t *small = malloc(size + 1);

		small[size] = 0x55;
		assert_null(sv_encode(&head, &a, 1, small, size, &len));
		assert_int_equal(small[size], 0x55);
		free(small);
		len = sizeof(plain);
	}
}

/* A message longer than its header can say is not written. */
static void a_message_that_is_too_long_is_not_written(void **state)
{
	static uint8_t buffer[70000], values[65536];
	struct sv_asdu a = { .id = { (const uint8_t *)"M", 1 }, .values = { values, sizeof(values) } };
	const struct apdu head = { 0 };
	size_t len;

	assert_null(sv_encode(&head, &a, 1, buffer, sizeof(buffer), &len));
	a.values.len = 65000;
	assert_non_null(sv_encode(&head, &a, 1, buffer, sizeof(buffer), &len));
}

/* One byte of `plain` is another one: what the message says then cannot be true. */
static void damaged_messages_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *why;
	} cases[] = {
		{ 3, 7, "length" },           /* less than the header */
		{ 3, 0x2e, "length" },        /* more than there is */
		{ 3, 0x2c, "no message" },    /* it ends within the last item */
		{ 8, 0x61, "no message" },    /* GOOSE */
		{ 9, 0x22, "left behind" },
		{ 12, 0, "noASDU" },
		{ 12, 2, "noASDU" },          /* but there is one */
		{ 11, 0, "noASDU" },
		{ 13, 0xa3, "seqASDU" },
		{ 15, 0x31, "damaged" },
		{ 16, 0x1b, "damaged" },      /* shorter than what is in it */
		{ 16, 0x1d, "damaged" },      /* longer than what it is in */
		{ 18, 0x83, "damaged" },      /* a length in three bytes, of which there is none */
		{ 22, 0x80, "out of order" }, /* smpCnt becomes a second svID */
		{ 22, 0x8a, "unknown" },
		{ 23, 1, "wrong length" },    /* smpCnt of one byte */
		{ 26, 0x84, "wrong length" }, /* confRev becomes refrTm of 4 bytes */
		{ 32, 0x86, "wrong length" }, /* smpSynch becomes smpRate of one byte */
		{ 35, 0x88, "wrong length" }, /* the values become smpMod */
		{ 17, 0x81, "lacks" },        /* svID becomes datSet */
	};
	struct sv_message m;
	struct sv_asdu a;
	struct apdu head;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t bytes[sizeof(plain)];
		const char *why = NULL;
		int ret;

		memcpy(bytes, plain, sizeof(plain));
		bytes[cases[i].at] = cases[i].value;
		ret = decode(bytes, sizeof(bytes), &head, &m, &a, &why);
		if (ret == 1)
			ret = sv_next(&m, &a, &why);
		assert_int_equal(ret, -EPROTO);
		assert_non_null(why);
		if (!strstr(why, cases[i].why))
			fail_msg("byte %zu: %s", cases[i].at, why);
	}
}

/* Whatever its length says: a message that ends early is refused. */
static void messages_that_end_early_are_refused(void **state)
{
	static const struct {
		const uint8_t *bytes;
		size_t len;
	} messages[] = { { plain, sizeof(plain) }, { full, sizeof(full) - 3 } };
	struct sv_message m;
	struct sv_asdu a;
	struct apdu head;

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		for (size_t len = 0; len < messages[i].len; len++) {
			uint8_t *bytes = malloc(len ? len : 1);
			const char *why = NULL;

			memcpy(bytes, messages[i].bytes, len);
			assert_int_equal(decode(bytes, len, &head, &m, &a, &why), -EPROTO);
			assert_non_null(why);
			if (len >= APDU_HEADER) {
				bytes[3] = (uint8_t)len;
				assert_int_equal(decode(bytes, len, &head, &m, &a, &why), -EPROTO);
				assert_non_null(why);
			}
			free(bytes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_without_optional_items_is_read),
		cmocka_unit_test(a_message_with_all_items_is_read),
		cmocka_unit_test(what_is_written_is_what_stands_in_the_standard),
		cmocka_unit_test(a_message_that_is_too_long_is_not_written),
		cmocka_unit_test(damaged_messages_are_refused),
		cmocka_unit_test(messages_that_end_early_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
