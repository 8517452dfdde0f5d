/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all commands for gnuplot share: the form of the picture, colours, axes of time.
 *
 * Colours are roles. gnuplot gets a number for each, which svg.c replaces by the page's
 * custom property, so that a picture is right in a light page and in a dark one.
 */
#ifndef BENCH_REPORT_PLOT_H
#define BENCH_REPORT_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PLOT_WIDTH 640
#define PLOT_HEIGHT 410 /* without the legend */

/* After the roles of the curves, 1 to REPORT_CURVES_MAX. */
enum plot_role {
	PLOT_TEXT = 10,
	PLOT_GRID,
	PLOT_BOX,
	PLOT_REFERENCE,
	PLOT_WARN,
	PLOT_ROLES_END,
};

/* The name of the custom property ("--c1") of a colour that gnuplot wrote; NULL: it is no
 * role but a colour (of a surface). */
const char *plot_role_property(int red, int green, int blue);

/* "rgb '#0a0101'" */
void plot_colour(FILE *out, int role);
/* " lc rgb ... dt ... lw ..." of curve `i` (from 0); marks of " pt ... ps ...". */
void plot_line(FILE *out, size_t i, double width);
void plot_mark(FILE *out, size_t i);

/* `legend_entries`: how many rows the legend has, 0: none; it stands below the axes. */
void plot_begin(FILE *out, size_t legend_entries);

/* A range of times and the unit in which it is written. */
struct plot_scale {
	double lo, hi;        /* in the unit */
	double ns;            /* of one unit */
	const char *unit;
	bool log;
};

/* Linear from 0, or logarithmic where `hi_ns` is more than `ratio_max` times `lo_ns`. */
struct plot_scale plot_scale_of(double lo_ns, double hi_ns, double ratio_max);

/* Range, label and unit of axis 'x', 'y' or 'z'. `floor_ns`: the opposite axis counts its
 * multiples (not z); NAN: it does not. */
void plot_time_axis(FILE *out, char axis, const struct plot_scale *s, const char *label,
		    double floor_ns);

/* From 0, or logarithmic where the values are far apart; about `wanted` tics. */
void plot_value_axis(FILE *out, char axis, double lo, double hi, const char *label,
		     const char *unit, double wanted);

/* A number axis with a logarithm of base 2 or 10 where the values are far apart. `values`
 * ascending, where the tics stand, but for those that are nearer than `distance` (a part
 * of the axis) to the next one. */
void plot_number_axis(FILE *out, char axis, const double *values, size_t count,
		      const char *label, const char *unit, double distance);

/* "4.1Ki" -> "4Ki", "100k": short text of a size (unit "B") or a number. */
const char *plot_short_number(char *buf, double value, const char *unit);

#endif
