/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench NAME`: the benchmarks by name; each lives in src/bench/. */
#include "cli/cli.h"

#include <string.h>

#include "bench/floor/floor.h"
#include "bench/kind/command.h"
#ifdef CLI_HAVE_GATEWAY
#include "bench/suite/commands.h"
#endif

#ifdef BENCH_HAVE_HCA
/* One case from options as of any kind, or the server for another host. */
static int bench_hca_main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--server"))
			return bench_hca_server_main(argc, argv);
	return bench_single_main(argc, argv);
}
#else
#define bench_hca_main bench_single_main
#endif

#ifdef CLI_HAVE_GATEWAY
/* One case from options as of any kind, or the experiments. */
static int bench_odp_main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--experiment", strlen("--experiment")))
			return bench_odp_experiments_main(argc, argv);
	return bench_single_main(argc, argv);
}
#endif

static const struct cli_command benches[] = {
	{ "floor", "this machine's own limits, to compare everything with",
	  .fn = bench_floor_main },
#ifdef CLI_HAVE_GATEWAY
	{ "formats", "how fast samples are written and read in each format",
	  .fn = bench_formats_main },
	{ "run", "measure the cases of a suite into a folder", .fn = bench_run_main },
	{ "compare", "which of two runs is faster, case by case", .fn = bench_compare_main },
	{ "shapes", "what of the source's results a run shows, too", .fn = bench_shapes_main },
	{ "list", "show the suites and the kinds of benchmarks", .fn = bench_list_main },
	{ "hca", "messages between two queue pairs of one host", .fn = bench_hca_main },
	{ "node", "samples through a pair of nodes of gateways", .fn = bench_single_main },
	{ "start", "how long a small gateway takes to start, and its memory", .fn = bench_single_main },
	{ "reconnect", "how long gateways are apart when one is killed", .fn = bench_single_main },
	{ "ripc", "messages and files by ripc, or by plain TCP", .fn = bench_single_main },
	{ "program", "a program of perftest, between two processes", .fn = bench_single_main },
	{ "mpi", "a program of MPI, over the adapter, shared memory or TCP", .fn = bench_single_main },
	{ "odp", "memory on demand, by the model of an adapter, in virtual time", .fn = bench_odp_main },
	{ "fabric", "a simulated InfiniBand subnet: traffic, routes, deadlocks, sweeps",
	  .fn = bench_single_main },
#endif
	{ .name = NULL },
};

int cli_bench(int argc, char **argv)
{
	return cli_dispatch("busbar bench", benches, "NAME [OPTIONS]\n", argc, argv);
}
