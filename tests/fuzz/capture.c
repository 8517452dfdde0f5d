/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the reader of capture files and of the analysis of their packets. Built
 * plainly, main() runs a bounded number of random mutations of valid files (argument 1: runs,
 * argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#define MUTATE_BYTES "\0\1\2\3\4\5\6\x09\x0a\x0c\x0d\x10\x15\x1a\x20\x2e\x60\x7f\x80\xff"
#include "analyse.h"
#include "drive.h"
#include "wire/capture/link.h"

static void check(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct analyzer_capture c;
	struct analyzer *a = analyse_bytes(data, size, 0, &c);
	uint64_t packets = c.packets;

	check(!c.corrupt || (c.reader.error.field && c.reader.error.offset <= size));
	for (unsigned i = 0; i < analyzer_flows(a); i++)
		check(analyzer_flow(a, i)->verdict <= ANALYZER_NONE);
	analyzer_free(a);
	/* The same in two pieces. */
	a = analyse_bytes(data, size, size / 2 + 1, &c);
	check(c.packets == packets);
	analyzer_free(a);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	static const uint16_t links[] = { CAPTURE_ETHERNET, CAPTURE_RAW_IP, CAPTURE_COOKED, CAPTURE_ERF,
					  CAPTURE_INFINIBAND, CAPTURE_COOKED_2 };
	static const char *const names[] = { "fig5.3", "fig5.3-client", "fig6.2", "self-heal", "loss",
					     "no-receive" };
	struct scene_file f = { .link = links[random_below(6)], .ng = random_below(2),
				.big = random_below(2), .ns = random_below(2),
				.tagged = random_below(2), .ip6 = random_below(2), .dropped = 1 };
	struct scene s;
	uint8_t *valid;
	size_t size;

	check(scene_named(names[random_below(6)], &s));
	valid = scene_write(&s, &f, &size);
	size = size < capacity ? size : capacity;
	memcpy(bytes, valid, size);
	free(valid);
	scene_free(&s);
	return mutate_times(bytes, size, capacity, random_below(6));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 3000, 4096, make);
}
#endif
