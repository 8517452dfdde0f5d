/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes and paths of a running gateway as a graph, with their states: in Graphviz'
 * language, or drawn by its program dot(1) if that is installed. `busbar graph` does the
 * same from a configuration.
 */
#ifndef GATEWAY_CONTROL_GRAPH_H
#define GATEWAY_CONTROL_GRAPH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct super_node;

/* The formats, by number; NULL: no more. */
const char *graph_format_name(unsigned index);

struct graph {
	const char *format, *layout; /* "svg", "dot" */
	/* The result; the caller frees `text`. */
	char *text;
	size_t len;
	const char *type; /* static */
};

/*
 * 0, or with the reason in `error`: -ENOENT no such format, -EINVAL no such layout, -ENOSYS
 * dot(1) is not installed, -EIO it failed, -ETIMEDOUT, -ENOMEM. Waits for dot(1), at most
 * some seconds.
 */
int graph_draw(struct super_node *sn, struct graph *g, char *error, size_t size);

/* Pieces of such a text: in double quotes, with quotes and backslashes escaped, line ends as
 * blanks; the lines of a label; the edge from a node to a path, or back. */
void graph_quote(FILE *f, const char *text);
void graph_label(FILE *f, const char *const lines[], size_t count);
void graph_edge(FILE *f, const char *name, const char *path, bool in, const char *style);

/* The text in Graphviz' language, of the lists that super_node_nodes_json() and
 * super_node_paths_json() give; the caller frees it. NULL without memory. */
char *graph_text(const json_t *nodes, const json_t *paths);

#endif
