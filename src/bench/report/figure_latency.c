/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of single latencies: histogram, tail, over time. */
#include "bench/report/figure.h"

#include <math.h>
#include <string.h>

#include "bench/report/plot.h"
#include "bench/report/text.h"
#include "util/container_of.h"

/* Characters of a curve's name in the box; the legend has it whole. */
#define LABEL_BRIEF 16

static int64_t median_of(const struct report_series *s)
{
	return s->statistics.percentile[2];
}

/* "0.06 % above 10 us, maximum 45 us, missed or lost 0.5 %" */
static void describe(char *buf, size_t size, const struct figure_curve *c, bool brief)
{
	const char *above = brief ? ">" : "above", *maximum = brief ? "max" : "maximum";
	const struct statistics *s = &c->series->statistics;
	char limit[32], max[32], share[32], missed[32], more[80] = "";
	double m = report_missed(c->of);

	if (!isnan(m))
		snprintf(more, sizeof(more), ", missed or lost %s %%",
			 report_text_number(missed, m));
	if (isnan(s->share_above)) {
		snprintf(buf, size, "%s %s%s", maximum, report_text_time(max, (double)s->max), more);
		return;
	}
	snprintf(buf, size, "%s %% %s %s, %s %s%s",
		 report_text_number(share, 100 * s->share_above), above,
		 report_text_time(limit, (double)c->of->limit_ns), maximum,
		 report_text_time(max, (double)s->max), more);
}

static void describe_all(struct figure *f, const struct figure_curve *curves, size_t count)
{
	char text[300], median[32];

	for (size_t i = 0; i < count; i++) {
		describe(text, sizeof(text), &curves[i], false);
		fprintf(f->description, " %s: median %s, %s.", curves[i].label,
			report_text_time(median, (double)median_of(curves[i].series)), text);
	}
}

/* In a corner above all curves: what is beyond the axis. The width of a character is that of
 * usual fonts, generously. */
static void box(struct figure *f, const struct figure_curve *curves, size_t count)
{
	const double row = 0.08, column = 0.0147;
	double width = 0, left;
	char text[300];

	for (size_t i = 0; i < count; i++) {
		size_t label = strlen(curves[i].label);

		describe(text, sizeof(text), &curves[i], true);
		width = MAX(width, column * (double)(strlen(text) +
						     (count > 1 ? MIN(label, (size_t)LABEL_BRIEF) + 2 : 0)));
		fprintf(f->script, "set label %zu ", i + 1);
		if (count > 1) {
			report_text_gnuplot(f->script, curves[i].label, LABEL_BRIEF);
			fputs(".': '.", f->script);
		}
		report_text_gnuplot(f->script, text, 0);
		fprintf(f->script, " at graph 0.985,%.4f right front font ',15' textcolor ",
			0.95 - row * (double)i);
		plot_colour(f->script, PLOT_TEXT);
		putc('\n', f->script);
	}
	left = 0.985 - MIN(width, 0.975);
	fprintf(f->script, "set object 1 rectangle from graph %.4f,%.4f to graph 0.995,0.99 "
		"behind fillstyle solid 1 border lc ", left, 0.95 - row * ((double)count - 0.4));
	plot_colour(f->script, PLOT_GRID);
	fputs(" fillcolor ", f->script);
	plot_colour(f->script, PLOT_BOX);
	putc('\n', f->script);
}

/* Shares per unit of time, so that histograms of different ranges compare. Returns the
 * highest one. */
static double histogram_data(FILE *out, const struct report_series *s, size_t index,
			     const struct plot_scale *scale)
{
	double width = (double)s->range_ns / scale->ns / REPORT_HISTOGRAM_BINS, peak = 0;

	fprintf(out, "$h%zu << EOD\n", index);
	for (size_t i = 0; i < REPORT_HISTOGRAM_BINS; i++) {
		double share = s->histogram[i] / width;

		fprintf(out, "%.6g %.5g\n", (double)i * width, share);
		peak = MAX(peak, share);
	}
	fprintf(out, "%.6g 0\nEOD\n", (double)s->range_ns / scale->ns);
	return peak;
}

static void vertical(FILE *out, double x, double y, size_t i, const char *how)
{
	fprintf(out, "set arrow from %.6g,0 to %.6g,%.6g nohead front", x, x, y);
	if (how) {
		fputs(" lc ", out);
		plot_colour(out, PLOT_REFERENCE);
		fputs(how, out);
	} else {
		plot_line(out, i, 2.5);
	}
	putc('\n', out);
}

/* The title of a histogram, and one for the line of its reference. */
static void legend(struct figure *f, const struct figure_curve *c, size_t i)
{
	char text[REPORT_LABEL_MAX + 80], time[32];

	snprintf(text, sizeof(text), "%.50s: median %s", c->label,
		 report_text_time(time, (double)median_of(c->series)));
	fputs(" title ", f->script);
	report_text_gnuplot(f->script, text, 0);
	if (isnan(c->series->reference_ns))
		return;
	snprintf(text, sizeof(text), "%.30s, other hardware: median %s", c->label,
		 report_text_time(time, c->series->reference_ns));
	fputs(", NaN with lines dt (2,3) lw 2.5 lc ", f->script);
	plot_colour(f->script, PLOT_REFERENCE);
	fputs(" title ", f->script);
	report_text_gnuplot(f->script, text, 0);
}

void figure_histogram(struct figure *f, const struct figure_curve *curves, size_t count)
{
	struct plot_scale scale;
	int64_t range = 0;
	size_t entries = count;
	double peak = 0;
	char label[80];

	for (size_t i = 0; i < count; i++)
		range = MAX(range, curves[i].series->range_ns);
	scale = plot_scale_of(0, (double)range, INFINITY);
	scale.hi = (double)range / scale.ns;
	for (size_t i = 0; i < count; i++)
		entries += !isnan(curves[i].series->reference_ns);
	plot_begin(f->script, entries);
	plot_time_axis(f->script, 'x', &scale, "latency", f->floor_ns);
	for (size_t i = 0; i < count; i++)
		peak = MAX(peak, histogram_data(f->script, curves[i].series, i, &scale));
	peak = peak > 0 ? peak : 1;
	for (size_t i = 0; i < count; i++) {
		const struct report_series *s = curves[i].series;

		vertical(f->script, (double)median_of(s) / scale.ns, 1.04 * peak, i, NULL);
		if (!isnan(s->reference_ns))
			vertical(f->script, s->reference_ns / scale.ns, 1.04 * peak, i,
				 " dt (2,3) lw 2.5");
	}
	snprintf(label, sizeof(label), "share of messages [%% per %s]", scale.unit);
	fputs("set ylabel ", f->script);
	report_text_gnuplot(f->script, label, 0);
	fputs(" textcolor ", f->script);
	plot_colour(f->script, PLOT_TEXT);
	/* Above the curves there is room for the box. */
	fprintf(f->script, "\nset yrange [0:%.6g]\n",
		1.08 * peak / (0.94 - 0.08 * (double)count));
	box(f, curves, count);
	fputs("plot ", f->script);
	for (size_t i = 0; i < count; i++) {
		fprintf(f->script, "%s$h%zu using 1:2 with fillsteps notitle", i ? ", " : "", i);
		plot_line(f->script, i, 1);
		fprintf(f->script, ", $h%zu using 1:2 with steps", i);
		plot_line(f->script, i, 1.6);
		legend(f, &curves[i], i);
	}
	putc('\n', f->script);
	fputs("Histogram; vertical lines are medians.", f->description);
	describe_all(f, curves, count);
}

/* Shares as tics: 100 % down to the last sample. */
static void share_axis(FILE *out, double least)
{
	fprintf(out, "set logscale y\nset yrange [%.6g:1.5]\nset ytics (", least / 1.6);
	for (int e = 0; pow(10, -e) >= least / 1.6; e++)
		fprintf(out, "%s'%.*f %%%%' 1e-%d", e ? ", " : "", e > 2 ? e - 2 : 0,
			100 * pow(10, -e), e);
	fputs(")\nset ylabel 'share that took at least so long' textcolor ", out);
	plot_colour(out, PLOT_TEXT);
	putc('\n', out);
}

void figure_tail(struct figure *f, const struct figure_curve *curves, size_t count)
{
	double lo = INFINITY, hi = 0, least = 1;
	struct plot_scale scale;
	char time[3][32];

	for (size_t i = 0; i < count; i++) {
		const struct statistics *s = &curves[i].series->statistics;

		/* A clock that went backwards does not decide over the axis. */
		lo = MIN(lo, (double)(s->min > 0 ? s->min : MAX(s->percentile[0], 1)));
		hi = MAX(hi, (double)s->max);
		least = MIN(least, 1.0 / (double)s->count);
	}
	scale = plot_scale_of(lo, MAX(hi, lo + 1), 4);
	plot_begin(f->script, count);
	plot_time_axis(f->script, 'x', &scale, "latency", f->floor_ns);
	share_axis(f->script, least);
	for (size_t i = 0; i < count; i++) {
		const struct report_series *s = curves[i].series;

		fprintf(f->script, "$t%zu << EOD\n", i);
		for (size_t j = 0; j < s->tail_count; j++)
			fprintf(f->script, "%.6g %.6g\n", (double)s->tail[j].value / scale.ns,
				s->tail[j].share);
		/* The single worst message has a mark. */
		fprintf(f->script, "EOD\n$w%zu << EOD\n%.6g %.6g\nEOD\n", i,
			(double)s->statistics.max / scale.ns,
			1.0 / (double)s->statistics.count);
	}
	fputs("plot ", f->script);
	for (size_t i = 0; i < count; i++) {
		fprintf(f->script, "%s$t%zu using 1:2 with lines", i ? ", " : "", i);
		plot_line(f->script, i, 2);
		fputs(" title ", f->script);
		report_text_gnuplot(f->script, curves[i].label, 70);
		fprintf(f->script, ", $w%zu using 1:2 with points notitle lc ", i);
		plot_colour(f->script, (int)i + 1);
		plot_mark(f->script, i);
	}
	putc('\n', f->script);
	fputs("How many messages took at least how long, down to the single worst one.",
	      f->description);
	for (size_t i = 0; i < count; i++) {
		const struct statistics *s = &curves[i].series->statistics;

		fprintf(f->description, " %s: 1 %% took at least %s, 0.01 %% %s, one %s.",
			curves[i].label,
			report_text_time(time[0], (double)s->percentile[6]),
			report_text_time(time[1], (double)s->percentile[8]),
			report_text_time(time[2], (double)s->max));
	}
}

void figure_bands(struct figure *f, const struct figure_curve *curve)
{
	const struct report_series *s = curve->series;
	const struct statistics *t = &s->statistics;
	struct plot_scale scale = plot_scale_of((double)MAX(t->min, 1), (double)t->max, 12);
	char time[3][32];
	size_t worst = 0;

	if (t->min < 0)
		scale = plot_scale_of((double)t->min, (double)t->max, INFINITY);
	plot_begin(f->script, 2);
	plot_time_axis(f->script, 'y', &scale, "latency", f->floor_ns);
	fprintf(f->script, "set xrange [0:%zu]\nset xlabel 'message, in the order of sending' "
		"textcolor ", t->count);
	plot_colour(f->script, PLOT_TEXT);
	fprintf(f->script, "\nset format x '%%.0f'\nset xtics %.9g\n$b << EOD\n",
		report_bins_round_up((double)t->count / 6));
	for (size_t i = 0; i < s->band_count; i++) {
		const struct report_band *b = &s->bands[i];

		fprintf(f->script, "%.7g %.6g %.6g %.6g\n",
			(double)b->first + 0.5 * (double)b->count, (double)b->min / scale.ns,
			(double)b->median / scale.ns, (double)b->max / scale.ns);
		worst = b->max > s->bands[worst].max ? i : worst;
	}
	fputs("EOD\nplot $b using 1:2:4 with filledcurves notitle", f->script);
	plot_line(f->script, 0, 1);
	fputs(", $b using 1:4 with lines", f->script);
	plot_line(f->script, 0, 1);
	fprintf(f->script, " title 'lowest and highest of %zu messages each'"
		", $b using 1:2 with lines notitle", s->bands[0].count);
	plot_line(f->script, 0, 1);
	fputs(", $b using 1:3 with lines", f->script);
	plot_line(f->script, 1, 2);
	fputs(" title 'their median'\n", f->script);
	fprintf(f->description, "Latency over time. %s: median %s; the highest latency, %s, is near "
		"message %zu; the first %zu messages have a median of %s.", curve->label,
		report_text_time(time[0], (double)median_of(s)),
		report_text_time(time[1], (double)t->max), s->bands[worst].first,
		s->bands[0].count,
		report_text_time(time[2], (double)s->bands[0].median));
}
