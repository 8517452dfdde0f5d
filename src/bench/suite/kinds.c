/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of benchmarks by name. */
#include <stdio.h>
#include <string.h>

#include "bench/suite/suite.h"
#include "util/container_of.h"
#include "util/nearest.h"

/* Without run(): not in this build, which lacks verbs. */
#ifndef BENCH_HAVE_HCA
const struct bench_kind bench_kind_hca = {
	.name = "hca", .summary = "messages between two queue pairs of one host" };
#endif
#ifndef BENCH_HAVE_RIPC
const struct bench_kind bench_kind_ripc = {
	.name = "ripc", .summary = "messages and files by ripc, or by plain TCP" };
#endif

static const struct bench_kind *const kinds[] = {
	&bench_kind_hca, &bench_kind_node, &bench_kind_start, &bench_kind_reconnect,
	&bench_kind_ripc, &bench_kind_program, &bench_kind_mpi, &bench_kind_odp,
	&bench_kind_fabric, &bench_kind_floor,
};

const struct bench_kind *bench_kind_at(size_t index)
{
	return index < ARRAY_SIZE(kinds) ? kinds[index] : NULL;
}

static const struct bench_kind *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	return NULL;
}

bool bench_kind_is_known(const char *name)
{
	return find(name) != NULL;
}

const struct bench_kind *bench_kind_find(const char *name, char *why, size_t size)
{
	const struct bench_kind *kind = find(name);
	struct nearest near = NEAREST(name);
	char hint[100];

	if (kind && kind->run)
		return kind;
	if (!kind) {
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			nearest_try(&near, kinds[i]->name);
		snprintf(why, size, "there is no kind '%s'%s", name,
			 nearest_hint(&near, hint, sizeof(hint)));
	} else {
		snprintf(why, size, "kind '%s': it needs libibverbs and librdmacm, which this build "
			 "lacks", name);
	}
	return NULL;
}
