/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page: one HTML file that needs no other one and no other host. A report is head, then
 * one section for each group of cases.
 */
#ifndef BENCH_REPORT_PAGE_H
#define BENCH_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/report/figure.h"
#include "bench/report/model.h"

struct page {
	FILE *out;
	const struct report *report;
	const char *command;      /* that made this report; text */
	const char *svg_dir;      /* every figure also as a file of its own there, or NULL */
	bool draw;                /* gnuplot is there */
	size_t figures, failed;   /* drawn; not drawn or not written */
	size_t number;            /* of the next figure, for ids */
};

/* A figure that is being made. */
struct drawing {
	struct figure figure;
	char *script, *description;
	size_t script_size, description_size;
};

/* 0, -EINTR (asked to end) or -ENOMEM. What gnuplot cannot draw is left out, and said. */
int page_write(struct page *p);

/* Opens the streams of a figure; 0 or -ENOMEM. */
int page_figure_begin(struct page *p, struct drawing *d);
/*
 * Draws it and writes picture and text: `title` is the scenario's question, `what` says what
 * is drawn ("Histogram: RC"). The caller then writes tables and calls page_figure_end().
 * Frees the streams. 0, -EINTR or -ENOMEM.
 */
int page_figure_draw(struct page *p, struct drawing *d, const char *title, const char *what);
/* The commands that repeat `cases`, and the end of the figure. */
void page_figure_end(struct page *p, struct report_case *const *cases, size_t count);

/* The figures of one group (group.c). 0, -EINTR or -ENOMEM. */
int page_group(struct page *p, const struct report_group *g);

/* Machine, what limits it, run and checks (head.c). */
void page_head(struct page *p);

#endif
