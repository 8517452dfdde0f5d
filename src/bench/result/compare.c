/* SPDX-License-Identifier: BSD-2-Clause */
/* See compare.h. */
#include "bench/result/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/result/blocks.h"
#include "bench/result/number.h"

#define RESAMPLES 1000
#define LEVEL 0.95
#define SEED 1 /* the same runs compare the same, always */

const char *compare_verdict_name(enum compare_verdict v)
{
	static const char *const names[] = { "faster", "slower", "no difference shown",
					     "not comparable" };

	return names[v];
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Medians of 0 ns (a clock with coarse steps) have no ratio. */
static double ratio_of(double a, double b)
{
	return a == b ? 1 : a > 0 ? b / a : INFINITY;
}

static void bootstrap(struct blocks *a, struct blocks *b, struct compare_latency *out)
{
	double ratios[RESAMPLES];
	struct prng prng = prng_from(SEED);

	for (int i = 0; i < RESAMPLES; i++) {
		double median_a = (double)blocks_draw(a, &prng);

		ratios[i] = ratio_of(median_a, (double)blocks_draw(b, &prng));
	}
	qsort(ratios, RESAMPLES, sizeof(*ratios), compare_double);
	out->low = ratios[(int)(RESAMPLES * (1 - LEVEL) / 2)];
	out->high = ratios[(int)(RESAMPLES * (1 + LEVEL) / 2) - 1];
	out->median_a = (double)blocks_median(a);
	out->median_b = (double)blocks_median(b);
	out->ratio = ratio_of(out->median_a, out->median_b);
	out->verdict = out->high < 1 ? COMPARE_FASTER :
		       out->low > 1 ? COMPARE_SLOWER : COMPARE_SAME;
}

int compare_values(const int64_t *a, size_t count_a, const int64_t *b, size_t count_b,
		   struct compare_latency *out)
{
	struct blocks *blocks_a, *blocks_b;
	int ret = -ENOMEM;

	*out = (struct compare_latency){ .count_a = count_a, .count_b = count_b,
					 .median_a = NAN, .median_b = NAN, .ratio = NAN,
					 .low = NAN, .high = NAN, .verdict = COMPARE_UNKNOWN };
	if (!count_a || !count_b)
		return 0;
	blocks_a = blocks_new(a, count_a);
	blocks_b = blocks_new(b, count_b);
	if (blocks_a && blocks_b) {
		bootstrap(blocks_a, blocks_b, out);
		ret = 0;
	}
	blocks_free(blocks_a);
	blocks_free(blocks_b);
	return ret;
}

/* What a summary says, of a case whose rows are not there. */
static double summary_median(const struct result_read *c, const char *name)
{
	return number_of(json_object_get(json_object_get(c->summary, "latencies"), name), "p50");
}

int compare_case(const char *dir_a, struct result_read *a, const char *dir_b,
		 struct result_read *b, const char *name, struct compare_latency *out)
{
	int64_t *values_a = NULL, *values_b = NULL;
	size_t count_a = 0, count_b = 0;
	int ret = result_read_rows(dir_a, a);

	if (!ret)
		ret = result_read_rows(dir_b, b);
	if (!json_object_get(json_object_get(b->summary, "latencies"), name))
		return -ENOENT;
	if (!ret && a->columns)
		ret = result_read_latency(a, name, &values_a, &count_a);
	if (!ret && b->columns)
		ret = result_read_latency(b, name, &values_b, &count_b);
	if (!ret)
		ret = compare_values(values_a, count_a, values_b, count_b, out);
	if (!ret && out->verdict == COMPARE_UNKNOWN) {
		out->median_a = summary_median(a, name);
		out->median_b = summary_median(b, name);
		out->ratio = ratio_of(out->median_a, out->median_b);
	}
	free(values_a);
	free(values_b);
	return ret;
}
