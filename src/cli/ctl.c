/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar ctl`: sends requests to a running gateway over its control socket, or by ctl_http.c, and
 * prints the answers: tables for nodes and paths, lines for all else.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ctl_http.h"
#include "gateway/control/query.h"
#include "gateway/control/socket_client.h"
#include "util/container_of.h"
#include "util/options.h"

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

/* Prints the answer to the request for `path`; errors go to standard error. Was it a good one? */
static bool print_answer(const char *path, const json_t *answer, bool json)
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
	return good;
}

struct ctl_request {
	const char *method;
	char path[512];
	json_t *body; /* NULL: none */
};

static int set(struct ctl_request *r, const char *method, const char *a,
	       const char *id, const char *b)
{
	char name[400] = "";

	r->method = method;
	if (id)
		query_encode(id, strlen(id), "", name, sizeof(name));
	snprintf(r->path, sizeof(r->path), "/%s%s%s%s%s", a, id ? "/" : "", name,
		 b ? "/" : "", b ? b : "");
	return CLI_OK;
}

/* `node` and `path`; some commands exist for nodes only. */
static int parse_object(struct ctl_request *r, int argc, char **argv)
{
	static const struct {
		const char *verb, *method, *path;
	} verbs[] = {
		{ "start", "POST", "start" }, { "stop", "POST", "stop" },
		{ "pause", "POST", "pause" }, { "resume", "POST", "resume" },
		{ "restart", "POST", "restart" }, { "stats", "GET", "stats" },
		{ "reset", "POST", "stats/reset" },
		{ "rewind", "POST", "file/rewind" /* of nodes alone */ },
	};
	const char *verb = argc > 2 ? argv[2] : NULL;

	if (argc < 2 || argc > 3)
		return CLI_USAGE;
	if (!verb)
		return set(r, "GET", argv[0], argv[1], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verb, verbs[i].verb) &&
		    (strcmp(verb, "rewind") || !strcmp(argv[0], "node")))
			return set(r, verbs[i].method, argv[0], argv[1], verbs[i].path);
	fprintf(stderr, "busbar ctl: '%s' is no command of a %s\n", verb,
		argv[0]);
	return CLI_USAGE;
}

/* The path is made absolute, because the gateway may have another working folder. */
static int parse_file(struct ctl_request *r, int argc, char **argv)
{
	char path[PATH_MAX];

	if (argc > 2)
		return CLI_USAGE;
	set(r, "POST", argv[0], NULL, NULL);
	if (argc < 2)
		return CLI_OK;
	if (!realpath(argv[1], path)) {
		fprintf(stderr, "busbar ctl: %s: %s\n", argv[1],
			strerror(errno));
		return CLI_FAILED;
	}
	r->body = json_pack("{ss}", "config", path);
	return CLI_OK;
}

static int parse_raw(struct ctl_request *r, int argc, char **argv)
{
	json_error_t error;

	if (argc < 2 || argc > 3)
		return CLI_USAGE;
	r->method = argv[0];
	if (strlen(argv[1]) >= sizeof(r->path)) {
		fputs("busbar ctl: the path is too long\n", stderr);
		return CLI_USAGE;
	}
	strcpy(r->path, argv[1]);
	if (argc < 3)
		return CLI_OK;
	r->body = json_loads(argv[2], JSON_DECODE_ANY, &error);
	if (r->body)
		return CLI_OK;
	fprintf(stderr, "busbar ctl: the body is no JSON: %s\n", error.text);
	return CLI_USAGE;
}

static int parse_request(struct ctl_request *r, int argc, char **argv)
{
	/* Those of one word. */
	static const struct {
		const char *word, *method, *path;
	} plain[] = {
		{ "status", "GET", "status" }, { "capabilities", "GET", "capabilities" },
		{ "config", "GET", "config" }, { "nodes", "GET", "nodes" },
		{ "paths", "GET", "paths" }, { "stats", "GET", "stats" },
		{ "stats-reset", "POST", "stats/reset" }, { "shutdown", "POST", "shutdown" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (argc == 1 && !strcmp(argv[0], plain[i].word))
			return set(r, plain[i].method, plain[i].path, NULL, NULL);
	if (argc == 2 && !strcmp(argv[0], "stats"))
		return set(r, "GET", "node", argv[1], "stats");
	if (!strcmp(argv[0], "node") || !strcmp(argv[0], "path"))
		return parse_object(r, argc, argv);
	if (!strcmp(argv[0], "reload") || !strcmp(argv[0], "restart"))
		return parse_file(r, argc, argv);
	if (!strcmp(argv[0], "GET") || !strcmp(argv[0], "POST"))
		return parse_raw(r, argc, argv);
	fprintf(stderr, "busbar ctl: '%s' is no request%s, see 'busbar ctl --help'\n",
		argv[0], argc > 1 ? " with these words" : "");
	return CLI_USAGE;
}

/* The answer; NULL, after a message: there is none. */
static json_t *ask(const char *socket_path, const struct ctl_request *r, double timeout_s)
{
	char why[300];
	json_t *answer = control_client_ask(socket_path, r->method, r->path, r->body, timeout_s, why,
					    sizeof(why));

	if (!answer)
		fprintf(stderr, "busbar ctl: %s\n", why);
	return answer;
}

/* --json is accepted behind SOCKET as well. */
static int take_json(int argc, char **argv, bool *json)
{
	int kept = optind;

	for (int i = optind; i < argc; i++) {
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
			*json = true;
		else
			argv[kept++] = argv[i];
	}
	return kept;
}

struct ctl_options {
	struct ctl_http http;  /* url NULL: a control socket */
	double timeout_s;
	bool json;
};

static const struct option_entry table[] = {
	{ "-j, --json: print the answer as JSON", OPTION_FLAG(struct ctl_options, json) },
	{ "-t, --timeout S: wait at most so many seconds for the answer (30)",
	  OPTION_REAL(struct ctl_options, timeout_s, 1e-3, 1e6) },
	{ "-u, --url URL: http://HOST[:PORT] or https://HOST[:PORT]", OPTION_TEXT(struct ctl_options, http.url) },
	{ "--token-file FILE: the token to show it", OPTION_TEXT(struct ctl_options, http.token_file) },
	{ "--ca FILE: authority of its certificate, in place of the system's",
	  OPTION_TEXT(struct ctl_options, http.ca) },
	{ "--cert FILE: certificate to show it", OPTION_TEXT(struct ctl_options, http.cert) },
	{ "--key FILE: key of this certificate", OPTION_TEXT(struct ctl_options, http.key) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar ctl",
	.synopsis = "[OPTIONS] SOCKET REQUEST...\n[OPTIONS] --url=URL REQUEST...",
	.about = "Asks or commands the gateway that was started with --control=SOCKET or with\n"
		 "the key `control`, or the one whose HTTP server is at URL.\n"
		 "\n"
		 "  status | capabilities | config   about the gateway\n"
		 "  nodes | paths                    what it consists of\n"
		 "  stats [NODE]                     counters and latencies\n"
		 "  stats-reset                      all of them to zero\n"
		 "  node NODE [COMMAND]              COMMAND: start, stop, pause, resume, restart,\n"
		 "                                   stats, reset, rewind; none: show it\n"
		 "  path PATH [COMMAND]              PATH: name, number from 0 or UUID\n"
		 "  reload [FILE]                    take what has changed in the configuration\n"
		 "  restart [FILE]                   stop everything and start anew\n"
		 "  shutdown                         end it\n"
		 "  GET|POST /PATH [JSON]            any request, see busbar-ctl(1)\n",
	.table = table,
	.any_operands = true,
	.in_order = true, /* arguments behind SOCKET belong to the request */
	.end = "Exit status: 0 done, 1 refused or no answer, 2 wrong usage.\n",
};

int cli_ctl(int argc, char **argv)
{
	struct ctl_options o = { .timeout_s = 30 };
	struct ctl_request r = { .method = NULL };
	json_t *answer;
	int ret = options_parse(&options, argc, argv, &o, NULL), first;

	if (ret >= 0)
		return ret;
	if (!o.http.url && (o.http.token_file || o.http.ca || o.http.cert || o.http.key))
		return options_wrong(&options, argv, "--token-file, --ca, --cert and --key belong to --url");
	argc = take_json(argc, argv, &o.json);
	first = optind + !o.http.url;
	if (argc <= first)
		return options_usage(&options, argv);
	ret = parse_request(&r, argc - first, argv + first);
	if (ret) {
		json_decref(r.body);
		return ret;
	}
	answer = o.http.url ? ctl_http_ask(&o.http, r.method, r.path, r.body, o.timeout_s) :
			      ask(argv[optind], &r, o.timeout_s);
	json_decref(r.body);
	if (!answer)
		return CLI_FAILED;
	ret = print_answer(r.path, answer, o.json) ? CLI_OK : CLI_FAILED;
	json_decref(answer);
	return ret;
}
