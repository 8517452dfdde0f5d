/* SPDX-License-Identifier: BSD-2-Clause */
/* BER: what was written is read again; what is damaged is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/prng.h"
#include "wire/grid/ber.h"

/* Examples of X.690, 8.3 and 8.1.3, and the limits of the types. */
static void numbers_are_as_short_as_the_rules_say(void **state)
{
	static const struct {
		int64_t value;
		uint8_t bytes[11];
		size_t len;
	} cases[] = {
		{ 0, { 2, 1, 0 }, 3 },
		{ 127, { 2, 1, 0x7f }, 3 },
		{ 128, { 2, 2, 0, 0x80 }, 4 },
		{ 256, { 2, 2, 1, 0 }, 4 },
		{ -1, { 2, 1, 0xff }, 3 },
		{ -128, { 2, 1, 0x80 }, 3 },
		{ -129, { 2, 2, 0xff, 0x7f }, 4 },
		{ INT64_MAX, { 2, 8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, 10 },
		{ INT64_MIN, { 2, 8, 0x80, 0, 0, 0, 0, 0, 0, 0 }, 10 },
	};
	uint8_t buffer[16];
	struct ber_writer w;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ber b;
		struct ber_item item;
		int64_t value;

		ber_begin(&w, buffer, sizeof(buffer));
		ber_item_signed(&w, 2, cases[i].value);
		assert_false(w.full);
		assert_int_equal(ber_written(&w), cases[i].len);
		assert_memory_equal(w.at, cases[i].bytes, cases[i].len);
		b = (struct ber){ w.at, ber_written(&w) };
		assert_int_equal(ber_next(&b, &item), 1);
		assert_true(ber_signed(&item.value, &value));
		assert_int_equal(value, cases[i].value);
		assert_int_equal(ber_next(&b, &item), 0);
	}
}

static void unsigned_numbers_have_a_zero_in_front(void **state)
{
	uint8_t buffer[16];
	struct ber_writer w;
	struct ber_item item;
	struct ber b;
	uint64_t value;

	ber_begin(&w, buffer, sizeof(buffer));
	ber_item_unsigned(&w, 0x86, UINT64_MAX);
	assert_int_equal(ber_written(&w), 11);
	b = (struct ber){ w.at, ber_written(&w) };
	assert_int_equal(ber_next(&b, &item), 1);
	assert_int_equal(item.tag, 0x86);
	assert_true(ber_unsigned(&item.value, &value));
	assert_true(value == UINT64_MAX);
	item.value.len = 0;
	assert_false(ber_unsigned(&item.value, &value));
}

static void lengths_grow_with_what_they_count(void **state)
{
	static uint8_t buffer[70000];
	static const uint8_t zeros[66000];
	static const struct {
		size_t len, head;
	} cases[] = { { 0, 2 }, { 127, 2 }, { 128, 3 }, { 255, 3 }, { 256, 4 }, { 65535, 4 },
		      { 65536, 5 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ber_writer w;
		struct ber_item outer, inner;
		struct ber b;
		size_t before;

		ber_begin(&w, buffer, sizeof(buffer));
		before = ber_written(&w);
		ber_item_bytes(&w, 0x80, zeros, cases[i].len);
		assert_int_equal(ber_written(&w), cases[i].head + cases[i].len);
		ber_wrap(&w, 0x61, before);
		b = (struct ber){ w.at, ber_written(&w) };
		assert_int_equal(ber_next(&b, &outer), 1);
		assert_int_equal(outer.tag, 0x61);
		assert_int_equal(ber_next(&outer.value, &inner), 1);
		assert_int_equal(inner.value.len, cases[i].len);
	}
}

static void a_full_buffer_is_told_and_not_overrun(void **state)
{
	for (size_t size = 0; size < 12; size++) {
		uint8_t *buffer = malloc(size + 1); /* a sanitizer sees writing outside */
		struct ber_writer w;

		buffer[size] = 0x55;
		ber_begin(&w, buffer, size);
		ber_item_bytes(&w, 0x80, "12345", 5);
		ber_wrap(&w, 0x61, 0);
		assert_int_equal(w.full, size < 9);
		assert_int_equal(buffer[size], 0x55);
		free(buffer);
	}
}

static void damaged_items_are_refused(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t len;
	} cases[] = {
		{ { 0x80 }, 1 },                      /* without a length */
		{ { 0x80, 1 }, 2 },                   /* the contents are missing */
		{ { 0x80, 0x80, 0, 0 }, 4 },          /* indefinite */
		{ { 0x9f, 0x20, 1, 0 }, 4 },          /* a tag of two bytes */
		{ { 0x80, 0x82, 1 }, 3 },             /* half a length */
		{ { 0x80, 0x84, 0xff, 0xff, 0xff, 0xff }, 6 },
		{ { 0x80, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0 }, 11 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ber b = { cases[i].bytes, cases[i].len };
		struct ber_item item;

		assert_int_equal(ber_next(&b, &item), -EPROTO);
		assert_ptr_equal(b.at, cases[i].bytes);
	}
}

/* Random bytes: it ends, and no item goes beyond what it is in. */
static void random_bytes_never_lead_outside(void **state)
{
	struct prng random = { .state = 7 };

	for (unsigned run = 0; run < 20000; run++) {
		size_t len = prng_next(&random) % 40;
		uint8_t *bytes = malloc(len ? len : 1);
		struct ber b = { bytes, len };
		struct ber_item item;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)(prng_next(&random) & (i % 2 ? 0x87 : 0xff));
		while (ber_next(&b, &item) > 0) {
			assert_true(item.value.at >= bytes);
			assert_true(item.value.at + item.value.len <= bytes + len);
			assert_true(b.at + b.len == bytes + len);
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_as_short_as_the_rules_say),
		cmocka_unit_test(unsigned_numbers_have_a_zero_in_front),
		cmocka_unit_test(lengths_grow_with_what_they_count),
		cmocka_unit_test(a_full_buffer_is_told_and_not_overrun),
		cmocka_unit_test(damaged_items_are_refused),
		cmocka_unit_test(random_bytes_never_lead_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
