/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request: its headers are checked one after another, the first that does not fit is
 * answered; what remains goes to a worker. See service.h.
 */
#define LOG_ROOM "gateway/http"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/control/query.h"
#include "gateway/http/service.h"
#include "util/container_of.h"
#include "util/log.h"

#define WAIT_MAX_S 60
#define METHODS "GET, HEAD, POST, OPTIONS"
#define FORM "application/x-www-form-urlencoded"
#define NOT_JSON "expected a body of the type " CONTROL_JSON

static void refuse(struct http_conn *c, int status, const char *text)
{
	http_reply_error(c, status, text);
}

/* How long the body is, in *len. 0 or a status with *why. */
static int check_length(struct http_conn *c, const struct http_request *r, int64_t *len,
			const char **why)
{
	struct http_server *s = c->server;

	*len = 0;
	if (r->has_encoding) {
		*why = "a body needs a Content-Length, and no Transfer-Encoding";
		return 411;
	}
	if (!r->has_length)
		return 0;
	*len = http_length_parse(r->length);
	if (*len < 0) {
		*why = "Content-Length: expected a number";
		return 400;
	}
	if (*len > s->settings->max_body_bytes) {
		*why = "the body is longer than the server allows (http.max_body)";
		return 413;
	}
	if (*len && !http_share_allows(c, (size_t)*len)) {
		*why = "too many bodies and answers are on their way, ask again later";
		return 503;
	}
	return 0;
}

/* Where everybody may ask, only browsers can be led astray by a name of somebody else's choice:
 * they tell who leads them. */
static bool may_call_so(const struct http_server *s, const struct http_request *r)
{
	if (!s->settings->everybody)
		return false;
	return (!*r->origin && !*r->fetch_site) ||
	       http_origin_fits(r->origin, NULL, false, s->settings->origins);
}

/* Who may not ask from where. 0 or a status. */
static int check_origin(struct http_conn *c, const struct http_request *r, const char **why)
{
	struct http_server *s = c->server;

	*c->origin = '\0';
	if (!*r->host && r->minor > 0) {
		*why = "the header Host is missing";
		return 400;
	}
	if (http_access_trusts_local(s->access) && *r->host &&
	    !http_host_is_local(r->host) && !may_call_so(s, r)) {
		*why = "without tokens the server answers to localhost and to numbers only";
		return 403;
	}
	/* A browser does not tell the origin of a picture, but that it is another one. */
	if (!*r->origin && !strcasecmp(r->fetch_site, "cross-site")) {
		*why = "pages of other sites are not allowed to ask";
		return 403;
	}
	if (!*r->origin)
		return 0;
	if (!http_origin_fits(r->origin, *r->host ? r->host : NULL,
			      s->settings->ssl_cert != NULL, s->settings->origins)) {
		*why = "pages of this origin are not allowed to ask, see the setting origins of the server";
		return 403;
	}
	strcpy(c->origin, r->origin);
	return 0;
}

/* The method for the table, where HEAD is GET. */
static const char *table_method(const struct http_conn *c)
{
	return c->is_head ? "GET" : c->method;
}

/* Would a browser say which page asks? It sends Origin with methods other than GET, and
 * Sec-Fetch-Site by TLS and to the loopback interface; it shows no token by itself. */
static bool page_would_tell(const struct http_conn *c, const struct http_request *r)
{
	return strcmp(table_method(c), "GET") || !http_access_trusts_local(c->server->access) ||
	       c->socket.tls || !*r->host || http_host_is_loopback(r->host);
}

/* May the request change anything? Browsers send no Origin when a page loads a picture, whose
 * path may be that of a command with method GET: so a page of another port of this host is
 * recognised by Sec-Fetch-Site. */
static bool may_change(const struct http_conn *c, const struct http_request *r)
{
	if (*c->origin)
		return true;
	if (!*r->fetch_site)
		return page_would_tell(c, r);
	return !strcasecmp(r->fetch_site, "same-origin") || !strcasecmp(r->fetch_site, "none");
}

/* Replies itself unless the client may do what needs `needed`. */
static bool may(struct http_conn *c, const struct http_request *r, enum http_role needed)
{
	struct http_server *s = c->server;
	struct http_head head = { 0 };
	enum http_role role;
	char token[512];
	json_t *error;

	/* For each request, because the process may have gone since the last one. */
	if (!c->peer_verified)
		http_peer_verify(c->socket.fd, &c->peer);
	c->peer_verified = true;
	role = http_access_check(s->access, &c->peer,
				 http_access_authorization(r, token, sizeof(token)), s->now_ns,
				 &head.status, &head.retry_s);
	explicit_bzero(token, sizeof(token));
	c->trusted |= role != HTTP_NOBODY;
	c->client = http_share_client(s, &c->peer);
	if (role >= needed)
		return true;
	if (role == HTTP_NOBODY) {
		head.challenge = head.status == 401;
		error = head.status == 403 ?
				json_sprintf("only the user of the %s and root may ask without a token",
					     s->requests->server) :
				json_string(head.status == 429 ?
						    "too many wrong tokens" :
						    "expected a token: Authorization: Bearer TOKEN");
	} else {
		head.status = 403;
		error = json_sprintf("this needs the role %s",
				     http_role_names[needed - HTTP_WATCH]);
	}
	http_reply_json(c, &head, json_pack("{so}", "error", error));
	return false;
}

static void reply_allow(struct http_conn *c, int status, const char *allow)
{
	struct http_head head = { .status = status, .allow = allow };

	if (status == 204)
		http_reply(c, &head, NULL, 0);
	else
		http_reply_json(c, &head,
				json_pack("{ss}", "error", "not with this method"));
}

/* The methods that the table has, with those that go without it. */
static const char *allowed(const char *table)
{
	if (!strcmp(table, "GET"))
		return "GET, HEAD, OPTIONS";
	return strcmp(table, "POST") ? METHODS : "POST, OPTIONS";
}

static const char *job_of(const char *path)
{
	static const char place[] = CONTROL_PREFIX "/job/";

	return strncmp(path, place, sizeof(place) - 1) ? NULL : path + sizeof(place) - 1;
}

/* True: it was a file, and is answered. */
static bool offer_file(struct http_conn *c, const struct http_request *r)
{
	char path[CONTROL_PATH_MAX];
	const struct web_file *file;

	if (strcmp(table_method(c), "GET") ||
	    query_decode(c->path, strcspn(c->path, "?"), path, sizeof(path)))
		return false;
	file = web_file_find(path);
	if (file)
		http_reply_file(c, file, r->if_none_match);
	return file;
}

/* The endpoint at the path of a GET, with the path decoded; NULL: there is none. */
static struct web_endpoint *endpoint_of(const struct http_conn *c, char path[CONTROL_PATH_MAX])
{
	if (strcmp(c->method, "GET") ||
	    query_decode(c->path, strcspn(c->path, "?"), path, CONTROL_PATH_MAX))
		return NULL;
	return web_endpoint_get(path);
}

/* Replies 426 instead of `status` if the path is that of an endpoint that speaks WebSocket. */
static void reply_not_found(struct http_conn *c, int status, const char *why)
{
	char path[CONTROL_PATH_MAX];
	struct web_endpoint *e = endpoint_of(c, path);

	if (!e) {
		refuse(c, status, why);
		return;
	}
	web_endpoint_put(e);
	refuse(c, 426, "WebSocket is spoken here: ask for it by the headers Connection and Upgrade");
}

/* True: the client asks for another protocol where there is an endpoint, and has got it
 * or an answer. */
static bool offer_endpoint(struct http_conn *c, const struct http_request *r)
{
	char path[CONTROL_PATH_MAX];
	struct http_refusal refusal;
	struct web_endpoint *e;
	int status;

	e = r->upgrades && *r->upgrade ? endpoint_of(c, path) : NULL;
	if (!e)
		return false;
	if (e->commands && !may(c, r, HTTP_OPERATE)) {
		web_endpoint_put(e);
		return true;
	}
	status = http_stream_open(c, r, e, path, &refusal);
	if (status != 101)
		http_reply_refusal(c, status, &refusal);
	return true;
}

/* Finds the request in the table, and whether this client may ask it. Replies itself with
 * false. */
static bool check_request(struct http_conn *c, const struct http_request *r)
{
	struct http_found f = { .why = NULL };
	int status;

	if (!strcmp(c->method, "OPTIONS")) {
		reply_allow(c, 204, METHODS);
		return false;
	}
	if (offer_file(c, r) || !may(c, r, HTTP_WATCH) || offer_endpoint(c, r))
		return false;
	if (job_of(c->path)) {
		if (strcmp(table_method(c), "GET"))
			reply_allow(c, 405, allowed("GET"));
		else
			http_jobs_reply(c, job_of(c->path));
		return false;
	}
	status = c->server->requests->find(table_method(c), c->path, &f);
	if (status == 405) {
		reply_allow(c, 405, allowed(f.allow));
		return false;
	}
	if (status != 200) {
		reply_not_found(c, status, f.why);
		return false;
	}
	c->is_command = f.rule.is_command;
	if (f.rule.role != HTTP_WATCH && !may_change(c, r)) {
		refuse(c, 403, *r->fetch_site ?
				       "a page of another origin may change nothing" :
				       "a page could ask this by GET: use POST, or call the server localhost");
		return false;
	}
	return f.rule.role == HTTP_WATCH || may(c, r, f.rule.role);
}

/* Room for the body; replies itself with false. */
static bool expect_body(struct http_conn *c, const struct http_request *r, int64_t len)
{
	/* `curl --data` calls a JSON body a form. */
	c->is_form = http_type_is(r->type, FORM);
	if (!strcmp(c->method, "POST") && *r->type && !c->is_form &&
	    !http_type_is(r->type, CONTROL_JSON)) {
		refuse(c, 415, NOT_JSON);
		return false;
	}
	c->body = malloc((size_t)len);
	if (!c->body) {
		refuse(c, 503, "no memory for the body, ask again later");
		return false;
	}
	c->body_size = (size_t)len;
	c->body_len = 0;
	c->server->bytes += c->body_size;
	http_conn_set_state(c, HTTP_BODY);
	return true;
}

static void drop_body(struct http_conn *c)
{
	c->server->bytes -= c->body_size;
	free(c->body);
	c->body = NULL;
	c->body_size = c->body_len = 0;
}

/* The body as JSON in *body. False: it is none. */
static bool parse_body(struct http_conn *c, json_t **body, char *why, size_t size)
{
	json_error_t error;

	*body = NULL;
	if (!c->body_len || strcmp(c->method, "POST"))
		return true;
	*body = json_loadb(c->body, c->body_len, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(*body))
		return true;
	snprintf(why, size, "the body is no JSON object: %s",
		 *body ? "it is a list" : error.text);
	json_decref(*body);
	*body = NULL;
	return false;
}

void http_request_ready(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_job *j;
	char why[200];
	json_t *body;
	bool good = parse_body(c, &body, why, sizeof(why));

	drop_body(c);
	if (!good) {
		refuse(c, c->is_form ? 415 : 400, c->is_form ? NOT_JSON : why);
		return;
	}
	j = http_job_new(table_method(c), c->path, c->accept);
	if (!j) {
		json_decref(body);
		refuse(c, 503, "no memory, ask again later");
		return;
	}
	j->body = body;
	j->is_command = c->is_command;
	j->client = c->client;
	j->owner = c;
	if (http_worker_give(s->worker, j)) {
		http_job_free(j);
		refuse(c, 503, "too many requests wait, ask again later");
		return;
	}
	c->job = j;
	http_conn_set_state(c, HTTP_WORKING);
	if (c->is_command && c->wait_s <= 0)
		http_jobs_accepted(c);
}

/* What can be said of a request without looking at who asks. 0 or a status. */
static int check_head(struct http_conn *c, const struct http_request *r, int64_t *body,
		      const char **why)
{
	int status = check_length(c, r, body, why);

	if (status)
		return status;
	*why = "the path is longer than 1023 characters";
	if (strlen(r->target) >= sizeof(c->path))
		return 414;
	strcpy(c->path, r->target);
	status = check_origin(c, r, why);
	if (status)
		return status;
	if (*r->expect && strcasecmp(r->expect, "100-continue")) {
		*why = "Expect: only 100-continue is understood";
		return 417;
	}
	*why = HTTP_ENDING;
	return atomic_load(&c->server->stopping) ? 503 : 0;
}

/* Before the body comes. A failure shows in the next call. */
static void tell_to_go_on(struct http_conn *c)
{
	static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
	ssize_t n = stream_send(&c->socket, line, sizeof(line) - 1);

	if (n < 0)
		log_debug("%s: %s", c->peer.text, strerror((int)-n));
}

static void take_head(struct http_conn *c, const struct http_request *r)
{
	free(c->accept);
	c->accept = *r->accept ? strdup(r->accept) : NULL;
	snprintf(c->method, sizeof(c->method), "%s", r->method);
	c->is_head = !strcmp(c->method, "HEAD");
	c->peer_verified = false;
	c->wait_s = http_prefer_wait(r->prefer, c->server->settings->wait_s, WAIT_MAX_S);
}

void http_request(struct http_conn *c, const struct http_request *r)
{
	const char *why = NULL;
	bool keep = r->minor > 0 && !r->close;
	int64_t body = 0;
	int status;

	take_head(c, r);
	status = check_head(c, r, &body, &why);
	if (status) {
		refuse(c, status, why);
		return;
	}
	/* With an answer before the body has come, the connection ends. */
	c->keep = keep && !body;
	if (!check_request(c, r))
		return;
	if (!body) {
		http_request_ready(c);
		return;
	}
	if (!expect_body(c, r, body))
		return;
	c->keep = keep;
	if (*r->expect && r->minor > 0)
		tell_to_go_on(c);
}
