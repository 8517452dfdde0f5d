/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints answers: tables for nodes and paths, lines for all else. */
#include "cli/ctl_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static long long count_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static double real_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void print_node(const json_t *n)
{
	const json_t *s = json_object_get(n, "stats");

	printf("%-20s %-12s %-15s %12lld %12lld %9lld %9lld %9lld %9lld\n",
	       text_of(n, "name"), text_of(n, "type"), text_of(n, "state"),
	       count_of(s, "received"), count_of(s, "sent"),
	       count_of(s, "not_sent"), count_of(s, "lost"),
	       count_of(s, "missed"), count_of(s, "made_up"));
}

static void print_node_head(void)
{
	printf("%-20s %-12s %-15s %12s %12s %9s %9s %9s %9s\n", "node", "type",
	       "state", "received", "sent", "not sent", "lost", "missed",
	       "made up");
}

static void print_path_head(void)
{
	printf("%3s %-30s %-9s %12s %8s %9s %9s %9s %9s\n", "no", "path",
	       "state", "samples", "dropped", "p50 us", "p99 us", "p99.9 us",
	       "max us");
}

static void print_path(size_t number, const json_t *p)
{
	const json_t *s = json_object_get(p, "stats");
	const json_t *l = json_object_get(s, "latency");

	printf("%3zu %-30s %-9s %12lld %8lld", number, text_of(p, "name"),
	       text_of(p, "state"), count_of(s, "samples"),
	       count_of(s, "dropped"));
	if (count_of(l, "count"))
		printf(" %9.2f %9.2f %9.2f %9.2f\n", real_of(l, "p50_us"),
		       real_of(l, "p99_us"), real_of(l, "p999_us"),
		       real_of(l, "max_us"));
	else
		printf(" %9s %9s %9s %9s\n", "-", "-", "-", "-");
}

static void print_nodes(const json_t *list)
{
	size_t i;
	json_t *n;
	const char *name;

	print_node_head();
	json_array_foreach(list, i, n)
		print_node(n);
	json_object_foreach((json_t *)list, name, n)
		print_node(n);
}

static void print_paths(const json_t *list)
{
	size_t i;
	json_t *p;

	print_path_head();
	json_array_foreach(list, i, p)
		print_path(i, p);
}

static void print_lines(const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v) {
		char *text;

		if (json_is_string(v)) {
			printf("%-16s %s\n", key, json_string_value(v));
			continue;
		}
		text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT |
					     JSON_REAL_PRECISION(15));
		printf("%-16s %s\n", key, text ? text : "");
		free(text);
	}
}

/* "kept 3: node a, node b, path a -> b" */
static void print_report(const json_t *o)
{
	const char *key;
	json_t *list, *v;
	size_t i;

	json_object_foreach((json_t *)o, key, list) {
		if (!json_is_array(list))
			continue;
		printf("%-8s %zu", key, json_array_size(list));
		json_array_foreach(list, i, v)
			printf("%s%s", i ? ", " : ": ", json_string_value(v));
		putchar('\n');
	}
}

static void print_error(int status, const json_t *body)
{
	json_t *errors = json_object_get(body, "errors"), *e;
	size_t i;

	fprintf(stderr, "busbar ctl: %s (%d)\n", text_of(body, "error"), status);
	json_array_foreach(errors, i, e)
		fprintf(stderr, "  %s\n", json_string_value(e));
}

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* Of an answer that is no JSON. */
static bool print_text(const json_t *body)
{
	const char *text = json_string_value(json_object_get(body, "text"));

	if (!text || json_object_size(body) != 2 || !json_object_get(body, "type"))
		return false;
	fputs(text, stdout);
	return true;
}

static void print_body(const char *path, const json_t *body)
{
	bool stats = strlen(path) > 6 &&
		     !strcmp(path + strlen(path) - 6, "/stats");

	if (print_text(body))
		return;
	if (!strcmp(path, "/nodes")) {
		print_nodes(body);
	} else if (!strcmp(path, "/paths")) {
		print_paths(body);
	} else if (!strcmp(path, "/stats")) {
		print_nodes(json_object_get(body, "nodes"));
		putchar('\n');
		print_paths(json_object_get(body, "paths"));
	} else if (starts(path, "/node/") && stats) {
		print_node_head();
		print_node(body);
	} else if (starts(path, "/path/") && stats) {
		print_path_head();
		print_path(0, body);
	} else if (!strcmp(path, "/reload")) {
		print_report(body);
	} else if (!strcmp(path, "/config")) {
		json_dumpf(body, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		print_lines(body);
	}
}

int ctl_print(const char *path, const json_t *answer, bool json)
{
	int status = (int)count_of(answer, "status");
	const json_t *body = json_object_get(answer, "body");
	bool good = status >= 200 && status < 300;

	if (json) {
		json_dumpf(body, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	}
	if (!good)
		print_error(status, body);
	else if (!json)
		print_body(path, body);
	return good ? 0 : status ? status : -1;
}
