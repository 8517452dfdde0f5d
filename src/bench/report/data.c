/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases, latencies and curves as JSON; see data.h. */
#include "bench/report/data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/report/bins.h"
#include "bench/report/text.h"
#include "bench/result/blocks.h"
#include "bench/result/statistics.h"
#include "util/container_of.h"

#define LIMIT_NS_DEFAULT 10000
#define CURVE_POINTS_MAX 320
/* Resamples of a median; the same run has the same interval, always. */
#define RESAMPLES 200
#define LEVEL 0.95
#define SEED 1
/* Bytes of a page that all bands, and all tails, may take together. */
#define BANDS_BYTES 400000
#define TAILS_BYTES 250000
#define BYTES_OF_BAND 17
#define BYTES_OF_POINT 12

static size_t within(size_t value, size_t min, size_t max)
{
	return value < min ? min : value > max ? max : value;
}

struct report_detail report_detail_for(size_t latencies)
{
	size_t n = latencies ? latencies : 1;

	return (struct report_detail){
		.bins = n > 200 ? 80 : 160,
		.bands = within(BANDS_BYTES / BYTES_OF_BAND / n, 32, 320),
		.tail = within(TAILS_BYTES / BYTES_OF_POINT / n, 32, 240),
	};
}

json_t *report_string(const char *text)
{
	char *clean = text ? report_text_clean(text) : NULL;
	json_t *v = clean ? json_string(clean) : json_null();

	free(clean);
	return v;
}

json_t *report_run_add(json_t *data, const char *title, const char *folder)
{
	json_t *run = json_pack("{s:o, s:o, s:n, s:n, s:n, s:[], s:[]}", "title", report_string(title),
				"folder", report_string(folder), "run", "machine", "shapes",
				"figures", "cases");

	return run && !json_array_append_new(json_object_get(data, "runs"), run) ? run : NULL;
}

json_t *report_case_add(json_t *run, const char *id, const char *kind)
{
	json_t *c = json_pack("{s:o, s:o, s:i, s:{}, s:[], s:[], s:[]}", "id", report_string(id),
			      "kind", report_string(kind), "limit_ns", LIMIT_NS_DEFAULT,
			      "parameters", "latencies", "figures", "curves");

	return c && !json_array_append_new(json_object_get(run, "cases"), c) ? c : NULL;
}

/* Four digits that count. */
static json_int_t rounded(int64_t ns)
{
	int64_t unit = 1;

	while (ns / unit >= 100000 || ns / unit <= -100000)
		unit *= 10;
	return ns / unit * unit;
}

/* A number with `digits` digits that count; null where there is none. */
static json_t *number(double value, int digits)
{
	char text[40];

	if (!isfinite(value))
		return json_null();
	snprintf(text, sizeof(text), "%.*g", digits, value);
	value = strtod(text, NULL);
	return value == rint(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value) :
							    json_real(value);
}

/* The limit, unless half of all values are above it, where the histogram would be empty, or 90 % are far
 * below it, where it would be one bar. */
static int64_t histogram_range(const struct statistics *s, int64_t limit_ns)
{
	double most = 2 * (double)s->percentile[4] + 1;

	if (s->percentile[2] >= limit_ns)
		most = 1.2 * (double)s->percentile[3] + 1;
	else if (most >= (double)limit_ns)
		return limit_ns;
	return (int64_t)report_bins_round_up(most);
}

static int add_bins(json_t *l, const int64_t *sorted, size_t count, int64_t range, size_t bins)
{
	double *shares = calloc(bins, sizeof(*shares));
	json_t *list = json_array();
	size_t used = bins, below = statistics_up_to(sorted, count, range - 1);

	if (shares)
		report_bins_histogram(sorted, count, range, shares, bins);
	while (shares && used && shares[used - 1] == 0)
		used--;
	for (size_t i = 0; shares && i < used; i++)
		json_array_append_new(list, number(shares[i], 3));
	json_object_set_new(l, "range_ns", json_integer(range));
	json_object_set_new(l, "bin_ns", number((double)range / (double)bins, 12));
	json_object_set_new(l, "beyond", number((double)(count - below) / (double)count, 6));
	json_object_set_new(l, "bins", list);
	free(shares);
	return shares ? 0 : -ENOMEM;
}

static int add_bands(json_t *l, const int64_t *values, size_t count, size_t max)
{
	struct report_band *bands = calloc(max, sizeof(*bands));
	json_t *low = json_array(), *median = json_array(), *high = json_array();
	size_t n = bands ? report_bins_bands(values, count, bands, max) : 0;

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(low, json_integer(rounded(bands[i].min)));
		json_array_append_new(median, json_integer(rounded(bands[i].median)));
		json_array_append_new(high, json_integer(rounded(bands[i].max)));
	}
	free(bands);
	return json_object_set_new(l, "bands", json_pack("{s:o, s:o, s:o}", "low", low, "median",
							 median, "high", high)) || !n ? -ENOMEM : 0;
}

static int add_tail(json_t *l, const int64_t *sorted, size_t count, size_t max)
{
	struct report_tail *points = calloc(max, sizeof(*points));
	json_t *left = json_array(), *value = json_array();
	size_t n = points ? report_bins_tail(sorted, count, points, max) : 0;

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(left, json_integer(lround(points[i].share * (double)count)));
		json_array_append_new(value, json_integer(rounded(points[i].value)));
	}
	free(points);
	return json_object_set_new(l, "tail", json_pack("{s:o, s:o}", "left", left, "value",
							value)) || !n ? -ENOMEM : 0;
}

/* The interval that holds 95 % of the medians of a bootstrap; as compare.h has it of ratios. */
static int add_interval(json_t *l, const int64_t *values, size_t count)
{
	struct blocks *b = blocks_new(values, count);
	struct prng prng = prng_from(SEED);
	double medians[RESAMPLES], low, high;

	if (!b)
		return -ENOMEM;
	for (int i = 0; i < RESAMPLES; i++)
		medians[i] = (double)blocks_draw(b, &prng);
	statistics_interval(medians, RESAMPLES, LEVEL, &low, &high);
	json_object_set_new(l, "low", json_integer((json_int_t)low));
	json_object_set_new(l, "high", json_integer((json_int_t)high));
	blocks_free(b);
	return 0;
}

static void add_statistics(json_t *l, const struct statistics *s)
{
	json_object_set_new(l, "count", json_integer((json_int_t)s->count));
	statistics_add_order(l, s);
	json_object_set_new(l, "mean", number(s->mean, 6));
	json_object_set_new(l, "middle", number(s->middle, 6));
	json_object_set_new(l, "skewness", number(s->skewness, 4));
	json_object_set_new(l, "share_above", number(s->share_above, 6));
}

int report_latency_add(json_t *c, const char *name, const char *label, int64_t *values,
		       size_t count, const struct report_detail *detail)
{
	int64_t limit = json_integer_value(json_object_get(c, "limit_ns"));
	struct statistics s;
	int ret = 0;
	json_t *l;

	if (!count)
		return 0;
	l = json_pack("{s:o, s:o}", "name", report_string(name), "label",
		      report_string(label ? label : name));
	if (!l || json_array_append_new(json_object_get(c, "latencies"), l))
		return -ENOMEM;
	if (detail)
		ret = add_bands(l, values, count, detail->bands) ?: add_interval(l, values, count);
	statistics_of(values, count, limit, &s);
	add_statistics(l, &s);
	if (detail && !ret)
		ret = add_bins(l, values, count, histogram_range(&s, limit), detail->bins) ?:
		      add_tail(l, values, count, detail->tail);
	return ret;
}

/* Where a figure of this name, label and unit stands in the list; it is put there if it is new. -1: no
 * memory. */
static json_int_t figure_index(json_t *list, json_t *figure)
{
	const json_t *known;
	size_t i;

	json_array_foreach(list, i, known)
		if (json_equal(known, figure))
			return (json_int_t)i;
	return json_array_append(list, figure) ? -1 : (json_int_t)i;
}

int report_figure_add(json_t *run, json_t *c, const char *name, const char *label,
		      const char *unit, double value)
{
	json_t *f = json_pack("{s:o, s:o, s:o}", "name", report_string(name), "label",
			      report_string(label ? label : name), "unit",
			      report_string(unit ? unit : ""));
	json_int_t i = f ? figure_index(json_object_get(run, "figures"), f) : -1;

	json_decref(f);
	if (i < 0)
		return -ENOMEM;
	return json_array_append_new(json_object_get(c, "figures"),
				     json_pack("[I, o]", i, number(value, 10))) ? -ENOMEM : 0;
}

/* What becomes of one bin of a curve. */
struct curve {
	json_t *seconds, *low, *high;
	double min, max, sum;
	size_t samples;
};

static void add_bin(struct curve *v, const double *seconds, const double *values, size_t from,
		    size_t to)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = from; i < to; i++) {
		if (!isfinite(values[i]))
			continue;
		low = fmin(low, values[i]);
		high = fmax(high, values[i]);
		v->sum += values[i];
		v->samples++;
	}
	if (low > high)
		return;
	json_array_append_new(v->seconds, number(seconds[from], 7));
	json_array_append_new(v->low, number(low, 5));
	json_array_append_new(v->high, number(high, 5));
	v->min = fmin(v->min, low);
	v->max = fmax(v->max, high);
}

int report_curve_add(json_t *c, const char *label, const char *unit, const double *seconds,
		     const double *values, size_t count)
{
	struct curve v = { json_array(), json_array(), json_array(), INFINITY, -INFINITY, 0, 0 };
	size_t bins = MIN(count, (size_t)CURVE_POINTS_MAX);
	json_t *o;

	for (size_t bin = 0; bin < bins; bin++)
		add_bin(&v, seconds, values, bin * count / bins, (bin + 1) * count / bins);
	o = json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "label",
		      report_string(label), "unit", report_string(unit), "samples",
		      (json_int_t)v.samples, "min", number(v.min, 10), "mean",
		      number(v.sum / (double)MAX(v.samples, (size_t)1), 10), "max",
		      number(v.max, 10), "seconds", v.seconds, "low", v.low, "high", v.high);
	if (!o)
		return -ENOMEM;
	if (v.samples)
		return json_array_append_new(json_object_get(c, "curves"), o) ? -ENOMEM : 0;
	json_decref(o);
	return 0;
}
