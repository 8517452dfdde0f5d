/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines: level, form, sink, and errno. */
#define LOG_ROOM "test/log"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/log.h"

static char last[2048];
static int count;

static bool sink(enum log_level level, const char *line)
{
	strncpy(last, line, sizeof(last) - 1);
	count++;
	errno = EDOM;
	return true;
}

static int setup(void **unused)
{
	unsetenv("BUSBAR_LOG");
	log_set_sink(sink);
	log_set_level(LOG_WARN);
	count = 0;
	last[0] = '\0';
	return 0;
}

static void a_line_names_level_room_and_message(void **unused)
{
	log_warn("qp 0x%x gone", 0x12);
	assert_int_equal(count, 1);
	assert_non_null(strstr(last, "warn"));
	assert_non_null(strstr(last, "test/log: qp 0x12 gone"));
	assert_null(strchr(last, '\n'));
}

static int evaluated;

static int side_effect(void)
{
	return ++evaluated;
}

static void what_is_below_the_level_is_not_even_evaluated(void **unused)
{
	log_info("%d", side_effect());
	assert_int_equal(count, 0);
	assert_int_equal(evaluated, 0);
	log_set_level(LOG_TRACE);
	log_trace("%d", side_effect());
	assert_int_equal(count, 1);
	log_set_level(LOG_ERROR);
	log_warn("x");
	assert_int_equal(count, 1);
	log_error("x");
	assert_int_equal(count, 2);
}

static void errno_is_kept_and_can_be_printed(void **unused)
{
	errno = ENOENT;
	log_error("open: %m");
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(last, "No such file"));
}

static void a_long_line_is_cut_not_overrun(void **unused)
{
	static char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	log_error("%s", text);
	assert_int_equal(count, 1);
	assert_true(strlen(last) < 1024);
	assert_true(strlen(last) > 900);
}

static void names_of_levels_are_understood(void **unused)
{
	assert_int_equal(log_level_parse("error"), LOG_ERROR);
	assert_int_equal(log_level_parse("warn"), LOG_WARN);
	assert_int_equal(log_level_parse("warning"), LOG_WARN);
	assert_int_equal(log_level_parse("info"), LOG_INFO);
	assert_int_equal(log_level_parse("debug"), LOG_DEBUG);
	assert_int_equal(log_level_parse("trace"), LOG_TRACE);
	assert_int_equal(log_level_parse("loud"), -EINVAL);
	assert_int_equal(log_level_parse(""), -EINVAL);
}

static void the_environment_sets_the_level(void **unused)
{
	setenv("BUSBAR_LOG", "debug", 1);
	log_init(LOG_WARN);
	assert_int_equal(log_level_max, LOG_DEBUG);
	unsetenv("BUSBAR_LOG");
	log_init(LOG_INFO);
	assert_int_equal(log_level_max, LOG_INFO);
	setenv("BUSBAR_LOG", "loud", 1);
	log_init(LOG_WARN);
	assert_int_equal(log_level_max, LOG_WARN);
	assert_int_equal(count, 1);
	assert_non_null(strstr(last, "loud"));
	assert_non_null(strstr(last, "trace"));
}

static void without_a_sink_one_line_goes_to_standard_error(void **unused)
{
	char text[256] = "";
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_set_sink(NULL);
	log_error("hello %d", 5);
	dup2(saved, STDERR_FILENO);
	n = read(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	close(fds[1]);
	close(saved);
	assert_true(n > 0);
	assert_non_null(strstr(text, "hello 5"));
	assert_int_equal(text[n - 1], '\n');
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_line_names_level_room_and_message, setup),
		cmocka_unit_test_setup(what_is_below_the_level_is_not_even_evaluated, setup),
		cmocka_unit_test_setup(errno_is_kept_and_can_be_printed, setup),
		cmocka_unit_test_setup(a_long_line_is_cut_not_overrun, setup),
		cmocka_unit_test_setup(names_of_levels_are_understood, setup),
		cmocka_unit_test_setup(the_environment_sets_the_level, setup),
		cmocka_unit_test_setup(without_a_sink_one_line_goes_to_standard_error, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
