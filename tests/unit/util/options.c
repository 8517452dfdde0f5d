/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines by table: values, messages and the help's text. */
#include "util/options.h"

#include <getopt.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum form { TEXT, JSON, NONE };

struct settings {
	bool json, quick;
	unsigned verbose, lanes;
	uint8_t small;
	uint64_t seed, wait_ns;
	double share;
	const char *format, *listen;
	enum form form;
	unsigned users;
	bool has_listen;
};

static int add_user(const struct option_given *g)
{
	struct settings *s = g->to;

	if (!strcmp(g->value, "nobody"))
		return options_refuse(g, "expected a user of %s", (const char *)g->entry->data);
	s->users++;
	return OPTIONS_GO_ON;
}

static int take_listen(const struct option_given *g)
{
	struct settings *s = g->to;

	s->has_listen = true;
	s->listen = g->value;
	return OPTIONS_GO_ON;
}

static const struct option_entry table[] = {
	{ "-j, --json: print JSON", OPTION_FLAG(struct settings, json) },
	{ "-q: no live line", OPTION_FLAG(struct settings, quick) },
	{ "-v, --verbose: more; again: still more", OPTION_FLAG(struct settings, verbose) },
	{ "-f, --format FMT: format of the file", OPTION_TEXT(struct settings, format) },
	{ "--lanes N: data lanes of each port: with a text that is longer than the line it is in, "
		       "so that a second one is needed", OPTION_WHOLE(struct settings, lanes, 1, 15) },
	{ "--small N: a byte", OPTION_WHOLE(struct settings, small, 0, 255) },
	{ "--seed N: of random numbers", OPTION_WHOLE(struct settings, seed, 0, INFINITY) },
	{ "-w, --wait SECONDS: until it ends", OPTION_SECONDS(struct settings, wait_ns, 0, 10) },
	{ "--share X: of it", OPTION_REAL(struct settings, share, -1, 1) },
	{ "--summary text|json|none: its form", OPTION_CHOICE(struct settings, form) },
	{ "--allow-user USER...: may plug in", OPTION_CALL(add_user, "this host") },
	{ "--http[=LISTEN]: offers HTTP", OPTION_CALL(take_listen, NULL) },
	{ .text = NULL },
};

static const struct options command = {
	.program = "busbar test", .synopsis = "[OPTIONS] FILE\nlist", .about = "What it does.\n",
	.table = table, .operands_max = 2, .end = "Exit status: 0.\n",
};

/* Words of a command line, up to a NULL; `out` has what was printed to both streams. */
static int parse_as(const struct options *o, char *out, size_t size, struct settings *s, uint64_t *given,
		    const char *const words[])
{
	char *argv[20] = { (char *)"test" };
	int argc = 1, status, saved[2] = { dup(1), dup(2) };
	FILE *file = tmpfile();
	size_t got;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	fflush(stdout);
	dup2(fileno(file), 1);
	dup2(fileno(file), 2);
	status = options_parse(o, argc, argv, s, given);
	fflush(stdout);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	close(saved[0]);
	close(saved[1]);
	rewind(file);
	got = fread(out, 1, size - 1, file);
	out[got] = '\0';
	fclose(file);
	return status;
}

static char said[4000];
static struct settings set;

#define PARSE(...) \
	(set = (struct settings){ .lanes = 8 }, \
	 parse_as(&command, said, sizeof(said), &set, NULL, (const char *const[]){ __VA_ARGS__, NULL }))

/* Is refused with this message as the beginning of what is printed? */
#define REFUSES(message, ...) \
	do { \
		assert_int_equal(PARSE(__VA_ARGS__), OPTIONS_WRONG); \
		if (strncmp(said, message, strlen(message))) \
			fail_msg("said: %s", said); \
	} while (0)

static void values_of_each_kind_are_stored(void **state)
{
	assert_int_equal(PARSE("-jvv", "-f", "csv", "--lanes=15", "--small", "0xff", "--seed",
			       "18446744073709551615", "-w0.5", "--share", "-0.25", "--summary", "none", "--allow-user",
			       "a", "--allow-user=b", "--http", "operand"),
			 OPTIONS_GO_ON);
	assert_true(set.json && !set.quick && set.has_listen && !set.listen);
	assert_int_equal(set.verbose, 2);
	assert_string_equal(set.format, "csv");
	assert_int_equal(set.lanes, 15);
	assert_int_equal(set.small, 255);
	assert_true(set.seed == UINT64_MAX && set.wait_ns == 500000000 && set.share == -0.25);
	assert_int_equal(set.form, NONE);
	assert_int_equal(set.users, 2);
	assert_int_equal(optind, 18);
	assert_int_equal(PARSE("--http=1:80", "-q"), OPTIONS_GO_ON);
	assert_string_equal(set.listen, "1:80");
	assert_true(set.quick && set.lanes == 8);
}

static void options_may_stand_behind_operands_unless_the_order_counts(void **state)
{
	struct options ordered = command;

	assert_int_equal(PARSE("file", "--json"), OPTIONS_GO_ON);
	assert_true(set.json);
	assert_int_equal(PARSE("--", "--json"), OPTIONS_GO_ON);
	assert_true(!set.json);
	ordered.in_order = ordered.any_operands = true;
	assert_int_equal(parse_as(&ordered, said, sizeof(said), &set, NULL,
				  (const char *const[]){ "program", "--json", "x", NULL }), OPTIONS_GO_ON);
	assert_true(!set.json && optind == 1);
}

static void errors_name_the_option(void **state)
{
	REFUSES("busbar test: --lanes 16: expected a whole number from 1 to 15\n", "--lanes", "16");
	REFUSES("busbar test: --lanes 0: expected", "--lanes", "0");
	REFUSES("busbar test: --lanes 1x: expected", "--lanes", "1x");
	REFUSES("busbar test: --lanes -1: expected", "--lanes", "-1");
	REFUSES("busbar test: --lanes : expected", "--lanes", "");
	REFUSES("busbar test: --small 256: expected", "--small", "256");
	REFUSES("busbar test: --seed 18446744073709551616: expected a whole number from 0 on\n", "--seed",
		"18446744073709551616");
	REFUSES("busbar test: --wait 11: expected seconds from 0 to 10\n", "-w", "11");
	REFUSES("busbar test: --share nan: expected a number from -1 to 1\n", "--share", "nan");
	REFUSES("busbar test: --summary jso: expected text, json or none\n", "--summary", "jso");
	REFUSES("busbar test: --allow-user nobody: expected a user of this host\n", "--allow-user", "nobody");
	REFUSES("busbar test: option --format needs an argument: FMT\nusage: busbar test [OPTIONS] FILE\n"
		"       busbar test list\n", "-f");
	REFUSES("busbar test: option --json takes no argument\n", "--json=1");
	REFUSES("busbar test: unrecognized option '--fromat', did you mean 'format'?\n", "--fromat=x");
	REFUSES("busbar test: unrecognized option '-@'\n", "--json", "-@x");
	REFUSES("busbar test: option '--s' is the beginning of more than one\n", "--s=1");
	REFUSES("busbar test: c: one operand too many\n", "a", "b", "c");
}

static void missing_operands_get_the_synopsis(void **state)
{
	struct options needs = command;

	needs.operands_min = 1;
	assert_int_equal(parse_as(&needs, said, sizeof(said), &set, NULL, (const char *const[]){ NULL }),
			 OPTIONS_WRONG);
	assert_string_equal(said, "usage: busbar test [OPTIONS] FILE\n       busbar test list\n");
}

static void it_is_known_which_options_were_given(void **state)
{
	uint64_t given;

	assert_int_equal(parse_as(&command, said, sizeof(said), &set, &given,
				  (const char *const[]){ "--lanes", "8", "-q", NULL }), OPTIONS_GO_ON);
	assert_true(given == (1 << 1 | 1 << 4));
}

static void the_help_is_made_of_the_table(void **state)
{
	assert_int_equal(PARSE("-q", "--help"), OPTIONS_END);
	assert_string_equal(said,
			    "usage: busbar test [OPTIONS] FILE\n       busbar test list\n\nWhat it does.\n\n"
			    "  -j, --json           print JSON\n"
			    "  -q                   no live line\n"
			    "  -v, --verbose        more; again: still more\n"
			    "  -f, --format FMT     format of the file\n"
			    "      --lanes N        data lanes of each port: with a text that is longer than the line\n"
			    "                       it is in, so that a second one is needed\n"
			    "      --small N        a byte\n"
			    "      --seed N         of random numbers\n"
			    "  -w, --wait SECONDS   until it ends\n"
			    "      --share X        of it\n"
			    "      --summary text|json|none\n"
			    "                       its form\n"
			    "      --allow-user USER...\n"
			    "                       may plug in\n"
			    "      --http[=LISTEN]  offers HTTP\n"
			    "  -h, --help           this text\n\nExit status: 0.\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_each_kind_are_stored),
		cmocka_unit_test(options_may_stand_behind_operands_unless_the_order_counts),
		cmocka_unit_test(errors_name_the_option),
		cmocka_unit_test(missing_operands_get_the_synopsis),
		cmocka_unit_test(it_is_known_which_options_were_given),
		cmocka_unit_test(the_help_is_made_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
