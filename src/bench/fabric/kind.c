/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of the kind "fabric"; see fabric.h. */
#define LOG_ROOM "bench/fabric"
#include "bench/fabric/fabric.h"

#include <errno.h>
#include <string.h>

#include "util/log.h"
#include "util/spawn.h"

/* Guesses: an experiment; the start of a fabric and its manager; a cut, a join and their sweeps. */
#define EXPERIMENT_SECONDS 2
#define START_SECONDS 2
#define SWEEP_SECONDS 1

static const struct bench_parameter parameters[] = {
	{ "measure", 's', "experiment|sweep", "experiment",
	  "traffic in virtual time, or the time of a subnet manager after the cut of a cable" },
	{ "topology", 's', NULL, "fat-tree:4x4", "family with its size, or a file's path: see busbar-topology(5)" },
	{ "routing", 's', "min-hop|up-down|lash|dfsssp", "min-hop", "of an experiment" },
	{ "lanes", 'i', "1..15", "1", "data lanes of each port: 1, 2, 4, 8 or 15" },
	{ "seed", 'i', "0..9007199254740991", "1", "of an experiment's random numbers" },
	{ "lines", 's', NULL, "", "further lines of an experiment, as busbar-fabric(1), SCENARIOS; ';' between them" },
	{ "manager", 's', "own|opensm", "own", "of sweep" },
	{ "repetitions", 'i', "1..1000", "20", "of sweep: cables are cut so often" },
	{ .name = NULL },
};

static bool is_sweep(const json_t *p)
{
	return !strcmp(bench_text(p, "measure"), "sweep");
}

static int check(const json_t *p)
{
	const long long lanes = bench_number(p, "lanes");

	if (lanes != 1 && lanes != 2 && lanes != 4 && lanes != 8 && lanes != 15) {
		log_error("lanes %lld is not usable, a port has 1, 2, 4, 8 or 15", lanes);
		return -EINVAL;
	}
	if (strchr(bench_text(p, "topology"), '\n') || !*bench_text(p, "topology")) {
		log_error("topology is not usable, expected a family or a path");
		return -EINVAL;
	}
	if (!is_sweep(p) && !strstr(bench_text(p, "lines"), "traffic")) {
		log_error("lines '%s' is not usable, expected a line of traffic", bench_text(p, "lines"));
		return -EINVAL;
	}
	return 0;
}

static const char *lacks(const json_t *p)
{
	return is_sweep(p) && !strcmp(bench_text(p, "manager"), "opensm") && !spawn_is_installed("opensm")
		? "opensm" : NULL;
}

static double seconds(const json_t *p, double scale)
{
	return is_sweep(p) ? START_SECONDS + SWEEP_SECONDS * fabric_bench_sweeps(p, scale) : EXPERIMENT_SECONDS;
}

static int run(const json_t *p, const struct bench_context *context)
{
	return is_sweep(p) ? fabric_bench_sweep(p, context) : fabric_bench_simulate(p, context);
}

const struct bench_kind bench_kind_fabric = {
	.name = "fabric",
	.summary = "a simulated InfiniBand subnet: traffic, routes, deadlocks, sweeps",
	.parameters = parameters,
	.check = check,
	.lacks = lacks,
	.seconds = seconds,
	.run = run,
};
