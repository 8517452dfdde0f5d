/* SPDX-License-Identifier: BSD-2-Clause */
/* The kind "hca" of benchmark suites; see hca.h. */
#define LOG_ROOM "bench/hca"

#include <unistd.h>

#include "bench/hca/case.h"
#include "bench/hca/remote.h"
#include "util/log.h"

static int check(const json_t *parameters)
{
	struct hca_case c;

	return hca_case_read(parameters, 1, &c);
}

static double seconds(const json_t *parameters, double scale)
{
	struct hca_case c;

	return hca_case_read(parameters, scale, &c) ? 0 : hca_case_seconds(&c);
}

static void progress(void *data, double share)
{
	const struct bench_context *context = data;

	if (context->progress)
		context->progress(context, MIN(share, 1));
}

static int measure(const json_t *parameters, const struct bench_context *context,
		   const struct hca_case *c, struct hca_shared *s)
{
	const struct hca_watch watch = {
		.stop = context->stop, .progress = progress, .data = (void *)context,
	};
	const char *peer = json_string_value(json_object_get(parameters, "peer"));
	int fd, ret;

	if (!c->remote)
		return hca_measure_local(c, s, &watch);
	fd = hca_remote_connect(peer, parameters, context->scale);
	if (fd < 0)
		return fd;
	ret = hca_measure_end(c, s, HCA_SENDER, fd, &watch);
	close(fd);
	return ret;
}

static int run(const json_t *parameters, const struct bench_context *context)
{
	struct hca_outcome outcome = { .values = NULL };
	struct hca_shared *s = NULL;
	struct hca_case c;
	int ret = hca_case_read(parameters, context->scale, &c);

	if (!ret)
		ret = hca_shared_create(&c, &s);
	if (!ret)
		ret = measure(parameters, context, &c, s);
	if (!ret)
		ret = hca_outcome_make(&c, s, &outcome);
	if (!ret)
		ret = result_case_rows(context->result, outcome.columns, outcome.column_count,
				       outcome.rows, outcome.latencies, outcome.latency_count);
	if (!ret)
		ret = result_case_figures(context->result, outcome.figures, outcome.figure_count);
	hca_outcome_free(&outcome);
	hca_shared_destroy(s);
	return ret;
}

const struct bench_kind bench_kind_hca = {
	.name = "hca",
	.summary = "one-way latencies between two adapters or queue pairs of a host",
	.parameters = hca_parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
