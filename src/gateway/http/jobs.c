/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command that takes longer than its client waits is answered with 202 and the place
 * of a job, /api/v2/job/ID, which tells later how it ended. The last ones are remembered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/http/service.h"
#include "util/container_of.h"

/* The job was carried out. Of more than HTTP_JOBS_MAX the one that has been here for longest
 * is forgotten. */
void http_jobs_keep(struct http_server *s, struct http_job *j)
{
	list_push(&s->jobs, &j->entry);
	if (++s->job_count <= HTTP_JOBS_MAX)
		return;
	s->job_count--;
	http_job_free(container_of(list_pop(&s->jobs), struct http_job, entry));
}

static void reply(struct http_conn *c, int status, json_t *o, const char *location)
{
	struct http_head h = { .status = status, .location = location };

	http_reply_json(c, &h, o);
}

void http_jobs_accepted(struct http_conn *c)
{
	struct http_job *j = c->job;
	char place[64], id[16];

	j->id = ++c->server->job_last;
	j->owner = NULL;
	c->job = NULL;
	snprintf(id, sizeof(id), "%u", j->id);
	snprintf(place, sizeof(place), CONTROL_PREFIX "/job/%u", j->id);
	reply(c, 202, json_pack("{ss ss}", "id", id, "state", "waiting"), place);
}

void http_jobs_reply(struct http_conn *c, const char *id)
{
	struct http_server *s = c->server;
	char *end;
	unsigned long n = strtoul(id, &end, 10);
	json_t *o;

	if (!*id || *end || strspn(id, "0123456789") != strlen(id) || !n ||
	    n > s->job_last) {
		http_reply_error(c, 404, "there is no such job");
		return;
	}
	list_for_each(j, &s->jobs, struct http_job, entry) {
		if (j->id != n)
			continue;
		o = json_pack("{ss ss si so}", "id", id, "state", "done", "status",
			      j->status, "body",
			      j->text ? json_loads(j->text, JSON_DECODE_ANY, NULL) :
					json_null());
		reply(c, 200, o, NULL);
		return;
	}
	if (s->job_last - n >= HTTP_JOBS_MAX)
		http_reply_error(c, 404, "this job is forgotten");
	else
		reply(c, 200, json_pack("{ss ss}", "id", id, "state", "waiting"), NULL);
}
