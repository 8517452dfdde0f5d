/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a run: what is written is read back, also by a process that goes on; damage
 * is found. */
#include "bench/result/result.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/result/files.h"
#include "bench/result/machine.h"
#include "util/log.h"

static char dir[] = "/tmp/busbar-test-result-XXXXXX";
static char logged[2000];
static char *const command[] = { (char *)"busbar", (char *)"bench" };

static bool remember(enum log_level level, const char *line)
{
	snprintf(logged, sizeof(logged), "%s", line);
	return true;
}

static int open_run(const char *suite, struct result_run **run)
{
	const struct result_options o = { .suite = suite, .argc = 2, .argv = command,
					  .no_floor = true };

	return result_run_open(dir, &o, run);
}

static struct result_run *open_good(void)
{
	struct result_run *run;

	assert_int_equal(open_run("quick", &run), 0);
	return run;
}

static int begin(struct result_run *run, const char *id, struct result_case **c)
{
	json_t *d = json_pack("{s:s, s:{s:i}, s:i}", "kind", "hca", "parameters", "size", 32,
			      "limit_ns", 100);
	int ret = result_case_begin(run, id, d, c);

	json_decref(d);
	return ret;
}

/* Four rows, one of them lost. */
static int write_rows(struct result_case *c)
{
	const int64_t sent[] = { 1000, 2000, 3000, 4000 };
	const int64_t received[] = { 1090, 2110, RESULT_ABSENT, 4070 };
	const struct result_column columns[] = {
		{ "t_subm", "ns", sent }, { "t_recv", "ns", received }, { "id", "", sent },
	};
	const struct result_latency latency = { "t_lat", "one-way latency", "t_subm",
						"t_recv" };
	const struct result_figure figure = { "lost", "lost messages", "%", 25 };
	int ret = result_case_rows(c, columns, 3, 4, &latency, 1);

	return ret ? ret : result_case_figure(c, &figure);
}

static void write_case(struct result_run *run, const char *id)
{
	struct result_case *c;

	assert_int_equal(begin(run, id, &c), 0);
	assert_int_equal(write_rows(c), 0);
	assert_int_equal(result_case_end(c), 0);
}

static json_int_t of_latency(const struct result_read *c, const char *key)
{
	json_int_t v = INT64_MIN;

	json_unpack(c->summary, "{s:{s:{s:I}}}", "latencies", "t_lat", key, &v);
	return v;
}

static void assert_file(const char *name, const char *expected)
{
	char text[2000] = "", *path = files_path(dir, name);
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	free(path);
	assert_string_equal(text, expected);
}

static struct result_folder folder; /* that read_all() opened */

static void read_all(struct result_read **cases, size_t *count)
{
	const json_t *run, *machine;

	assert_int_equal(result_folder_open(dir, &folder), 0);
	*cases = folder.cases;
	*count = folder.count;
	run = folder.run;
	machine = folder.machine;
	assert_string_equal(json_string_value(json_object_get(run, "suite")), "quick");
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(run, "command"), 1)), "bench");
	assert_true(json_is_string(json_object_get(json_object_get(machine, "cpu"),
						   "model")));
	assert_true(json_is_object(json_object_get(machine, "kernel")));
	assert_null(json_object_get(machine, "floor"));
}

static void what_is_written_is_read_back(void **state)
{
	struct result_run *run = open_good();
	struct result_read *cases;
	int64_t *values;
	size_t count;

	write_case(run, "B1_RC");
	write_case(run, "A1_RC");
	assert_true(result_case_done(run, "A1_RC"));
	assert_false(result_case_done(run, "A1_UC"));
	assert_int_equal(result_run_close(run), 0);
	assert_file("cases/A1_RC/raw.csv", "t_subm [ns],t_recv [ns],id\n"
					   "1000,1090,1000\n2000,2110,2000\n3000,,3000\n"
					   "4000,4070,4000\n");
	read_all(&cases, &count);
	assert_int_equal(count, 2);
	assert_string_equal(cases[0].id, "B1_RC"); /* as they were made */
	assert_string_equal(cases[1].id, "A1_RC");
	assert_int_equal(of_latency(&cases[0], "count"), 3);
	assert_int_equal(of_latency(&cases[0], "min"), 70);
	assert_int_equal(of_latency(&cases[0], "p50"), 90);
	assert_int_equal(of_latency(&cases[0], "p99.999"), 110);
	assert_int_equal(of_latency(&cases[0], "limit_ns"), 100);
	assert_int_equal(result_read_latency(&cases[1], "t_comp", &values, &count), -ENOENT);
	assert_int_equal(result_read_rows(dir, &cases[1]), 0);
	assert_int_equal(cases[1].rows, 4);
	assert_int_equal(cases[1].columns, 3);
	assert_string_equal(cases[1].header[1].name, "t_recv");
	assert_string_equal(cases[1].header[1].unit, "ns");
	assert_true(cases[1].values[1][2] == RESULT_ABSENT);
	assert_int_equal(result_read_latency(&cases[1], "t_lat", &values, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(values[0], 90);
	assert_int_equal(values[1], 110);
	assert_int_equal(values[2], 70);
	free(values);
	result_folder_close(&folder);
}

static void a_run_goes_on_where_it_was_ended(void **state)
{
	struct result_run *run = open_good(), *other;
	struct result_read *cases;
	struct result_case *c;
	size_t count;

	assert_int_equal(open_run("quick", &other), -EBUSY);
	assert_int_equal(begin(run, "A1_RC", &c), -EEXIST);
	assert_int_equal(begin(run, "A1_UC", &c), 0);
	assert_int_equal(write_rows(c), 0);
	/* Not whole yet, so nobody sees it; and then it never was. */
	assert_false(result_case_done(run, "A1_UC"));
	read_all(&cases, &count);
	result_folder_close(&folder);
	assert_int_equal(count, 2);
	result_case_abandon(c);
	assert_int_equal(result_run_left_out(run, "A1_UC", "A1", "no UC"), 0);
	write_case(run, "A1_UC");
	assert_int_equal(result_run_close(run), 0);
	read_all(&cases, &count);
	assert_int_equal(count, 3);
	assert_string_equal(cases[2].id, "A1_UC");
	result_folder_close(&folder);
	assert_int_equal(open_run("floor", &other), -EEXIST);
	assert_non_null(strstr(logged, "of the suite 'quick', not of 'floor'"));
}

static void ids_and_descriptions_are_checked(void **state)
{
	static const char *const bad[] = { "", "..", ".x", "a/b", "a b", "x.part", "\xc3\xa4" };
	struct result_run *run = open_good();
	struct result_case *c;
	json_t *d = json_pack("{s:s}", "kind", "hca");

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(begin(run, bad[i], &c), -EINVAL);
	assert_int_equal(result_case_begin(run, "good", d, &c), -EINVAL);
	json_decref(d);
	assert_int_equal(begin(run, "good", &c), 0);
	assert_int_equal(result_case_rows(c, NULL, 0, 0,
					  &(struct result_latency){ "l", "l", "a", "b" }, 1),
			 -EINVAL);
	assert_non_null(strstr(logged, "no column 'a'"));
	result_case_abandon(c);
	assert_int_equal(result_run_close(run), 0);
}

static void a_case_without_rows_has_figures(void **state)
{
	struct result_run *run = open_good();
	const struct result_figure f = { "cacheline", "cache line", "ns", 51.5 };
	struct result_read *cases;
	struct result_case *c;
	double value = 0;
	size_t count;

	assert_int_equal(begin(run, "floor", &c), 0);
	assert_int_equal(result_case_figure(c, &f), 0);
	assert_int_equal(result_case_end(c), 0);
	assert_int_equal(result_run_close(run), 0);
	read_all(&cases, &count);
	assert_string_equal(cases[count - 1].id, "floor");
	assert_int_equal(result_read_rows(dir, &cases[count - 1]), 0);
	assert_int_equal(cases[count - 1].columns, 0);
	json_unpack(cases[count - 1].summary, "{s:{s:{s:F}}}", "figures", "cacheline", "value",
		    &value);
	assert_true(value == 51.5);
	result_folder_close(&folder);
}

/* Cuts raw.bin or changes one byte; the case must then be refused. */
static void spoil(off_t length, off_t at, char byte)
{
	char *path = files_path(dir, "cases/A1_RC/raw.bin");
	struct result_read *cases;
	size_t count;
	FILE *f = fopen(path, "r+");

	assert_non_null(f);
	if (at >= 0) {
		fseek(f, at, SEEK_SET);
		fputc(byte, f);
	}
	fclose(f);
	if (length >= 0)
		assert_int_equal(truncate(path, length), 0);
	free(path);
	read_all(&cases, &count);
	assert_int_equal(result_read_rows(dir, &cases[1]), -EBADMSG);
	assert_null(cases[1].values);
	assert_non_null(strstr(logged, "A1_RC/raw.bin is damaged"));
	result_folder_close(&folder);
}

static void damage_is_found_and_named(void **state)
{
	char *path = files_path(dir, "cases/A1_UC/summary.json");

	spoil(-1, 24, 1);   /* the first column's name is no text */
	spoil(-1, 23, 127); /* more rows than a file can have */
	spoil(24 + 3 * 32 + 8 * 12 - 1, -1, 0);
	spoil(10, -1, 0);
	spoil(0, -1, 0);
	assert_int_equal(truncate(path, 20), 0);
	assert_int_equal(result_folder_open(dir, &folder), -EBADMSG);
	result_folder_close(&folder);
	assert_non_null(strstr(logged, "A1_UC/summary.json"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(result_folder_open(dir, &folder), -EBADMSG);
	result_folder_close(&folder);
	assert_non_null(strstr(logged, "A1_UC is damaged: it has no summary.json"));
	assert_int_equal(result_folder_open("/nowhere", &folder), -ENOENT);
	result_folder_close(&folder);
	free(path);
}

static void words_of_the_kernels_command_line_are_found(void **state)
{
	static const char line[] = "root=/dev/vda isolcpus=1-3 nohz nohz_full=1,2";
	json_t *v = machine_cmdline(line, "isolcpus");

	assert_string_equal(json_string_value(v), "1-3");
	json_decref(v);
	v = machine_cmdline(line, "nohz_full");
	assert_string_equal(json_string_value(v), "1,2");
	json_decref(v);
	assert_true(json_is_true(machine_cmdline(line, "nohz")));
	assert_true(json_is_null(machine_cmdline(line, "rcu_nocbs")));
	assert_true(json_is_null(machine_cmdline("", "rcu_nocbs")));
}

static int set_up(void **state)
{
	log_set_sink(remember);
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	log_set_sink(NULL);
	return files_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(a_run_goes_on_where_it_was_ended),
		cmocka_unit_test(ids_and_descriptions_are_checked),
		cmocka_unit_test(a_case_without_rows_has_figures),
		cmocka_unit_test(damage_is_found_and_named),
		cmocka_unit_test(words_of_the_kernels_command_line_are_found),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
