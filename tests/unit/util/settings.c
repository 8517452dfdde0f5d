/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings table: which values are accepted, refused and reported. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/log.h"
#include "util/settings.h"

struct target {
	bool on;
	uint64_t number, size;
	int mode;
	const char *name;
};

static const char *const modes[] = { "auto", "poll", "event", NULL };

static const struct setting table[] = {
	{ "BUSBAR_T_ON", "yes", "a switch", SETTING_BOOL,
	  offsetof(struct target, on), 0, 0, NULL },
	{ "BUSBAR_T_NUMBER", "7", "a number", SETTING_UINT,
	  offsetof(struct target, number), 1, 100, NULL },
	{ "BUSBAR_T_SIZE", "64k", "a size", SETTING_SIZE,
	  offsetof(struct target, size), 1024, UINT64_C(1) << 40, NULL },
	{ "BUSBAR_T_MODE", "poll", "a mode", SETTING_ENUM,
	  offsetof(struct target, mode), 0, 0, modes },
	{ "BUSBAR_T_NAME", "nobody", "a name", SETTING_STRING,
	  offsetof(struct target, name), 0, 0, NULL },
};
enum { ENTRIES = sizeof(table) / sizeof(table[0]) };

static char lines[2048];
static int line_count;

static bool sink(enum log_level level, const char *line)
{
	strncat(lines, line, sizeof(lines) - strlen(lines) - 1);
	line_count++;
	return true;
}

static int setup(void **unused)
{
	for (int i = 0; i < ENTRIES; i++)
		unsetenv(table[i].env);
	lines[0] = '\0';
	line_count = 0;
	log_set_sink(sink);
	return 0;
}

static int teardown(void **unused)
{
	log_set_sink(NULL);
	return setup(unused);
}

static void without_environment_the_defaults_hold(void **unused)
{
	struct target t = { 0 };

	assert_int_equal(settings_load(table, ENTRIES, &t), 0);
	assert_true(t.on);
	assert_int_equal(t.number, 7);
	assert_int_equal(t.size, 65536);
	assert_int_equal(t.mode, 1);
	assert_string_equal(t.name, "nobody");
	assert_int_equal(line_count, 0);
}

static void the_environment_overrides_them(void **unused)
{
	struct target t = { 0 };

	setenv("BUSBAR_T_ON", "OFF", 1);
	setenv("BUSBAR_T_NUMBER", "0x10", 1);
	setenv("BUSBAR_T_SIZE", "2G", 1);
	setenv("BUSBAR_T_MODE", "Event", 1);
	setenv("BUSBAR_T_NAME", "me", 1);
	assert_int_equal(settings_load(table, ENTRIES, &t), 0);
	assert_false(t.on);
	assert_int_equal(t.number, 16);
	assert_true(t.size == UINT64_C(2) << 30);
	assert_int_equal(t.mode, 2);
	assert_string_equal(t.name, "me");
}

static void bad_values_are_refused(void **unused)
{
	static const struct {
		int entry;
		const char *text;
		int error;
	} bad[] = {
		{ 0, "", -EINVAL },	{ 0, "maybe", -EINVAL },
		{ 0, "10", -EINVAL },	{ 1, "", -EINVAL },
		{ 1, "-1", -EINVAL },	{ 1, "+1", -EINVAL },
		{ 1, " 1", -EINVAL },	{ 1, "1x", -EINVAL },
		{ 1, "1k", -EINVAL },	{ 1, "0", -ERANGE },
		{ 1, "101", -ERANGE },	{ 1, "99999999999999999999", -ERANGE },
		{ 2, "k", -EINVAL },	{ 2, "4kk", -EINVAL },
		{ 2, "4t", -EINVAL },	{ 2, "1023", -ERANGE },
		{ 2, "1025g", -ERANGE }, { 2, "18446744073709551615g", -ERANGE },
		{ 3, "", -EINVAL },	{ 3, "pol", -EINVAL },
		{ 3, "polls", -EINVAL },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct target t = { .number = 55, .size = 55, .mode = 55 };
		struct target before = t;

		assert_int_equal(setting_parse(&table[bad[i].entry], bad[i].text,
					       (char *)&t +
						       table[bad[i].entry].offset),
				 bad[i].error);
		assert_memory_equal(&t, &before, sizeof(t));
	}
}

static void a_bad_value_is_reported_once_and_the_default_is_used(void **unused)
{
	struct target t = { 0 };

	setenv("BUSBAR_T_NUMBER", "500", 1);
	setenv("BUSBAR_T_MODE", "sometimes", 1);
	assert_int_equal(settings_load(table, ENTRIES, &t), 2);
	assert_int_equal(t.number, 7);
	assert_int_equal(t.mode, 1);
	assert_int_equal(line_count, 2);
	/* The message has the variable, the value and the expected range. */
	assert_non_null(strstr(lines, "BUSBAR_T_NUMBER"));
	assert_non_null(strstr(lines, "500"));
	assert_non_null(strstr(lines, "1 to 100"));
	assert_non_null(strstr(lines, "BUSBAR_T_MODE"));
	assert_non_null(strstr(lines, "sometimes"));
	assert_non_null(strstr(lines, "auto, poll, event"));
}

static void the_printed_table_names_every_setting(void **unused)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	settings_print(table, ENTRIES, f);
	fclose(f);
	for (int i = 0; i < ENTRIES; i++) {
		assert_non_null(strstr(text, table[i].env));
		assert_non_null(strstr(text, table[i].fallback));
		assert_non_null(strstr(text, table[i].help));
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_environment_the_defaults_hold, setup),
		cmocka_unit_test_setup(the_environment_overrides_them, setup),
		cmocka_unit_test_setup(bad_values_are_refused, setup),
		cmocka_unit_test_setup(a_bad_value_is_reported_once_and_the_default_is_used, setup),
		cmocka_unit_test_setup(the_printed_table_names_every_setting, setup),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
