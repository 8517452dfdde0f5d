/* SPDX-License-Identifier: BSD-2-Clause */
/* Suites: which cases a file means, and what is wrong in one; every suite of the tree. */
#include "bench/suite/suite.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/log.h"

static char path[] = "/tmp/busbar-test-XXXXXX.suite";
static char logged[4000];
static const char *tree;

static bool remember(enum log_level level, const char *line)
{
	size_t n = strlen(logged);

	snprintf(logged + n, sizeof(logged) - n, "%s\n", line);
	return true;
}

static int load(const char *text, bool ci, struct suite **s)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	logged[0] = '\0';
	return suite_load(path, ci, NULL, s);
}

static void assert_ids(const struct suite *s, const char *expected)
{
	char all[4000] = "";

	for (size_t i = 0; i < s->count; i++) {
		strcat(all, s->cases[i].id);
		strcat(all, " ");
	}
	assert_string_equal(all, expected);
}

static json_int_t parameter(const struct suite *s, size_t i, const char *key)
{
	return json_integer_value(json_object_get(s->cases[i].parameters, key));
}

static void lists_are_combined_into_cases(void **state)
{
	struct suite *s;

	assert_int_equal(load("title = \"T\"; limit = \"20us\"; source = \"there\";\n"
			      "common = { kind = \"program\"; iterations = 500; };\n"
			      "cases = (\n"
			      "{ scenario = \"A''\"; type = [ \"RC\", \"UD\" ]; size = [ 8, 4096 ];\n"
			      "  events = [ false, true ]; ci = { size = 16; };\n"
			      "  except = ( { type = \"UD\"; size = [ 4096, 8192 ]; } );\n"
			      "  reference = ( { type = \"RC\"; median_ns = 940; },\n"
			      "                { type = \"RC\"; size = 8; p = 1.5; source = \"here\"; } ); },\n"
			      "{ scenario = \"B\"; variant = \"in line\"; iterations = 7;\n"
			      "  together = ( { name = \"small\"; size = 8; inline_size = 0; },\n"
			      "               { size = 16; inline_size = 64; } ); } );\n", false, &s), 0);
	assert_ids(s, "App_RC_size=8_no-events App_RC_size=8_events App_RC_size=4096_no-events "
		      "App_RC_size=4096_events App_UD_size=8_no-events App_UD_size=8_events "
		      "B_in-line_small B_in-line_size=16 ");
	assert_int_equal(parameter(s, 0, "iterations"), 500);
	assert_int_equal(parameter(s, 6, "iterations"), 7);
	assert_int_equal(parameter(s, 7, "inline_size"), 64);
	assert_int_equal(parameter(s, 7, "mtu"), 0); /* the kind's default */
	assert_int_equal(json_integer_value(json_object_get(s->cases[0].description,
							    "limit_ns")), 20000);
	suite_free(s);
}

static const json_t *reference(const struct suite *s, size_t i)
{
	return json_object_get(s->cases[i].description, "reference");
}

static void references_are_those_of_the_case(void **state)
{
	static const char text[] =
		"source = \"there\"; cases = ( { scenario = \"A\"; kind = \"program\";\n"
		"type = [ \"RC\", \"UC\" ]; size = [ 8, 64 ]; ci = { size = 16; };\n"
		"reference = ( { type = \"RC\"; median_ns = 940; },\n"
		"  { type = \"RC\"; size = 8; p = 1.5; source = \"here\"; } ); } );\n";
	struct suite *s;

	assert_int_equal(load(text, false, &s), 0);
	assert_int_equal(s->count, 4);
	assert_string_equal(json_string_value(json_object_get(reference(s, 0), "source")), "here");
	assert_int_equal(json_object_size(json_object_get(reference(s, 0), "figures")), 2);
	assert_string_equal(json_string_value(json_object_get(reference(s, 1), "source")),
			    "there");
	assert_int_equal(json_object_size(json_object_get(reference(s, 1), "figures")), 1);
	assert_null(reference(s, 2));
	suite_free(s);
	/* A short run has less to combine. */
	assert_int_equal(load(text, true, &s), 0);
	assert_ids(s, "A_RC A_UC ");
	assert_int_equal(parameter(s, 0, "size"), 16);
	suite_free(s);
}

/* Of lists, of groups that set several parameters, and of kinds that do not have them. */
static void the_command_line_sets_parameters_of_all_cases(void **state)
{
	static const char text[] =
		"cases = ( { scenario = \"A\"; kind = \"program\"; size = [ 8, 64 ];\n"
		"  type = [ \"RC\", \"UC\" ]; },\n"
		"{ scenario = \"B\"; kind = \"program\"; together = (\n"
		"  { name = \"a\"; size = 8; mtu = 256; }, { name = \"b\"; size = 16; } ); },\n"
		"{ scenario = \"F\"; kind = \"floor\"; } );\n";
	struct suite_overrides o = { .count = 0 };
	struct suite *s;

	assert_int_equal(load(text, false, &s), 0);
	suite_free(s);
	assert_int_equal(suite_overrides_parse(&o, "size=32"), 0);
	assert_int_equal(suite_overrides_parse(&o, "inline-size=16"), 0);
	assert_int_equal(suite_overrides_add(&o, "device", "mlx5_0"), 0);
	assert_int_equal(suite_load(path, false, &o, &s), 0);
	assert_ids(s, "A_RC A_UC B_a B_b F ");
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(parameter(s, i, "size"), 32);
		assert_int_equal(parameter(s, i, "inline_size"), 16);
	}
	assert_int_equal(parameter(s, 2, "mtu"), 256);
	assert_string_equal(json_string_value(json_object_get(s->cases[0].parameters, "device")),
			    "mlx5_0");
	suite_free(s);
	/* A value that does not go with a case leaves it out. */
	assert_int_equal(suite_overrides_parse(&o, "program=ib_read_lat"), 0);
	assert_int_equal(suite_load(path, false, &o, &s), 0);
	assert_non_null(s->cases[0].kind);
	assert_null(s->cases[1].kind);
	assert_non_null(strstr(s->cases[1].why, "not possible"));
	suite_free(s);
	suite_overrides_free(&o);
}

static void wrong_parameters_of_the_command_line_are_named_once(void **state)
{
	static const struct {
		const char *set, *message;
	} wrong[] = {
		{ "sise=8", "no case of this suite has a parameter 'sise'" },
		{ "size=0", "--set size=0: 0 is not usable, expected 1..8388608" },
	};
	struct suite *s;

	assert_int_equal(load("cases = ( { scenario = \"A\"; kind = \"program\"; type = [ \"RC\", "
			      "\"UC\" ]; } );", false, &s), 0);
	suite_free(s);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct suite_overrides o = { .count = 0 };
		const char *at;

		assert_int_equal(suite_overrides_parse(&o, wrong[i].set), 0);
		logged[0] = '\0';
		assert_int_equal(suite_load(path, false, &o, &s), -EINVAL);
		at = strstr(logged, wrong[i].message);
		if (!at || strstr(at + 1, wrong[i].message))
			fail_msg("expected once '%s', logged:\n%s", wrong[i].message, logged);
		suite_overrides_free(&o);
	}
	assert_int_equal(suite_overrides_parse(&(struct suite_overrides){ .count = 0 }, "size"),
			 -EINVAL);
}

static void mistakes_are_named_with_line_and_key(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ "cases = (\n{ scenario = \"A\"; kind = \"program\";\nsise = 8; } );",
		  ".suite:3: cases[0].sise: the kind 'program' has no such parameter, did you mean 'size'?" },
		{ "cases = (\n{ scenario = \"A\"; kind = \"program\"; size = [ 8,\n0 ]; } );",
		  "size: 0 is not usable, expected 1..8388608" },
		{ "cases = (\n{ kind = \"program\"; } );", ".suite:2: cases[0]: the case lacks 'scenario'" },
		{ "cases = (\n{ scenario = \"A\"; kind = \"programm\"; } );", "there is no such kind" },
		{ "title = 3; cases = (\n{ scenario = \"A\"; kind = \"floor\"; } );",
		  ".suite:1: title: expected a text" },
		{ "tittle = \"\"; cases = ( { scenario = \"A\"; kind = \"floor\"; } );",
		  "tittle: unknown key, did you mean 'title'?" },
		{ "title = \"\";", "expected a list cases" },
		{ "cases = ( { scenario = \"A\"; kind = \"floor\"; },\n{ scenario = \"A\"; kind = \"floor\"; } );",
		  ".suite:2: cases[1]: a case 'A' is there already" },
		{ "cases = ( { scenario = \"A\"; kind = \"program\";\ntype = [ \"RC\", \"UD\" ]; program = \"ib_read_lat\"; } );",
		  "case 'A_UD' is not possible" },
		{ "cases = ( { scenario = \"A\"; kind = \"program\";\nsize = [ ]; } );",
		  ".suite:2: cases[0].size: the list is empty" },
		{ "cases = ( { scenario = \"A\"; kind = \"program\";\nexcept = ( { sise = 8; } ); } );",
		  "sise: the kind 'program' has no such parameter" },
		{ "cases = ( {", "syntax error" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct suite *s;

		assert_int_not_equal(load(wrong[i].text, false, &s), 0);
		if (!strstr(logged, wrong[i].message))
			fail_msg("expected '%s', logged:\n%s", wrong[i].message, logged);
	}
	assert_int_equal(suite_load("quik", false, NULL, &(struct suite *){ NULL }), -ENOENT);
}

static void read_both_ways(const char *file)
{
	for (int ci = 0; ci < 2; ci++) {
		struct suite *s;

		logged[0] = '\0';
		if (suite_load(file, ci, NULL, &s))
			fail_msg("%s: %s", file, logged);
		assert_true(*s->title && *s->question && s->count);
		suite_free(s);
	}
}

static void every_suite_of_the_tree_can_be_read(void **state)
{
	char pattern[4096];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/share/suites/*.suite", tree);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 5);
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_both_ways(found.gl_pathv[i]);
	globfree(&found);
}

static int set_up(void **state)
{
	int fd = mkstemps(path, 6);

	log_set_sink(remember);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	log_set_sink(NULL);
	return unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_combined_into_cases),
		cmocka_unit_test(references_are_those_of_the_case),
		cmocka_unit_test(mistakes_are_named_with_line_and_key),
		cmocka_unit_test(the_command_line_sets_parameters_of_all_cases),
		cmocka_unit_test(wrong_parameters_of_the_command_line_are_named_once),
		cmocka_unit_test(every_suite_of_the_tree_can_be_read),
	};

	tree = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
