/* SPDX-License-Identifier: BSD-2-Clause */
/* GOOSE: frames of other publishers are read, what was written is read again, and what is damaged
 * is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/grid/goose.h"

/* By hand from the tables of IEC 61850-8-1, annex A and clause 18. */
static const uint8_t plain[] = {
	0x00, 0x02, 0x00, 0x49, 0x00, 0x00, 0x00, 0x00, /* APPID, length, reserved */
	0x61, 0x3f,                                     /* goosePdu */
	0x80, 0x06, 'A', '$', 'G', 'O', '$', 'b',       /* gocbRef */
	0x81, 0x02, 0x07, 0xd0,                         /* timeAllowedtoLive 2000 */
	0x82, 0x03, 'A', '$', 'd',                      /* datSet */
	0x83, 0x01, 'i',                                /* goID */
	0x84, 0x08, 0x65, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x0a, /* t */
	0x85, 0x01, 0x05,                               /* stNum */
	0x86, 0x02, 0x00, 0x80,                         /* sqNum 128 */
	0x87, 0x01, 0x00,                               /* simulation */
	0x88, 0x01, 0x07,                               /* confRev */
	0x89, 0x01, 0x00,                               /* ndsCom */
	0x8a, 0x01, 0x03,                               /* numDatSetEntries */
	0xab, 0x0c,                                     /* allData */
	0x83, 0x01, 0xff,
	0x84, 0x03, 0x03, 0x08, 0x00,                   /* 13 bits, the fifth one set */
	0x85, 0x02, 0xff, 0x7f,                         /* -129 */
};

static const char *decode(const uint8_t *payload, size_t len, struct apdu *head, struct goose *g)
{
	const char *why = apdu_decode(payload, len, head);

	return why ? why : goose_decode(&head->body, g);
}

static void a_message_is_read(void **state)
{
	struct goose_value v;
	struct apdu head;
	struct goose g;

	assert_null(decode(plain, sizeof(plain), &head, &g));
	assert_int_equal(head.appid, 2);
	assert_false(head.simulation || g.simulation || g.needs_commissioning);
	assert_false(g.secured || apdu_extension(&head));
	assert_int_equal(g.reference.len, 6);
	assert_memory_equal(g.reference.at, "A$GO$b", 6);
	assert_memory_equal(g.dataset.at, "A$d", 3);
	assert_int_equal(g.id.len, 1);
	assert_int_equal(g.allowed_live_ms, 2000);
	assert_int_equal(g.time.nanoseconds, 500000000);
	assert_int_equal(g.state, 5);
	assert_int_equal(g.sequence, 128);
	assert_int_equal(g.revision, 7);
	assert_int_equal(g.count, 3);
	assert_int_equal(goose_next(&g.values, &v), 1);
	assert_true(v.type == GOOSE_BOOLEAN && v.boolean);
	assert_int_equal(goose_next(&g.values, &v), 1);
	assert_true(v.type == GOOSE_BIT_STRING && v.bits == 13 && v.number == 1 << 8);
	assert_int_equal(goose_next(&g.values, &v), 1);
	assert_true(v.type == GOOSE_INTEGER && v.integer == -129);
	assert_int_equal(goose_next(&g.values, &v), 0);
}

static void what_is_written_is_what_stands_in_the_standard(void **state)
{
	const struct apdu head = { .appid = 2 };
	const struct goose g = {
		.reference = { (const uint8_t *)"A$GO$b", 6 },
		.dataset = { (const uint8_t *)"A$d", 3 },
		.id = { (const uint8_t *)"i", 1 },
		.allowed_live_ms = 2000,
		.time = { .seconds = 0x65000000, .nanoseconds = 500000000, .accuracy = 10 },
		.state = 5, .sequence = 128, .revision = 7,
	};
	const struct goose_value values[] = {
		{ .type = GOOSE_BOOLEAN, .boolean = true },
		{ .type = GOOSE_BIT_STRING, .bits = 13, .number = 1 << 8 },
		{ .type = GOOSE_INTEGER, .integer = -129 },
	};
	uint8_t buffer[200], *at;
	size_t len;

	at = goose_encode(&head, &g, values, ARRAY_SIZE(values), buffer, sizeof(buffer), &len);
	assert_non_null(at);
	assert_int_equal(len, sizeof(plain));
	assert_memory_equal(at, plain, len);
	for (size_t size = 0; size < sizeof(plain); size++) {
		uint8_t *small = malloc(size + 1); /* a sanitizer sees writing outside */

		small[size] = 0x55;
		assert_null(goose_encode(&head, &g, values, ARRAY_SIZE(values), small, size, &len));
		assert_int_equal(small[size], 0x55);
		free(small);
	}
}

/* One byte of `plain` is another one: what the message says then cannot be true. */
static void damaged_messages_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *why;
	} cases[] = {
		{ 3, 7, "length" },            /* less than the header */
		{ 3, 0x4a, "length" },         /* more than there is */
		{ 3, 0x48, "no message" },     /* it ends within the last item */
		{ 8, 0x60, "no message" },     /* sampled values */
		{ 9, 0x3e, "left behind" },
		{ 10, 0x81, "wrong length" },  /* gocbRef becomes a time to live of 6 bytes */
		{ 18, 0x80, "out of order" },  /* a second gocbRef */
		{ 19, 1, "" },                 /* what is in it becomes an item */
		{ 23, 0, "" },
		{ 27, 0x84, "wrong length" },  /* goID becomes t of one byte */
		{ 31, 7, "wrong length" },
		{ 40, 0x86, "out of order" },  /* stNum becomes sqNum */
		{ 50, 0x8d, "unknown" },
		{ 58, 2, "numDatSetEntries" },
		{ 58, 4, "numDatSetEntries" },
		{ 59, 0xad, "out of order" },
		{ 60, 0x0b, "damaged" },
		{ 60, 0x0d, "damaged" },
		{ 61, 0x88, "damaged" },       /* a value of no known type */
		{ 66, 8, "damaged" },          /* more unused bits than a byte has */
		{ 65, 5, "damaged" },          /* the bits take what is behind them */
	};
	struct apdu head;
	struct goose g;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t bytes[sizeof(plain)];
		const char *why;

		memcpy(bytes, plain, sizeof(plain));
		bytes[cases[i].at] = cases[i].value;
		why = decode(bytes, sizeof(bytes), &head, &g);
		if (!why)
			fail_msg("byte %zu: it is read", cases[i].at);
		if (!strstr(why, cases[i].why))
			fail_msg("byte %zu: %s", cases[i].at, why);
	}
}

/* The message, without the item that begins at `at`. */
static void a_message_without_a_needed_item_is_refused(void **state)
{
	static const struct {
		size_t at;
		bool needed;
	} items[] = { { 10, true }, { 18, true }, { 22, true }, { 27, false }, { 30, true },
		      { 40, true }, { 43, true }, { 47, false }, { 50, true }, { 53, false },
		      { 56, true }, { 59, true } };

	for (size_t i = 0; i + 1 < ARRAY_SIZE(items); i++) {
		size_t len = plain[items[i].at + 1] + 2u, rest = items[i].at + len;
		uint8_t bytes[sizeof(plain)];
		struct apdu head;
		struct goose g;
		const char *why;

		memcpy(bytes, plain, sizeof(plain));
		memmove(bytes + items[i].at, bytes + rest, sizeof(plain) - rest);
		bytes[3] = (uint8_t)(bytes[3] - len);
		bytes[9] = (uint8_t)(bytes[9] - len);
		why = decode(bytes, sizeof(bytes) - len, &head, &g);
		assert_int_equal(!!why, items[i].needed);
		if (why)
			assert_non_null(strstr(why, "missing"));
	}
}

/* Whatever its length says: a message that ends early is refused. */
static void messages_that_end_early_are_refused(void **state)
{
	struct apdu head;
	struct goose g;

	for (size_t len = 0; len < sizeof(plain); len++) {
		uint8_t *bytes = malloc(len ? len : 1);

		memcpy(bytes, plain, len);
		assert_non_null(decode(bytes, len, &head, &g));
		if (len >= APDU_HEADER) {
			bytes[3] = (uint8_t)len;
			assert_non_null(decode(bytes, len, &head, &g));
		}
		free(bytes);
	}
}

/* A structure in a structure in a structure. */
static void structures_may_be_so_deep_and_no_deeper(void **state)
{
	struct goose_value values[GOOSE_DEPTH_MAX + 1] = { { .type = GOOSE_BOOLEAN } };
	const struct goose g = { .reference = { (const uint8_t *)"r", 1 },
				 .dataset = { (const uint8_t *)"d", 1 } };
	const struct apdu head = { 0 };
	uint8_t buffer[300], *at;
	size_t len;

	for (unsigned depth = 1; depth <= GOOSE_DEPTH_MAX; depth++) {
		struct apdu read_head;
		struct goose read;
		const char *why;

		values[depth] = (struct goose_value){ .type = GOOSE_STRUCTURE,
						      .parts = &values[depth - 1],
						      .part_count = 1 };
		at = goose_encode(&head, &g, &values[depth], 1, buffer, sizeof(buffer), &len);
		assert_non_null(at);
		why = decode(at, len, &read_head, &read);
		assert_int_equal(!why, depth < GOOSE_DEPTH_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_read),
		cmocka_unit_test(what_is_written_is_what_stands_in_the_standard),
		cmocka_unit_test(damaged_messages_are_refused),
		cmocka_unit_test(a_message_without_a_needed_item_is_refused),
		cmocka_unit_test(messages_that_end_early_are_refused),
		cmocka_unit_test(structures_may_be_so_deep_and_no_deeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
