/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar ctl`: sends requests to a running gateway over its control socket. This file
 * makes requests of the command line; ctl_print.c prints the answers.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ctl_http.h"
#include "cli/ctl_print.h"
#include "util/container_of.h"
#include "util/options.h"

#define ANSWER_MAX (64u << 20)

struct ctl_request {
	const char *method;
	char path[512];
	json_t *body; /* NULL: none */
};

/* Percent-encodes everything but letters, digits and a few characters. */
static void encode(char *to, size_t size, const char *from)
{
	size_t len = 0;

	for (; *from && len + 4 < size; from++) {
		if (strchr("/%? ", *from))
			len += (size_t)snprintf(to + len, size - len, "%%%02X",
						(unsigned char)*from);
		else
			to[len++] = *from;
	}
	to[len] = '\0';
}

static int set(struct ctl_request *r, const char *method, const char *a,
	       const char *id, const char *b)
{
	char name[400] = "";

	r->method = method;
	if (id)
		encode(name, sizeof(name), id);
	snprintf(r->path, sizeof(r->path), "/%s%s%s%s%s", a, id ? "/" : "", name,
		 b ? "/" : "", b ? b : "");
	return CLI_OK;
}

/* `node` and `path`; some commands exist for nodes only. */
static int parse_object(struct ctl_request *r, int argc, char **argv)
{
	static const char *const verbs[] = { "start", "stop", "pause", "resume",
					     "restart" };
	const char *verb = argc > 2 ? argv[2] : NULL;

	if (argc < 2 || argc > 3)
		return CLI_USAGE;
	if (!verb)
		return set(r, "GET", argv[0], argv[1], NULL);
	if (!strcmp(verb, "stats"))
		return set(r, "GET", argv[0], argv[1], "stats");
	if (!strcmp(verb, "reset"))
		return set(r, "POST", argv[0], argv[1], "stats/reset");
	if (!strcmp(verb, "rewind") && !strcmp(argv[0], "node"))
		return set(r, "POST", argv[0], argv[1], "file/rewind");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verb, verbs[i]))
			return set(r, "POST", argv[0], argv[1], verb);
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
	static const char *const plain[] = { "status", "capabilities", "config",
					     "nodes", "paths", "stats" };

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (argc == 1 && !strcmp(argv[0], plain[i]))
			return set(r, "GET", plain[i], NULL, NULL);
	if (argc == 2 && !strcmp(argv[0], "stats"))
		return set(r, "GET", "node", argv[1], "stats");
	if (argc == 1 && !strcmp(argv[0], "stats-reset"))
		return set(r, "POST", "stats/reset", NULL, NULL);
	if (argc == 1 && !strcmp(argv[0], "shutdown"))
		return set(r, "POST", "shutdown", NULL, NULL);
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

static int connect_to(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd;

	if (!len || len >= sizeof(a.sun_path)) {
		fprintf(stderr, "busbar ctl: %s: expected a path of 1 to %zu characters\n",
			path, sizeof(a.sun_path) - 1);
		return -EINVAL;
	}
	memcpy(a.sun_path, path, len);
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 &&
	    !connect(fd, (const struct sockaddr *)&a,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
				 (path[0] != '@'))))
		return fd;
	fprintf(stderr, "busbar ctl: %s: %s; is the gateway running with this control socket?\n",
		path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -EIO;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One line from `fd`; NULL, after a message: none came in time. */
static char *read_line(int fd, double timeout_s)
{
	double end = now_s() + timeout_s;
	size_t len = 0, size = 0;
	char *buf = NULL, *more;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		double left = end - now_s();
		ssize_t n;

		if (size - len < 4096) {
			size = size ? size * 2 : 8192;
			more = size <= ANSWER_MAX ? realloc(buf, size) : NULL;
			if (!more)
				break;
			buf = more;
		}
		if (left <= 0 || poll(&p, 1, (int)(left * 1e3) + 1) <= 0) {
			fprintf(stderr, "busbar ctl: no answer within %g s\n",
				timeout_s);
			break;
		}
		n = read(fd, buf + len, size - len - 1);
		if (n <= 0) {
			fputs("busbar ctl: the gateway closed the connection\n",
			      stderr);
			break;
		}
		len += (size_t)n;
		buf[len] = '\0';
		if (buf[len - 1] == '\n')
			return buf;
	}
	free(buf);
	return NULL;
}

/* The answer; NULL, after a message: there is none. */
static json_t *ask(const char *socket_path, const struct ctl_request *r,
		   double timeout_s)
{
	json_t *o = json_pack("{ss ss}", "method", r->method, "path", r->path);
	json_t *answer = NULL;
	int fd = connect_to(socket_path);
	char *text, *line = NULL;

	if (r->body)
		json_object_set(o, "body", r->body);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (fd >= 0 && text) {
		if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ||
		    send(fd, "\n", 1, MSG_NOSIGNAL) < 0)
			fprintf(stderr, "busbar ctl: %s\n", strerror(errno));
		else
			line = read_line(fd, timeout_s);
		if (line) {
			answer = json_loads(line, 0, NULL);
			if (!answer)
				fputs("busbar ctl: the answer is no JSON\n",
				      stderr);
		}
	}
	if (fd >= 0)
		close(fd);
	free(line);
	free(text);
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
	ret = ctl_print(r.path, answer, o.json) ? CLI_FAILED : CLI_OK;
	json_decref(answer);
	return ret;
}
