/* SPDX-License-Identifier: BSD-2-Clause */
/* Kind "floor": the figures of `busbar bench floor` as cases of a suite. */
#define LOG_ROOM "bench/floor"
#include <errno.h>
#include <string.h>

#include "bench/floor/floor.h"
#include "bench/kind/kind.h"
#include "util/clock.h"
#include "util/log.h"

#define SECONDS_EACH 0.25

static const struct bench_parameter parameters[] = {
	{ "measure", 's', NULL, "all",
	  "a name of 'busbar bench floor --help', or \"all\"" },
	{ .name = NULL },
};

static bool is_wanted(const char *measure, size_t i)
{
	return !strcmp(measure, "all") || !strcmp(measure, floor_measures[i].name);
}

static int check(const json_t *given)
{
	const char *measure = bench_text(given, "measure");

	for (size_t i = 0; i < floor_measure_count; i++)
		if (is_wanted(measure, i))
			return 0;
	return log_fail(-EINVAL, "measure '%s' is not known, see 'busbar bench floor --help'",
			measure);
}

static double seconds(const json_t *given, double scale)
{
	return SECONDS_EACH * (bench_is(given, "measure", "all") ? (double)floor_measure_count : 1);
}

/* Its median. What a machine cannot do is left out of the case. */
static int measure_one(const struct floor_measure *m, const struct floor_setting *setting,
		       const struct bench_context *context)
{
	struct result_figure figure = { .name = m->name, .label = m->label,
					.unit = m->unit };
	struct floor_result r;

	floor_measure_run(m, setting, &r);
	if (r.err) {
		log_warn("%s was not measured: %s", m->name,
			 r.err == -ENODEV ? "it needs two CPUs" : strerror(-r.err));
		return 0;
	}
	figure.value = r.median;
	return result_case_figure(context->result, &figure);
}

static int run(const json_t *given, const struct bench_context *context)
{
	const char *measure = bench_text(given, "measure");
	struct floor_setting setting;
	int ret = floor_default_setting(&setting);

	clock_init();
	for (size_t i = 0; !ret && i < floor_measure_count; i++) {
		if (atomic_load(context->stop))
			return -EINTR;
		if (is_wanted(measure, i))
			ret = measure_one(&floor_measures[i], &setting, context);
		context->progress(context, (double)(i + 1) / (double)floor_measure_count);
	}
	return ret;
}

const struct bench_kind bench_kind_floor = {
	.name = "floor",
	.summary = "what this machine can do at best",
	.parameters = parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
