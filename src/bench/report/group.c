/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which figures a group of cases gets. Where a number was swept: medians over it, or surfaces
 * over two; of its ends histograms and tails. Else histograms of each case, and what tells
 * the cases apart. Where a case says where its time goes, that as well.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/page.h"
#include "bench/report/show.h"
#include "bench/report/text.h"
#include "util/container_of.h"

#define WORST_SHOWN 2

static void find_latencies(struct work *w)
{
	for (size_t i = 0; i < w->g->count; i++) {
		for (size_t j = 0; j < w->g->cases[i]->series_count; j++) {
			const char *name = w->g->cases[i]->series[j].name;
			size_t k = 0;

			if (report_series_is_budgeted(w->g->cases[i],
						      &w->g->cases[i]->series[j]))
				continue;
			while (k < w->latency_count && strcmp(w->latencies[k], name))
				k++;
			if (k == w->latency_count && k < SHOW_LATENCIES_MAX)
				w->latencies[w->latency_count++] = name;
		}
	}
}

/* Numbers that differ between the cases; a group of one case has none. */
static void find_values(struct work *w, bool all)
{
	for (size_t i = 0; i < w->g->count; i++) {
		for (size_t j = 0; j < w->g->cases[i]->value_count; j++) {
			const struct report_value *v = &w->g->cases[i]->values[j];
			bool differs = all && isfinite(v->value);
			size_t k = 0;

			while (k < w->value_count && strcmp(w->values[k]->name, v->name))
				k++;
			if (k < w->value_count || k == SHOW_VALUES_MAX || !isfinite(v->value))
				continue;
			for (size_t n = 0; n < w->g->count && !differs; n++) {
				double other = report_value_of(w->g->cases[n], v->name);

				differs = isfinite(other) && other != v->value;
			}
			if (differs)
				w->values[w->value_count++] = v;
		}
	}
}

static int64_t highest(const struct report_case *c)
{
	return c->series_count && figure_has_rows(c->series) ? c->series->statistics.max :
							       INT64_MIN;
}

static int by_highest(const void *a, const void *b)
{
	int64_t x = highest(*(struct report_case *const *)a);
	int64_t y = highest(*(struct report_case *const *)b);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Over time only those cases with the worst single latencies. */
static int show_worst(struct work *w)
{
	struct report_case **cases = malloc(w->g->count * sizeof(*cases));
	int ret = cases ? 0 : -ENOMEM;

	if (cases) {
		memcpy(cases, w->g->cases, w->g->count * sizeof(*cases));
		qsort(cases, w->g->count, sizeof(*cases), by_highest);
	}
	for (size_t i = 0; i < WORST_SHOWN && i < w->g->count && !ret; i++)
		ret = show_bands(w, cases[i]);
	free(cases);
	return ret;
}

/* The first or last case of each line. */
static int show_ends(struct work *w, enum curves_as as, bool last)
{
	struct report_case **cases = calloc(w->axes.line_count, sizeof(*cases));
	char text[32], what[160];
	int ret = cases ? 0 : -ENOMEM;
	double at = NAN;

	for (size_t i = 0; cases && i < w->axes.line_count; i++) {
		const struct report_line *l = &w->axes.lines[i];

		cases[i] = l->cases[last ? l->count - 1 : 0];
		at = report_axis_value(&w->axes.x, cases[i]);
	}
	snprintf(what, sizeof(what), "%s %s%s%s", w->axes.x.label,
		 report_text_number(text, at), *w->axes.x.unit ? " " : "", w->axes.x.unit);
	/* With a second axis each case's name says where it lies. */
	if (!ret)
		ret = show_cases(w, as, cases, w->axes.line_count,
				 w->axes.y.key ? last ? "largest" : "smallest" : what);
	free(cases);
	return ret;
}

static int show_swept(struct work *w)
{
	int ret = 0;

	for (size_t i = 0; i < w->latency_count && !ret; i++)
		ret = w->axes.y.key ? show_surfaces(w, w->latencies[i]) :
				      show_medians(w, w->latencies[i]);
	for (size_t i = 0; i < w->value_count && !ret; i++)
		ret = w->axes.y.key ? 0 : show_numbers(w, w->values[i]);
	if (!w->latency_count)
		return ret;
	if (!ret)
		ret = show_ends(w, AS_HISTOGRAM, false);
	if (!ret)
		ret = show_ends(w, AS_HISTOGRAM, true);
	if (!ret)
		ret = show_ends(w, AS_TAIL, true);
	return ret ? ret : show_worst(w);
}

static int show_single(struct work *w)
{
	const struct report_group *g = w->g;
	bool few = g->count <= SHOW_CASES_MAX;
	int ret = 0;

	for (size_t i = 0; few && i < g->count && !ret; i++)
		ret = show_case(w, AS_HISTOGRAM, g->cases[i]);
	if (!few)
		ret = show_cases(w, AS_HISTOGRAM, g->cases, g->count, NULL);
	if (!ret)
		ret = g->count == 1 ? show_case(w, AS_TAIL, g->cases[0]) :
				      show_cases(w, AS_TAIL, g->cases, g->count, NULL);
	for (size_t i = 0; few && i < g->count && !ret; i++)
		ret = show_bands(w, g->cases[i]);
	if (!few && !ret)
		ret = show_worst(w);
	/* One case with nothing but numbers: they are compared with each other. */
	if (!ret && g->count == 1 && !w->latency_count && !g->cases[0]->curve_count)
		return show_units(w, g->cases[0]);
	for (size_t i = 0; i < w->value_count && !ret; i++)
		ret = show_points(w, w->values[i]);
	return ret;
}

int page_group(struct page *p, const struct report_group *g)
{
	struct work w = { .p = p, .g = g };
	int ret = report_axes_find(g, &w.axes);

	if (ret)
		return ret;
	find_latencies(&w);
	find_values(&w, !w.latency_count && !g->cases[0]->curve_count);
	ret = show_table(&w);
	fputs("<div class=\"figures\">\n", p->out);
	if (!ret)
		ret = w.axes.x.key ? show_swept(&w) : show_single(&w);
	for (size_t i = 0; i < g->count && !ret; i++)
		ret = show_budgets(&w, g->cases[i]);
	if (!ret)
		ret = show_recorded(&w);
	fputs("</div>\n", p->out);
	report_axes_free(&w.axes);
	return ret;
}
