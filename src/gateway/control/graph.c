/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of the graph, and its formats; see graph.h. dot(1): graph_dot.c. */
#include "gateway/control/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/graph_dot.h"
#include "gateway/super_node/super_node_control.h"
#include "util/container_of.h"

static const struct {
	const char *name, *type;
} formats[] = {
	{ "dot", "text/vnd.graphviz" }, { "gv", "text/vnd.graphviz" },
	{ "svg", "image/svg+xml" },     { "png", "image/png" },
	{ "pdf", "application/pdf" },   { "json", "application/json" },
	{ "plain", "text/plain" },
};

static const char *const layouts[] = { "dot",   "neato", "fdp",
				       "sfdp",  "twopi", "circo" };

void graph_quote(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text == '\n' ? ' ' : *text, f);
	}
	fputc('"', f);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

/* What moves is drawn solid. */
static const char *style_of(const char *state)
{
	if (!strcmp(state, "disabled") || !strcmp(state, "stopped"))
		return "dashed";
	return strcmp(state, "paused") ? "solid" : "dotted";
}

void graph_label(FILE *f, const char *const lines[], size_t count)
{
	fputs("label=", f);
	for (size_t i = 0; i < count; i++) {
		if (i)
			fputs(" + \"\\n\" + ", f);
		graph_quote(f, lines[i]);
	}
}

static void print_node(FILE *f, const json_t *n)
{
	const char *lines[] = { text_of(n, "name"), text_of(n, "type"),
				text_of(n, "state") };

	fputc('\t', f);
	graph_quote(f, lines[0]);
	fputs(" [", f);
	graph_label(f, lines, ARRAY_SIZE(lines));
	fprintf(f, ", style=%s];\n", style_of(lines[2]));
}

void graph_edge(FILE *f, const char *name, const char *path, bool in, const char *style)
{
	fputc('\t', f);
	graph_quote(f, in ? name : path);
	fputs(" -> ", f);
	graph_quote(f, in ? path : name);
	fprintf(f, " [%s];\n", style);
}

static void print_edges(FILE *f, const json_t *names, const char *path, bool in,
			const char *state)
{
	char style[32];
	json_t *e;
	size_t i;

	snprintf(style, sizeof(style), "style=%s", style_of(state));
	json_array_foreach(names, i, e)
		graph_edge(f, json_string_value(e), path, in, style);
}

static void print_path(FILE *f, size_t index, const json_t *p)
{
	const char *state = text_of(p, "state");
	char name[40], title[40];
	const char *lines[] = { title, text_of(p, "mode"), state };

	snprintf(name, sizeof(name), "path:%zu", index);
	snprintf(title, sizeof(title), "path %zu", index);
	fprintf(f, "\t\"%s\" [shape=box, ", name);
	graph_label(f, lines, ARRAY_SIZE(lines));
	fprintf(f, ", style=%s];\n", style_of(state));
	print_edges(f, json_object_get(p, "in"), name, true, state);
	print_edges(f, json_object_get(p, "out"), name, false, state);
}

char *graph_text(const json_t *nodes, const json_t *paths)
{
	char *text = NULL;
	json_t *e;
	size_t i, len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fputs("digraph busbar {\n\trankdir=LR;\n", f);
	json_array_foreach(nodes, i, e)
		print_node(f, e);
	json_array_foreach(paths, i, e)
		print_path(f, i, e);
	fputs("}\n", f);
	return fclose(f) ? (free(text), NULL) : text;
}

const char *graph_format_name(unsigned index)
{
	return index < ARRAY_SIZE(formats) ? formats[index].name : NULL;
}

static const char *find_type(const char *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, format))
			return formats[i].type;
	return NULL;
}

static bool is_layout(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (!strcmp(layouts[i], name))
			return true;
	return false;
}

int graph_draw(struct super_node *sn, struct graph *g, char *error, size_t size)
{
	json_t *nodes, *paths;
	char *text;
	int ret;

	g->type = find_type(g->format);
	if (!g->type) {
		snprintf(error, size,
			 "there is no such format; there are dot, gv, svg, png, pdf, json and plain");
		return -ENOENT;
	}
	if (!is_layout(g->layout)) {
		snprintf(error, size,
			 "layout: expected dot, neato, fdp, sfdp, twopi or circo");
		return -EINVAL;
	}
	nodes = super_node_nodes_json(sn);
	paths = super_node_paths_json(sn);
	text = graph_text(nodes, paths);
	json_decref(nodes);
	json_decref(paths);
	if (!text) {
		snprintf(error, size, "no memory");
		return -ENOMEM;
	}
	if (!strcmp(g->type, formats[0].type) && !strcmp(g->layout, "dot")) {
		g->text = text;
		g->len = strlen(text);
		return 0;
	}
	ret = graph_dot(text, g, error, size);
	free(text);
	return ret;
}
