/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles requests to a running gateway. A request has a method, a path and a JSON body,
 * an answer has an HTTP status and a JSON body, or a text of another type. Every
 * transport of requests uses this table: the local socket (server.h) and the HTTP server
 * (gateway/http/).
 *
 * Paths are those of VILLASnode's REST interface, with or without "/api/v2" in
 * front. Any thread; commands run one after another.
 */
#ifndef GATEWAY_CONTROL_API_H
#define GATEWAY_CONTROL_API_H

#include <jansson.h>
#include <stdbool.h>

#include "gateway/super_node/http_settings.h"

struct super_node;

#define CONTROL_PREFIX "/api/v2"
/* Of a path with its query. */
#define CONTROL_PATH_MAX 1024
#define CONTROL_JSON "application/json"

struct control_question {
	const char *method; /* "GET", "POST" */
	/* Segments may be percent-encoded; a query may follow behind '?'. */
	const char *path;
	const char *accept; /* the types that the client wants, as in HTTP; NULL: any */
	const json_t *body; /* NULL: none */
};

/* Either `body` or `text` is set. */
struct control_answer {
	int status;
	json_t *body;
	char *text;
	size_t text_len;
	const char *type;      /* of `text`; static */
	const char *allow;     /* with status 405: the methods that there are; static */
};

/* What a transport has to know of a request before it is carried out. */
struct control_rule {
	enum http_role role; /* who may ask it */
	bool is_command;     /* it changes something, and may take long */
};

/* 200 and *rule; or 404, or 405 with *allow, as of control_ask(). */
int control_find(const char *method, const char *path, struct control_rule *rule,
		 const char **allow);

/* Carries out one request. Fills *a; after an error `body` is an object with the key
 * "error", NULL without memory. The caller clears *a. */
void control_ask(struct super_node *sn, const struct control_question *q,
		 struct control_answer *a);
void control_answer_clear(struct control_answer *a);

/*
 * The same for transports that know JSON only: texts become {"type": ..., "text": ...}.
 * Sets *status and returns a new reference, NULL only without memory.
 */
json_t *control_handle(struct super_node *sn, const char *method,
		       const char *path, const json_t *body, int *status);

/* Names of the requests, such as "node/start"; a new reference. */
json_t *control_request_names(void);

/* A type of an answer; `is_text` where the description says that it is a string. */
struct control_type {
	const char *type;
	bool is_text;
};

/* The table, for its description (openapi.h); '*' in `path` stands for a name. */
struct control_entry {
	const char *method, *path;
	enum http_role role;
	const char *summary;
	const char *schema;               /* of the JSON of the answer; NULL: see `types` */
	const struct control_type *types; /* other types of the answer, up to NULL */
	const char *body;                 /* schema of the request's body; NULL: none */
	const char *query;                /* what may stand behind '?'; NULL: nothing */
	bool query_is_number;
};
const struct control_entry *control_entry(size_t index); /* NULL: no more */

#endif
