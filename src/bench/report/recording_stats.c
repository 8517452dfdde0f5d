/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hook `stats` printed as JSON: one line each time, an object per metric. */
#define LOG_ROOM "bench/report"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/recording.h"
#include "bench/result/columns.h"
#include "util/container_of.h"
#include "util/log.h"

/* What is drawn of it, by the names of busbar-hook-stats(7). */
static const struct shown {
	const char *metric, *figure, *label, *unit;
	double scale;
} shown[] = {
	{ "owd", "p50", "one-way delay, median", "\xc2\xb5s", 1e6 },
	{ "owd", "p99.9", "one-way delay, 99.9 %", "\xc2\xb5s", 1e6 },
	{ "owd", "highest", "one-way delay, highest", "\xc2\xb5s", 1e6 },
	{ "age", "p99.9", "time in the gateway, 99.9 %", "\xc2\xb5s", 1e6 },
	{ "gap_received", "p50", "between two receptions, median", "\xc2\xb5s", 1e6 },
	{ "gap_received", "highest", "between two receptions, longest", "\xc2\xb5s", 1e6 },
	{ "reordered", "total", "samples out of order", "", 1 },
	{ "rtp.jitter", "mean", "jitter, mean", "\xc2\xb5s", 1e6 },
	{ NULL, "lost", "missing sequence numbers", "", 1 },
	{ NULL, "received", "samples received", "", 1 },
};

#define SECONDS ARRAY_SIZE(shown)

/* The lines of one node. */
struct lines {
	char *node;
	double *value[SECONDS + 1];
	size_t count, room;
};

/* In the order in which the file names them. */
struct nodes {
	struct lines *of;
	size_t count;
};

/* The lines of this node, none yet if it is new. NULL without memory. */
static struct lines *lines_of(struct nodes *n, const char *node)
{
	struct lines *more;

	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->of[i].node, node))
			return &n->of[i];
	more = reallocarray(n->of, n->count + 1, sizeof(*more));
	if (!more)
		return NULL;
	n->of = more;
	more += n->count;
	*more = (struct lines){ .node = strdup(node) };
	if (!more->node)
		return NULL;
	n->count++;
	return more;
}

static void free_nodes(struct nodes *n)
{
	for (size_t i = 0; i < n->count; i++) {
		free(n->of[i].node);
		for (size_t k = 0; k < ARRAY_SIZE(n->of[i].value); k++)
			free(n->of[i].value[k]);
	}
	free(n->of);
}

static double number_at(const json_t *line, const struct shown *s)
{
	const json_t *o = s->metric ? json_object_get(line, s->metric) : line;
	const json_t *v = json_object_get(o, s->figure);

	return json_is_number(v) ? json_number_value(v) * s->scale : NAN;
}

static int add_line(struct lines *l, const json_t *line)
{
	int ret = columns_make_room(l->value, ARRAY_SIZE(l->value), l->count, &l->room);

	if (ret)
		return ret;
	l->value[SECONDS][l->count] = json_number_value(json_object_get(line, "time"));
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		l->value[i][l->count] = number_at(line, &shown[i]);
	l->count++;
	return 0;
}

int recording_name(json_t *c, const char *label, const char *path, const char *question,
		   const struct recording_options *o)
{
	int ret = json_object_set_new(c, "label", report_string(label));

	ret |= json_object_set_new(c, "scenario", report_string(path));
	ret |= json_object_set_new(c, "question", json_string(question));
	ret |= json_object_set_new(c, "command", report_string(o->command));
	return ret ? -ENOMEM : 0;
}

static int add_curves(json_t *run, const char *path, const struct recording_options *o,
		      struct lines *l)
{
	json_t *c = report_case_add(run, path, "stats");
	double *seconds = l->value[SECONDS], begin = seconds[0];
	int ret = 0;

	if (!c || recording_name(c, l->node, path,
				 "How did delays and losses change while the gateway ran?", o))
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++)
		seconds[i] -= begin;
	for (size_t i = 0; i < ARRAY_SIZE(shown) && !ret; i++) {
		double last = l->value[i][l->count - 1];

		ret = report_curve_add(c, shown[i].label, shown[i].unit, seconds, l->value[i],
				       l->count);
		if (!ret && isfinite(last))
			ret = report_figure_add(run, c, shown[i].label, shown[i].label,
						shown[i].unit, last);
	}
	return ret;
}

/* A line of the hook, or NULL. */
static json_t *parse(const char *text)
{
	json_t *line = json_loads(text, 0, NULL);

	if (json_is_string(json_object_get(line, "node")) &&
	    json_is_object(json_object_get(line, "owd")) &&
	    json_is_number(json_object_get(line, "time")))
		return line;
	json_decref(line);
	return NULL;
}

static int read_lines(FILE *f, const char *path, struct nodes *n)
{
	char *text = NULL;
	size_t size = 0, number = 0;
	int ret = 0, first = getc(f);

	/* Other files may have lines of any length. */
	if (first != '{')
		return -ENOENT;
	ungetc(first, f);
	while (!ret && getline(&text, &size, f) >= 0) {
		json_t *line = parse(text);
		struct lines *l;

		number++;
		if (!line && !n->count) {
			ret = -ENOENT;
		} else if (!line) {
			log_warn("file %s, line %zu: not what the hook 'stats' prints, left out",
				 path, number);
		} else {
			l = lines_of(n, json_string_value(json_object_get(line, "node")));
			ret = l ? add_line(l, line) : -ENOMEM;
		}
		json_decref(line);
	}
	free(text);
	return !ret && !n->count ? -ENOENT : ret;
}

int recording_stats_add(json_t *run, const char *path, const struct recording_options *o)
{
	FILE *f = fopen(path, "re");
	struct nodes nodes = { 0 };
	int ret;

	if (!f) {
		ret = -errno;
		log_error("file %s cannot be read: %s", path, strerror(-ret));
		/* -ENOENT would mean another kind of file. */
		return ret == -ENOENT ? -EINVAL : ret;
	}
	ret = read_lines(f, path, &nodes);
	for (size_t i = 0; i < nodes.count && !ret; i++)
		ret = add_curves(run, path, o, &nodes.of[i]);
	if (ret == -ENOMEM)
		log_error("no memory for what %s says", path);
	fclose(f);
	free_nodes(&nodes);
	return ret;
}
