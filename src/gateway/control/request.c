/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of requests and what each does; see request.h. What they tell of the host:
 * status.c. */
#define LOG_ROOM "gateway/control"
#include "gateway/control/request.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/config_text.h"
#include "gateway/control/graph.h"
#include "gateway/control/metrics.h"
#include "gateway/control/openapi.h"
#include "gateway/control/query.h"
#include "gateway/control/status.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_reload.h"
#include "util/container_of.h"

json_t *request_fail(struct request *r, int status, const char *text)
{
	r->status = status;
	return json_pack("{ss}", "error", text);
}

static int status_of(int err)
{
	switch (-err) {
	case ENOENT: return 404;
	case EALREADY:
	case ESTALE:
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
		return request_fail(r, 501, "it cannot do that");
	case EBUSY:
		return request_fail(r, 503, "it does not come out of a read or write; nothing was changed");
	case ESHUTDOWN:
		return request_fail(r, 503, "the gateway is not running");
	default:
		return request_fail(r, status_of(err), strerror(-err));
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
		return request_fail(r, 404, "expected start, stop, pause, resume, restart, stats/reset or file/rewind");
	return outcome(r, super_node_node_control(r->sn, r->args[0],
						  (enum control_verb)verb),
		       "node");
}

static json_t *post_path(struct request *r)
{
	int verb = control_verb_parse(r->args[1]);

	if (verb < 0)
		return request_fail(r, 404, "expected start, stop, pause, resume, restart or stats/reset");
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
	/* Also one that cannot be read: 404 would be about the request. */
	r->status = ret == -EINVAL || json_object_get(report, "errors") ? 422 :
									  status_of(ret);
	if (!report)
		report = json_object();
	if (!json_object_get(report, "error"))
		json_object_set_new(report, "error",
				    json_string(ret == -ESTALE ?
						"the configuration has changed since that revision" :
						strerror(-ret)));
	return report;
}

/* {"text": "..."}; false with the error. */
static bool take_text(struct request *r, const char **text, json_t **error)
{
	*text = json_string_value(json_object_get(r->body, "text"));
	if (!*text)
		*error = request_fail(r, 400, "text: expected the text of a configuration");
	return *text;
}

/*
 * {"config": "FILE"}, {"config": "file:///FILE"} or {"config": {...}}; nothing: the present
 * file again. True with *config (a new reference, NULL for none); false with the error.
 */
static bool take_config(struct request *r, json_t **config, json_t **error)
{
	const json_t *given = json_object_get(r->body, "config");
	const char *text = json_string_value(given), *scheme;
	char path[PATH_MAX];

	*config = NULL;
	if (!given)
		return true;
	if (!text && !json_is_object(given)) {
		*error = request_fail(r, 400, "config: expected the path of a file or an object");
		return false;
	}
	scheme = text ? strstr(text, "://") : NULL;
	if (!scheme) {
		*config = json_incref((json_t *)given);
		return true;
	}
	if (strncmp(text, "file:///", 8)) {
		*error = request_fail(r, 501, "config: only files of this host (file:///PATH) can be loaded");
		return false;
	}
	if (!query_decode(text + 7, strlen(text + 7), path, sizeof(path)))
		*config = json_string(path);
	if (*config)
		return true;
	*error = request_fail(r, 400, "config: the URI is too long or not well-formed");
	return false;
}

static json_t *post_reload(struct request *r)
{
	const json_t *revision = json_object_get(r->body, "revision");
	struct super_node_change change = { .revision = json_string_value(revision) };
	json_t *report = NULL, *config = NULL, *error;
	int ret;

	if (revision && !change.revision)
		return request_fail(r, 400, "revision: expected the text that /config/text gives");
	if (json_object_get(r->body, "text")) {
		if (json_object_get(r->body, "config"))
			return request_fail(r, 400, "either config or text");
		if (!take_text(r, &change.text, &error))
			return error;
	} else if (!take_config(r, &config, &error)) {
		return error;
	}
	change.config = config;
	ret = super_node_change(r->sn, &change, &report);
	json_decref(config);
	return ret ? refuse_config(r, ret, report) : report;
}

static json_t *post_restart(struct request *r)
{
	json_t *report = NULL, *config, *error, *answer;
	int ret;

	if (!take_config(r, &config, &error))
		return error;
	ret = super_node_request_restart(r->sn, config, &report);
	if (ret == -ENOTSUP)
		answer = request_fail(r, 501, "this gateway cannot start itself anew");
	else
		answer = ret ? refuse_config(r, ret, report) :
			       control_restart_json(r->sn, config);
	json_decref(config);
	return answer;
}

static json_t *post_shutdown(struct request *r)
{
	super_node_request_shutdown(r->sn);
	return json_object();
}

/* The text becomes the answer's. */
static json_t *answer_text(struct request *r, char *text, size_t len,
			   const char *type)
{
	r->answer->text = text;
	r->answer->text_len = len;
	r->answer->type = type;
	return NULL;
}

static json_t *get_config(struct request *r)
{
	json_t *config = super_node_config_json(r->sn);
	char *text;

	if (query_prefers(r->accept, CONTROL_JSON, CONFIG_TEXT_TYPE))
		return config;
	text = config_text(config);
	json_decref(config);
	return answer_text(r, text, text ? strlen(text) : 0, CONFIG_TEXT_TYPE);
}

static json_t *get_config_text(struct request *r)
{
	json_t *o = super_node_config_source(r->sn);

	return o ? o : request_fail(r, 501, "the text of the configuration is no UTF-8");
}

/* {"text": "..."} */
static json_t *post_check(struct request *r)
{
	json_t *problems = NULL, *error;
	const char *text;
	int ret;

	if (!take_text(r, &text, &error))
		return error;
	ret = super_node_check_text(r->sn, text, &problems);
	if (!ret || (ret == -EINVAL && json_array_size(problems)))
		return json_pack("{sb so}", "good", !ret, "problems", problems);
	json_decref(problems);
	return request_fail(r, status_of(ret), strerror(-ret));
}

static json_t *get_log(struct request *r)
{
	char after[24] = "0";

	if (query_value(r->query, "after", after, sizeof(after)) != -ENOENT &&
	    (!*after || after[strspn(after, "0123456789")]))
		return request_fail(r, 400, "after: expected the number of a line");
	return control_log(strtoull(after, NULL, 10));
}

static json_t *get_metrics(struct request *r)
{
	bool open = !query_prefers(r->accept, METRICS_PLAIN, METRICS_OPEN);
	size_t len;
	char *text = metrics_text(r->sn, open, &len);

	return answer_text(r, text, len,
			   open ? METRICS_OPEN_TYPE : METRICS_PLAIN_TYPE);
}

static json_t *get_graph(struct request *r)
{
	struct graph g = { .format = r->args[0] };
	char layout[16] = "dot", error[160];
	int ret;

	ret = query_value(r->query, "layout", layout, sizeof(layout));
	if (ret && ret != -ENOENT)
		layout[0] = '\0'; /* there is no such layout */
	g.layout = layout;
	ret = graph_draw(r->sn, &g, error, sizeof(error));
	if (ret)
		return request_fail(r, ret == -EINVAL ? 400 :
			    ret == -ENOENT    ? 404 :
			    ret == -ENOSYS    ? 501 :
						500,
			    error);
	return answer_text(r, g.text, g.len, g.type);
}

static json_t *get_openapi(struct request *r)
{
	return control_openapi();
}

#define WATCH HTTP_WATCH
#define OPERATE HTTP_OPERATE
#define CONFIGURE HTTP_CONFIGURE

static const struct control_type config_types[] = {
	{ CONFIG_TEXT_TYPE, true },
	{ NULL, false },
};
static const struct control_type metrics_types[] = {
	{ METRICS_PLAIN, true },
	{ METRICS_OPEN, true },
	{ NULL, false },
};
static const struct control_type graph_types[] = {
	{ "text/vnd.graphviz", true },
	{ "image/svg+xml", true },
	{ "image/png", false },
	{ "application/pdf", false },
	{ "text/plain", false },
	{ CONTROL_JSON, false },
	{ NULL, false },
};

/* The first that fits counts. */
const struct route request_routes[] = {
	{ { "GET", "/capabilities", WATCH, "What this build can do", .schema = "capabilities" },
	  get_capabilities },
	{ { "GET", "/status", WATCH, "The state of gateway and host", .schema = "status" },
	  get_status },
	{ { "GET", "/config", WATCH, "The present configuration", .schema = "object",
	    .types = config_types },
	  get_config },
	{ { "GET", "/config/text", WATCH, "The present configuration as it was written",
	    .schema = "config_text" },
	  get_config_text },
	{ { "POST", "/check", CONFIGURE, "Read a text as a configuration and change nothing",
	    .body = "text", .schema = "check" },
	  post_check },
	{ { "GET", "/log", WATCH, "The last lines of the log, those behind ?after=N",
	    .query = "after", .query_is_number = true, .schema = "log" },
	  get_log },
	{ { "GET", "/nodes", WATCH, "All nodes", .schema = "nodes" }, get_nodes },
	{ { "GET", "/node/*", WATCH, "A node, by name or UUID", .schema = "node" }, get_node },
	{ { "GET", "/node/*/stats", WATCH, "Counters and metrics of a node",
	    .schema = "node_stats" },
	  get_node_stats },
	{ { "POST", "/node/*/stats/reset", OPERATE, "Set the counters of a node to zero",
	    .schema = "done" },
	  post_node_reset },
	{ { "POST", "/node/*/file/rewind", OPERATE, "Read a file from the beginning",
	    .schema = "done" },
	  rewind_node },
	{ { "GET", "/node/*/file/rewind", OPERATE, "The same, as older programs ask it",
	    .schema = "done" },
	  rewind_node },
	{ { "POST", "/node/*/*", OPERATE, "start, stop, pause, resume or restart a node",
	    .schema = "done" },
	  post_node },
	{ { "GET", "/paths", WATCH, "All paths", .schema = "paths" }, get_paths },
	{ { "GET", "/path/*", WATCH, "A path, by UUID, name or number", .schema = "path" },
	  get_path },
	{ { "GET", "/path/*/stats", WATCH, "Counters and latencies of a path",
	    .schema = "path_stats" },
	  get_path_stats },
	{ { "POST", "/path/*/stats/reset", OPERATE, "Set the counters of a path to zero",
	    .schema = "done" },
	  post_path_reset },
	{ { "POST", "/path/*/*", OPERATE, "start, stop, pause, resume or restart a path",
	    .schema = "done" },
	  post_path },
	{ { "GET", "/stats", WATCH, "Counters of all nodes and paths", .schema = "stats" },
	  get_stats },
	{ { "POST", "/stats/reset", OPERATE, "Set all counters to zero", .schema = "done" },
	  post_reset },
	{ { "GET", "/metrics", WATCH, "Counters and histograms for Prometheus",
	    .types = metrics_types },
	  get_metrics },
	{ { "GET", "/graph.*", WATCH, "Nodes and paths, drawn", .query = "layout",
	    .types = graph_types },
	  get_graph },
	{ { "GET", "/openapi.json", WATCH, "This description", .schema = "object" },
	  get_openapi },
	{ { "POST", "/reload", CONFIGURE, "Take what has changed in the configuration",
	    .body = "reload", .schema = "report" },
	  post_reload },
	{ { "POST", "/restart", CONFIGURE, "Stop everything and start anew",
	    .body = "configuration", .schema = "restart" },
	  post_restart },
	{ { "POST", "/shutdown", CONFIGURE, "End the gateway", .schema = "done" },
	  post_shutdown },
};

const size_t request_route_count = ARRAY_SIZE(request_routes);

const struct control_entry *control_entry(size_t index)
{
	return index < ARRAY_SIZE(request_routes) ? &request_routes[index].entry : NULL;
}

/* Puts in the segments of `path` that are words: "/node/ID/stats" is "node/stats". */
static void request_name(const char *path, char *name, size_t size)
{
	size_t len = 0;

	for (const char *p = path; *p && len + 1 < size; p++) {
		if ((p[0] == '/' || p[0] == '.') && p[1] == '*')
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
	json_t *list = json_array();
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(request_routes); i++) {
		const char *path = request_routes[i].entry.path;
		size_t len = strlen(path);

		request_name(path, name, sizeof(name));
		if (len < 4 || strcmp(path + len - 4, "/*/*")) {
			add_name(list, name, NULL);
			continue;
		}
		for (unsigned v = 0; control_verb_name(v); v++)
			add_name(list, name, control_verb_name(v));
	}
	return list;
}
