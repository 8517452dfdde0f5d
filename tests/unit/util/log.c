/* SPDX-License-Identifier: BSD-2-Clause */
/* Log lines: level, form, sink, and errno. */
#define LOG_ROOM "test/log"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/log.h"
#include "util/log_limit.h"
#include "util/log_recent.h"

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

/* U+009B begins a command to a terminal, as escape and [ do. */
static void control_characters_of_a_message_are_not_printed(void **unused)
{
	log_warn("%s", "a\x1b[2Jb\nc\x7f" "d\xc2\x9b" "2Je \xc3\x9b \xc2\xa0.");
	assert_non_null(strstr(last, "test/log: a?[2Jb?c?d??2Je \xc3\x9b \xc2\xa0."));
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
	assert_int_equal(log_level_parse("off"), LOG_OFF);
	assert_int_equal(log_level_parse("critical"), LOG_OFF);
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

static void rooms_have_levels_of_their_own(void **unused)
{
	const struct log_rule rules[] = { { "test/*", LOG_OFF },
					  { "log", LOG_DEBUG },
					  { "other", LOG_ERROR } };
	const struct log_settings s = { .rules = rules, .rule_count = 3 };

	assert_int_equal(log_configure(&s), 0);
	log_debug("seen"); /* the last matching rule counts; it matches the part after / */
	assert_int_equal(count, 1);
	log_trace("not seen");
	log_write(LOG_WARN, "other", "not seen");
	log_write(LOG_DEBUG, "third", "not seen");
	assert_int_equal(count, 1);
	log_write(LOG_WARN, "third", "seen");
	assert_int_equal(count, 2);
	assert_int_equal(log_configure(NULL), 0);
	log_debug("not seen");
	assert_int_equal(count, 2);
	assert_int_equal(log_level_max, LOG_WARN);
}

static void a_pattern_gives_the_line_its_form(void **unused)
{
	struct log_settings s = { .pattern = "<%l|%L> %n [%v] 100%%%^" };

	assert_null(log_pattern_check(s.pattern));
	assert_string_equal(log_pattern_check("a %v %Q"), "%Q");
	assert_string_equal(log_pattern_check("%"), "%");
	assert_int_equal(log_configure(&s), 0);
	log_warn("x %d", 7);
	assert_string_equal(last, "<warn|W> test/log [x 7] 100%");
	s.pattern = "%Y-%m-%d %T.%f %P %t %v";
	assert_int_equal(log_configure(&s), 0);
	log_warn("y");
	assert_true(strlen(last) > 30 && last[4] == '-');
	assert_int_equal(log_configure(NULL), 0);
}

static void lines_go_to_a_file_too(void **unused)
{
	char path[] = "/tmp/busbar-log-test-XXXXXX", text[256] = "";
	struct log_settings s = { .file = path };
	int fd = mkstemp(path), null = open("/dev/null", O_WRONLY);
	int saved = dup(STDERR_FILENO);

	assert_true(fd >= 0);
	assert_int_equal(log_configure(&s), 0);
	log_set_sink(NULL);
	dup2(null, STDERR_FILENO);
	log_error("one");
	log_error("two");
	dup2(saved, STDERR_FILENO);
	assert_int_equal(log_configure(NULL), 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "test/log: one\n"));
	assert_non_null(strstr(text, "test/log: two\n"));
	s.file = "/nonexistent/folder/file";
	assert_int_equal(log_configure(&s), -ENOENT);
	unlink(path);
	close(fd);
	close(null);
	close(saved);
}

static void a_prefix_from_the_environment_stands_first(void **unused)
{
	setenv("VILLAS_LOG_PREFIX", "left: ", 1);
	log_init(LOG_WARN);
	log_warn("x");
	assert_int_equal(strncmp(last, "left: ", 6), 0);
	setenv("VILLAS_LOG_PREFIX", "", 1);
	log_init(LOG_WARN);
	unsetenv("VILLAS_LOG_PREFIX");
}

/* Reads until a line with `what` has come. */
static void read_until(int fd, const char *what)
{
	static char text[256 << 10];
	size_t len = 0;

	do {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);

		assert_true(n > 0);
		len += (size_t)n;
		text[len] = '\0';
	} while (!strstr(text, what));
}

static void check_reader_that_stops(int reader, int writer)
{
	int saved = dup(STDERR_FILENO), flags;

	dup2(writer, STDERR_FILENO);
	flags = fcntl(STDERR_FILENO, F_GETFL);
	log_set_sink(NULL);
	/* More than the system's buffers hold: without a limit of time it would hang. */
	alarm(60);
	for (int i = 0; i < 20000; i++)
		log_error("line %05d: %0100d", i, 0);
	alarm(0);
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL), flags);
	log_set_sink(sink);
	assert_true(read(reader, (char[32768]){ 0 }, 32768) > 0);
	/* The kernel passes on a terminal's buffer asynchronously. */
	for (int tries = 0; tries < 50000; tries++) {
		struct pollfd p = { .fd = writer, .events = POLLOUT };

		if (poll(&p, 1, 1) == 1)
			break;
	}
	log_set_sink(NULL);
	log_error("read again");
	log_set_sink(sink);
	dup2(saved, STDERR_FILENO);
	alarm(60);
	read_until(reader, " lines are left out here");
	alarm(0);
	close(saved);
	close(reader);
	close(writer);
}

static void a_pipe_that_nobody_reads_stops_nobody(void **unused)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	check_reader_that_stops(fds[0], fds[1]);
}

static void a_socket_that_nobody_reads_stops_nobody(void **unused)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	check_reader_that_stops(fds[0], fds[1]);
}

static void a_terminal_that_nobody_reads_stops_nobody(void **unused)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	if (master < 0 || grantpt(master) || unlockpt(master))
		skip();
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	check_reader_that_stops(master, slave);
}

static void the_last_lines_are_kept_in_order_and_old_ones_go(void **unused)
{
	struct log_recent_line line;
	uint64_t first, n;

	assert_false(log_recent_next(0, &line));
	log_warn("before");
	assert_int_equal(log_recent_last(), 0);
	assert_int_equal(log_recent_keep(), 0);
	log_info("below the level");
	log_warn("a\tb %d", 1);
	first = log_recent_last();
	assert_true(log_recent_next(0, &line));
	assert_int_equal(line.number, first);
	assert_int_equal(line.level, LOG_WARN);
	assert_string_equal(line.room, "test/log");
	assert_string_equal(line.message, "a?b 1");
	assert_false(log_recent_next(first, &line));
	for (unsigned i = 0; i < LOG_RECENT_LINES + 10; i++)
		log_error("%u", i);
	n = first;
	for (unsigned i = 10; log_recent_next(n, &line); i++) {
		assert_int_equal(strtoul(line.message, NULL, 10), i);
		assert_true(line.number > n);
		n = line.number;
	}
	assert_int_equal(n, log_recent_last());
	assert_int_equal(n, first + LOG_RECENT_LINES + 10);
}

static void lines_of_strangers_are_limited_and_counted(void **state)
{
	struct log_limit limit = { 0 };
	unsigned left_out, written = 0;
	uint64_t now_ns = 5;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		written += log_limit_take(&limit, now_ns + i, &left_out);
		assert_int_equal(left_out, 0);
	}
	assert_int_equal(written, LOG_LIMIT_LINES);
	now_ns += LOG_LIMIT_NS + 1;
	assert_true(log_limit_take(&limit, now_ns, &left_out));
	assert_int_equal(left_out, 3000 - LOG_LIMIT_LINES);
	assert_true(log_limit_take(&limit, now_ns, &left_out));
	assert_int_equal(left_out, 0);
	/* Nothing was left out since. */
	assert_true(log_limit_take(&limit, now_ns + LOG_LIMIT_NS + 1, &left_out));
	assert_int_equal(left_out, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_strangers_are_limited_and_counted),
		cmocka_unit_test_setup(control_characters_of_a_message_are_not_printed, setup),
		cmocka_unit_test_setup(a_line_names_level_room_and_message, setup),
		cmocka_unit_test_setup(what_is_below_the_level_is_not_even_evaluated, setup),
		cmocka_unit_test_setup(errno_is_kept_and_can_be_printed, setup),
		cmocka_unit_test_setup(a_long_line_is_cut_not_overrun, setup),
		cmocka_unit_test_setup(names_of_levels_are_understood, setup),
		cmocka_unit_test_setup(the_environment_sets_the_level, setup),
		cmocka_unit_test_setup(rooms_have_levels_of_their_own, setup),
		cmocka_unit_test_setup(a_pattern_gives_the_line_its_form, setup),
		cmocka_unit_test_setup(lines_go_to_a_file_too, setup),
		cmocka_unit_test_setup(a_prefix_from_the_environment_stands_first, setup),
		cmocka_unit_test_setup(a_pipe_that_nobody_reads_stops_nobody, setup),
		cmocka_unit_test_setup(a_socket_that_nobody_reads_stops_nobody, setup),
		cmocka_unit_test_setup(a_terminal_that_nobody_reads_stops_nobody, setup),
		cmocka_unit_test_setup(the_last_lines_are_kept_in_order_and_old_ones_go, setup),
		cmocka_unit_test_setup(without_a_sink_one_line_goes_to_standard_error, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
