/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar graph` (villas-graph): the nodes and paths of a configuration as a graph. This
 * file writes the text in Graphviz' language; `dot` draws pictures if it is installed.
 * Only names are used, so a node-type that this build lacks can be drawn, too.
 */
#define LOG_ROOM "graph"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"
#include "gateway/config/config.h"
#include "gateway/control/graph.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/options.h"
#include "util/spawn.h"

#define DOT_OPTIONS_MAX 64

/* Stands between the quoted lines of a label. */
#define NEW_LINE " + \"\\n\" + "

struct settings {
	const char *type, *output, *layout, *attribute;
	char *dot[2 * DOT_OPTIONS_MAX]; /* options for dot(1) */
	int dot_count;
};

/* The name of the node in "node.data[a-b]". */
static void copy_name(char *name, size_t size, const char *text)
{
	size_t n = 0;

	while (n + 1 < size && (isalnum((unsigned char)text[n]) ||
				text[n] == '_' || text[n] == '-'))
		n++;
	memcpy(name, text, n);
	name[n] = '\0';
}

static bool is_off(const json_t *group)
{
	return json_is_false(json_object_get(group, "enabled"));
}

static void print_node(FILE *f, const char *name, const json_t *cfg)
{
	const char *lines[] = { name, json_string_value(json_object_get(cfg, "type")) ?: "?" };

	fputc('\t', f);
	graph_quote(f, name);
	fputs(" [", f);
	graph_label(f, lines, ARRAY_SIZE(lines));
	fprintf(f, "%s];\n", is_off(cfg) ? ", style=dashed" : "");
}

/* The style of the edges of a path. */
static const char *style_of(const json_t *path)
{
	if (is_off(path))
		return "style=dashed";
	return json_is_true(json_object_get(path, "reverse")) ? "dir=both" :
								"dir=forward";
}

/* Prints the edges to or from the nodes that `key` of a path names; false: unknown node. */
static bool print_edges(struct config *c, const json_t *nodes,
			 const json_t *path, const char *key,
			 FILE *f, const char *to)
{
	json_t *value = json_object_get(path, key);
	size_t n = json_is_array(value) ? json_array_size(value) : value ? 1 : 0;
	char name[80];

	for (size_t i = 0; i < n; i++) {
		json_t *e = json_is_array(value) ? json_array_get(value, i) :
						   value;

		if (!json_is_string(e)) {
			config_fail(c, path, key, "expected the name of a node");
			return false;
		}
		copy_name(name, sizeof(name), json_string_value(e));
		if (!json_object_get(nodes, name)) {
			config_fail(c, path, key, "no node '%s'", name);
			return false;
		}
		graph_edge(f, name, to, !strcmp(key, "in"), style_of(path));
	}
	return true;
}

/* Mode, rate and hooks of a path, one on each line. */
static void print_path_label(FILE *f, size_t index, const json_t *path)
{
	json_t *hooks = json_object_get(path, "hooks"), *h;
	const char *mode = json_string_value(json_object_get(path, "mode"));
	json_t *rate = json_object_get(path, "rate");
	size_t i;

	fprintf(f, "\"path %zu\"", index);
	if (mode)
		fprintf(f, "+\"\\nmode %s\"", strcmp(mode, "all") ? "any" : "all");
	if (json_is_number(rate))
		fprintf(f, "+\"\\nrate %g\"", json_number_value(rate));
	json_array_foreach(hooks, i, h) {
		const char *name = json_is_string(h) ? json_string_value(h) :
			json_string_value(json_object_get(h, "type"));

		fputs(NEW_LINE, f);
		graph_quote(f, name ? name : "?");
	}
}

static bool print_path(FILE *f, struct config *c, const json_t *nodes,
		       size_t index, const json_t *path)
{
	char name[40];
	bool good;

	snprintf(name, sizeof(name), "path:%zu", index);
	fprintf(f, "\t\"%s\" [shape=box, label=", name);
	print_path_label(f, index, path);
	fprintf(f, "%s];\n", is_off(path) ? ", style=dashed" : "");
	good = print_edges(c, nodes, path, "in", f, name) &&
	       print_edges(c, nodes, path, "out", f, name);
	return good;
}

/* Prints the whole graph; returns the exit status. */
static int print_graph(FILE *f, struct config *c)
{
	json_t *root = config_root(c);
	json_t *nodes = json_object_get(root, "nodes"), *node;
	json_t *paths = json_object_get(root, "paths"), *path;
	const char *name;
	bool good = true;
	size_t i;

	if (!json_is_object(nodes)) {
		config_fail(c, root, "nodes",
			    "expected a group with one entry per node");
		return CLI_FAILED;
	}
	fputs("digraph busbar {\n\trankdir=LR;\n", f);
	json_object_foreach(nodes, name, node)
		print_node(f, name, node);
	json_array_foreach(paths, i, path)
		good &= print_path(f, c, nodes, i, path);
	fputs("}\n", f);
	return good ? CLI_OK : CLI_FAILED;
}

/* Has dot(1) draw the text. */
static int draw(char **argv, struct settings *s, const char *text, size_t len)
{
	struct spawn dot = { .argv = s->dot, .streams = { spawn_memory_file(text, len),
							  SPAWN_INHERITS, SPAWN_INHERITS } };
	pid_t pid;

	if (dot.streams[0] < 0) {
		log_error("memory for the graph: %s", strerror(-dot.streams[0]));
		return CLI_FAILED;
	}
	s->dot[s->dot_count] = NULL;
	pid = spawn_program(&dot);
	close(dot.streams[0]);
	if (pid < 0) {
		fprintf(stderr, "%s: cannot run dot: %s; install graphviz, or leave out -T and -K\n",
			argv[0], strerror((int)-pid));
		return CLI_FAILED;
	}
	return spawn_wait(pid) ? CLI_FAILED : CLI_OK;
}

static int write_text(char **argv, const struct settings *s, const char *text,
		      size_t len)
{
	FILE *f = s->output ? fopen(s->output, "we") : stdout;
	bool good = f && fwrite(text, 1, len, f) == len && !fflush(f);

	if (!good)
		fprintf(stderr, "%s: cannot write %s: %s\n", argv[0],
			s->output ? s->output : "standard output", strerror(errno));
	if (f && s->output)
		fclose(f);
	return good ? CLI_OK : CLI_FAILED;
}

static int make(char **argv, struct settings *s, const char *path)
{
	bool plain = !s->layout && (!s->type || !strcmp(s->type, "dot") ||
				    !strcmp(s->type, "gv"));
	char *text = NULL;
	struct config *c;
	size_t len = 0;
	int status;
	FILE *f;

	if (config_load(path, &c))
		return CLI_FAILED;
	f = open_memstream(&text, &len);
	status = f ? print_graph(f, c) : CLI_FAILED;
	if (f)
		fclose(f);
	config_destroy(c);
	signal(SIGPIPE, SIG_IGN);
	if (!status)
		status = plain ? write_text(argv, s, text, len) :
				 draw(argv, s, text, len);
	free(text);
	return status;
}

/* Keeps an option and its argument for dot(1), and the argument in the member. */
static int pass_on(const struct option_given *g)
{
	struct settings *s = g->to;

	*(const char **)option_member(g) = g->value;
	if (s->dot_count + 2 >= 2 * DOT_OPTIONS_MAX)
		return options_refuse(g, "too many options");
	s->dot[s->dot_count++] = (char *)g->entry->data;
	s->dot[s->dot_count++] = (char *)g->value;
	return OPTIONS_GO_ON;
}

#define PASSED(member, letter) OPTION_MEMBER(struct settings, member, 1), OPTION_CALL(pass_on, letter)

static const struct option_entry table[] = {
	{ "-T FMT: svg, png, pdf ...; dot (the default) needs no other program", PASSED(type, "-T") },
	{ "-o FILE: where to write (standard output)", PASSED(output, "-o") },
	{ "-K NAME: layout: dot, neato, fdp, circo ...", PASSED(layout, "-K") },
	{ "-G NAME=VALUE...: attribute of the graph", PASSED(attribute, "-G") },
	{ "-N NAME=VALUE...: attribute of all nodes", PASSED(attribute, "-N") },
	{ "-E NAME=VALUE...: attribute of all edges", PASSED(attribute, "-E") },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS] CONFIG",
	.about = "Prints the nodes and paths of CONFIG as a graph, in the language of Graphviz or,\n"
		 "drawn by its program dot(1), in any of its formats.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
};

int cli_graph(int argc, char **argv)
{
	struct settings s = { .dot = { (char *)"dot" }, .dot_count = 1 };
	int status;

	tool_begin(argv);
	status = options_parse(&options, argc, argv, &s, NULL);
	if (status >= 0)
		return status;
	return make(argv, &s, argv[optind]);
}
