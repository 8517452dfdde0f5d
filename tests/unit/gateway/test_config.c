/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration: both languages give the same tree, and whatever is wrong is
 * reported with file, line, key and, where there is one, the nearest right name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

static void assert_logged(const char *text)
{
	if (!strstr(fake_log(), text))
		fail_msg("expected '%s' in:\n%s", text, fake_log());
}

/* The configuration does not load, and the log says `expected`. */
static void assert_refused(const char *text, const char *expected)
{
	struct config *c = NULL;

	fake_log_start();
	assert_int_not_equal(config_load_text("test.conf", text, strlen(text),
					      &c),
			     0);
	assert_null(c);
	assert_logged(expected);
}

/* It loads, but no super-node comes of it, and the log says `expected`. */
static void assert_wrong(const char *text, const char *expected)
{
	struct config *c;
	struct super_node *sn = fake_super_node(text, &c);

	assert_null(sn);
	assert_true(config_errors(c) > 0);
	assert_logged(expected);
	config_destroy(c);
}

static void libconfig_and_json_give_the_same_tree(void **state)
{
	struct config *a = fake_config(
		"nodes = { x = { rate = 10; real = 1.5; on = true; name = \"t\";"
		"                big = 5000000000; list = ( 1, \"a\", { k = -3 } ); nums = [ 1, 2 ]; } };\n");
	struct config *b = fake_config(
		"{ \"nodes\": { \"x\": { \"rate\": 10, \"real\": 1.5, \"on\": true, \"name\": \"t\",\n"
		"  \"big\": 5000000000, \"list\": [ 1, \"a\", { \"k\": -3 } ], \"nums\": [ 1, 2 ] } } }");

	assert_true(json_equal(config_root(a), config_root(b)));
	config_destroy(a);
	config_destroy(b);
}

static void json_may_have_comments_and_a_comma_too_many(void **state)
{
	struct config *a = fake_config("list = ( 1, 2, ); on = 1;\n");
	struct config *b = fake_config(
		"// first\n{ /* two\nlines */ \"list\": [ 1, 2, # last\n ],\n"
		"  \"on\": 1, }\n");

	assert_true(json_equal(config_root(a), config_root(b)));
	config_destroy(a);
	config_destroy(b);
	/* The line stays right, and what stands in a text is no comment. */
	assert_refused("{ /* a\n b */ \"x\": \"#//,]\",\n  y }\n", "test.conf:3: JSON:");
	assert_refused("{ \"x\": [ 1,, 2 ] }", "JSON:");
}

/* What VILLASnode called otherwise, or has and busbar has not. */
static void words_of_villasnode_get_what_there_is_instead(void **state)
{
	assert_wrong("nodes = { a = { type = \"source\"; local = \"*:1\"; }; };",
		     "nodes.a.local: unknown key; it is called `in = { address = ... }` now");
	assert_wrong("nodes = { a = { type = \"source\"; samplelen = 4; }; };",
		     "nodes.a.samplelen: unknown key; samples have any length");
	assert_wrong("nodes = { a = { type = \"cbuilder\"; }; };",
		     "no node-type 'cbuilder' here, VILLASnode has it; use exec");
}

static void whole_numbers_beyond_32_bits_are_kept(void **state)
{
	struct config *c = fake_config("a = 5000000000; b = -5000000000; d = 0x1ffffffff; e = 2147483648;");
	json_t *r = config_root(c);

	assert_true(json_integer_value(json_object_get(r, "a")) == 5000000000);
	assert_true(json_integer_value(json_object_get(r, "b")) == -5000000000);
	assert_true(json_integer_value(json_object_get(r, "d")) == 0x1ffffffff);
	assert_true(json_integer_value(json_object_get(r, "e")) == 2147483648);
	config_destroy(c);
	assert_refused("a = 1;\nb = 99999999999999999999;", "test.conf:2: 99999999999999999999 does not fit");
}

static void variables_are_replaced(void **state)
{
	struct config *c;
	json_t *r;

	setenv("TEST_RATE", "250", 1);
	setenv("TEST_WORD", "in \"quotes\"", 1);
	unsetenv("TEST_UNSET");
	c = fake_config("rate = ${TEST_RATE}; word = ${TEST_WORD}; # ${TEST_UNSET}\n"
			"in_text = \"<${TEST_WORD}>\"; fallback = ${TEST_UNSET:-7};\n"
			"text_fallback = \"a${TEST_UNSET:-b}c\"; as_it_is = \"$${TEST_RATE}\"; // ${TEST_UNSET}\n"
			"/* ${TEST_UNSET} */ dollar = \"$5\";");
	r = config_root(c);
	assert_int_equal(json_integer_value(json_object_get(r, "rate")), 250);
	assert_string_equal(json_string_value(json_object_get(r, "word")),
			    "in \"quotes\"");
	assert_string_equal(json_string_value(json_object_get(r, "in_text")),
			    "<in \"quotes\">");
	assert_int_equal(json_integer_value(json_object_get(r, "fallback")), 7);
	assert_string_equal(
		json_string_value(json_object_get(r, "text_fallback")), "abc");
	assert_string_equal(json_string_value(json_object_get(r, "as_it_is")),
			    "${TEST_RATE}");
	assert_string_equal(json_string_value(json_object_get(r, "dollar")),
			    "$5");
	config_destroy(c);
}

static void an_unset_variable_is_named_with_its_line(void **state)
{
	unsetenv("TEST_UNSET");
	assert_refused("a = 1;\nb = ${TEST_UNSET};",
		       "test.conf:2: environment variable TEST_UNSET is not set");
	assert_refused("a = 1;\n\nb = \"x${TEST_UNSET}\";",
		       "test.conf:3: environment variable TEST_UNSET is not set");
	assert_refused("{ \"a\":\n \"${TEST_UNSET}\" }",
		       "test.conf:2: environment variable TEST_UNSET is not set");
	assert_refused("a = ${TEST_UNSET;", "no '}' behind '${TEST_UNSET'");
	assert_refused("a = \"${}\";", "expected a variable name");
}

static void a_syntax_error_names_its_line(void **state)
{
	assert_refused("a = 1;\nb = { c = ;\n};", "test.conf:2: syntax error");
	assert_refused("{ \"a\": 1,\n\"b\": }", "test.conf:2: JSON");
	assert_refused("{ \"a\": 1,\n \"a\": 2 }", "duplicate");
	assert_refused("a = 1;\na = 2;", "test.conf:2: duplicate");
	assert_refused("a = 1;\nb = \"open;\n c = 3;\n",
		       "test.conf:2: the text that begins here has no closing");
}

static void an_included_file_keeps_its_own_lines(void **state)
{
	char path[] = "/tmp/busbar-test-XXXXXX", text[256], expected[128];
	int fd = mkstemp(path);
	struct config *c;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x = 1;\ny = 2;\n", 14), 14);
	close(fd);
	snprintf(text, sizeof(text), "a = \"first\";\n@include \"%s\"\nb = 3;\n", path);
	c = fake_config(text);
	snprintf(expected, sizeof(expected), "%s:2", path);
	assert_string_equal(
		config_where(c, json_object_get(config_root(c), "y")), expected);
	assert_string_equal(
		config_where(c, json_object_get(config_root(c), "b")),
		"test.conf:3");
	config_destroy(c);
	/* Its name may come from the environment. */
	setenv("BUSBAR_TEST_PART", path + strlen("/tmp/busbar-test-"), 1);
	c = fake_config("@include \"/tmp/busbar-test-${BUSBAR_TEST_PART}\"\n");
	assert_int_equal(json_integer_value(json_object_get(config_root(c), "y")), 2);
	config_destroy(c);
	unsetenv("BUSBAR_TEST_PART");
	assert_refused("@include \"${BUSBAR_TEST_PART}\"\n",
		       "test.conf:1: environment variable BUSBAR_TEST_PART is not set");
	unlink(path);
	assert_refused(text, "test.conf:2: @include");
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void a_text_of_json_stands_for_a_file(void **state)
{
	char folder[] = "/tmp/busbar-test-XXXXXX", text[600], expected[256];
	static const char *const names[] = { "top", "list", "none", "bad", "self" };
	struct config *c;
	json_t *x;

	assert_non_null(mkdtemp(folder));
	/* Names are relative to the file that includes. */
	write_file(folder, "top", "# of what follows\n{ \"x\": 1,\n\"l\": \"@include list\", }\n");
	write_file(folder, "list", "[ 1,\n 2,\n { \"y\": 5 } ]");
	write_file(folder, "none", "x = 1;\n");
	write_file(folder, "bad", "{ \"x\": 1,\n  y: 2 }\n");
	write_file(folder, "self", "{ \"x\": \"@include self\" }");
	setenv("BUSBAR_TEST_PART", folder, 1);
	c = fake_config("{ \"a\": \"@include ${BUSBAR_TEST_PART}/top\",\n"
			"  \"@include b\": \"an @include in vain\",\n \"z\": 3 }\n");
	x = json_object_get(json_object_get(config_root(c), "a"), "x");
	assert_int_equal(json_integer_value(x), 1);
	snprintf(expected, sizeof(expected), "%s/top:2", folder);
	assert_string_equal(config_where(c, x), expected);
	x = json_object_get(json_object_get(config_root(c), "a"), "l");
	assert_int_equal(json_array_size(x), 3);
	snprintf(expected, sizeof(expected), "%s/list:3", folder);
	assert_string_equal(config_where(c, json_array_get(x, 2)), expected);
	x = json_object_get(config_root(c), "z");
	assert_int_equal(json_integer_value(x), 3);
	assert_string_equal(config_where(c, x), "test.conf:3");
	assert_string_equal(json_string_value(json_object_get(config_root(c), "@include b")),
			    "an @include in vain");
	config_destroy(c);

	assert_refused("{ \"a\": 1,\n \"b\": \"@include ${BUSBAR_TEST_PART}/missing\" }",
		       "test.conf:2: @include");
	write_file(folder, "none", "x = 1;\ny = = 2;\n");
	snprintf(expected, sizeof(expected), "%s/none:2: syntax error", folder);
	assert_refused("{ \"b\": \"@include ${BUSBAR_TEST_PART}/none\" }",
		       expected);
	assert_refused("{ \"a\": 1,\n \"b\": \"@include ${BUSBAR_TEST_PART}/none\" }",
		       "test.conf:2: @include");
	snprintf(expected, sizeof(expected), "%s/bad:2: JSON", folder);
	assert_refused("{ \"b\": \"@include ${BUSBAR_TEST_PART}/bad\" }", expected);
	assert_refused("{ \"b\": \"@include ${BUSBAR_TEST_PART}/self\" }",
		       "more than 10 files deep");
	assert_refused("{ \"a\": 1,\n \"@include\": \"top\" }",
		       "test.conf:2: in JSON an include is a value");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "%s/%s", folder, names[i]);
		unlink(text);
	}
	rmdir(folder);
}

static void a_pattern_includes_all_that_match_in_their_order(void **state)
{
	static const char *const names[] = { "2.conf", "1.conf", "other" };
	char folder[] = "/tmp/busbar-test-XXXXXX", text[256], expected[128];
	char path[256];
	struct config *c;

	assert_non_null(mkdtemp(folder));
	write_file(folder, "2.conf", "\ny = 2;");
	write_file(folder, "1.conf", "x = 1;\n");
	write_file(folder, "other", "nonsense");
	snprintf(text, sizeof(text), "@include \"%s/*.conf\"\nb = 3;\n", folder);
	c = fake_config(text);
	assert_int_equal(json_integer_value(json_object_get(config_root(c), "x")), 1);
	snprintf(expected, sizeof(expected), "%s/2.conf:2", folder);
	assert_string_equal(
		config_where(c, json_object_get(config_root(c), "y")), expected);
	assert_string_equal(
		config_where(c, json_object_get(config_root(c), "b")),
		"test.conf:2");
	config_destroy(c);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	assert_refused(text, "test.conf:1: @include");
	rmdir(folder);
}

/* What stands for the files of a pattern; lines are told right behind it. */
static void assert_joined(const char *expected)
{
	struct config *c = fake_config("{ \"all\": \"@include ${BUSBAR_TEST_PART}/*.json\",\n \"z\": 3 }");
	json_t *all = json_object_get(config_root(c), "all"), *z;
	char *dump = json_dumps(all, JSON_COMPACT);

	assert_string_equal(dump, expected);
	z = json_object_get(config_root(c), "z");
	assert_string_equal(config_where(c, z), "test.conf:2");
	free(dump);
	config_destroy(c);
}

static void a_pattern_in_json_joins_groups_or_lists(void **state)
{
	char folder[] = "/tmp/busbar-test-XXXXXX", text[600], expected[512];
	const char *all = "{ \"all\": 1,\n \"x\": \"@include ${BUSBAR_TEST_PART}/*.json\" }";
	static const char *const names[] = { "1.json", "2.json", "3.json", "none" };
	struct config *c;
	json_t *b;

	assert_non_null(mkdtemp(folder));
	setenv("BUSBAR_TEST_PART", folder, 1);
	/* No file is one that is missing. */
	assert_refused(all, "test.conf:2: @include");
	write_file(folder, "none", "nonsense");
	write_file(folder, "2.json", "// one\n{ \"b\":\n 2, } # and no more\n");
	assert_joined("{\"b\":2}");
	write_file(folder, "1.json", "{ \"a\": { } }");
	assert_joined("{\"a\":{},\"b\":2}");
	write_file(folder, "3.json", "{ \"c\": [ 1, { \"d\": \"}\" } ] }\n");
	assert_joined(
			"{\"a\":{},\"b\":2,\"c\":[1,{\"d\":\"}\"}]}");
	c = fake_config(all);
	b = json_object_get(json_object_get(config_root(c), "x"), "b");
	snprintf(expected, sizeof(expected), "%s/2.json:3", folder);
	assert_string_equal(config_where(c, b), expected);
	config_destroy(c);

	write_file(folder, "1.json", "{ }");
	assert_joined("{\"b\":2,\"c\":[1,{\"d\":\"}\"}]}");
	write_file(folder, "2.json", "{ /* nor here */ }");
	assert_joined("{\"c\":[1,{\"d\":\"}\"}]}");
	write_file(folder, "3.json", "{ }");
	assert_joined("{}");

	write_file(folder, "3.json", "[ 3 ]");
	snprintf(expected, sizeof(expected),
		 "test.conf:2: @include %s/*.json: %s/1.json and %s/3.json cannot be put together",
		 folder, folder, folder);
	assert_refused(all, expected);
	write_file(folder, "1.json", "[ 1, [ 2 ] ]");
	write_file(folder, "2.json", "[ ]");
	assert_joined("[1,[2],3]");

	write_file(folder, "1.json", "{ \"a\": 1 }");
	write_file(folder, "2.json", "{\n \"b\": 1,\n \"a\": 1 }");
	write_file(folder, "3.json", "{ \"c\": 1 }");
	snprintf(expected, sizeof(expected), "%s/2.json:3: JSON: duplicate",
		 folder);
	assert_refused(all, expected);
	write_file(folder, "2.json", "{\n \"b\": nothing }");
	snprintf(expected, sizeof(expected), "%s/2.json:2: JSON", folder);
	assert_refused(all, expected);
	write_file(folder, "2.json", "{ \"b\": 1 ");
	assert_refused(all, "2.json cannot be put together");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "%s/%s", folder, names[i]);
		unlink(text);
	}
	rmdir(folder);
}

static void json_includes_what_is_written_for_libconfig(void **state)
{
	char folder[] = "/tmp/busbar-test-XXXXXX", text[600], expected[512];
	static const char *const names[] = { "1.conf", "2.conf", "deep" };
	struct config *c;
	json_t *all, *v;
	char *dump;

	assert_non_null(mkdtemp(folder));
	setenv("BUSBAR_TEST_PART", folder, 1);
	write_file(folder, "1.conf", "# one\na = {\n  t = \"two\\nlines ${BUSBAR_TEST_PART:-}\"; big = 5000000000;\n"
				     "  r = 1.0; list = ( 1, { on = true } ); }\n@include \"deep\"\n");
	write_file(folder, "deep", "\n\ndeep = 7;");
	write_file(folder, "2.conf", "b = [ ]; ");
	c = fake_config("{ \"all\": \"@include ${BUSBAR_TEST_PART}/*.conf\",\n \"z\": 3 }");
	all = json_object_get(config_root(c), "all");
	v = json_object_get(json_object_get(all, "a"), "t");
	snprintf(expected, sizeof(expected), "two\nlines %s", folder);
	assert_string_equal(json_string_value(v), expected);
	snprintf(expected, sizeof(expected), "%s/1.conf:3", folder);
	assert_string_equal(config_where(c, v), expected);
	snprintf(expected, sizeof(expected), "%s/deep:3", folder);
	assert_string_equal(config_where(c, json_object_get(all, "deep")), expected);
	assert_string_equal(config_where(c, json_object_get(config_root(c), "z")),
			    "test.conf:2");
	json_object_del(json_object_get(all, "a"), "t");
	dump = json_dumps(all, JSON_COMPACT);
	assert_string_equal(dump, "{\"a\":{\"big\":5000000000,\"r\":1.0,\"list\":[1,{\"on\":true}]},\"deep\":7,\"b\":[]}");
	free(dump);
	config_destroy(c);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "%s/%s", folder, names[i]);
		unlink(text);
	}
	rmdir(folder);
}

static void unknown_keys_can_be_passed_over(void **state)
{
	struct config *c;
	struct super_node *sn;

	config_pass_unknown_keys(true);
	sn = fake_super_node("seeed = 3;\nnodes = { a = { type = \"loopback\"; qeuelen = 16;\n"
			     "  in = { hooks = ( { type = \"decimate\"; ratio = 2; ratioo = 3 } ) } } };\n"
			     "paths = ( { in = \"a\"; rat = 1.0 } );\n",
			     &c);
	config_pass_unknown_keys(false);
	assert_non_null(sn);
	assert_int_equal(config_errors(c), 0);
	assert_logged("test.conf:1: seeed: unknown key, passed over, did you mean 'seed'?");
	assert_logged("test.conf:2: nodes.a.qeuelen: unknown key, passed over, did you mean 'queuelen'?");
	assert_logged("test.conf:3: nodes.a.in.hooks[0].ratioo: unknown key, passed over, did you mean 'ratio'?");
	assert_logged("test.conf:4: paths[0].rat: unknown key, passed over, did you mean 'rate'?");
	super_node_destroy(sn);
	config_destroy(c);
}

struct target {
	bool flag;
	int64_t number;
	double real;
	const char *text;
	int choice;
	json_t *any;
};

static const char *const choices[] = { "red", "green", NULL };

static const struct config_key keys[] = {
	{ "flag", CONFIG_BOOL, offsetof(struct target, flag), "true", .help = "h" },
	{ "number", CONFIG_INT, offsetof(struct target, number), "5",
	  .min = 1, .max = 100, .help = "h" },
	{ "real", CONFIG_REAL, offsetof(struct target, real), "2.5", .help = "h" },
	{ "text", CONFIG_STRING, offsetof(struct target, text), "none", .help = "h" },
	{ "choice", CONFIG_ENUM, offsetof(struct target, choice), "green",
	  .names = choices, .help = "h" },
	{ "any", CONFIG_JSON, offsetof(struct target, any), .help = "h" },
};

/* A byte-order mark (UTF-8) is passed over: in text, and in files and what they include. */
static void a_byte_order_mark_is_no_text(void **state)
{
	static const char *const texts[] = { "x = 1;\n@include \"part\"\n",
					     "{ \"x\": 1, \"part\": \"@include part\" }\n" };
	char folder[] = "/tmp/busbar-test-XXXXXX", path[256], text[200];

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct config *c;

		write_file(folder, "part", i ? "\xef\xbb\xbf{ \"y\": 2 }\n" : "\xef\xbb\xbfy = 2;\n");
		snprintf(text, sizeof(text), "\xef\xbb\xbf%s", texts[i]);
		write_file(folder, "top", text);
		snprintf(path, sizeof(path), "%s/top", folder);
		assert_int_equal(config_load(path, &c), 0);
		assert_int_equal(json_integer_value(json_object_get(config_root(c), "x")), 1);
		assert_int_equal(json_integer_value(json_object_get(i ? json_object_get(config_root(c), "part") :
							config_root(c), "y")), 2);
		config_destroy(c);
	}
	unlink(path);
	snprintf(path, sizeof(path), "%s/part", folder);
	unlink(path);
	rmdir(folder);
}

static void zero_and_one_are_false_and_true(void **state)
{
	struct config *c = fake_config("flag = 1;\n");
	struct target t;

	assert_int_equal(config_unpack_part(c, config_root(c), keys, 1, &t), 0);
	assert_true(t.flag);
	config_destroy(c);
}

static void missing_keys_take_their_defaults(void **state)
{
	struct config *c = fake_config("");
	struct target t;

	assert_int_equal(config_unpack(c, NULL, keys, ARRAY_SIZE(keys), &t,
				       NULL, 0),
			 0);
	assert_true(t.flag && t.number == 5 && t.real == 2.5);
	assert_string_equal(t.text, "none");
	assert_int_equal(t.choice, 1);
	assert_null(t.any);
	config_destroy(c);
}

static void numbers_and_booleans_may_be_texts(void **state)
{
	struct config *c = fake_config("flag = \"false\"; number = \"17\"; real = \"1e3\"; choice = \"red\"; any = [ ];");
	struct target t;

	assert_int_equal(config_unpack(c, config_root(c), keys,
				       ARRAY_SIZE(keys), &t, NULL, 0),
			 0);
	assert_true(!t.flag && t.number == 17 && t.real == 1000 && !t.choice);
	assert_true(json_is_array(t.any));
	config_destroy(c);
}

static void every_wrong_value_is_reported_at_once(void **state)
{
	struct config *c;
	struct target t;

	fake_log_start();
	c = fake_config("flag = 2;\nnumber = 101;\nreal = \"x\";\ntext = 5;\nchoice = \"gren\";\nnumbr = 1;\n");
	assert_int_equal(config_unpack(c, config_root(c), keys,
				       ARRAY_SIZE(keys), &t, NULL, 0),
			 -EINVAL);
	assert_int_equal(config_errors(c), 6);
	assert_logged("test.conf:1: flag: expected true or false, found a whole number");
	assert_logged("test.conf:2: number: 101 is out of range, expected 1 to 100");
	assert_logged("test.conf:3: real: expected a number, found the text 'x'");
	assert_logged("test.conf:4: text: expected a text");
	assert_logged("test.conf:5: choice: 'gren' is none of: red, green, did you mean 'green'?");
	assert_logged("test.conf:6: numbr: unknown key, did you mean 'number'?");
	config_destroy(c);
}

static void errors_in_json_have_lines_too(void **state)
{
	assert_wrong("{\n \"nodes\": {\n  \"a\": { \"type\": \"source\",\n   \"limt\": 5 } },\n \"paths\": [] }",
		     "test.conf:4: nodes.a.limt: unknown key, did you mean 'limit'?");
	assert_wrong("{\n \"nodes\": {\n  \"a\": { \"type\": \"source\",\n   \"enabled\":\n 5 } },\n \"paths\": [] }",
		     "test.conf:5: nodes.a.enabled: expected true or false");
}

static void wrong_nodes_are_reported(void **state)
{
	assert_wrong("nodes = {\n a = { type = \"sourc\" } };",
		     "test.conf:2: nodes.a.type: no node-type 'sourc', did you mean 'source'?");
	assert_wrong("nodes = {\n a = { } };",
		     "test.conf:2: nodes.a.type: missing, but required");
	assert_wrong("nodes = { a = 5 };", "nodes.a: expected a group");
	assert_wrong("{ \"nodes\": { \"a b\": { \"type\": \"source\" } } }",
		     "a node name has 1 to 64");
	assert_wrong("nodes = { a = { type = \"source\"; in = { vectorise = 2 } } };",
		     "nodes.a.in.vectorise: unknown key, did you mean 'vectorize'?");
	assert_wrong("nodes = { a = { type = \"source\"; signals = ( { name = \"x\"; enabled = false } ) } };",
		     "a signal cannot be switched off");
	assert_wrong("nodes = { a = { type = \"source\"; signals = \"3q\" } };",
		     "nodes.a.signals: '3q' is not a list of signals");
	assert_wrong("nodes = { a = { type = \"source\"; hooks = ( \"stast\" ) } };",
		     "nodes.a.hooks[0]: no hook 'stast', did you mean 'stats'?");
	assert_wrong("nod = { };", "nod: unknown key, did you mean 'nodes'?");
}

#define TWO "nodes = { abc = { type = \"source\" }; s = { type = \"sink\" }; t = { type = \"sink\" } };\n"

static void wrong_paths_are_reported(void **state)
{
	assert_wrong(TWO "paths = ( { in = \"abd\"; out = \"s\" } );",
		     "test.conf:2: paths[0].in: no node 'abd', did you mean 'abc'?");
	assert_wrong(TWO "paths = ( { in = ( \"abc\", \"x\" ); out = \"s\" } );",
		     "test.conf:2: paths[0].in[1]: no node 'x'");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"sinkhole\" } );",
		     "paths[0].out: no node 'sinkhole'");
	/* The first error of a path does not hide its others. */
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"u\"; hooks = ( \"stast\" ) } );",
		     "no hook 'stast'");
	assert_wrong(TWO "paths = ( { in = \"abd\"; out = \"s\"; mask = ( \"abx\" ) } );",
		     "paths[0].mask[0]: no node 'abx'");
	assert_wrong(TWO "paths = ( { out = \"s\" } );",
		     "paths[0].in: missing, but required");
	assert_wrong(TWO "paths = ( { in = \"s\"; out = \"t\" } );",
		     "node 's' of type sink cannot be read");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"abc\" } );",
		     "node 'abc' of type source cannot be written");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"s\"; qeuelen = 5 } );",
		     "paths[0].qeuelen: unknown key, did you mean 'queuelen'?");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"s.x\" } );",
		     "paths[0].out: 's.x' is a part of a node; only `in` of a path takes parts");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"s\"; mask = \"abc[0]\" } );",
		     "paths[0].mask: 'abc[0]' is a part of a node");
	assert_wrong(TWO "paths = ( { in = \"abc[0]\"; out = \"s\"; reverse = true } );",
		     "paths[0].reverse: only a path with one whole node as source");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = ( \"s\", \"s\" ) } );",
		     "node 's' stands here twice");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"s\" },\n { in = \"abc\"; out = \"s\" } );",
		     "test.conf:3: paths[1].out: node 's' is the destination of another path already (test.conf:2)");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"s\"; mask = \"t\" } );",
		     "paths[0].mask: node 't' is no source of this path");
	assert_wrong(TWO "paths = ( { in = \"abc\"; out = \"s\"; mode = \"some\" } );",
		     "paths[0].mode: 'some' is none of: any, all");
}

#define NAMED "nodes = { abc = { type = \"source\"; in = { signals = ( { name = \"volt\" }, { name = \"amp\"; type = \"integer\" } ) } }; s = { type = \"sink\" } };\n"

static void wrong_mappings_are_reported_where_they_stand(void **state)
{
	assert_wrong(NAMED "paths = ( { in = ( \"abc.amp\",\n \"abc.vlot\" ); out = \"s\" } );",
		     "test.conf:3: paths[0].in[1]: node 'abc': the node has no signal 'vlot', did you mean 'volt'?");
	assert_wrong(NAMED "paths = ( { in = \"abc[1-2]\"; out = \"s\" } );",
		     "test.conf:2: paths[0].in: node 'abc': there is no value 2, the node has 2 (0 to 1)");
	assert_wrong(NAMED "paths = ( { in = \"abd.volt\"; out = \"s\" } );",
		     "paths[0].in: no node 'abd', did you mean 'abc'?");
	assert_wrong(NAMED "paths = ( { in = \"abc.ts.orign\"; out = \"s\" } );",
		     "paths[0].in: 'ts.orign' is neither ts.origin nor ts.received, did you mean 'origin'?");
	assert_wrong(NAMED "paths = ( { in = \"abc.stats.owd.mean\"; out = \"s\" } );",
		     "paths[0].in: node 'abc' has no hook `stats`");
	assert_wrong(NAMED "paths = ( { in = ( 5 ); out = \"s\" } );",
		     "paths[0].in: expected the name of a node or a mapping");
	assert_wrong(NAMED "paths = ( { in = \"abc\"; out = \"s\"; queue_full = \"drop_oldst\" } );",
		     "did you mean 'drop_oldest'?");
	assert_wrong("nodes = { abc = { type = \"source\"; in = { signals = ( { name = \"b\"; init = \"x\" } ) } } };",
		     "signals[0].init: expected a value of type float");
}

static void a_disabled_path_may_share_its_destination(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(
		TWO "paths = ( { in = \"abc\"; out = \"s\" }, { in = \"abc\"; out = \"s\"; enabled = false } );",
		&c);

	assert_non_null(sn);
	fake_end(sn, c);
}

static void signals_have_three_spellings(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(
		"nodes = { a = { type = \"source\"; in = { signals = \"2f1i\" } };"
		" b = { type = \"source\"; in = { signals = { count = 3; type = \"boolean\" } } };"
		" d = { type = \"source\"; in = { signals = ( { name = \"u\"; unit = \"V\" }, { name = \"z\"; type = \"complex\" } ) } };"
		" e = { type = \"source\"; signals = ( ); in = { signals = ( ) } };"
		" f = { type = \"source\"; signals = \"2i\"; in = { signals = ( ) } };"
		" s = { type = \"sink\" } };",
		&c);
	struct signal_list *l;

	assert_non_null(sn);
	l = super_node_find(sn, "a")->in.signals;
	assert_int_equal(l->count, 3);
	assert_string_equal(l->signals[0].name, "signal0");
	assert_int_equal(l->signals[2].type, SIGNAL_INTEGER);
	l = super_node_find(sn, "b")->in.signals;
	assert_int_equal(l->count, 3);
	assert_int_equal(l->signals[1].type, SIGNAL_BOOLEAN);
	l = super_node_find(sn, "d")->in.signals;
	assert_string_equal(l->signals[0].unit, "V");
	assert_string_equal(l->signals[1].name, "z");
	assert_null(super_node_find(sn, "s")->in.signals);
	/* An empty list is as if it were absent. */
	assert_null(super_node_find(sn, "e")->in.signals);
	assert_int_equal(super_node_find(sn, "f")->in.signals->count, 2);
	fake_end(sn, c);
}

static void zero_bytes_and_endless_nesting_are_refused(void **state)
{
	char deep[5000];
	struct config *c = NULL;

	fake_log_start();
	assert_int_not_equal(config_load_text("x", "a = 1\0;", 7, &c), 0);
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_refused(deep, "nested more than");
	memset(deep, '(', sizeof(deep) - 1);
	memcpy(deep, "a =", 3);
	assert_int_not_equal(config_load_text("x", deep, sizeof(deep) - 1, &c),
			     0);
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libconfig_and_json_give_the_same_tree),
		cmocka_unit_test(json_may_have_comments_and_a_comma_too_many),
		cmocka_unit_test(words_of_villasnode_get_what_there_is_instead),
		cmocka_unit_test(a_byte_order_mark_is_no_text),
		cmocka_unit_test(zero_and_one_are_false_and_true),
		cmocka_unit_test(whole_numbers_beyond_32_bits_are_kept),
		cmocka_unit_test(variables_are_replaced),
		cmocka_unit_test(an_unset_variable_is_named_with_its_line),
		cmocka_unit_test(a_syntax_error_names_its_line),
		cmocka_unit_test(an_included_file_keeps_its_own_lines),
		cmocka_unit_test(a_text_of_json_stands_for_a_file),
		cmocka_unit_test(a_pattern_includes_all_that_match_in_their_order),
		cmocka_unit_test(a_pattern_in_json_joins_groups_or_lists),
		cmocka_unit_test(json_includes_what_is_written_for_libconfig),
		cmocka_unit_test(unknown_keys_can_be_passed_over),
		cmocka_unit_test(missing_keys_take_their_defaults),
		cmocka_unit_test(numbers_and_booleans_may_be_texts),
		cmocka_unit_test(every_wrong_value_is_reported_at_once),
		cmocka_unit_test(errors_in_json_have_lines_too),
		cmocka_unit_test(wrong_nodes_are_reported),
		cmocka_unit_test(wrong_paths_are_reported),
		cmocka_unit_test(wrong_mappings_are_reported_where_they_stand),
		cmocka_unit_test(a_disabled_path_may_share_its_destination),
		cmocka_unit_test(signals_have_three_spellings),
		cmocka_unit_test(zero_bytes_and_endless_nesting_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
