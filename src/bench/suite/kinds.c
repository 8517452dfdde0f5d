/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of benchmarks by name. */
#include <stdio.h>
#include <string.h>

#include "bench/suite/suite.h"
#include "util/container_of.h"
#include "util/nearest.h"

#ifdef BENCH_HAVE_HCA
#define HCA &bench_kind_hca
#else
#define HCA NULL
#endif
#ifdef BENCH_HAVE_RIPC
#define RIPC &bench_kind_ripc
#else
#define RIPC NULL
#endif

struct entry {
	const char *name, *summary;
	const struct bench_kind *kind;  /* NULL: not in this build, which lacks verbs */
};

static const struct entry entries[] = {
	{ "hca", "messages between two queue pairs of one host", HCA },
	{ "node", "samples through a pair of nodes of gateways", &bench_kind_node },
	{ "start", "how long a small gateway takes to start, and its memory", &bench_kind_start },
	{ "reconnect", "how long gateways are apart when one of them is killed",
	  &bench_kind_reconnect },
	{ "ripc", "messages and files by ripc, or by plain TCP", RIPC },
	{ "program", "a program of perftest or UCX, between two processes",
	  &bench_kind_program },
	{ "mpi", "a program of MPI, over the adapter, shared memory or TCP", &bench_kind_mpi },
	{ "odp", "memory on demand, by the model of an adapter, in virtual time",
	  &bench_kind_odp },
	{ "fabric", "a simulated InfiniBand subnet: traffic, routes, deadlocks, sweeps",
	  &bench_kind_fabric },
	{ "floor", "what this machine can do at best", &bench_kind_floor },
};

const char *bench_kind_name(size_t index)
{
	return index < ARRAY_SIZE(entries) ? entries[index].name : NULL;
}

const char *bench_kind_summary(size_t index)
{
	return index < ARRAY_SIZE(entries) ? entries[index].summary : NULL;
}

static const struct entry *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		if (!strcmp(entries[i].name, name))
			return &entries[i];
	return NULL;
}

bool bench_kind_is_known(const char *name)
{
	return find(name) != NULL;
}

const struct bench_kind *bench_kind_find(const char *name, char *why, size_t size)
{
	const struct entry *e = find(name);
	struct nearest near = NEAREST(name);
	char hint[100];

	if (!e) {
		for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
			nearest_try(&near, entries[i].name);
		snprintf(why, size, "there is no kind '%s'%s", name,
			 nearest_hint(&near, hint, sizeof(hint)));
		return NULL;
	}
	if (!e->kind)
		snprintf(why, size, "kind '%s': it needs libibverbs and librdmacm, which this build "
			 "lacks", name);
	return e->kind;
}
