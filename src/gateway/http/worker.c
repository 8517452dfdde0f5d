/* SPDX-License-Identifier: BSD-2-Clause */
/* See worker.h. */
#define LOG_ROOM "gateway/http"
#include "gateway/http/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/own_thread.h"
#include "gateway/base/thread.h"
#include "gateway/http/requests.h"

/* Jobs that wait for one thread; a half for those of one client. */
#define WAITING_MAX 256

struct lane {
	struct http_worker *worker;
	struct list jobs;
	unsigned waiting;
	pthread_cond_t filled;
	pthread_t thread;
	bool has_thread;
};

struct http_worker {
	const struct http_requests *requests;
	void *requests_arg;
	void (*done)(void *arg);
	void *arg;
	pthread_mutex_t lock;
	bool stopping;
	struct lane lanes[2];   /* questions, commands */
	struct list finished;
};

struct http_job *http_job_new(const char *method, const char *path, const char *accept)
{
	struct http_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	snprintf(j->method, sizeof(j->method), "%s", method);
	j->path = strdup(path);
	j->accept = accept ? strdup(accept) : NULL;
	if (!j->path || (accept && !j->accept)) {
		http_job_free(j);
		return NULL;
	}
	return j;
}

void http_job_free(struct http_job *j)
{
	if (!j)
		return;
	free(j->path);
	free(j->accept);
	json_decref(j->body);
	free(j->text);
	free(j);
}

void http_jobs_free(struct list *jobs)
{
	struct list *e;

	while ((e = list_pop(jobs)))
		http_job_free(container_of(e, struct http_job, entry));
}

/* Also makes the answer's text, which may be long. */
static void carry_out(struct http_worker *w, struct http_job *j)
{
	struct control_question q = { .method = j->method, .path = j->path,
				      .accept = j->accept, .body = j->body };
	struct control_answer a;

	w->requests->ask(w->requests_arg, &q, &a);
	j->status = a.status;
	j->type = a.type;
	j->allow = a.allow;
	j->text = a.text;
	j->len = a.text_len;
	a.text = NULL;
	if (!j->text) {
		j->text = json_dumps(a.body ? a.body : json_null(),
				     JSON_COMPACT | JSON_PRESERVE_ORDER |
					     JSON_ENCODE_ANY);
		j->len = j->text ? strlen(j->text) : 0;
		if (!j->text)
			j->status = 500;
	}
	control_answer_clear(&a);
}

static void *run(void *arg)
{
	struct lane *lane = arg;
	struct http_worker *w = lane->worker;

	own_thread_keep(OWN_PRIORITY | OWN_AFFINITY);
	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		struct http_job *j;

		if (list_empty(&lane->jobs)) {
			pthread_cond_wait(&lane->filled, &w->lock);
			continue;
		}
		j = container_of(list_pop(&lane->jobs), struct http_job, entry);
		lane->waiting--;
		pthread_mutex_unlock(&w->lock);
		carry_out(w, j);
		pthread_mutex_lock(&w->lock);
		list_push(&w->finished, &j->entry);
		w->done(w->arg);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static bool may_wait(const struct lane *lane, uint32_t client)
{
	unsigned mine = 0;

	if (lane->waiting < WAITING_MAX / 2)
		return true;
	list_for_each(j, (struct list *)&lane->jobs, struct http_job, entry)
		mine += j->client == client;
	return lane->waiting < WAITING_MAX && mine < WAITING_MAX / 2;
}

int http_worker_give(struct http_worker *w, struct http_job *j)
{
	struct lane *lane = &w->lanes[j->is_command];
	int ret = -EBUSY;

	pthread_mutex_lock(&w->lock);
	if (may_wait(lane, j->client)) {
		list_push(&lane->jobs, &j->entry);
		lane->waiting++;
		pthread_cond_signal(&lane->filled);
		ret = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return ret;
}

struct http_job *http_worker_take(struct http_worker *w)
{
	struct list *e;

	pthread_mutex_lock(&w->lock);
	e = list_pop(&w->finished);
	pthread_mutex_unlock(&w->lock);
	return e ? container_of(e, struct http_job, entry) : NULL;
}

bool http_worker_stop(struct http_worker *w)
{
	bool ended = true;

	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_cond_broadcast(&w->lanes[i].filled);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < 2; i++)
		if (w->lanes[i].has_thread)
			/* False: it is in a request that does not return. */
			ended &= thread_join_in_time(w->lanes[i].thread);
	if (!ended)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		http_jobs_free(&w->lanes[i].jobs);
		pthread_cond_destroy(&w->lanes[i].filled);
	}
	http_jobs_free(&w->finished);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return true;
}

int http_worker_start(struct http_worker **out, const struct http_requests *requests,
		      void *requests_arg, void (*done)(void *arg), void *arg)
{
	static const char *const names[] = { "http-ask", "http-command" };
	struct http_worker *w = calloc(1, sizeof(*w));
	int ret = 0;

	if (!w)
		return -ENOMEM;
	w->requests = requests;
	w->requests_arg = requests_arg;
	w->done = done;
	w->arg = arg;
	pthread_mutex_init(&w->lock, NULL);
	list_init(&w->finished);
	for (unsigned i = 0; i < 2; i++) {
		w->lanes[i].worker = w;
		list_init(&w->lanes[i].jobs);
		pthread_cond_init(&w->lanes[i].filled, NULL);
	}
	for (unsigned i = 0; i < 2 && !ret; i++) {
		ret = thread_start(&w->lanes[i].thread, names[i], THREAD_NORMAL, run,
				   &w->lanes[i]);
		w->lanes[i].has_thread = !ret;
	}
	if (ret) {
		http_worker_stop(w);
		return ret;
	}
	*out = w;
	return 0;
}
