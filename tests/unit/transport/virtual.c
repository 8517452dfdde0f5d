/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs over packets in virtual time (virtual.h):
 *   virtual [PART OF A NAME...]        the cases
 *   virtual --seed N --runs N          random runs, against a model
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "virtual.h"

const char *virtual_case = "start";
uint64_t virtual_seed;

static void say_how_to_repeat(void)
{
	fprintf(stderr, "  in %s, at %ju ns; again: virtual ", virtual_case,
		(uintmax_t)virtual_now_ns());
	if (virtual_seed)
		fprintf(stderr, "--seed %ju --runs 1\n", (uintmax_t)virtual_seed);
	else
		fprintf(stderr, "%s\n", virtual_case);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

static void run_all(const struct virtual_test *list, int argc, char **argv)
{
	for (; list->name; list++) {
		struct timespec from, to;

		if (!is_wanted(list->name, argc, argv))
			continue;
		virtual_case = list->name;
		timespec_get(&from, TIME_UTC);
		list->fn();
		timespec_get(&to, TIME_UTC);
		printf("ok %s, %.1f ms\n", list->name,
		       (double)(to.tv_sec - from.tv_sec) * 1e3 +
			       (double)(to.tv_nsec - from.tv_nsec) / 1e6);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = 0, runs = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	virtual_failing = say_how_to_repeat;
	virtual_device();
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--runs"))
			runs = strtoull(argv[i + 1], NULL, 0);
	}
	if (seed)
		return virtual_random(seed, runs);
	run_all(virtual_times, argc, argv);
	run_all(virtual_ends, argc, argv);
	run_all(virtual_order, argc, argv);
	run_all(virtual_paging, argc, argv);
	run_all(virtual_events, argc, argv);
	return 0;
}
