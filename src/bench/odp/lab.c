/* SPDX-License-Identifier: BSD-2-Clause */
/* See lab.h. */
#define LOG_ROOM "bench/odp"
#include "bench/odp/lab.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "bench/odp/simulate.h"
#include "util/log.h"

size_t lab_point(struct lab *l, const char *fmt, ...)
{
	va_list ap;

	if (!l->points)
		l->points = open_memstream(&l->text, &l->text_bytes);
	if (!l->points)
		return 0;
	va_start(ap, fmt);
	vfprintf(l->points, fmt, ap);
	va_end(ap);
	fputc('\n', l->points);
	return l->count++;
}

int lab_run(struct lab *l)
{
	bool written = l->points && !fclose(l->points);
	int ret;

	json_decref(l->results);
	l->results = NULL;
	l->points = NULL;
	ret = written ? odp_simulate(l->text, l->dir, l->stop, &l->results) : -ENOMEM;
	if (!ret && json_array_size(l->results) != l->count) {
		log_error("the simulation has run %zu of %zu points",
			  json_array_size(l->results), l->count);
		ret = -EIO;
	}
	free(l->text);
	l->text = NULL;
	l->count = 0;
	return ret;
}

double lab_value(const struct lab *l, size_t point, const char *name)
{
	return odp_trials_median(json_array_get(l->results, point), name);
}

double lab_share(const struct lab *l, size_t point, const char *name, double limit)
{
	return odp_trials_share(json_array_get(l->results, point), name, limit);
}

void lab_row(struct lab *l, const struct lab_row *row, const char *what, const char *fmt, ...)
{
	static const char *const verdicts[] = { "holds", "does not hold", "not in the source" };
	char ours[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ours, sizeof(ours), fmt, ap);
	va_end(ap);
	json_array_append_new(
		l->rows, json_pack("{s:s, s:s, s:s, s:s, s:f, s:s, s:s, s:s}", "experiment",
				   l->experiment, "figure", row->figure, "what", what, "model",
				   ours, "value", row->value, "unit", row->unit, "source",
				   row->source, "verdict", verdicts[row->verdict]));
}
