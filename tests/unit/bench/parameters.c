/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of parameters, from texts and from suites; the output of perftest. */
#include "bench/kind/parameters.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/suite/program_output.h"

static const struct bench_parameter table[] = {
	{ "type", 's', "RC|UC|UD", "RC", "service type" },
	{ "size", 'i', "8..32768", "32", "bytes" },
	{ "processes", 'i', "1|2", "1", "processes" },
	{ "rate", 'f', "0.1..", NULL, "a second" },
	{ "pause", 'd', "0..10s", "0", "between messages" },
	{ "poll_recv", 's', NULL, "", "how" },
	{ "inline", 'b', NULL, "false", "data in the request" },
	{ .name = NULL },
};
static const struct bench_kind kind = { .name = "test", .parameters = table };
static char why[PARAMETER_WHY_SIZE];

/* The value of a text as JSON, or "error: ...". */
static const char *value_of(const char *name, const char *text)
{
	static char shown[400];
	const struct bench_parameter *p = parameter_find(&kind, name, why);
	json_t *v;

	assert_non_null(p);
	if (parameter_from_text(p, text, &v, why)) {
		snprintf(shown, sizeof(shown), "error: %s", why);
	} else {
		char *dump = json_dumps(v, JSON_ENCODE_ANY);

		snprintf(shown, sizeof(shown), "%s", dump);
		free(dump);
		json_decref(v);
	}
	return shown;
}

static void texts_become_values_of_the_type(void **state)
{
	assert_string_equal(value_of("type", "UC"), "\"UC\"");
	assert_string_equal(value_of("size", "64"), "64");
	assert_string_equal(value_of("rate", "2.5e3"), "2500.0");
	assert_string_equal(value_of("inline", "yes"), "true");
	assert_string_equal(value_of("poll-recv", "event"), "\"event\"");
	assert_string_equal(value_of("pause", "5us"), "5000");
	assert_string_equal(value_of("pause", "1.5 ms"), "1500000");
	assert_string_equal(value_of("pause", "10s"), "10000000000");
	assert_string_equal(value_of("pause", "7"), "7");
}

static void values_out_of_range_say_what_is_expected(void **state)
{
	assert_string_equal(value_of("type", "XRC"),
			    "error: \"XRC\" is not usable, expected a text: RC|UC|UD");
	assert_string_equal(value_of("type", "R"),
			    "error: \"R\" is not usable, expected a text: RC|UC|UD");
	assert_string_equal(value_of("size", "7"),
			    "error: 7 is not usable, expected 8..32768");
	assert_string_equal(value_of("size", "64k"),
			    "error: \"64k\" is not usable, expected a whole number: 8..32768");
	assert_string_equal(value_of("processes", "3"),
			    "error: 3 is not usable, expected 1|2");
	assert_string_equal(value_of("rate", "0"), "error: 0 is not usable, expected 0.1..");
	assert_string_equal(value_of("rate", "nan"),
			    "error: \"nan\" is not usable, expected a number: 0.1..");
	assert_string_equal(value_of("pause", "11s"),
			    "error: 11000000000 ns is not usable, expected 0..10s");
	assert_non_null(strstr(value_of("pause", "-1"), "expected a duration"));
	assert_non_null(strstr(value_of("inline", "2"), "expected true or false"));
}

static void a_misspelt_name_has_a_suggestion(void **state)
{
	assert_null(parameter_find(&kind, "pol_recv", why));
	assert_non_null(strstr(why, "did you mean 'poll_recv'"));
}

static void defaults_are_filled_in_and_left_out_of_the_command(void **state)
{
	json_t *p = json_pack("{s:i}", "size", 64);
	char *command;

	assert_int_equal(parameters_complete(&kind, p, why), -EINVAL);
	assert_non_null(strstr(why, "'rate' is missing"));
	json_object_set_new(p, "rate", json_real(1000));
	json_object_set_new(p, "poll_recv", json_string("it's $HOME"));
	assert_int_equal(parameters_complete(&kind, p, why), 0);
	assert_string_equal(json_string_value(json_object_get(p, "type")), "RC");
	assert_int_equal(json_integer_value(json_object_get(p, "pause")), 0);
	command = parameters_command(&kind, p);
	assert_string_equal(command, "busbar bench test --size 64 --rate 1000 "
				     "--poll-recv 'it'\\''s $HOME'");
	free(command);
	json_decref(p);
}

static void json_values_need_the_type(void **state)
{
	json_t *real = json_real(64), *list = json_array(), *v;

	assert_int_equal(parameter_value(&table[1], real, &v, why), -EINVAL);
	assert_int_equal(parameter_value(&table[0], list, &v, why), -EINVAL);
	assert_int_equal(parameter_value(&table[3], real, &v, why), 0);
	json_decref(v);
	json_decref(real);
	json_decref(list);
}

static void lines_of_perftest_are_read(void **state)
{
	double v[12];

	assert_int_equal(program_numbers(" 32      1000          0.15           348470.73    0.15 "
					 "	           2063.77     	-nan		73.3 348470.7\n",
					 v, 12), 9);
	assert_true(v[0] == 32 && v[3] == 348470.73 && isnan(v[6]));
	assert_int_equal(program_numbers(" local address: LID 0x01", v, 12), 0);
	assert_int_equal(program_numbers("\n", v, 12), 0);
	assert_int_equal(program_numbers("1 2 3 4 5 6", v, 2), 2);
	assert_true(program_time("17, 0.83\n", v) && v[0] == 0.83);
	assert_true(program_time("1, 2.95896e+06\n", v) && v[0] == 2958960);
	assert_false(program_time("#, usec\n", v));
	assert_false(program_time("17, 0.83 us\n", v));
	assert_false(program_time("17 0.83\n", v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_become_values_of_the_type),
		cmocka_unit_test(values_out_of_range_say_what_is_expected),
		cmocka_unit_test(a_misspelt_name_has_a_suggestion),
		cmocka_unit_test(defaults_are_filled_in_and_left_out_of_the_command),
		cmocka_unit_test(json_values_need_the_type),
		cmocka_unit_test(lines_of_perftest_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
