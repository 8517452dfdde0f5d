/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of hosts: what they say, what is wrong with them, and that changes are seen. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "ripc/find/hosts.h"

static char folder[] = "/tmp/ripc-hosts-XXXXXX", file[64], why[256];

static int setup(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/hosts", folder);
	return 0;
}

static int teardown(void **state)
{
	unlink(file);
	return rmdir(folder);
}

/* In one step, as whoever changes such a file should. */
static void write_file(const char *text)
{
	char fresh[80];
	FILE *f;

	snprintf(fresh, sizeof(fresh), "%s.new", file);
	f = fopen(fresh, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(fresh, file), 0);
}

static void expect_one(struct hosts *h, uint32_t id, const char *name, const char *address,
		       uint16_t port)
{
	union address found[4], wanted;

	assert_true(address_parse(address, port, &wanted));
	assert_int_equal(hosts_find(h, id, name, true, found, 4), 1);
	assert_true(address_same(&found[0], &wanted, true));
	assert_true(hosts_has(h, id, name, &wanted));
}

static void says_where_to_ask(void **state)
{
	union address found[8], other;
	struct hosts *h;

	write_file("# services of the laboratory\n\n"
		   "7 192.0.2.1 6000\n"
		   "  0x10\t2001:db8::1\t6001 # by night\n"
		   "store 192.0.2.2 6002\n"
		   "\"key \\\"value\\\" store\" 192.0.2.3 6003\n"
		   "\"7\" 192.0.2.1 6000\n"
		   "8 192.0.2.4 6004\n8 192.0.2.5 6005\n8 192.0.2.5 6005");
	assert_int_equal(hosts_open(&h, file, why, sizeof(why)), 0);
	expect_one(h, 7, "", "192.0.2.1", 6000);
	expect_one(h, 16, "", "2001:db8::1", 6001);
	expect_one(h, 0, "store", "192.0.2.2", 6002);
	expect_one(h, 0, "key \"value\" store", "192.0.2.3", 6003);
	expect_one(h, 0, "7", "192.0.2.1", 6000);
	assert_int_equal(hosts_find(h, 8, "", true, found, 8), 2);
	assert_int_equal(hosts_find(h, 9, "", true, found, 8), 0);
	/* What has no line may be with any of them. */
	assert_int_equal(hosts_find(h, 9, "", false, found, 8), 6);
	assert_int_equal(hosts_find(h, 9, "", false, found, 3), 3);
	address_parse("192.0.2.2", 6002, &other);
	assert_true(hosts_has(h, 9, "", &other));
	assert_false(hosts_has(h, 7, "", &other));
	address_parse("192.0.2.2", 6003, &other);
	assert_false(hosts_has(h, 9, "", &other));
	hosts_close(h);
}

static void names_file_and_line_of_an_error(void **state)
{
	static const struct {
		const char *text, *wrong;
	} files[] = {
		{ "7 192.0.2.1\n", ":1: not of the form" },
		{ "7 192.0.2.1 1 1\n", ":1: not of the form" },
		{ "\n7\n", ":2: not of the form" },
		{ "7 192.0.2.1 0\n", ":1: the port" },
		{ "7 192.0.2.1 65536\n", ":1: the port" },
		{ "7 192.0.2.1 6k\n", ":1: the port" },
		{ "# x\n# y\n0 192.0.2.1 1\n", ":3: the ID" },
		{ "4294967296 192.0.2.1 1\n", ":1: the ID" },
		{ "7a 192.0.2.1 1\n", ":1: the ID" },
		{ "7 host.example 1\n", ":1: not an IP address" },
		{ "\"st 192.0.2.1 1\n", ":1: no closing quotation mark" },
		{ "\"\" 192.0.2.1 1\n", ":1: the name" },
		{ "a\xff 192.0.2.1 1\n", ":1: the name" },
	};
	struct hosts *h;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char wanted[128];

		write_file(files[i].text);
		snprintf(wanted, sizeof(wanted), "%s%s", file, files[i].wrong);
		assert_int_equal(hosts_open(&h, file, why, sizeof(why)), -EINVAL);
		assert_memory_equal(why, wanted, strlen(wanted));
	}
	assert_int_equal(hosts_open(&h, "/nowhere/hosts", why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "/nowhere/hosts: No such file or directory");
	assert_int_equal(hosts_open(&h, folder, why, sizeof(why)), -EISDIR);
	unlink(file);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(hosts_open(&h, file, why, sizeof(why)), -EISDIR);
	unlink(file);
}

static void sees_changes_and_keeps_what_held_while_there_is_an_error(void **state)
{
	union address found[4];
	struct hosts *h;

	write_file("7 192.0.2.1 6000\n");
	assert_int_equal(hosts_open(&h, file, why, sizeof(why)), 0);
	write_file("7 192.0.2.2 6001\n8 192.0.2.3 6000\n");
	expect_one(h, 7, "", "192.0.2.2", 6001);
	write_file("7 192.0.2.9 6001\nand so on\n");
	expect_one(h, 7, "", "192.0.2.2", 6001);
	unlink(file);
	expect_one(h, 7, "", "192.0.2.2", 6001);
	write_file("");
	assert_int_equal(hosts_find(h, 7, "", false, found, 4), 0);
	hosts_close(h);
}

/* In place, as long as before, and with the same time: as within a step of the clock. */
static void sees_a_change_that_leaves_no_trace(void **state)
{
	struct stat seen;
	struct hosts *h;
	FILE *f;

	write_file("7 192.0.2.1 6000\n");
	assert_int_equal(stat(file, &seen), 0);
	assert_int_equal(hosts_open(&h, file, why, sizeof(why)), 0);
	f = fopen(file, "r+");
	assert_non_null(f);
	fputs("7 192.0.2.2 6001\n", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(utimensat(AT_FDCWD, file, (struct timespec[]){ seen.st_atim, seen.st_mtim },
				   0), 0);
	expect_one(h, 7, "", "192.0.2.2", 6001);
	hosts_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_where_to_ask),
		cmocka_unit_test(names_file_and_line_of_an_error),
		cmocka_unit_test(sees_changes_and_keeps_what_held_while_there_is_an_error),
		cmocka_unit_test(sees_a_change_that_leaves_no_trace),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
