/* SPDX-License-Identifier: BSD-2-Clause */
/* Capture files that come in pieces, are damaged, or have uncommon parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyse.h"
#include "wire/capture/link.h"

static uint8_t *file_of(const char *name, const struct scene_file *f, size_t *size)
{
	struct scene s;
	uint8_t *bytes;

	assert_true(scene_named(name, &s));
	bytes = scene_write(&s, f, size);
	scene_free(&s);
	return bytes;
}

static void pieces_of_any_size_give_the_same(void **state)
{
	static const size_t pieces[] = { 1, 3, 16, 17, 100, 4096 };

	for (int ng = 0; ng < 2; ng++) {
		size_t size;
		uint8_t *bytes = file_of("fig5.3", &(struct scene_file){ .link = CAPTURE_ERF, .ng = ng }, &size);

		for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
			struct analyzer_capture c;
			struct analyzer *a = analyse_bytes(bytes, size, pieces[i], &c);

			assert_false(c.corrupt);
			assert_int_equal(c.packets, 8);
			assert_int_equal(analyzer_flow(a, 0)->verdict, ANALYZER_DAMMING);
			analyzer_free(a);
		}
		free(bytes);
	}
}

static void a_file_that_is_cut_is_used_up_to_there(void **state)
{
	for (int ng = 0; ng < 2; ng++) {
		size_t size;
		uint8_t *bytes = file_of("fig5.3", &(struct scene_file){ .link = CAPTURE_ERF, .ng = ng }, &size);

		for (size_t cut = 0; cut < size; cut++) {
			struct analyzer_capture c;
			struct analyzer *a = analyse_bytes(bytes, cut, 0, &c);

			assert_true(c.packets < 8);
			if (c.corrupt) {
				assert_true(c.reader.error.offset <= cut);
				assert_non_null(c.reader.error.field);
			}
			analyzer_free(a);
		}
		free(bytes);
	}
}

static void damage_is_named_with_its_offset(void **state)
{
	size_t size;
	uint8_t *bytes = file_of("fig5.3", &(struct scene_file){ .link = CAPTURE_ERF, .big = true }, &size);
	struct analyzer_capture c;
	struct analyzer *a;

	bytes[24 + 8] = 0xff; /* the captured length of the first record */
	a = analyse_bytes(bytes, size, 0, &c);
	assert_true(c.corrupt);
	assert_int_equal(c.reader.error.offset, 24 + 8);
	assert_string_equal(c.reader.error.field, "the captured length");
	analyzer_free(a);
	bytes[0] = 'x';
	a = analyse_bytes(bytes, size, 0, &c);
	assert_true(c.corrupt);
	assert_string_equal(c.reader.error.field, "the number at the start of the file");
	analyzer_free(a);
	free(bytes);
}

/* One section in each byte order, one behind the other. */
static void several_sections_are_read(void **state)
{
	struct analyzer_capture c;
	struct analyzer *a;
	size_t size[2];
	uint8_t *part[2], *both;

	for (int big = 0; big < 2; big++)
		part[big] = file_of("clean", &(struct scene_file){ .link = CAPTURE_ETHERNET, .ng = true,
								   .big = big }, &size[big]);
	both = malloc(size[0] + size[1]);
	assert_non_null(both);
	memcpy(both, part[0], size[0]);
	memcpy(both + size[0], part[1], size[1]);
	a = analyse_bytes(both, size[0] + size[1], 0, &c);
	assert_false(c.corrupt);
	assert_int_equal(c.packets, 200);
	assert_int_equal(c.reader.sections, 2);
	analyzer_free(a);
	free(both);
	free(part[0]);
	free(part[1]);
}

static void put(uint8_t **at, uint32_t v)
{
	memcpy(*at, &v, 4);
	*at += 4;
}

/* An interface with times of 1/1024 s and an offset, an unknown block, a simple packet. */
static void uncommon_blocks_are_read(void **state)
{
	uint8_t bytes[256], *at = bytes;
	struct capture_reader r;
	struct capture_packet p = { 0 };
	enum capture_status status;
	size_t used, all = 0;
	int found = 0;

	put(&at, 0x0a0d0d0a), put(&at, 28), put(&at, 0x1a2b3c4d), put(&at, 1);
	put(&at, UINT32_MAX), put(&at, UINT32_MAX), put(&at, 28);
	put(&at, 1), put(&at, 40), put(&at, 147), put(&at, 2);
	put(&at, 9 | 1 << 16), put(&at, 0x80 | 10), put(&at, 14 | 8 << 16), put(&at, 5), put(&at, 0);
	put(&at, 40);
	put(&at, 0xbad), put(&at, 16), put(&at, 0), put(&at, 16);
	put(&at, 6), put(&at, 36), put(&at, 0), put(&at, 0), put(&at, 1536);
	put(&at, 1), put(&at, 9), put(&at, 0x61), put(&at, 36);
	put(&at, 3), put(&at, 20), put(&at, 60), put(&at, 0x62), put(&at, 20);
	capture_begin(&r);
	while ((status = capture_next(&r, bytes + all, (size_t)(at - bytes) - all, &used, &p)) != CAPTURE_MORE) {
		assert_int_not_equal(status, CAPTURE_CORRUPT);
		all += used;
		if (status != CAPTURE_PACKET)
			continue;
		assert_int_equal(p.link, 147);
		if (!found++) {
			assert_int_equal(p.when_ns, UINT64_C(6500000000));
			assert_int_equal(p.captured, 1);
			assert_int_equal(p.length, 9);
		} else {
			assert_false(p.timed);
			assert_int_equal(p.captured, 2); /* by the snapshot length */
			assert_int_equal(*p.data, 0x62);
		}
	}
	assert_int_equal(found, 2);
	assert_true(capture_end(&r, (size_t)(at - bytes) - all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_any_size_give_the_same),
		cmocka_unit_test(a_file_that_is_cut_is_used_up_to_there),
		cmocka_unit_test(damage_is_named_with_its_offset),
		cmocka_unit_test(several_sections_are_read),
		cmocka_unit_test(uncommon_blocks_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
