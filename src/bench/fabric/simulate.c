/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An experiment in virtual time. The scenario, which stays in the case's folder, is made from the parameters;
 * the result, experiment.json beside it, is what `busbar report` makes a page of a subnet from.
 */
#define LOG_ROOM "bench/fabric"
#include "bench/fabric/fabric.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/kind/process.h"
#include "util/beside.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define SECONDS_MAX 1000

static int write_scenario(const json_t *p, const char *path)
{
	FILE *f = fopen(path, "we");
	bool bad;

	if (!f) {
		log_error("cannot write %s: %s", path, strerror(errno));
		return -errno;
	}
	fprintf(f, "topology %s\nrouting %s\nlanes %lld\nseed %lld\n", bench_text(p, "topology"),
		bench_text(p, "routing"), bench_number(p, "lanes"), bench_number(p, "seed"));
	for (const char *c = bench_text(p, "lines"); *c; c++)
		putc(*c == ';' ? '\n' : *c, f);
	putc('\n', f);
	bad = ferror(f);
	if (fclose(f) || bad) {
		log_error("cannot write %s", path);
		return -EIO;
	}
	return 0;
}

/* Of the processes that have ended. */
static double processor_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double number_of(const json_t *object, const char *key, const char *inner)
{
	const json_t *value = json_object_get(object, key);

	return json_number_value(inner ? json_object_get(value, inner) : value);
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
		{ "latency_99", "packet_latency_ns", "p99", "latency of packets, 99 %", "us", 1e-3 },
	};
	const char *traffic = json_string_value(json_object_get(t, "name"));
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(of); i++) {
		char name[100], label[200];

		snprintf(name, sizeof(name), "%s_%s", traffic, of[i].name);
		snprintf(label, sizeof(label), "%s: %s", traffic, of[i].label);
		ret = result_case_figure(c, &(struct result_figure){
			name, label, of[i].unit, number_of(t, of[i].key, of[i].inner) * of[i].factor });
	}
	return ret;
}

static int add_figures(struct result_case *c, const json_t *r, double took)
{
	const struct result_figure figures[] = {
		{ "carried", "rate of all by what the senders' links can", "%", number_of(r, "carried", NULL) * 100 },
		{ "lost", "packets lost", "", number_of(r, "lost", NULL) },
		{ "reordered", "packets out of order", "", number_of(r, "reordered", NULL) },
		{ "marked", "packets marked", "", number_of(r, "marked", NULL) },
		{ "layers", "layers in use", "", number_of(r, "layers", NULL) },
		{ "circle", "channels of a circle in the paths", "",
		  (double)json_array_size(json_object_get(r, "circle")) },
		{ "deadlocks", "deadlocks", "", (double)json_array_size(json_object_get(r, "deadlocks")) },
		{ "simulated", "time simulated", "ms", number_of(r, "end_ns", NULL) * 1e-6 },
		{ "hops_rate", "packet-hops in a second of a processor", "M/s",
		  took > 0 ? number_of(r, "hops", NULL) * 1e-6 / took : 0 },
	};
	const json_t *traffic = json_object_get(r, "traffic"), *one;
	size_t index;
	int ret = 0;

	json_array_foreach(traffic, index, one)
		if (!ret)
			ret = add_traffic(c, one);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(figures); i++)
		ret = result_case_figure(c, &figures[i]);
	return ret;
}

/* What the scenario expects, if it holds or not, is in the result. */
static int carry_out(const char *scenario, const char *result, const char *errors, const atomic_bool *stop)
{
	struct process_words words = { .count = 0 };
	struct process p = { .output = result, .errors = errors, .cpu = -1 };
	char self[PATH_MAX];
	int ret;

	beside_self(self);
	process_words_add(&words, self);
	process_words_split(&words, "fabric simulate --json --quiet");
	process_words_add(&words, scenario);
	p.argv = words.argv;
	ret = words.failed ? -ENOMEM : process_start(&p);
	if (!ret)
		ret = process_await(&p, clock_monotonic_ns_slow() + SECONDS_MAX * NSEC_PER_SEC, stop);
	if (ret == -ETIMEDOUT)
		log_error("the experiment does not end within %d s", SECONDS_MAX);
	process_kill(&p);
	process_words_free(&words);
	return ret;
}

int fabric_bench_simulate(const json_t *parameters, const struct bench_context *context)
{
	const char *dir = result_case_dir(context->result);
	double before = processor_seconds();
	char scenario[PATH_MAX], result[PATH_MAX], errors[PATH_MAX];
	json_t *r;
	int ret;

	snprintf(scenario, sizeof(scenario), "%s/experiment.scenario", dir);
	snprintf(result, sizeof(result), "%s/experiment.json", dir);
	snprintf(errors, sizeof(errors), "%s/errors", dir);
	ret = write_scenario(parameters, scenario);
	if (!ret)
		ret = carry_out(scenario, result, errors, context->stop);
	if (ret)
		return ret;
	r = json_load_file(result, 0, NULL);
	if (!r) {
		process_show_end("the experiment", errors);
		return -EIO;
	}
	ret = add_figures(context->result, r, processor_seconds() - before);
	json_decref(r);
	return ret;
}
