/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_SVG_H
#define CLI_TRACE_SVG_H

#include <stdio.h>

#include "cli/trace_text.h"

/* The style of the drawings of a page; colours are those of svg_write_colours(). */
extern const char trace_svg_style[];
/* Writes the packets that were kept of a flow as a drawing of their times, an element svg. */
void trace_svg(FILE *out, const struct trace_report *t, const struct analyzer_result *r);

#endif
