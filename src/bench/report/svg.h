/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns gnuplot's SVG into a part of a page: colours by custom properties, ids that are unique
 * within the page, a title and a description for screen readers, no fixed size and no
 * address of another host.
 */
#ifndef BENCH_REPORT_SVG_H
#define BENCH_REPORT_SVG_H

#include <stdbool.h>
#include <stdio.h>

struct svg_texts {
	const char *id;          /* of letters and digits, unique within the page */
	const char *title, *description;
	bool alone;              /* a file of its own: has its colours with it */
};

/* Writes `picture` to `out`. 0, or -EBADMSG: it is no SVG of gnuplot's, and nothing was
 * written. */
int svg_write(FILE *out, const char *picture, const struct svg_texts *texts);

/* The custom properties for light and dark, as CSS. `selector`: where they hold. */
void svg_write_colours(FILE *out, const char *selector);

#endif
