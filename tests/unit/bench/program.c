/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs print, as figures: units, and outputs without a result. */
#include "bench/suite/program_output.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/result/files.h"
#include "util/clock.h"

static char dir[] = "/tmp/busbar-test-program-XXXXXX";
static struct result_run *run;
static struct result_case *c;

/* The output of a program in a file, and a case that gets its figures. */
static char *begin(const char *text)
{
	const struct result_options o = { .suite = "program", .no_csv = true, .no_floor = true };
	json_t *d = json_pack("{s:s, s:{}}", "kind", "program", "parameters");
	char *path = files_path(dir, "output");
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(result_run_open(dir, &o, &run), 0);
	assert_int_equal(result_case_begin(run, "a", d, &c), 0);
	json_decref(d);
	return path;
}

static double figure(const char *name)
{
	const json_t *all = json_object_get(result_case_summary(c), "figures");

	return json_number_value(json_object_get(json_object_get(all, name), "value"));
}

static void end(char *path)
{
	result_case_abandon(c);
	result_run_close(run);
	free(path);
}

#define HEADING " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n"

static void times_are_microseconds(void **state)
{
	char *path = begin(HEADING "#, usec\n1, 0.25\n2, 0.35\n" HEADING
			   " 64 2 0.25 0.35 0.30\n");

	assert_int_equal(program_read_latency(path, c), 0);
	assert_true(fabs(figure("program_median") - 300) < 1e-9);
	end(path);
}

static void or_cycles_of_the_clock_whatever_the_heading_says(void **state)
{
	char *path = begin(HEADING "#, cycles\n1, 500\n2, 700\n" HEADING
			   " 64 2 500.00 700.00 600.00\n");
	int ret = program_read_latency(path, c);

	if (clock_state.tsc) {
		assert_int_equal(ret, 0);
		assert_true(fabs(figure("program_median") -
				 600e9 / (double)clock_state.tick_hz) < 1e-6);
	} else {
		assert_int_equal(ret, -EOPNOTSUPP);
	}
	end(path);
}

static void ucx_prints_a_final_line(void **state)
{
	char *path = begin("[thread 0] 1000 0.9 0.9 0.9\nFinal:  20000  0.511  4.440  4.440\n");

	assert_int_equal(program_read_ucx(path, false, c), 0);
	assert_true(fabs(figure("program_median") - 511) < 1e-9);
	assert_true(fabs(figure("program_mean") - 4440) < 1e-9);
	end(path);
}

static void ucx_prints_rates_behind_the_times(void **state)
{
	char *path = begin("[thread 0] 9 0.1 0.1 0.1 1 1 1 1\n"
			   "Final: 100000 0.021 35.04 35.04 1774.46 1783.57 28391 28537\n");

	assert_int_equal(program_read_ucx(path, true, c), 0);
	assert_true(fabs(figure("bandwidth") - 1783.57) < 1e-9);
	assert_true(fabs(figure("message_rate") - 28537) < 1e-9);
	assert_true(figure("program_median") == 0);
	end(path);
}

static void an_iteration_of_a_pingpong_is_a_round_trip(void **state)
{
	char *path = begin("8192000 bytes in 0.01 seconds = 6553.60 Mbit/sec\n"
			   "1000 iters in 0.01 seconds = 10.50 usec/iter\n");

	assert_int_equal(program_read_pingpong(path, c), 0);
	assert_true(fabs(figure("program_mean") - 5250) < 1e-9);
	end(path);
}

static void an_output_without_a_result_is_an_error(void **state)
{
	char *path = begin("cannot connect\nFinal: none\n");

	assert_int_equal(program_read_ucx(path, false, c), -EBADMSG);
	assert_int_equal(program_read_ucx(path, true, c), -EBADMSG);
	assert_int_equal(program_read_pingpong(path, c), -EBADMSG);
	assert_int_equal(program_read_latency(path, c), -EBADMSG);
	end(path);
}

static int make_folder(void **state)
{
	clock_init();
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_folder(void **state)
{
	return files_remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_microseconds),
		cmocka_unit_test(or_cycles_of_the_clock_whatever_the_heading_says),
		cmocka_unit_test(ucx_prints_a_final_line),
		cmocka_unit_test(ucx_prints_rates_behind_the_times),
		cmocka_unit_test(an_iteration_of_a_pingpong_is_a_round_trip),
		cmocka_unit_test(an_output_without_a_result_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
