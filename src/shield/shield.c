/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parts are wanted, and what the time is; see shield.h. */
#include "shield/shield.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct shield_counts shield_counts;

static const struct {
	const char *name;
	unsigned part;
} names[] = {
	{ "prefetch", SHIELD_PREFETCH },
	{ "rnr", SHIELD_RNR },
	{ "probe", SHIELD_PROBE },
	{ "touch", SHIELD_TOUCH },
};

static unsigned parts;

static void read_parts(void)
{
	const char *at = getenv("BUSBAR_ODP_SHIELD");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!at || !*at || strstr(at, names[i].name))
			parts |= names[i].part;
}

unsigned shield_parts(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_parts);
	return parts;
}

uint64_t shield_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static atomic_bool has_regions;

bool shield_has_regions(void)
{
	return atomic_load(&has_regions);
}

void shield_note_region(void)
{
	atomic_store(&has_regions, true);
}
