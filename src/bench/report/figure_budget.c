/* SPDX-License-Identifier: BSD-2-Clause */
/* A budget as bars: each part begins where the one before it ends; see figure.h. */
#include <math.h>

#include "bench/report/figure.h"
#include "bench/report/plot.h"
#include "bench/report/text.h"
#include "util/container_of.h"

/* Half the height of a bar, in rows. */
#define BAR 0.32
#define LABEL_WIDTH 30

struct bar {
	const char *label;
	double from, to, lo, hi; /* ns; lo and hi: 10 and 90 %, NAN: none */
	int role;
};

static void bar_data(FILE *out, const struct bar *b, size_t row)
{
	fprintf(out, "%.6g %.6g %.6g %zu ", b->from, b->to, 0.5 * (b->from + b->to), row);
	if (isfinite(b->lo) && isfinite(b->hi))
		fprintf(out, "%.6g %.6g\n", b->lo, b->hi);
	else
		fputs("NaN NaN\n", out);
}

/* The bars of one role in a block of their own: gnuplot has one colour for each curve. */
static bool block(FILE *out, const struct bar *bars, size_t count, int role)
{
	bool any = false;

	fprintf(out, "$b%d << EOD\n", role);
	for (size_t i = 0; i < count; i++) {
		if (bars[i].role != role || !isfinite(bars[i].to))
			continue;
		bar_data(out, &bars[i], count - i);
		any = true;
	}
	fputs("EOD\n", out);
	return any;
}

/* Names at the left, times behind the bars. */
static void labels(FILE *out, const struct bar *bars, size_t count, double top)
{
	char text[32];

	fprintf(out, "set yrange [0.4:%zu.6]\nset ytics font ',14' (", count);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", out);
		report_text_tic(out, bars[i].label, LABEL_WIDTH);
		fprintf(out, " %zu", count - i);
	}
	fputs(")\n", out);
	for (size_t i = 0; i < count; i++) {
		double right = fmax(fmax(bars[i].from, bars[i].to),
				    isfinite(bars[i].hi) ? bars[i].hi : -INFINITY);

		if (!isfinite(bars[i].to))
			continue;
		/* A part that goes to the edge of the figure has no room behind it. */
		fprintf(out, "set label '%s' at %.6g,%zu %s front font ',14' textcolor ",
			report_text_number(text, bars[i].to - bars[i].from),
			right > top ? top : right, count - i,
			right > top ? "right offset 0,0.9" : "left offset 0.7,0");
		plot_colour(out, PLOT_TEXT);
		putc('\n', out);
	}
}

static size_t make_bars(const struct budget *b, struct bar *bars)
{
	double at = 0;
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++) {
		const struct budget_part *p = &b->parts[i];

		bars[n++] = (struct bar){ p->label, at, at + p->middle, at + p->p10,
					  at + p->p90, 1 };
		at += p->middle;
	}
	bars[n++] = (struct bar){ "sum of the parts", 0, b->sum_ns, NAN, NAN, 2 };
	bars[n++] = (struct bar){ b->whole.label, 0, b->whole.middle, b->whole.p10,
				  b->whole.p90, 3 };
	bars[n++] = (struct bar){ "not explained", b->sum_ns, b->whole.middle, NAN, NAN,
				  PLOT_WARN };
	return n;
}

static void describe(FILE *out, const struct budget *b)
{
	char text[2][32];

	fprintf(out, "%s: %s.", b->whole.label,
		report_text_time(text[0], b->whole.middle));
	for (size_t i = 0; i < b->count; i++)
		fprintf(out, " %s %s.", b->parts[i].label,
			report_text_time(text[0], b->parts[i].middle));
	fprintf(out, " Together %s; not explained: %s ns.",
		report_text_time(text[0], b->sum_ns), report_text_number(text[1], b->rest_ns));
}

void figure_budget(struct figure *f, const struct budget *b)
{
	static const int roles[] = { 1, 2, 3, PLOT_WARN };
	struct bar bars[BUDGET_PARTS_MAX + 3];
	size_t count = make_bars(b, bars);
	double lo = 0, hi = 1;
	bool any[ARRAY_SIZE(roles)];
	const char *comma = "";

	for (size_t i = 0; i < count; i++) {
		lo = fmin(lo, fmin(bars[i].to, bars[i].from));
		hi = fmax(hi, fmax(bars[i].to, bars[i].from));
		/* A rare 90 % of many times the rest does not make it unreadable. */
		if (isfinite(bars[i].hi))
			hi = fmax(hi, fmin(bars[i].hi, 2 * fmax(b->sum_ns, 1)));
	}
	plot_begin(f->script, 0);
	fputs("unset key\nset lmargin at screen 0.40\n", f->script);
	plot_value_axis(f->script, 'x', fmin(lo, 0), 1.12 * hi, "time", "ns", 5);
	/* Not logarithmic, and from 0 where nothing is below it: lengths are what is seen. */
	fprintf(f->script, "unset logscale x\nset xrange [%.6g:%.6g]\n",
		lo < 0 ? 1.15 * lo : 0, 1.18 * hi);
	labels(f->script, bars, count, 1.16 * hi);
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		any[i] = block(f->script, bars, count, roles[i]);
	fputs("set style fill solid 0.85 noborder\nplot ", f->script);
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		if (!any[i])
			continue;
		fprintf(f->script, "%s$b%d using 3:4:1:2:($4-%g):($4+%g) with boxxyerror lc ",
			comma, roles[i], BAR, BAR);
		plot_colour(f->script, roles[i]);
		comma = ", ";
		/* Sum and rest have no percentiles. */
		if (roles[i] != 1 && roles[i] != 3)
			continue;
		fprintf(f->script, ", $b%d using 5:4:($6-$5):(0) with vectors heads size "
			"screen 0.006,90 lw 1.4 lc ", roles[i]);
		plot_colour(f->script, PLOT_TEXT);
	}
	putc('\n', f->script);
	describe(f->description, b);
}
