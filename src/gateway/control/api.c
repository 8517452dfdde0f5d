/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a request in the table and carries it out; see api.h. The table: request.c. */
#include "gateway/control/api.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/control/query.h"
#include "gateway/control/request.h"
#include "gateway/super_node/super_node_control.h"

static bool is_utf8(const char *s)
{
	json_t *o = json_string(s);
	bool good = o != NULL;

	json_decref(o);
	return good;
}

/* Cuts `path` into its segments; how many, or -1 when it cannot be a request. *query is what
 * stands behind '?', "" without. */
static int cut(char *path, const char *segments[SEGMENTS_MAX], const char **query)
{
	int n = 0;
	char *save, *s = strchr(path, '?');

	*query = s ? s + 1 : "";
	if (s)
		*s = '\0';
	for (s = strtok_r(path, "/", &save); s; s = strtok_r(NULL, "/", &save)) {
		if (n == SEGMENTS_MAX)
			return -1;
		query_decode_loosely(s);
		/* It may be named in an answer. */
		if (!is_utf8(s))
			return -1;
		segments[n++] = s;
	}
	return n;
}

/* `segment` against `pattern` of `len` bytes, which may end with '*'; *arg is what that
 * stands for, NULL without. */
static bool segment_fits(const char *pattern, size_t len, const char *segment,
			 const char **arg)
{
	*arg = NULL;
	if (!len || pattern[len - 1] != '*')
		return strlen(segment) == len && !strncmp(segment, pattern, len);
	if (strncmp(segment, pattern, len - 1) || !segment[len - 1])
		return false;
	*arg = segment + len - 1;
	return true;
}

static bool fits(const char *pattern, const char *const segments[], int count,
		 struct request *r)
{
	int args = 0;

	r->args[1] = NULL;
	for (int i = 0; i < count; i++) {
		const char *arg;
		size_t len;

		if (*pattern++ != '/')
			return false;
		len = strcspn(pattern, "/");
		if (!segment_fits(pattern, len, segments[i], &arg))
			return false;
		if (arg)
			r->args[args++] = arg;
		pattern += len;
	}
	return !*pattern;
}

/* Cuts `path` into `copy`; how many segments, 0 or less: it cannot be a request. */
static int prepare(const char *path, char copy[CONTROL_PATH_MAX],
		   const char *segments[SEGMENTS_MAX], const char **query)
{
	size_t prefix = strlen(CONTROL_PREFIX);

	if (!strncmp(path, CONTROL_PREFIX, prefix) &&
	    (path[prefix] == '/' || !path[prefix]))
		path += prefix;
	if (strlen(path) >= CONTROL_PATH_MAX)
		return -1;
	return cut(strcpy(copy, path), segments, query);
}

/* Whether what stands for the second '*' is a command, where there is one. */
static bool commands(const struct request *r)
{
	return !r->args[1] || control_verb_parse(r->args[1]) >= 0;
}

/* NULL: there is none; with *allow the methods that there are instead. */
static const struct route *find_route(const char *method,
				      const char *const segments[], int count,
				      struct request *r, const char **allow)
{
	static const char *const lists[] = { NULL, "GET", "POST", "GET, POST" };
	const struct route *unknown = NULL;
	unsigned there = 0;

	for (size_t i = 0; count > 0 && i < request_route_count; i++) {
		const struct control_entry *e = &request_routes[i].entry;

		if (!fits(e->path, segments, count, r))
			continue;
		if (!commands(r)) {
			if (!strcmp(e->method, method))
				unknown = &request_routes[i];
			continue;
		}
		if (!strcmp(e->method, method)) {
			*allow = NULL;
			return &request_routes[i];
		}
		there |= strcmp(e->method, "GET") ? 2 : 1;
	}
	*allow = lists[there];
	/* Its handler says which commands there are. */
	if (there || !unknown || !fits(unknown->entry.path, segments, count, r))
		return NULL;
	return unknown;
}

int control_find(const char *method, const char *path, struct control_rule *rule,
		 const char **allow)
{
	const char *segments[SEGMENTS_MAX], *query;
	char copy[CONTROL_PATH_MAX];
	struct request r = { .status = 0 };
	int count = prepare(path, copy, segments, &query);
	const struct route *route = find_route(method, segments, count, &r, allow);

	if (!route)
		return *allow ? 405 : 404;
	*rule = (struct control_rule){
		.role = route->entry.role,
		.is_command = route->entry.role > HTTP_WATCH,
	};
	return 200;
}

void control_ask(struct super_node *sn, const struct control_question *q,
		 struct control_answer *a)
{
	struct request r = { .sn = sn, .body = q->body, .status = 200,
			     .accept = q->accept ? q->accept : "", .answer = a };
	const char *segments[SEGMENTS_MAX];
	char copy[CONTROL_PATH_MAX];
	const struct route *route;
	int count = prepare(q->path, copy, segments, &r.query);

	*a = (struct control_answer){ .type = CONTROL_JSON };
	route = find_route(q->method, segments, count, &r, &a->allow);
	if (route && q->body && !json_is_object(q->body) && !json_is_null(q->body))
		a->body = request_fail(&r, 400, "the body is no JSON object");
	else if (route)
		a->body = route->handle(&r);
	else if (a->allow)
		a->body = request_fail(&r, 405, "not with this method");
	else
		a->body = request_fail(&r, 404, "no such request; busbar-ctl(1) lists them");
	a->status = r.status;
	if (!a->body && !a->text) {
		a->status = 500;
		a->type = CONTROL_JSON;
	}
}

void control_answer_clear(struct control_answer *a)
{
	json_decref(a->body);
	free(a->text);
	*a = (struct control_answer){ .status = 0 };
}

json_t *control_handle(struct super_node *sn, const char *method,
		       const char *path, const json_t *body, int *status)
{
	struct control_question q = { .method = method, .path = path, .body = body };
	struct control_answer a;
	json_t *answer;

	control_ask(sn, &q, &a);
	*status = a.status;
	answer = json_incref(a.body);
	if (a.text)
		answer = json_pack("{ss ss%}", "type", a.type, "text", a.text,
				   a.text_len);
	if (a.text && !answer) {
		*status = 406;
		answer = json_pack("{ss}", "error", "this format is no text; ask for it by HTTP");
	}
	control_answer_clear(&a);
	return answer;
}
