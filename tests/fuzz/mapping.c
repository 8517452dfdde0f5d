/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target for mapping expressions: whatever the text, what is understood
 * lies within the text and what is found within the list of signals.
 *
 * With -DFUZZ_ENGINE it is a libFuzzer target. Without, main() runs random
 * texts out of the pieces that expressions are made of (200,000, or as many as
 * the first argument says, from the random number that the second gives).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/mapping.h"
#include "gateway/sample/signals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX 200

static struct signal_list *signals;

static void make_signals(void)
{
	static const char *const names[] = { "u", "u-a", "ua", "a.b", "0", "-",
					     "data", "5", "u[1]", "" };

	signals = signal_list_alloc(sizeof(names) / sizeof(names[0]));
	for (unsigned i = 0; signals && i < signals->count; i++)
		if (signal_set(&signals->signals[i], names[i], NULL,
			       SIGNAL_FLOAT))
			abort();
	if (!signals)
		abort();
}

static void must(bool holds, const char *what, const char *text)
{
	if (holds)
		return;
	fprintf(stderr, "%s: '%s'\n", what, text);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1], problem[MAPPING_PROBLEM_MAX];
	unsigned first = 0, count = 0;
	struct mapping m;

	if (!signals)
		make_signals();
	if (size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	size = strlen(text);
	problem[0] = '\0';
	if (mapping_parse(&m, text, problem, sizeof(problem))) {
		must(*problem, "refused without a word", text);
		return 0;
	}
	must(m.node == text && m.node_len > 0 && m.node_len <= size,
	     "node is not at the start", text);
	must(!m.what || (m.what > text && m.what_len > 0 &&
			 m.what + m.what_len <= text + size),
	     "what is meant lies outside", text);
	must(m.kind != MAPPING_STATS || (m.metric < STATS_METRICS &&
					 m.type < STATS_TYPES),
	     "no such figure", text);
	if (!mapping_resolve(&m, signals, &first, &count, problem,
			     sizeof(problem)))
		must(count > 0 && first < signals->count &&
			     count <= signals->count - first,
		     "values lie outside", text);
	else
		must(*problem, "not found without a word", text);
	return 0;
}

#ifndef FUZZ_ENGINE
static uint64_t state;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % below);
}

static const char *const pieces[] = {
	"n", "node", "a-b", ".", ".", "[", "]", "-", "0", "3", "9", "u", "ua",
	"u-a", "data", "hdr", "ts", "stats", "sequence", "length", "origin",
	"received", "owd", "mean", "rtp", "jitter", "p99.9", "total", " ",
	"18446744073709551616", "\x80", "%s", "stats.owd.last", "[0-3]",
};

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	for (unsigned long run = 0; run < runs; run++) {
		char text[TEXT_MAX + 1] = "";
		size_t len = 0;

		/* Each run from its own number, so that one can be repeated. */
		state = (seed * 1000003 + run) * UINT64_C(0x9e3779b97f4a7c15) |
			1;
		draw(2);
		if (draw(2))
			len = (size_t)sprintf(text, "n");
		for (unsigned k = draw(8); k > 0; k--) {
			const char *piece = pieces[draw(
				sizeof(pieces) / sizeof(pieces[0]))];

			if (len + strlen(piece) > TEXT_MAX)
				break;
			len += (size_t)sprintf(text + len, "%s", piece);
		}
		if (len && draw(8) == 0)
			text[draw((unsigned)len)] = (char)draw(256);
		LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	}
	signal_list_put(signals);
	return 0;
}
#endif
