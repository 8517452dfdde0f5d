/* SPDX-License-Identifier: BSD-2-Clause */
/* One latency of summary.json, from the columns of a case. */
#define LOG_ROOM "bench/result"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/number.h"
#include "bench/result/run_private.h"
#include "bench/result/statistics.h"
#include "util/container_of.h"
#include "util/log.h"

static const int64_t *column(const struct result_column *columns, size_t count,
			     const struct result_latency *latency, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(columns[i].name, name))
			return columns[i].values;
	log_error("latency '%s': there is no column '%s'", latency->name, name);
	return NULL;
}

size_t latency_values(const int64_t *from, const int64_t *to, size_t rows,
		      int64_t *values)
{
	size_t count = 0;
	int64_t d;

	for (size_t i = 0; i < rows; i++)
		if (from[i] != RESULT_ABSENT && to[i] != RESULT_ABSENT &&
		    !__builtin_sub_overflow(to[i], from[i], &d))
			values[count++] = d;
	return count;
}

static void add_values(json_t *o, const struct statistics *s)
{
	static const double percents[] = STATISTICS_PERCENTS;

	json_object_set_new(o, "min", json_integer(s->min));
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
		char key[24];

		snprintf(key, sizeof(key), "p%g", percents[i]);
		json_object_set_new(o, key, json_integer(s->percentile[i]));
	}
	json_object_set_new(o, "max", json_integer(s->max));
	json_object_set_new(o, "mean", number_json(s->mean));
	json_object_set_new(o, "middle", number_json(s->middle));
	json_object_set_new(o, "deviation", number_json(s->deviation));
	json_object_set_new(o, "skewness", number_json(s->skewness));
	json_object_set_new(o, "share_above", number_json(s->share_above));
}

int summary_latency(const struct result_latency *latency,
		    const struct result_column *columns, size_t columns_count,
		    size_t rows, int64_t limit_ns, json_t **out)
{
	const int64_t *from = column(columns, columns_count, latency, latency->from);
	const int64_t *to = from ? column(columns, columns_count, latency, latency->to) : NULL;
	struct statistics s;
	int64_t *values;

	if (!to)
		return -EINVAL;
	values = malloc((rows ? rows : 1) * sizeof(*values));
	if (!values)
		return -ENOMEM;
	statistics_of(values, latency_values(from, to, rows, values), limit_ns, &s);
	free(values);
	*out = json_pack("{s:s, s:s, s:s, s:I, s:I}", "label", latency->label, "from",
			 latency->from, "to", latency->to, "count", (json_int_t)s.count,
			 "limit_ns", (json_int_t)limit_ns);
	if (!*out)
		return -ENOMEM;
	if (s.count)
		add_values(*out, &s);
	return 0;
}
