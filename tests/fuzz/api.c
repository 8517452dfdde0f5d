/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers and the run of the fuzzers of library calls; see api.h. */
#include "api.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t api_state;
const char *api_call = "nothing"; /* for messages */
unsigned long api_run;

/* Also to be found by a debugger. */
_Noreturn void api_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: run %lu, %s: %s\n", file, line, api_run, api_call,
		what);
	abort();
}
uint32_t draw(uint32_t below)
{
	api_state ^= api_state << 13;
	api_state ^= api_state >> 7;
	api_state ^= api_state << 17;
	return (uint32_t)(api_state >> 24) % below;
}

uint32_t number(void)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 127, 128, 255, 256,
		1000, 4096, 32768, 32769, 0xffff, 0x10000, 0xffffff, 0x1000000,
		0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
	};

	switch (draw(4)) {
	case 0:
		return edges[draw(sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return draw(UINT32_MAX);
	default:
		return draw(16);
	}
}

static int api_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static uint64_t api_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Some are closed by a thread of the library. */
static bool fds_fall_to(int fds)
{
	uint64_t end = api_now_ms() + 5000;

	while (api_fds() > fds)
		if (api_now_ms() > end)
			return false;
	return true;
}

int api_main(int argc, char **argv, unsigned long seconds, unsigned long warm,
	     int later, void (*one)(void))
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
				   (uint64_t)time(NULL);
	unsigned long first;
	uint64_t end;
	int fds = 0;

	if (argc > 1)
		seconds = strtoul(argv[1], NULL, 0);
	if (argc > 3)
		api_run = strtoul(argv[3], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	end = api_now_ms() + seconds * 1000;
	for (first = api_run; api_now_ms() < end; api_run++) {
		api_state = (seed * 1000003 + api_run) *
				    UINT64_C(0x9e3779b97f4a7c15) | 1;
		draw(2);
		one();
		api_call = "what is left behind";
		if (api_run - first < warm)
			fds = api_fds() > fds ? api_fds() : fds;
		must(fds_fall_to(fds + (api_run - first < warm ? 0 : later)));
	}
	printf("%lu runs\n", api_run - first);
	return 0;
}
