/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands for gnuplot share; see plot.h. */
#include "bench/report/plot.h"

#include <math.h>
#include <string.h>

#include "bench/report/model.h"
#include "bench/report/text.h"
#include "util/container_of.h"

/* Green and blue of all roles; red is the role. */
#define ROLE_REST 1
/* Pixels: of a row of the legend; what the numbers and the name of an axis need; below. */
#define LEGEND_ROW 26
#define AXIS_ROOM 84
#define LEGEND_ROOM 20
#define TICS_WANTED 7.5

const char *plot_role_property(int red, int green, int blue)
{
	static const char *const names[PLOT_ROLES_END] = {
		[1] = "--c1", [2] = "--c2", [3] = "--c3", [4] = "--c4", [5] = "--c5",
		[6] = "--c6", [PLOT_TEXT] = "--text", [PLOT_GRID] = "--grid",
		[PLOT_BOX] = "--box", [PLOT_REFERENCE] = "--reference",
		[PLOT_WARN] = "--warn",
	};

	if (!red && !green && !blue)
		return "--text";
	if (green != ROLE_REST || blue != ROLE_REST || red < 0 || red >= PLOT_ROLES_END)
		return NULL;
	return names[red];
}

void plot_colour(FILE *out, int role)
{
	fprintf(out, "rgb '#%02x%02x%02x'", (unsigned)role, ROLE_REST, ROLE_REST);
}

void plot_line(FILE *out, size_t i, double width)
{
	/* Curves differ by their dashes as well, for those who see no colours. */
	static const char *const dashes[REPORT_CURVES_MAX] = {
		"solid", "(12,5)", "(3,4)", "(14,4,3,4)", "(22,6)", "(8,3,2,3,2,3)",
	};

	fputs(" lc ", out);
	plot_colour(out, (int)(i % REPORT_CURVES_MAX) + 1);
	fprintf(out, " dt %s lw %g", dashes[i % REPORT_CURVES_MAX], width);
}

void plot_mark(FILE *out, size_t i)
{
	/* Filled circle, square, triangle, diamond, triangle downwards; cross. */
	static const int marks[REPORT_CURVES_MAX] = { 7, 5, 9, 13, 11, 2 };

	fprintf(out, " pt %d ps 0.8", marks[i % REPORT_CURVES_MAX]);
}

static void set_coloured(FILE *out, const char *what, int role)
{
	fprintf(out, "set %s ", what);
	plot_colour(out, role);
	putc('\n', out);
}

void plot_begin(FILE *out, size_t legend_entries)
{
	/* The legend has rows of its own below the axes, so it cannot hide anything. */
	double height = PLOT_HEIGHT + (double)(LEGEND_ROW * legend_entries);

	fprintf(out, "set terminal svg size %d,%.0f noenhanced font 'sans-serif,17' "
		"linewidth 1\n", PLOT_WIDTH, height);
	fputs("set encoding utf8\nset samples 2\n", out);
	set_coloured(out, "border 3 lc", PLOT_TEXT);
	set_coloured(out, "grid back lw 0.6 lt 1 lc", PLOT_GRID);
	set_coloured(out, "tics nomirror out scale 0.6 textcolor", PLOT_TEXT);
	fprintf(out, "set bmargin at screen %.5f\nset key at screen 0.07,%.5f left top "
		"vertical maxcols 1 Left reverse samplen 3 spacing 1.15 textcolor ",
		(LEGEND_ROW * (double)legend_entries + LEGEND_ROOM + AXIS_ROOM) / height,
		(LEGEND_ROW * (double)legend_entries + LEGEND_ROOM) / height);
	plot_colour(out, PLOT_TEXT);
	fputs("\nset style fill transparent solid 0.2 noborder\nset bars 0.6\n", out);
}

struct plot_scale plot_scale_of(double lo_ns, double hi_ns, double ratio_max)
{
	struct plot_scale s = { .ns = 1, .unit = "ns" };

	s.log = lo_ns > 0 && hi_ns > ratio_max * lo_ns;
	if (hi_ns >= 2e9) {
		s.ns = 1e9;
		s.unit = "s";
	} else if (hi_ns >= 2e6) {
		s.ns = 1e6;
		s.unit = "ms";
	} else if (hi_ns >= 2e3) {
		s.ns = 1e3;
		s.unit = "\xc2\xb5s";
	}
	s.lo = s.log ? lo_ns / s.ns / 1.15 : lo_ns < 0 ? 1.05 * lo_ns / s.ns : 0;
	s.hi = hi_ns / s.ns * (s.log ? 1.25 : 1.06);
	if (!(s.hi > s.lo))
		s.hi = s.lo + 1;
	return s;
}

static void axis_label(FILE *out, const char *axis, const char *label)
{
	fprintf(out, "set %slabel ", axis);
	report_text_gnuplot(out, label, 60);
	fputs(" textcolor ", out);
	plot_colour(out, PLOT_TEXT);
	putc('\n', out);
}

const char *plot_short_number(char *buf, double value, const char *unit)
{
	bool bytes = !strcmp(unit, "B");
	double k = bytes ? 1024 : 1000;
	const char *names = bytes ? "KMG" : "kMG";
	int power = 0;

	while (fabs(value) >= k && power < 3) {
		value /= k;
		power++;
	}
	if (power)
		snprintf(buf, 32, "%.3g%c%s", value, names[power - 1], bytes ? "i" : "");
	else
		snprintf(buf, 32, "%.4g", value);
	return buf;
}

static const char *tic_text(char *buf, double value)
{
	if (fabs(value) >= 10000)
		return plot_short_number(buf, value, "");
	/* Tics are round: without the zeros that would say how exact they are. */
	snprintf(buf, 32, "%.6g", value);
	return buf;
}

/* The tics of an axis that counts in `unit` from lo to hi; about `wanted` of them. */
static void tics(FILE *out, const char *name, const struct plot_scale *s, double unit,
		 double wanted)
{
	static const int steps[] = { 1, 2, 5 };
	double lo = s->lo / unit, hi = s->hi / unit, decades = log10(hi / lo), step;
	int fine = decades * 3 <= wanted ? 3 : 1, every = decades > wanted ? 2 : 1;
	const char *comma = "";
	char text[32];

	fprintf(out, "set %stics (", name);
	for (int e = (int)floor(s->log ? log10(lo) : 0); s->log && pow(10, e) <= hi;
	     e += every) {
		for (int i = 0; i < fine; i++) {
			double k = steps[i] * pow(10, e);

			if (k < lo || k > hi)
				continue;
			fprintf(out, "%s'%s' %.9g", comma, tic_text(text, k), k * unit);
			comma = ", ";
		}
	}
	step = report_bins_round_up((hi - lo) / wanted);
	for (double i = ceil(lo / step); !s->log && i * step <= hi * (1 + 1e-9); i++) {
		fprintf(out, "%s'%s' %.9g", comma, tic_text(text, i * step),
			i * step * unit);
		comma = ", ";
	}
	fputs(")\n", out);
}

void plot_time_axis(FILE *out, char axis, const struct plot_scale *s, const char *label,
		    double floor_ns)
{
	char name[3] = { axis }, text[120], time[32];

	fprintf(out, "set %srange [%.9g:%.9g]\n", name, s->lo, s->hi);
	if (s->log)
		fprintf(out, "set logscale %s\n", name);
	tics(out, name, s, 1, TICS_WANTED);
	snprintf(text, sizeof(text), "%s [%s]", label, s->unit);
	axis_label(out, name, text);
	if (!(floor_ns > 0) || axis == 'z')
		return;
	name[1] = '2';
	fprintf(out, "set %srange [%.9g:%.9g]\n", name, s->lo, s->hi);
	if (s->log)
		fprintf(out, "set logscale %s\n", name);
	fprintf(out, "set border %d\n", axis == 'x' ? 7 : 11);
	tics(out, name, s, floor_ns / s->ns, TICS_WANTED);
	snprintf(text, sizeof(text), "multiples of a cache line (%s)",
		 report_text_time(time, floor_ns));
	axis_label(out, name, text);
}

void plot_value_axis(FILE *out, char axis, double lo, double hi, const char *label,
		     const char *unit, double wanted)
{
	struct plot_scale s = { .log = lo > 0 && hi > 100 * lo };
	char text[140], name[2] = { axis };

	s.lo = s.log ? lo / 1.6 : MIN(lo, 0) * 1.06;
	s.hi = s.log ? hi * 1.6 : hi * 1.06;
	if (!(s.hi > s.lo))
		s.hi = s.lo + 1;
	fprintf(out, "set %crange [%.9g:%.9g]\n", axis, s.lo, s.hi);
	if (s.log)
		fprintf(out, "set logscale %c\n", axis);
	tics(out, name, &s, 1, wanted);
	snprintf(text, sizeof(text), "%s%s%s%s", label, *unit ? " [" : "", unit,
		 *unit ? "]" : "");
	axis_label(out, name, text);
}

void plot_number_axis(FILE *out, char axis, const double *values, size_t count,
		      const char *label, const char *unit, double distance)
{
	char name[2] = { axis }, text[120];
	double lo = values[0], hi = values[count - 1];
	bool logarithmic = lo > 0 && hi / lo >= 8;
	double last = INFINITY; /* the place of the last tic, 0 to 1 */
	if (logarithmic)
		fprintf(out, "set logscale %s\nset %srange [%.9g:%.9g]\n", name, name,
			lo / pow(hi / lo, 0.04), hi * pow(hi / lo, 0.04));
	else
		fprintf(out, "set %srange [%.9g:%.9g]\n", name, lo - 0.05 * (hi - lo),
			hi > lo ? hi + 0.05 * (hi - lo) : lo + 1);
	fprintf(out, "set %stics (", name);
	/* From the last one down, which is always there. */
	for (size_t i = count; i-- > 0;) {
		double at = logarithmic ? log(values[i] / lo) / log(hi / lo) :
			    hi > lo ? (values[i] - lo) / (hi - lo) : 0;

		if (last - at < distance)
			continue;
		fprintf(out, "%s'%s' %.9g", i + 1 == count ? "" : ", ",
			plot_short_number(text, values[i], unit), values[i]);
		last = at;
	}
	fputs(")\n", out);
	snprintf(text, sizeof(text), "%s%s%s%s", label, *unit ? " [" : "", unit,
		 *unit ? "]" : "");
	axis_label(out, name, text);
}
