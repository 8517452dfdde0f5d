/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of many cases: medians and numbers over an axis, surfaces over two. */
#include "bench/report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/plot.h"
#include "bench/report/text.h"
#include "util/container_of.h"

#define VALUES_MAX 256
#define MISSED_SHOWN 10.0 /* percent */
/* Lightness rises steadily, so that it is read without colours as well; from the middle of
 * the scale up, which is seen on dark pages and on light ones. */
#define VIRIDIS "set palette defined (0 '#414487', 1 '#2a788e', 2 '#22a884', 3 '#7ad151', " \
		"4 '#fde725')\n"

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

size_t figure_axis_values(const struct report_axis *axis, const struct report_line *lines,
			  size_t count, double *values, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < lines[i].count && n < max; j++) {
			double v = report_axis_value(axis, lines[i].cases[j]);
			size_t k = 0;

			while (k < n && values[k] != v)
				k++;
			if (k == n && isfinite(v))
				values[n++] = v;
		}
	}
	qsort(values, n, sizeof(*values), by_number);
	return n;
}

/* The axis of what is swept. */
static void swept_axis(FILE *out, const struct report_axes *axes,
		       const struct report_line *lines, size_t count)
{
	double values[VALUES_MAX];
	size_t n = figure_axis_values(&axes->x, lines, count, values, VALUES_MAX);

	if (n)
		plot_number_axis(out, 'x', values, n, axes->x.label, axes->x.unit, 0.085);
}

static struct plot_scale medians_scale(const char *name, const struct report_line *lines,
				       size_t count)
{
	double lo = INFINITY, hi = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < lines[i].count; j++) {
			const struct report_series *s =
				report_series_of(lines[i].cases[j], name);

			if (!s)
				continue;
			lo = MIN(lo, (double)s->statistics.percentile[0]);
			hi = MAX(hi, (double)s->statistics.percentile[4]);
			if (isnan(s->reference_ns))
				continue;
			lo = MIN(lo, s->reference_ns);
			hi = MAX(hi, s->reference_ns);
		}
	}
	return plot_scale_of(isfinite(lo) ? lo : 0, hi, 12);
}

/* Data of one curve; the median, its 10th and 90th percentile and the reference. Returns
 * whether there is a reference. */
static bool medians_data(FILE *out, const struct report_axes *axes, const char *name,
			 const struct report_line *l, size_t index,
			 const struct plot_scale *scale)
{
	bool reference = false;

	fprintf(out, "$m%zu << EOD\n", index);
	for (size_t j = 0; j < l->count; j++) {
		const struct report_series *s = report_series_of(l->cases[j], name);
		double ns = scale->ns;

		if (!s)
			continue;
		fprintf(out, "%.9g %.6g %.6g %.6g ", report_axis_value(&axes->x, l->cases[j]),
			(double)s->statistics.percentile[2] / ns,
			(double)s->statistics.percentile[0] / ns,
			(double)s->statistics.percentile[4] / ns);
		if (isnan(s->reference_ns)) {
			fputs("NaN\n", out);
			continue;
		}
		fprintf(out, "%.6g\n", s->reference_ns / ns);
		reference = true;
	}
	fputs("EOD\n", out);
	return reference;
}

/* Beside each other, so that the bars of curves that lie close do not hide one another. */
static void shifted(FILE *out, size_t i, size_t count, bool log)
{
	double by = 0.012 * ((double)i - 0.5 * (double)(count - 1));

	if (log && count > 1)
		fprintf(out, "($1*%.5f)", 1 + 2 * by);
	else
		fputs("1", out);
}

static void describe_line(struct figure *f, const struct report_axes *axes,
			  const char *name, const struct report_line *l)
{
	char first[32], last[32], time[2][32];
	const struct report_case *a = l->cases[0], *b = l->cases[l->count - 1];
	const struct report_series *x = report_series_of(a, name), *y = report_series_of(b, name);

	if (!x || !y)
		return;
	fprintf(f->description, " %s: median %s at %s %s, %s at %s %s.",
		l->label[0] ? l->label : y->label,
		report_text_time(time[0], (double)x->statistics.percentile[2]),
		report_text_number(first, report_axis_value(&axes->x, a)), axes->x.unit,
		report_text_time(time[1], (double)y->statistics.percentile[2]),
		report_text_number(last, report_axis_value(&axes->x, b)), axes->x.unit);
}

static const char *line_title(const struct report_line *l, const char *name)
{
	const struct report_series *s = report_series_of(l->cases[0], name);

	return l->label[0] ? l->label : s ? s->label : name;
}

void figure_medians(struct figure *f, const struct report_axes *axes, const char *name,
		    const struct report_line *lines, size_t count)
{
	struct plot_scale scale = medians_scale(name, lines, count);
	bool reference[REPORT_CURVES_MAX] = { false };
	size_t entries = count;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < lines[i].count; j++) {
			const struct report_series *s =
				report_series_of(lines[i].cases[j], name);

			reference[i] |= s && !isnan(s->reference_ns);
		}
	for (size_t i = 0; i < count; i++)
		entries += reference[i];
	plot_begin(f->script, entries);
	swept_axis(f->script, axes, lines, count);
	plot_time_axis(f->script, 'y', &scale, "median latency", f->floor_ns);
	for (size_t i = 0; i < count; i++)
		medians_data(f->script, axes, name, &lines[i], i, &scale);
	fputs("plot ", f->script);
	for (size_t i = 0; i < count; i++) {
		fprintf(f->script, "%s$m%zu using ", i ? ", " : "", i);
		shifted(f->script, i, count, true);
		/* Not yerrorbars: gnuplot wipes out what lies behind their marks. */
		fputs(":3:(0):($4-$3) with vectors heads size screen 0.006,90 lw 1.2 lc ",
		      f->script);
		plot_colour(f->script, (int)i + 1);
		fprintf(f->script, " notitle, $m%zu using ", i);
		shifted(f->script, i, count, true);
		fputs(":2 with linespoints", f->script);
		plot_line(f->script, i, 2);
		plot_mark(f->script, i);
		fputs(" title ", f->script);
		report_text_gnuplot(f->script, line_title(&lines[i], name), 70);
		if (!reference[i])
			continue;
		fprintf(f->script, ", $m%zu using 1:5 with points lw 2 pt %d ps 1.3 lc ", i,
			(int)(i % 3) * 2 + 4);
		plot_colour(f->script, PLOT_REFERENCE);
		fputs(" title ", f->script);
		report_text_gnuplot(f->script, line_title(&lines[i], name), 40);
		fputs(".' on other hardware'", f->script);
	}
	putc('\n', f->script);
	fprintf(f->description, "Medians over the %s; bars reach from the 10th to the 90th "
		"percentile.", axes->x.label);
	for (size_t i = 0; i < count; i++)
		describe_line(f, axes, name, &lines[i]);
}

void figure_numbers(struct figure *f, const struct report_axes *axes,
		    const struct report_value *like, const struct report_line *lines,
		    size_t count)
{
	double lo = INFINITY, hi = -INFINITY;

	plot_begin(f->script, count);
	swept_axis(f->script, axes, lines, count);
	for (size_t i = 0; i < count; i++) {
		fprintf(f->script, "$v%zu << EOD\n", i);
		for (size_t j = 0; j < lines[i].count; j++) {
			double v = report_value_of(lines[i].cases[j], like->name);

			if (!isfinite(v))
				continue;
			fprintf(f->script, "%.9g %.9g\n",
				report_axis_value(&axes->x, lines[i].cases[j]), v);
			lo = MIN(lo, v);
			hi = MAX(hi, v);
		}
		/* A block without data is an error to gnuplot. */
		fputs("NaN NaN\nEOD\n", f->script);
	}
	plot_value_axis(f->script, 'y', lo, hi, like->label, like->unit, 7.5);
	fputs("plot ", f->script);
	for (size_t i = 0; i < count; i++) {
		fprintf(f->script, "%s$v%zu using 1:2 with linespoints", i ? ", " : "", i);
		plot_line(f->script, i, 2);
		plot_mark(f->script, i);
		fputs(" title ", f->script);
		report_text_gnuplot(f->script, lines[i].label[0] ? lines[i].label : like->label,
				    70);
	}
	putc('\n', f->script);
	fprintf(f->description, "%s over the %s, from %g to %g %s.", like->label,
		axes->x.label, lo, hi, like->unit);
}

void figure_points(struct figure *f, const char *what, const char *unit,
		   const struct figure_point *points, size_t count)
{
	double lo = INFINITY, hi = -INFINITY;

	plot_begin(f->script, 0);
	fputs("unset key\nset lmargin at screen 0.36\n$p << EOD\n", f->script);
	for (size_t i = 0; i < count; i++) {
		fprintf(f->script, "%.9g %zu\n", points[i].value, count - i);
		lo = MIN(lo, points[i].value);
		hi = MAX(hi, points[i].value);
	}
	fputs("EOD\n", f->script);
	plot_value_axis(f->script, 'x', lo, hi, what, unit, 4);
	fprintf(f->script, "set yrange [0.4:%zu.6]\nset ytics font ',14' (", count);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", f->script);
		report_text_tic(f->script, points[i].label, 27);
		fprintf(f->script, " %zu", count - i);
	}
	fputs(")\nplot $p using 1:2 with points ps 1.2 pt 7 lc ", f->script);
	plot_colour(f->script, 1);
	putc('\n', f->script);
	fprintf(f->description, "%s, from %g to %g %s.", what, lo, hi, unit);
}

static const struct report_case *case_at(const struct report_axes *axes,
					 const struct report_line *l, double x, double y)
{
	for (size_t i = 0; i < l->count; i++)
		if (report_axis_value(&axes->x, l->cases[i]) == x &&
		    report_axis_value(&axes->y, l->cases[i]) == y)
			return l->cases[i];
	return NULL;
}

/* The grid of medians; labels where more was missed than a user could bear. Returns how
 * many labels. */
static size_t surface_data(FILE *out, const struct report_axes *axes, const char *name,
			   const struct report_line *l, const double *xs, size_t nx,
			   const double *ys, size_t ny, const struct plot_scale *scale)
{
	size_t labels = 0;
	double x, y, z, top;

	fputs("$s << EOD\n", out);
	for (size_t i = 0; i < nx; i++) {
		for (size_t j = 0; j < ny; j++) {
			const struct report_case *c = case_at(axes, l, xs[i], ys[j]);
			const struct report_series *s = c ? report_series_of(c, name) : NULL;

			fprintf(out, "%.9g %.9g ", xs[i], ys[j]);
			if (s)
				fprintf(out, "%.6g\n",
					(double)s->statistics.percentile[2] / scale->ns);
			else
				fputs("NaN\n", out);
		}
		putc('\n', out);
	}
	fputs("EOD\n", out);
	for (size_t i = 0; i < l->count; i++) {
		const struct report_series *s = report_series_of(l->cases[i], name);
		double missed = report_missed(l->cases[i]);

		if (!s || !(missed > MISSED_SHOWN))
			continue;
		/* On a pole, because the surface has all colours; of different heights,
		 * because neighbours are near. */
		z = (double)s->statistics.percentile[2] / scale->ns;
		top = scale->hi * (1.08 + 0.14 * (double)(labels % 3));
		x = report_axis_value(&axes->x, l->cases[i]);
		y = report_axis_value(&axes->y, l->cases[i]);
		fprintf(out, "set arrow from %.9g,%.9g,%.6g to %.9g,%.9g,%.6g nohead front lw 1.2 lc ",
			x, y, z, x, y, top);
		plot_colour(out, PLOT_WARN);
		fprintf(out, "\nset label '%.0f %%' at %.9g,%.9g,%.6g center offset 0,0.5 front "
			"textcolor ", missed, x, y, top);
		plot_colour(out, PLOT_WARN);
		putc('\n', out);
		labels++;
	}
	return labels;
}

void figure_surface(struct figure *f, const struct report_axes *axes, const char *name,
		    const struct report_line *line)
{
	struct plot_scale scale = medians_scale(name, line, 1);
	double x[VALUES_MAX], y[VALUES_MAX];
	size_t nx = figure_axis_values(&axes->x, line, 1, x, VALUES_MAX);
	size_t ny = figure_axis_values(&axes->y, line, 1, y, VALUES_MAX), labels;

	plot_begin(f->script, 0);
	fputs("unset key\nset border 31\nset view 60,320,0.9,1.1\nset xyplane 0\n"
	      "set style fill solid 1\nset bmargin 2\nset tmargin 0\n"
	      "set pm3d interpolate 1,1 border lw 0.6\nunset colorbox\n"
	      VIRIDIS, f->script);
	plot_number_axis(f->script, 'x', x, nx, axes->x.label, axes->x.unit, 0.17);
	plot_number_axis(f->script, 'y', y, ny, axes->y.label, axes->y.unit, 0.17);
	plot_time_axis(f->script, 'z', &scale, "median latency", NAN);
	fputs("set zlabel rotate by 90 offset 2,0\nset ylabel offset 4,-0.5\n"
	      "set xlabel offset -2,-0.5\n", f->script);
	labels = surface_data(f->script, axes, name, line, x, nx, y, ny, &scale);
	if (labels)
		fprintf(f->script, "set zrange [%.9g:%.9g]\n", scale.lo, scale.hi * 1.5);
	fputs("splot $s using 1:2:3 with pm3d notitle\n", f->script);
	fprintf(f->description, "Surface of the median latency over %s and %s; %zu points are "
		"labelled with the share of steps missed or lost, because it is more than %.0f %%.",
		axes->x.label, axes->y.label, labels, MISSED_SHOWN);
	describe_line(f, axes, name, line);
}

void figure_curve_over_time(struct figure *f, const struct report_curve *curve)
{
	double lo = curve->min, hi = curve->max, room = 0.05 * (hi - lo);

	plot_begin(f->script, 0);
	fputs("unset key\nset ylabel ", f->script);
	report_text_gnuplot(f->script, curve->label, 36);
	if (*curve->unit) {
		fputs(".' ['.", f->script);
		report_text_gnuplot(f->script, curve->unit, 12);
		fputs(".']'", f->script);
	}
	fputs(" textcolor ", f->script);
	plot_colour(f->script, PLOT_TEXT);
	fprintf(f->script, "\nset format y '%%g'\nset yrange [%.9g:%.9g]\n", lo - room,
		hi > lo ? hi + room : lo + 1);
	fputs("set xlabel 'time [s]' textcolor ", f->script);
	plot_colour(f->script, PLOT_TEXT);
	fputs("\n$c << EOD\n", f->script);
	for (size_t i = 0; i < curve->count; i++)
		fprintf(f->script, "%.9g %.9g %.9g\n", curve->seconds[i], curve->low[i],
			curve->high[i]);
	fputs("EOD\nplot $c using 1:2:3 with filledcurves", f->script);
	plot_line(f->script, 0, 1);
	fputs(", $c using 1:3 with lines", f->script);
	plot_line(f->script, 0, 1.6);
	fputs(", $c using 1:2 with lines", f->script);
	plot_line(f->script, 0, 1.6);
	putc('\n', f->script);
	fprintf(f->description, "%s over time, %zu samples from %g to %g %s.", curve->label,
		curve->samples, lo, hi, curve->unit);
}
