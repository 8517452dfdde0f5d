/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphviz' program dot(1). */
#ifndef GATEWAY_CONTROL_GRAPH_DOT_H
#define GATEWAY_CONTROL_GRAPH_DOT_H

#include <stddef.h>

struct graph;

/* Draws `text` as format and layout of `g` say, and fills in g->text and g->len. Return
 * values are those of graph_draw(). */
int graph_dot(const char *text, struct graph *g, char *error, size_t size);

#endif
