/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for configurations: load, make a super-node, throw it away.
 *
 * With -DFUZZ_ENGINE it is a libFuzzer target. Without, main() runs the seeds
 * below and mutations of them (20,000, or as many as the first argument says,
 * from the random number that the second gives), so that the normal test run
 * covers it.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/config.h"
#include "gateway/super_node/super_node.h"
#include "util/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libconfig 1.5 forgets a string that stands where it expected something else.
 * That is its own, once per refused file, and not what is looked for here. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so\n";
}

static bool silent(enum log_level level, const char *line)
{
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct super_node *sn = NULL;
	struct config *c = NULL;

	log_set_sink(silent);
	if (size > 65536 || config_load_text("fuzz", (const char *)data, size,
					     &c))
		return 0;
	if (!super_node_new(&sn, c))
		super_node_destroy(sn);
	config_destroy(c);
	return 0;
}

#ifndef FUZZ_ENGINE
static const char *const seeds[] = {
	"nodes = { a = { type = \"signal\"; signal = \"sine\"; rate = 100; values = 8; limit = 10; };\n"
	" l = { type = \"loopback\"; queuelen = 64; mode = \"polling\"; hooks = ( \"stats\", { type = \"drop\"; priority = 3 } ) };\n"
	" f = { type = \"file\"; uri = \"/dev/null\"; format = \"csv\"; out = { flush = true } } };\n"
	"paths = ( { in = \"a\"; out = ( \"l\", \"f\" ); hooks = ( \"fix\" ); queuelen = 1024; }, { in = [ \"l\" ]; rate = 10.5; mode = \"all\"; mask = \"l\" } );\n"
	"logging = { level = \"error\" }; stats = 1.0; idle_stop = true; hugepages = 0;\n",
	"{ \"nodes\": { \"a\": { \"type\": \"signal\", \"in\": { \"signals\": \"3f2i\" } }, \"b\": { \"type\": \"loopback\",\n"
	" \"signals\": [ { \"name\": \"x\", \"unit\": \"V\", \"type\": \"integer\", \"count\": 3 } ] } },\n"
	" \"paths\": [ { \"in\": \"a\", \"out\": [ \"b\" ], \"reverse\": false, \"enabled\": true } ], \"priority\": 0, \"seed\": -5 }\n",
	"# comment ${X}\n@include \"nothing\"\na = 0x7fffffffffL; /* b */ c = \"$${HOME} ${HOME} ${NO:-x}\" \"more\"; // d\n"
	"e = ${NO:-12345678901}; f = [ 1.5e3, -2, .5 ]; g = ( ( ), { } ); h : true;\n",
	"nodes = { i = { type = \"infiniband\"; rdma_transport_mode = \"UD\"; in = { address = \"10.0.0.1:1337\"; max_wrs = 512; cq_size = 512; buffer_subtraction = 64; };\n"
	" out = { address = \"10.0.0.2:1337\"; max_inline_data = 128; send_inline = true; periodic_signaling = 256; use_fallback = false } } };\n"
	"paths = ( { in = \"i\"; out = \"i\"; } );\n",
	"nodes = { a = { type = \"signal\"; signal = \"sine\"; in = { signals = ( { name = \"u\"; init = 5 }, { name = \"v-w\"; type = \"integer\"; init = 1 } ); hooks = ( { type = \"stats\"; format = \"matlab\"; buckets = 3 } ) } };\n"
	" l = { type = \"loopback\" }; m = { type = \"loopback\" }; s = { type = \"stats\"; rate = 2; in = { signals = ( { stats = \"a.owd.mean\" }, { name = \"x\"; stats = \"a.gap_sent.p99.9\" } ) } } };\n"
	"paths = ( { in = ( \"a[0-1]\", \"a.u\", \"a.ts.origin\", \"a.stats.age.total\", \"s\", \"a.data[v-w]\" ); out = \"l\"; queue_full = \"drop_oldest\"; queuelen = 5 },\n"
	" { in = \"l[2]\"; out = \"m\"; priority = 3 }, { in = ( \"m.hdr.length\", \"l\" ); mask = ( \"m\" ); mode = \"all\" } );\n",
};

#define SEED_COUNT (sizeof(seeds) / sizeof(seeds[0]))
#define TEXT_MAX 4096

static uint64_t state;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % below);
}

/* Puts another word in the place of one, which mostly leaves the syntax whole
 * and gets further than the parser. */
static size_t replace_word(char *text, size_t len, size_t at)
{
	static const char *const words[] = {
		"0", "-1", "1", "64", "2147483648", "1e9", "0.5", "true",
		"false", "nodes", "paths", "type", "in", "out", "hooks",
		"signals", "rate", "limit", "queuelen", "vectorize", "mode",
		"format", "mask", "enabled", "builtin", "affinity", "priority",
		"loopback", "signal", "file", "infiniband", "stats", "fix",
		"any", "all", "csv", "a", "l", "f", "i", "5f", "address",
		"a[0-3]", "a.u", "a.hdr.sequence", "l[1]", "m", "s", "stats.owd.mean",
		"block", "drop_newest", "queue_full", "init", "buckets",
		"original_sequence_no", "poll", "reverse", "uri", "values",
	};
	const char *word = words[draw(sizeof(words) / sizeof(words[0]))];
	size_t start, end, n = strlen(word);

	while (at < len && !isalnum((unsigned char)text[at]))
		at++;
	for (start = at; start > 0 && (isalnum((unsigned char)text[start - 1]) ||
				       text[start - 1] == '_');)
		start--;
	for (end = at; end < len && (isalnum((unsigned char)text[end]) ||
				     text[end] == '_');)
		end++;
	if (len - (end - start) + n > TEXT_MAX)
		return len;
	memmove(text + start + n, text + end, len - end);
	memcpy(text + start, word, n);
	return len - (end - start) + n;
}

/* One change at a random place; returns the new length. */
static size_t mutate(char *text, size_t len)
{
	static const char *const tokens[] = {
		"{", "}", "(", ")", "[", "]", "\"", "=", ":", ";", ",", "\n",
		"${", "}", "@include ", "/*", "*/", "//", "#", "-1", "0",
		"99999999999", "1e308", "true", "null", "\\", "nodes", "type",
		"in", "out", "vectorize", "hooks", "signals", "\xff", "0x",
	};
	size_t at = len ? draw((unsigned)len) : 0, n;
	const char *token;

	switch (draw(16)) {
	case 0: /* change a byte */
		if (len)
			text[at] = (char)draw(256);
		return len;
	case 1: /* take a piece out */
		n = len ? draw(20) : 0;
		n = n > len - at ? len - at : n;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	case 2: /* double a piece */
		n = draw(60);
		n = n > len - at ? len - at : n;
		if (len + n > TEXT_MAX)
			return len;
		memmove(text + at + n, text + at, len - at);
		return len + n;
	case 3: /* cut the end off */
		return draw(20) ? len : at;
	default:
		return replace_word(text, len, at);
	case 4: /* put a token in */
		token = tokens[draw(sizeof(tokens) / sizeof(tokens[0]))];
		n = strlen(token);
		if (len + n > TEXT_MAX)
			return len;
		memmove(text + at + n, text + at, len - at);
		memcpy(text + at, token, n);
		return len + n;
	}
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	for (size_t i = 0; i < SEED_COUNT; i++)
		LLVMFuzzerTestOneInput((const uint8_t *)seeds[i],
				       strlen(seeds[i]));
	for (unsigned long run = 0; run < runs; run++) {
		const char *from;
		char text[TEXT_MAX];
		size_t len;

		/* Each run from its own number, so that one can be repeated. */
		state = (seed * 1000003 + run) * UINT64_C(0x9e3779b97f4a7c15) |
			1;
		draw(2);
		from = seeds[draw(SEED_COUNT)];
		len = strlen(from);
		memcpy(text, from, len);
		for (unsigned k = 1 + draw(4); k > 0; k--)
			len = mutate(text, len);
		if (getenv("FUZZ_SHOW"))
			fprintf(stderr, "run %lu\n%.*s\n", run, (int)len, text);
		LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	}
	return 0;
}
#endif
