/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs dot(1) with a limit of time and of what it may print. The graph is given as a
 * memory file, so that nobody has to write to it while it prints.
 */
#define LOG_ROOM "gateway/control"
#include "gateway/control/graph_dot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/control/graph.h"
#include "util/spawn.h"

static const struct spawn_limits limits = {
	.ms = 10000, .bytes = 16u << 20, .stop = ending_has_begun,
};

static pid_t start(int in, int *out, const struct graph *g)
{
	char format[16], layout[16];
	char *argv[] = { (char *)"dot", format, layout, NULL };
	int pipes[3];
	const struct spawn dot = { .argv = argv, .pipes = pipes,
				   .streams = { in, SPAWN_PIPE, SPAWN_NULL } };
	pid_t pid;

	snprintf(format, sizeof(format), "-T%s", g->format);
	snprintf(layout, sizeof(layout), "-K%s", g->layout);
	pid = spawn_program(&dot);
	*out = pipes[STDOUT_FILENO];
	return pid;
}

int graph_dot(const char *text, struct graph *g, char *error, size_t size)
{
	int in = spawn_memory_file(text, strlen(text)), out, ret, status;
	pid_t pid;

	if (in < 0) {
		snprintf(error, size, "%s", strerror(-in));
		return -EIO;
	}
	pid = start(in, &out, g);
	close(in);
	if (pid < 0) {
		snprintf(error, size,
			 "dot(1) of Graphviz draws this format, and is not installed; graph.dot needs no other program");
		return -ENOSYS;
	}
	ret = spawn_collect(pid, out, &limits, &g->text, &g->len, &status);
	if (!ret && (status || !g->len))
		ret = -EIO;
	if (!ret)
		return 0;
	snprintf(error, size, "dot(1) did not draw the graph: %s",
		 ret == -EIO ? "it failed" : strerror(-ret));
	free(g->text);
	g->text = NULL;
	g->len = 0;
	return ret;
}
