/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of command lines that are taken apart by a table: words are refused, or values are
 * in their ranges, and what was not named keeps its default.
 *
 * usage: fuzz_options [RUNS [SEED]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "-=lnvtsckof0123456789.exnaif \0\n\xff"
#include "drive.h"
#include "util/options.h"

#define WORDS_MAX 24

struct settings {
	bool json;
	unsigned verbose, lanes;
	uint8_t small;
	uint64_t seed, wait_ns;
	double share;
	const char *format, *listen;
	enum { TEXT, JSON, NONE } form;
	unsigned calls;
};

static const struct settings start = { .lanes = 8, .small = 3, .seed = 1, .share = 0.5 };

static void must(bool good)
{
	if (!good)
		abort();
}

static int call(const struct option_given *g)
{
	must(g->value && !strcmp(g->name, "--origin"));
	++*(unsigned *)option_member(g);
	return strchr(g->value, 'x') ? options_refuse(g, "expected no x") : OPTIONS_GO_ON;
}

static const struct option_entry table[] = {
	{ "-j, --json: a flag", OPTION_FLAG(struct settings, json) },
	{ "-v, --verbose: counts", OPTION_FLAG(struct settings, verbose) },
	{ "-f, --format FMT: a text", OPTION_TEXT(struct settings, format) },
	{ "-l, --lanes N: a whole number", OPTION_WHOLE(struct settings, lanes, 1, 15) },
	{ "--small N: a byte", OPTION_WHOLE(struct settings, small, 0, 255) },
	{ "--seed N: of any size", OPTION_WHOLE(struct settings, seed, 0, INFINITY) },
	{ "-t S: a time", OPTION_SECONDS(struct settings, wait_ns, 0, 3600) },
	{ "--share X: a real number", OPTION_REAL(struct settings, share, -1, 1) },
	{ "-s, --summary text|json|none: a word", OPTION_CHOICE(struct settings, form) },
	{ "-o, --origin ORIGIN...: a call", OPTION_TAKE(struct settings, calls, call) },
	{ "-n, --http[=LISTEN]: an optional text", OPTION_TEXT(struct settings, listen) },
	{ .text = NULL },
};

static void check(const struct settings *s, uint64_t given)
{
	must(!(given >> (sizeof(table) / sizeof(table[0]) - 1)));
	must(s->lanes >= 1 && s->lanes <= 15 && s->wait_ns <= UINT64_C(3600000000000));
	must(s->share >= -1 && s->share <= 1 && s->form <= NONE);
	must(s->json == (given & 1) && !s->verbose == !(given >> 1 & 1) && !s->format == !(given >> 2 & 1));
	must((given >> 3 & 1) || s->lanes == start.lanes);
	must((given >> 4 & 1) || s->small == start.small);
	must((given >> 5 & 1) || s->seed == start.seed);
	must((given >> 7 & 1) || s->share == start.share);
	must(!s->calls == !(given >> 9 & 1) && !s->listen == !(given >> 10 & 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct options orders[] = {
		{ .program = "fuzz", .synopsis = "", .about = "", .table = table, .operands_max = 3 },
		{ .synopsis = "[FILE]\n more\nother", .about = "", .table = table, .any_operands = true,
		  .in_order = true },
	};
	struct settings s = start;
	char *text = malloc(size + 2), *argv[WORDS_MAX + 1] = { text };
	uint64_t given;
	int argc = 0, status;

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	for (char *at = text; at <= text + size && argc < WORDS_MAX; at += strlen(at) + 1)
		argv[argc++] = at;
	argv[argc] = NULL;
	status = options_parse(&orders[size % 2], argc, argv, &s, &given);
	must(status == OPTIONS_GO_ON || status == OPTIONS_END || status == OPTIONS_WRONG);
	if (status == OPTIONS_GO_ON)
		check(&s, given);
	free(text);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	static const char *const words[] = {
		"-j", "--json", "-vvj", "--verb", "-f", "csv", "--format=", "--lanes", "15", "-l7", "--small=255", "--seed",
		"18446744073709551615", "0x10", "-t", "0.5", "1e9", "--share=-0.25", "nan", "-s", "none", "--summary=text",
		"--origin", "http://a", "x", "--http", "--http=1", "-n", "-n80", "--", "-", "file", "--s", "--help", "-h",
	};
	size_t size = 0;

	for (uint64_t i = random_below(12); i; i--) {
		const char *word = words[random_below(sizeof(words) / sizeof(words[0]))];

		memcpy(bytes + size, word, strlen(word) + 1);
		size += strlen(word) + 1;
	}
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	/* Messages and help are not what is looked at. */
	if (!freopen("/dev/null", "w", stderr))
		return 1;
	return drive(argc, argv, 20000, 1024, make);
}
#endif
