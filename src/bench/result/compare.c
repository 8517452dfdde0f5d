/* SPDX-License-Identifier: BSD-2-Clause */
/* See compare.h. */
#include "bench/result/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/result/blocks.h"
#include "bench/result/number.h"
#include "bench/result/statistics.h"

#define RESAMPLES 1000
#define LEVEL 0.95
#define SEED 1 /* the same runs compare the same, always */

const char *compare_verdict_name(enum compare_verdict v)
{
	static const char *const names[] = { "faster", "slower", "no difference shown",
					     "not comparable" };

	return names[v];
}

static void bootstrap(struct blocks *a, struct blocks *b, struct compare_latency *out)
{
	double ratios[RESAMPLES];
	struct prng prng = prng_from(SEED);

	for (int i = 0; i < RESAMPLES; i++) {
		double median_a = (double)blocks_draw(a, &prng);

		ratios[i] = statistics_ratio(median_a, (double)blocks_draw(b, &prng));
	}
	statistics_interval(ratios, RESAMPLES, LEVEL, &out->low, &out->high);
	out->median_a = (double)blocks_median(a);
	out->median_b = (double)blocks_median(b);
	out->ratio = statistics_ratio(out->median_a, out->median_b);
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

static int compare_values_of(struct result_read *a, struct result_read *b, const char *name,
			     struct compare_latency *out)
{
	int64_t *values_a = NULL, *values_b = NULL;
	size_t count_a = 0, count_b = 0;
	int ret = a->columns ? result_read_latency(a, name, &values_a, &count_a) : 0;

	if (!ret && b->columns)
		ret = result_read_latency(b, name, &values_b, &count_b);
	if (!ret)
		ret = compare_values(values_a, count_a, values_b, count_b, out);
	if (!ret && out->verdict == COMPARE_UNKNOWN) {
		out->median_a = summary_median(a, name);
		out->median_b = summary_median(b, name);
		out->ratio = statistics_ratio(out->median_a, out->median_b);
	}
	free(values_a);
	free(values_b);
	return ret;
}

int compare_folders(struct result_folder *a, struct result_folder *b,
		    int (*found)(void *data, const char *id, const char *latency,
				 const struct compare_latency *c),
		    void *data)
{
	struct compare_latency c;
	const char *name;
	json_t *latency;
	int ret = 0;

	for (size_t i = 0; !ret && i < a->count; i++) {
		struct result_read *in_a = &a->cases[i], *in_b = result_folder_find(b, in_a->id);

		if (!in_b)
			continue;
		ret = result_read_rows(a->dir, in_a) ?: result_read_rows(b->dir, in_b);
		json_object_foreach(json_object_get(in_a->summary, "latencies"), name, latency) {
			if (ret || !json_object_get(json_object_get(in_b->summary, "latencies"), name))
				continue;
			ret = compare_values_of(in_a, in_b, name, &c) ?:
			      found(data, in_a->id, name, &c);
		}
		result_drop_rows(in_a);
		result_drop_rows(in_b);
	}
	return ret;
}
