/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs over packets in virtual time (virtual.h):
 *   virtual [PART OF A NAME...]        the cases
 *   virtual --seed N --runs N          random runs, against a model
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "virtual.h"

const char *virtual_case = "start";
uint64_t virtual_seed;

void virtual_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%s:%d: %s: ", file, line, virtual_case);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (virtual_seed)
		printf("\n  again: virtual --seed %ju --runs 1", (uintmax_t)virtual_seed);
	else
		printf("\n  again: virtual %s", virtual_case);
	printf(", at %ju ns\n", (uintmax_t)virtual_now_ns());
	fflush(stdout);
	_exit(1);
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
