/* SPDX-License-Identifier: BSD-2-Clause */
/* See logged.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/logged.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/delivery/load.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* Of the generator, unless the user says so. */
#define CATCH_UP_NS 100000.0

json_t *bench_node_logger(const struct bench_node_settings *s)
{
	return json_pack("{ss ss ss s{sb}}", "type", "file", "uri", BENCH_NODE_LOGGED,
			 "format", "csv", "out", "append", 0);
}

uint64_t bench_node_missed_behind(const struct delivery_samples *sent,
				  const struct delivery_samples *received,
				  double period_ns, double catch_up_ns)
{
	/* The generator leaves out no step that is late by less than a period. */
	double bound = fmax(catch_up_ns, period_ns);
	uint64_t behind = 0;

	for (size_t i = 1; i < sent->count; i++) {
		const struct delivery_sample *a = &sent->samples[i - 1];
		uint64_t gap = sent->samples[i].sequence - a->sequence - 1;
		double late_ns;

		if (!gap || gap > INT64_MAX || a->match == DELIVERY_NONE)
			continue;
		/* How late the first missed step was when the path was done. */
		late_ns = (double)((int64_t)timespec_to_ns(
					   received->samples[a->match].received) -
				   (int64_t)timespec_to_ns(a->origin)) - period_ns;
		if (late_ns > bound)
			behind += (uint64_t)fmin(ceil((late_ns - bound) / period_ns),
						 (double)gap);
	}
	return behind;
}

/* The format as a configuration has it: what the user says, or ours. */
static char *format_of(const struct bench_node_settings *s)
{
	json_t *format = json_object_get(s->out, "format");

	if (!format)
		format = json_object_get(s->keys, "format");
	if (json_is_object(format))
		return json_dumps(format, JSON_COMPACT);
	return strdup(json_is_string(format) ? json_string_value(format) : "csv");
}

static int load(const char *path, const struct bench_node_settings *s,
		struct delivery_samples *out)
{
	char *format = format_of(s);
	int ret = -ENOMEM;

	if (format)
		ret = delivery_load(&(struct delivery_file){ .path = path,
							     .format = format,
							     .digest = true }, out);
	free(format);
	return ret;
}

static int write_figures(const struct bench_node_settings *s, const char *path,
			 const struct delivery_result *d, uint64_t behind,
			 struct result_case *result)
{
	double lost = (double)(d->lost + d->before), sent = (double)d->sent;
	struct stat st;
	double bytes = stat(path, &st) ? 0 : (double)st.st_size;
	const struct result_figure figures[] = {
		{ "missed_by_node", "of all missed, because the path still wrote (at most)", "",
		  (double)behind },
		{ "file_lost", "samples that are not in the file", "", lost },
		{ "file_lost_share", "share of the samples not in the file", "%",
		  sent > 0 ? 100 * lost / sent : 0 },
		{ "file_damaged", "in the file with other values", "", (double)d->values_differ },
		{ "file_rate", "written to the file", "MiB/s",
		  bytes / (1 << 20) / bench_node_seconds(s) },
	};

	return result_case_figures(result, figures, ARRAY_SIZE(figures));
}

int bench_node_logged_figures(const char *dir, const struct bench_node_settings *s,
			      struct delivery_samples *sent,
			      const struct delivery_samples *received,
			      struct result_case *result)
{
	const struct delivery_options options = { .ignore_times = true };
	double catch_up_ns = s->catch_up_ns < 0 ? CATCH_UP_NS : (double)s->catch_up_ns;
	struct delivery_samples logged = { 0 };
	struct delivery_result d;
	char path[PATH_MAX];
	uint64_t behind;
	int ret;

	behind = bench_node_missed_behind(sent, received, 1e9 / s->rate_hz, catch_up_ns);
	snprintf(path, sizeof(path), "%s/" BENCH_NODE_LOGGED, dir);
	ret = load(path, s, &logged);
	if (!ret)
		ret = delivery_match(sent, &logged, &options, &d);
	if (!ret)
		ret = write_figures(s, path, &d, behind, result);
	delivery_samples_free(&logged);
	return ret;
}
