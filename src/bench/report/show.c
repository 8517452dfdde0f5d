/* SPDX-License-Identifier: BSD-2-Clause */
/* Single figures of a group of cases; see show.h. */
#include "bench/report/show.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/table.h"
#include "bench/report/text.h"
#include "util/container_of.h"

static const char *question_of(const struct work *w)
{
	return w->g->question ? w->g->question :
	       *w->g->scenario ? w->g->scenario : w->g->kind;
}

static void curve_of(const struct work *w, const struct report_case *c,
		     const struct report_series *s, bool name_latency,
		     struct figure_curve *curve)
{
	char label[REPORT_LABEL_MAX];

	curve->of = c;
	curve->series = s;
	report_case_label(w->g, c, label);
	if (!name_latency)
		memcpy(curve->label, label, sizeof(label));
	else if (w->g->count == 1)
		snprintf(curve->label, sizeof(curve->label), "%s", s->label);
	else
		snprintf(curve->label, sizeof(curve->label), "%.50s: %.40s", label, s->label);
}

static void latencies_under(struct work *w, const struct figure_curve *curves, size_t count)
{
	fputs("<details><summary>As a table</summary>\n", w->p->out);
	table_latencies(w->p->out, curves, count, w->p->report->floor_ns);
	fputs("</details>\n", w->p->out);
}

/* Histogram or tail of up to REPORT_CURVES_MAX curves. */
static int show_curves(struct work *w, enum curves_as as, const struct figure_curve *curves,
		       size_t count, const char *what)
{
	struct report_case *cases[REPORT_CURVES_MAX];
	struct drawing d;
	char text[200];
	int ret;

	if (!count)
		return 0;
	ret = page_figure_begin(w->p, &d);
	if (ret)
		return ret;
	if (as == AS_HISTOGRAM)
		figure_histogram(&d.figure, curves, count);
	else
		figure_tail(&d.figure, curves, count);
	snprintf(text, sizeof(text), "%s: %s",
		 as == AS_HISTOGRAM ? "Histogram" : "The slowest messages", what);
	ret = page_figure_draw(w->p, &d, question_of(w), text);
	if (ret)
		return ret;
	latencies_under(w, curves, count);
	for (size_t i = 0; i < count; i++)
		cases[i] = (struct report_case *)curves[i].of;
	page_figure_end(w->p, cases, count);
	return 0;
}

/* All latencies of a case. */
int show_case(struct work *w, enum curves_as as, struct report_case *c)
{
	struct figure_curve curves[REPORT_CURVES_MAX];
	char label[REPORT_LABEL_MAX];
	size_t n = 0;

	for (size_t i = 0; i < c->series_count && n < REPORT_CURVES_MAX; i++) {
		if (!figure_has_rows(&c->series[i]) ||
		    report_series_is_budgeted(c, &c->series[i]))
			continue;
		curve_of(w, c, &c->series[i], false, &curves[n]);
		snprintf(curves[n].label, sizeof(curves[n].label), "%s", c->series[i].label);
		n++;
	}
	return show_curves(w, as, curves, n, report_case_label(w->g, c, label));
}

/* The first latency of several cases, REPORT_CURVES_MAX in a figure. */
int show_cases(struct work *w, enum curves_as as, struct report_case *const *cases,
		      size_t count, const char *what)
{
	struct figure_curve curves[REPORT_CURVES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct report_series *s = cases[i]->series;

		if (cases[i]->series_count && figure_has_rows(s))
			curve_of(w, cases[i], s, false, &curves[n++]);
		if (n == REPORT_CURVES_MAX || (n && i + 1 == count)) {
			char text[160];
			int ret;

			snprintf(text, sizeof(text), "%.40s%s%.80s",
				 curves[0].series->label, what ? ", " : "",
				 what ? what : "");
			ret = show_curves(w, as, curves, n, text);
			if (ret)
				return ret;
			n = 0;
		}
	}
	return 0;
}

int show_bands(struct work *w, struct report_case *c)
{
	struct figure_curve curve;
	struct drawing d;
	char what[200];
	int ret;

	if (!c->series_count || !figure_has_rows(c->series))
		return 0;
	ret = page_figure_begin(w->p, &d);
	if (ret)
		return ret;
	curve_of(w, c, c->series, false, &curve);
	figure_bands(&d.figure, &curve);
	snprintf(what, sizeof(what), "Over time: %s, %s", curve.label, c->series->label);
	ret = page_figure_draw(w->p, &d, question_of(w), what);
	if (ret)
		return ret;
	fputs("<details><summary>As a table</summary>\n", w->p->out);
	table_tenths(w->p->out, c->series);
	fputs("</details>\n", w->p->out);
	page_figure_end(w->p, &c, 1);
	return 0;
}

/* Table and commands of figures that are made of whole lines. */
static int end_lines(struct work *w, const char *latency, const struct report_value *like,
		     const struct report_line *lines, size_t count)
{
	struct report_case **cases = calloc(w->g->count + 1, sizeof(*cases));
	struct figure_curve *curves = calloc(w->g->count + 1, sizeof(*curves));
	size_t n = 0, c = 0;

	for (size_t i = 0; cases && curves && i < count; i++) {
		for (size_t j = 0; j < lines[i].count; j++) {
			const struct report_series *s = latency ?
				report_series_of(lines[i].cases[j], latency) : NULL;

			cases[n++] = lines[i].cases[j];
			if (s)
				curve_of(w, lines[i].cases[j], s, false, &curves[c++]);
		}
	}
	if (cases && curves && c)
		latencies_under(w, curves, c);
	if (cases && like) {
		fputs("<details><summary>As a table</summary>\n", w->p->out);
		table_values(w->p->out, w->g, cases, n, like->name);
		fputs("</details>\n", w->p->out);
	}
	if (cases)
		page_figure_end(w->p, cases, n);
	free(cases);
	free(curves);
	return cases && curves ? 0 : -ENOMEM;
}

static const char *latency_label(const struct work *w, const char *name)
{
	for (size_t i = 0; i < w->g->count; i++) {
		const struct report_series *s = report_series_of(w->g->cases[i], name);

		if (s)
			return s->label;
	}
	return name;
}

int show_medians(struct work *w, const char *name)
{
	for (size_t from = 0; from < w->axes.line_count; from += REPORT_CURVES_MAX) {
		size_t n = MIN(w->axes.line_count - from, (size_t)REPORT_CURVES_MAX);
		const struct report_line *lines = w->axes.lines + from;
		struct drawing d;
		char what[200];
		int ret = page_figure_begin(w->p, &d);

		if (ret)
			return ret;
		figure_medians(&d.figure, &w->axes, name, lines, n);
		snprintf(what, sizeof(what), "Medians over the %s, bars from 10 to 90 %%: %s",
			 w->axes.x.label, latency_label(w, name));
		ret = page_figure_draw(w->p, &d, question_of(w), what);
		if (!ret)
			ret = end_lines(w, name, NULL, lines, n);
		if (ret)
			return ret;
	}
	return 0;
}

int show_surfaces(struct work *w, const char *name)
{
	for (size_t i = 0; i < w->axes.line_count; i++) {
		const struct report_line *l = &w->axes.lines[i];
		double y[3];
		struct drawing d;
		char what[250];
		int ret;

		if (figure_axis_values(&w->axes.x, l, 1, y, 3) < 2 ||
		    figure_axis_values(&w->axes.y, l, 1, y, 3) < 2)
			continue;
		ret = page_figure_begin(w->p, &d);
		if (ret)
			return ret;
		figure_surface(&d.figure, &w->axes, name, l);
		snprintf(what, sizeof(what), "Medians over %s and %s: %s%s%s",
			 w->axes.x.label, w->axes.y.label, l->label, *l->label ? ", " : "",
			 latency_label(w, name));
		ret = page_figure_draw(w->p, &d, question_of(w), what);
		if (!ret)
			ret = end_lines(w, name, NULL, l, 1);
		if (ret)
			return ret;
	}
	return 0;
}

int show_numbers(struct work *w, const struct report_value *like)
{
	for (size_t from = 0; from < w->axes.line_count; from += REPORT_CURVES_MAX) {
		size_t n = MIN(w->axes.line_count - from, (size_t)REPORT_CURVES_MAX);
		const struct report_line *lines = w->axes.lines + from;
		struct drawing d;
		char what[200];
		int ret = page_figure_begin(w->p, &d);

		if (ret)
			return ret;
		figure_numbers(&d.figure, &w->axes, like, lines, n);
		snprintf(what, sizeof(what), "%s over the %s", like->label, w->axes.x.label);
		ret = page_figure_draw(w->p, &d, question_of(w), what);
		if (!ret)
			ret = end_lines(w, NULL, like, lines, n);
		if (ret)
			return ret;
	}
	return 0;
}

static int draw_points(struct work *w, const char *what, const char *unit,
		       const struct figure_point *points, size_t count,
		       struct report_case *const *cases, size_t case_count, const char *only)
{
	struct drawing d;
	int ret;

	if (!count)
		return 0;
	ret = page_figure_begin(w->p, &d);
	if (ret)
		return ret;
	figure_points(&d.figure, what, unit, points, count);
	ret = page_figure_draw(w->p, &d, question_of(w), what);
	if (ret)
		return ret;
	fputs("<details><summary>As a table</summary>\n", w->p->out);
	table_values(w->p->out, w->g, cases, case_count, only);
	fputs("</details>\n", w->p->out);
	page_figure_end(w->p, cases, case_count);
	return 0;
}

int show_points(struct work *w, const struct report_value *like)
{
	struct figure_point points[SHOW_CASES_MAX];
	int ret = 0;

	for (size_t from = 0; from < w->g->count && !ret; from += SHOW_CASES_MAX) {
		size_t n = MIN(w->g->count - from, (size_t)SHOW_CASES_MAX), k = 0;
		struct report_case *const *cases = w->g->cases + from;

		for (size_t i = 0; i < n; i++) {
			points[k].value = report_value_of(cases[i], like->name);
			report_case_label(w->g, cases[i], points[k].label);
			k += isfinite(points[k].value);
		}
		ret = draw_points(w, like->label, like->unit, points, k, cases, n, like->name);
	}
	return ret;
}

int show_units(struct work *w, struct report_case *c)
{
	struct figure_point points[SHOW_CASES_MAX];
	int ret = 0;

	for (size_t i = 0; i < c->value_count && !ret; i++) {
		const char *unit = c->values[i].unit;
		size_t n = 0, before = 0;

		while (before < i && strcmp(c->values[before].unit, unit))
			before++;
		for (size_t j = i; before == i && j < c->value_count; j++) {
			if (strcmp(c->values[j].unit, unit) || !isfinite(c->values[j].value))
				continue;
			snprintf(points[n].label, sizeof(points[n].label), "%s",
				 c->values[j].label);
			points[n++].value = c->values[j].value;
			if (n < SHOW_CASES_MAX)
				continue;
			ret = draw_points(w, "Numbers of this case", unit, points, n, &c, 1,
					  NULL);
			n = 0;
			if (ret)
				break;
		}
		if (!ret)
			ret = draw_points(w, "Numbers of this case", unit, points, n, &c, 1,
					  NULL);
	}
	return ret;
}

int show_recorded(struct work *w)
{
	for (size_t i = 0; i < w->g->count; i++) {
		struct report_case *c = w->g->cases[i];

		for (size_t j = 0; j < c->curve_count; j++) {
			struct drawing d;
			char what[REPORT_LABEL_MAX + 40], label[REPORT_LABEL_MAX];
			int ret = page_figure_begin(w->p, &d);

			if (ret)
				return ret;
			figure_curve_over_time(&d.figure, &c->curves[j]);
			snprintf(what, sizeof(what), "%.30s, %s", c->curves[j].label,
				 report_case_label(w->g, c, label));
			ret = page_figure_draw(w->p, &d, question_of(w), what);
			if (ret)
				return ret;
			fputs("<details><summary>As a table</summary>\n", w->p->out);
			table_curves(w->p->out, &c->curves[j], 1);
			fputs("</details>\n", w->p->out);
			page_figure_end(w->p, &c, 1);
		}
	}
	return 0;
}

/* All cases and latencies in one table; it is what remains without gnuplot. */
int show_table(struct work *w)
{
	struct figure_curve *curves;
	size_t n = 0, count = 0;

	for (size_t i = 0; i < w->g->count; i++)
		count += w->g->cases[i]->series_count;
	curves = calloc(count + 1, sizeof(*curves));
	if (!curves)
		return -ENOMEM;
	for (size_t i = 0; i < w->g->count; i++)
		for (size_t j = 0; j < w->g->cases[i]->series_count; j++)
			if (!report_series_is_budgeted(w->g->cases[i],
						       &w->g->cases[i]->series[j]))
				curve_of(w, w->g->cases[i], &w->g->cases[i]->series[j],
					 w->latency_count > 1, &curves[n++]);
	fprintf(w->p->out, "<details%s><summary>All cases of this scenario</summary>\n",
		w->p->draw && count + w->value_count > 12 ? "" : " open");
	if (n)
		table_latencies(w->p->out, curves, n, w->p->report->floor_ns);
	table_values(w->p->out, w->g, w->g->cases, w->g->count, NULL);
	table_references(w->p->out, w->g);
	fputs("</details>\n", w->p->out);
	free(curves);
	return 0;
}
