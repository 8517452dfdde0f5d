/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kind "fabric": an experiment on an InfiniBand subnet in virtual time (`busbar fabric simulate`),
 * whose figures become those of the case; or how long a subnet manager takes from the cut of a
 * cable until it has set all tables again, on a running fabric (`busbar fabric run`).
 *
 * The scenario of an experiment, which stays in the case's folder, is made from the parameters; the
 * result, experiment.json beside it, is what `busbar report` makes a page of a subnet from.
 */
#define LOG_ROOM "bench/fabric"
#include "bench/fabric/fabric.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/kind/process.h"
#include "bench/result/disturbance.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/spawn.h"

#define SECONDS_MAX 1000
/* Guesses: an experiment; the start of a fabric and its manager; a cut, a join and their sweeps. */
#define EXPERIMENT_SECONDS 2
#define START_SECONDS 2
#define SWEEP_SECONDS 1

static const struct bench_parameter parameters[] = {
	{ "measure", 's', "experiment|sweep", "experiment",
	  "traffic in virtual time, or the time of a subnet manager after the cut of a cable" },
	{ "topology", 's', NULL, "fat-tree:4x4",
	  "family with its size, or a file's path: see busbar-topology(5)" },
	{ "routing", 's', "min-hop|up-down|lash|dfsssp", "min-hop", "of an experiment" },
	{ "lanes", 'i', "1..15", "1", "data lanes of each port: 1, 2, 4, 8 or 15" },
	{ "seed", 'i', "0..9007199254740991", "1", "of an experiment's random numbers" },
	{ "lines", 's', NULL, "",
	  "further lines of an experiment, as busbar-fabric(1), SCENARIOS; ';' between them" },
	{ "manager", 's', "own|opensm", "own", "of sweep" },
	{ "repetitions", 'i', "1..1000", "20", "of sweep: cables are cut so often" },
	{ .name = NULL },
};

static bool is_sweep(const json_t *p)
{
	return bench_is(p, "measure", "sweep");
}

static int check(const json_t *p)
{
	const long long lanes = bench_number(p, "lanes");

	if (lanes != 1 && lanes != 2 && lanes != 4 && lanes != 8 && lanes != 15)
		return log_fail(-EINVAL, "lanes %lld is not usable, a port has 1, 2, 4, 8 or 15",
				lanes);
	if (strchr(bench_text(p, "topology"), '\n') || !*bench_text(p, "topology"))
		return log_fail(-EINVAL, "topology is not usable, expected a family or a path");
	if (!is_sweep(p) && !strstr(bench_text(p, "lines"), "traffic"))
		return log_fail(-EINVAL, "lines '%s' is not usable, expected a line of traffic",
				bench_text(p, "lines"));
	return 0;
}

static const char *lacks(const json_t *p)
{
	bool needed = is_sweep(p) && bench_is(p, "manager", "opensm");

	return needed && !spawn_is_installed("opensm") ? "opensm" : NULL;
}

static double seconds(const json_t *p, double scale)
{
	return is_sweep(p) ? START_SECONDS + SWEEP_SECONDS * fabric_bench_sweeps(p, scale) :
			     EXPERIMENT_SECONDS;
}

/* ---- an experiment ---- */

static int write_scenario(const json_t *p, const char *path)
{
	FILE *f = fopen(path, "we");
	bool bad;

	if (!f)
		return log_fail(-errno, "cannot write %s: %s", path, strerror(errno));
	fprintf(f, "topology %s\nrouting %s\nlanes %lld\nseed %lld\n", bench_text(p, "topology"),
		bench_text(p, "routing"), bench_number(p, "lanes"), bench_number(p, "seed"));
	for (const char *c = bench_text(p, "lines"); *c; c++)
		putc(*c == ';' ? '\n' : *c, f);
	putc('\n', f);
	bad = ferror(f);
	return fclose(f) || bad ? log_fail(-EIO, "cannot write %s", path) : 0;
}

/* Figures of one line of traffic are called by its name. */
static int add_traffic(struct result_case *c, const json_t *t)
{
	static const struct {
		const char *name, *key, *inner, *label, *unit;
		double factor;
	} of[] = {
		{ "rate", "rate_bps", NULL, "rate", "Gbit/s", 1e-9 },
		{ "share", "share", NULL, "rate by the fair share", "", 1 },
		{ "least", "least_share", NULL, "of the flow with the least", "", 1 },
		{ "latency", "packet_latency_ns", "p50", "latency of packets, median", "us", 1e-3 },
		{ "latency_99", "packet_latency_ns", "p99", "latency of packets, 99 %", "us",
		  1e-3 },
	};
	const char *traffic = bench_text(t, "name");
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(of); i++) {
		const json_t *in = of[i].inner ? json_object_get(t, of[i].key) : t;
		char name[100], label[200];

		snprintf(name, sizeof(name), "%s_%s", traffic, of[i].name);
		snprintf(label, sizeof(label), "%s: %s", traffic, of[i].label);
		ret = result_case_figure(c, &(struct result_figure){
			name, label, of[i].unit,
			bench_real(in, of[i].inner ?: of[i].key) * of[i].factor });
	}
	return ret;
}

static int add_figures(struct result_case *c, const json_t *r, double took)
{
	const struct result_figure figures[] = {
		{ "carried", "rate of all by what the senders' links can", "%",
		  bench_real(r, "carried") * 100 },
		{ "lost", "packets lost", "", bench_real(r, "lost") },
		{ "reordered", "packets out of order", "", bench_real(r, "reordered") },
		{ "marked", "packets marked", "", bench_real(r, "marked") },
		{ "layers", "layers in use", "", bench_real(r, "layers") },
		{ "circle", "channels of a circle in the paths", "",
		  (double)json_array_size(json_object_get(r, "circle")) },
		{ "deadlocks", "deadlocks", "",
		  (double)json_array_size(json_object_get(r, "deadlocks")) },
		{ "simulated", "time simulated", "ms", bench_real(r, "end_ns") * 1e-6 },
		{ "hops_rate", "packet-hops in a second of a processor", "M/s",
		  took > 0 ? bench_real(r, "hops") * 1e-6 / took : 0 },
	};
	const json_t *one;
	size_t index;
	int ret = 0;

	json_array_foreach(json_object_get(r, "traffic"), index, one)
		ret = ret ?: add_traffic(c, one);
	return ret ?: result_case_figures(c, figures, ARRAY_SIZE(figures));
}

/* What the scenario expects, if it holds or not, is in the result. */
static int carry_out(const char *scenario, const char *result, const char *errors,
		     const atomic_bool *stop)
{
	struct process_words words = { .count = 0 };
	struct process p = { .argv = words.argv, .output = result, .errors = errors, .cpu = -1 };
	uint64_t until = clock_monotonic_ns_slow() + SECONDS_MAX * NSEC_PER_SEC;
	int ret;

	process_words_self(&words, "fabric simulate --json --quiet");
	process_words_add(&words, scenario);
	ret = words.failed ? -ENOMEM : process_run(&p, until, stop);
	if (ret == -ETIMEDOUT)
		log_error("the experiment does not end within %d s", SECONDS_MAX);
	process_words_free(&words);
	return ret;
}

static int simulate(const json_t *p, const struct bench_context *context)
{
	const char *dir = result_case_dir(context->result);
	double before = disturbance_seconds(RUSAGE_CHILDREN);
	char scenario[PATH_MAX], result[PATH_MAX], errors[PATH_MAX];
	json_t *r;
	int ret;

	snprintf(scenario, sizeof(scenario), "%s/experiment.scenario", dir);
	snprintf(result, sizeof(result), "%s/experiment.json", dir);
	snprintf(errors, sizeof(errors), "%s/errors", dir);
	ret = write_scenario(p, scenario) ?:
	      carry_out(scenario, result, errors, context->stop);
	if (ret)
		return ret;
	r = json_load_file(result, 0, NULL);
	if (!r) {
		process_show_end("the experiment", errors);
		return -EIO;
	}
	ret = add_figures(context->result, r, disturbance_seconds(RUSAGE_CHILDREN) - before);
	json_decref(r);
	return ret;
}

static int run(const json_t *p, const struct bench_context *context)
{
	return is_sweep(p) ? fabric_bench_sweep(p, context) : simulate(p, context);
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
