/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of /proc/self/maps, and which memory may be moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/host/maps.h"

static struct maps_entry parsed(const char *line)
{
	struct maps_entry m;

	assert_true(maps_parse(line, &m));
	return m;
}

static void all_fields_are_read(void **state)
{
	struct maps_entry m = parsed(
		"7f0000001000-7f0000003000 rw-s 00002000 00:01 1234567          /memfd:busbar-region (deleted)");

	assert_int_equal(m.start, 0x7f0000001000);
	assert_int_equal(m.end, 0x7f0000003000);
	assert_int_equal(m.offset, 0x2000);
	assert_int_equal(m.inode, 1234567);
	assert_true(m.shared && m.is_region && !m.ordinary);
}

static void ordinary_memory_is_private_anonymous_and_no_stack(void **state)
{
	assert_true(parsed("1000-2000 rw-p 00000000 00:00 0").ordinary);
	assert_true(parsed("1000-2000 rw-p 00000000 00:00 0 ").ordinary);
	assert_true(parsed("1000-2000 rw-p 00000000 00:00 0    [heap]").ordinary);
	assert_true(parsed("1000-2000 rw-p 00000000 00:00 0 [anon:x]").ordinary);
	assert_false(parsed("1000-2000 rw-p 00000000 00:00 0 [stack]").ordinary);
	assert_false(parsed("1000-2000 rw-p 00000000 00:00 0 [anon:stack_and_tls:7]").ordinary);
	assert_false(parsed("1000-2000 r--p 00000000 00:00 0").ordinary);
	assert_false(parsed("1000-2000 rwxp 00000000 00:00 0").ordinary);
	assert_false(parsed("1000-2000 rw-s 00000000 00:00 0").ordinary);
	assert_false(parsed("1000-2000 rw-p 00000000 08:01 77 /bin/x").ordinary);
	assert_false(parsed("1000-2000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)").ordinary);
}

static void what_is_no_line_is_none(void **state)
{
	static const char *const lines[] = {
		"", "x", "1000", "1000-", "1000-2000", "1000-2000 rw-p",
		"1000-2000 rw-p 0", "1000-2000 rw-p 0 00", "g-2000 rw-p 0 0:0 0",
	};
	struct maps_entry m;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(maps_parse(lines[i], &m));
}

static void count(const struct maps_entry *m, void *arg)
{
	uint64_t *last = arg;

	assert_true(m->start < m->end && m->start >= *last);
	*last = m->end;
}

static void the_process_itself_is_walked_in_order(void **state)
{
	uint64_t last = 0;

	assert_int_equal(maps_walk(count, &last), 0);
	assert_true(last > (uintptr_t)&last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields_are_read),
		cmocka_unit_test(ordinary_memory_is_private_anonymous_and_no_stack),
		cmocka_unit_test(what_is_no_line_is_none),
		cmocka_unit_test(the_process_itself_is_walked_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
