/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of requests; see api.h. What they tell of the host: status.c. */
#define LOG_ROOM "gateway/control"
#include "gateway/control/api.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/config.h"
#include "gateway/control/status.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_reload.h"
#include "util/container_of.h"

#define SEGMENTS_MAX 4
#define PATH_MAX_BYTES 1024
#define PREFIX "/api/v2"

struct request {
	struct super_node *sn;
	const char *args[SEGMENTS_MAX]; /* what stands for '*' */
	const json_t *body;
	int status;
};

struct route {
	const char *method, *path;
	json_t *(*handle)(struct request *r);
};

static json_t *fail(struct request *r, int status, const char *text)
{
	r->status = status;
	return json_pack("{ss}", "error", text);
}

static int status_of(int err)
{
	switch (-err) {
	case ENOENT: return 404;
	case EALREADY:
	case EPERM: return 409;
	case ENOTSUP: return 501;
	case ESPIPE: /* a file that cannot be read again */
	case EINVAL: return 400;
	case EBUSY:
	case ESHUTDOWN: return 503;
	default: return 500;
	}
}

/* `what` is asked again for its state, for a person to read. */
static json_t *fail_state(struct request *r, const char *what)
{
	json_t *o = !strcmp(what, "node") ?
			    super_node_node_json(r->sn, r->args[0], true) :
			    super_node_path_json(r->sn, r->args[0], true);
	const char *state = json_string_value(json_object_get(o, "state"));
	json_t *error = json_sprintf("not possible, the %s is %s", what,
				     state ? state : "in another state");

	json_decref(o);
	r->status = 409;
	return json_pack("{so}", "error", error);
}

/* The outcome of a command on `what`. */
static json_t *outcome(struct request *r, int err, const char *what)
{
	switch (-err) {
	case 0:
		return json_object();
	case EALREADY:
		/* What was asked for is true. */
		return json_pack("{sb}", "unchanged", 1);
	case ENOENT:
		r->status = 404;
		return json_pack("{so}", "error",
				 json_sprintf("there is no %s '%s'", what,
					      r->args[0]));
	case EPERM:
		return fail_state(r, what);
	case ENOTSUP:
		return fail(r, 501, "it cannot do that, or is disabled");
	case EBUSY:
		return fail(r, 503, "it does not come out of a read or write; nothing was changed");
	case ESHUTDOWN:
		return fail(r, 503, "the gateway is not running");
	default:
		return fail(r, status_of(err), strerror(-err));
	}
}

static json_t *found(struct request *r, json_t *o, const char *what)
{
	return o ? o : outcome(r, -ENOENT, what);
}

static json_t *get_capabilities(struct request *r)
{
	return control_capabilities(control_request_names());
}

static json_t *get_status(struct request *r)
{
	return control_status(r->sn);
}

static json_t *get_config(struct request *r)
{
	return super_node_config_json(r->sn);
}

static json_t *get_nodes(struct request *r)
{
	return super_node_nodes_json(r->sn);
}

static json_t *get_node(struct request *r)
{
	return found(r, super_node_node_json(r->sn, r->args[0], false), "node");
}

static json_t *get_node_stats(struct request *r)
{
	return found(r, super_node_node_stats_json(r->sn, r->args[0]), "node");
}

static json_t *get_paths(struct request *r)
{
	return super_node_paths_json(r->sn);
}

static json_t *get_path(struct request *r)
{
	return found(r, super_node_path_json(r->sn, r->args[0], false), "path");
}

static json_t *get_path_stats(struct request *r)
{
	return found(r, super_node_path_json(r->sn, r->args[0], true), "path");
}

static json_t *get_stats(struct request *r)
{
	return super_node_snapshot(r->sn);
}

static json_t *post_node(struct request *r)
{
	int verb = control_verb_parse(r->args[1]);

	if (verb < 0)
		return fail(r, 404, "expected start, stop, pause, resume, restart, stats/reset or file/rewind");
	return outcome(r, super_node_node_control(r->sn, r->args[0],
						  (enum control_verb)verb),
		       "node");
}

static json_t *post_path(struct request *r)
{
	int verb = control_verb_parse(r->args[1]);

	if (verb < 0)
		return fail(r, 404, "expected start, stop, pause, resume, restart or stats/reset");
	return outcome(r, super_node_path_control(r->sn, r->args[0],
						  (enum control_verb)verb),
		       "path");
}

static json_t *post_node_reset(struct request *r)
{
	return outcome(r, super_node_node_reset(r->sn, r->args[0]), "node");
}

static json_t *post_path_reset(struct request *r)
{
	return outcome(r, super_node_path_reset(r->sn, r->args[0]), "path");
}

static json_t *post_reset(struct request *r)
{
	int ret = super_node_node_reset(r->sn, NULL);

	return outcome(r, super_node_path_reset(r->sn, NULL) ?: ret, "path");
}

static json_t *rewind_node(struct request *r)
{
	return outcome(r, super_node_node_rewind(r->sn, r->args[0]), "node");
}

/* Why a new configuration was not taken. */
static json_t *refuse_config(struct request *r, int ret, json_t *report)
{
	r->status = ret == -EINVAL ? 422 : status_of(ret);
	if (!report)
		report = json_object();
	if (!json_object_get(report, "error"))
		json_object_set_new(report, "error",
				    json_string(strerror(-ret)));
	return report;
}

/* {"config": "FILE"} or {"config": {...}}; nothing: the present file again. */
static json_t *post_reload(struct request *r)
{
	const json_t *config = json_object_get(r->body, "config");
	json_t *report = NULL;
	int ret;

	if (config && !json_is_string(config) && !json_is_object(config))
		return fail(r, 400, "config: expected the path of a file or an object");
	ret = super_node_reload(r->sn, config, &report);
	return ret ? refuse_config(r, ret, report) : report;
}

static json_t *post_restart(struct request *r)
{
	const json_t *config = json_object_get(r->body, "config");
	json_t *report = NULL;
	int ret;

	if (config && !json_is_string(config) && !json_is_object(config))
		return fail(r, 400, "config: expected the path of a file or an object");
	ret = super_node_request_restart(r->sn, config, &report);
	if (ret == -ENOTSUP)
		return fail(r, 501, "this gateway cannot start itself anew");
	return ret ? refuse_config(r, ret, report) :
		     control_restart_json(r->sn, config);
}

static json_t *post_shutdown(struct request *r)
{
	super_node_request_shutdown(r->sn);
	return json_object();
}

/* The first that fits counts. */
static const struct route routes[] = {
	{ "GET", "/capabilities", get_capabilities },
	{ "GET", "/status", get_status },
	{ "GET", "/config", get_config },
	{ "GET", "/nodes", get_nodes },
	{ "GET", "/node/*", get_node },
	{ "GET", "/node/*/stats", get_node_stats },
	{ "POST", "/node/*/stats/reset", post_node_reset },
	{ "POST", "/node/*/file/rewind", rewind_node },
	{ "GET", "/node/*/file/rewind", rewind_node },
	{ "POST", "/node/*/*", post_node },
	{ "GET", "/paths", get_paths },
	{ "GET", "/path/*", get_path },
	{ "GET", "/path/*/stats", get_path_stats },
	{ "POST", "/path/*/stats/reset", post_path_reset },
	{ "POST", "/path/*/*", post_path },
	{ "GET", "/stats", get_stats },
	{ "POST", "/stats/reset", post_reset },
	{ "POST", "/reload", post_reload },
	{ "POST", "/restart", post_restart },
	{ "POST", "/shutdown", post_shutdown },
};

/* Puts in the segments of `path` that are words: "/node/ID/stats" is "node/stats". */
static void request_name(const char *path, char *name, size_t size)
{
	size_t len = 0;

	for (const char *p = path; *p && len + 1 < size; p++) {
		if (p[0] == '/' && p[1] == '*')
			p++;
		else if (len || *p != '/')
			name[len++] = *p;
	}
	name[len] = '\0';
}

static void add_name(json_t *list, const char *name, const char *verb)
{
	json_t *o = json_sprintf("%s%s%s", name, verb ? "/" : "",
				 verb ? verb : ""), *e;
	size_t i;

	/* Once, whatever methods it has. */
	json_array_foreach(list, i, e) {
		if (json_equal(e, o)) {
			json_decref(o);
			return;
		}
	}
	json_array_append_new(list, o);
}

json_t *control_request_names(void)
{
	static const char *const verbs[] = { "start", "stop", "pause", "resume",
					     "restart" };
	json_t *list = json_array();
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		const char *path = routes[i].path;
		size_t len = strlen(path);

		request_name(path, name, sizeof(name));
		if (len < 4 || strcmp(path + len - 4, "/*/*")) {
			add_name(list, name, NULL);
			continue;
		}
		for (size_t v = 0; v < ARRAY_SIZE(verbs); v++)
			add_name(list, name, verbs[v]);
	}
	return list;
}

static int hex(char c)
{
	return isdigit((unsigned char)c)  ? c - '0' :
	       isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 :
					    -1;
}

/* %41 becomes 'A', in place. */
static void decode(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0 &&
		    (hex(s[1]) || hex(s[2]))) {
			*to++ = (char)(hex(s[1]) * 16 + hex(s[2]));
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Cuts `path` into its segments; how many, or -1 when they are too many. */
static int cut(char *path, const char *segments[SEGMENTS_MAX])
{
	int n = 0;
	char *save, *s = strchr(path, '?');

	if (s)
		*s = '\0';
	for (s = strtok_r(path, "/", &save); s; s = strtok_r(NULL, "/", &save)) {
		if (n == SEGMENTS_MAX)
			return -1;
		decode(s);
		segments[n++] = s;
	}
	return n;
}

static bool fits(const char *pattern, const char *const segments[], int count,
		 struct request *r)
{
	int arg = 0;

	for (int i = 0; i < count; i++) {
		size_t len;

		if (*pattern++ != '/')
			return false;
		len = strcspn(pattern, "/");
		if (len == 1 && *pattern == '*')
			r->args[arg++] = segments[i];
		else if (strlen(segments[i]) != len ||
			 strncmp(segments[i], pattern, len))
			return false;
		pattern += len;
	}
	return !*pattern;
}

json_t *control_handle(struct super_node *sn, const char *method,
		       const char *path, const json_t *body, int *status)
{
	struct request r = { .sn = sn, .body = body, .status = 200 };
	const char *segments[SEGMENTS_MAX];
	char copy[PATH_MAX_BYTES];
	bool other_method = false;
	json_t *answer = NULL;
	int count = -1;

	if (!strncmp(path, PREFIX, strlen(PREFIX)))
		path += strlen(PREFIX);
	if (strlen(path) < sizeof(copy))
		count = cut(strcpy(copy, path), segments);
	for (size_t i = 0; count > 0 && i < ARRAY_SIZE(routes) && !answer; i++) {
		if (!fits(routes[i].path, segments, count, &r))
			continue;
		if (strcmp(routes[i].method, method))
			other_method = true;
		else
			answer = routes[i].handle(&r);
	}
	if (!answer && other_method)
		answer = fail(&r, 405, "not with this method");
	else if (!answer)
		answer = fail(&r, 404, "no such request; busbar-ctl(1) lists them");
	*status = r.status;
	return answer;
}
