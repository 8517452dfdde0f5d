/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out requests outside of the thread that serves connections, which never waits
 * for what they ask. Questions and commands have a thread each, so that a restart of a node
 * that takes long does not hold up those who only look, as long as there
 * are answers at all.
 */
#ifndef GATEWAY_HTTP_WORKER_H
#define GATEWAY_HTTP_WORKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"

struct http_requests;
struct http_worker;

/* A request and its answer. The worker has it between http_worker_give() and
 * http_worker_take(); `owner` and `id` are the giver's at all times. */
struct http_job {
	struct list entry;
	char method[8];
	char *path, *accept; /* owned; accept may be NULL */
	json_t *body;        /* owned; NULL: none */
	bool is_command;
	uint32_t client;     /* http_share_client() */

	int status;
	char *text;          /* of the answer, owned */
	size_t len;
	const char *type, *allow;

	void *owner;         /* who waits for it; NULL: nobody any more */
	unsigned id;         /* as a resource; 0: it is none */
};

struct http_job *http_job_new(const char *method, const char *path, const char *accept);
void http_job_free(struct http_job *j); /* NULL allowed */
void http_jobs_free(struct list *jobs);

/* `done` is called by a worker's thread whenever jobs are there to be taken. 0 or a
 * negative errno. */
int http_worker_start(struct http_worker **out, const struct http_requests *requests,
		      void *requests_arg, void (*done)(void *arg), void *arg);
/* 0; -EBUSY: too many wait, or too many of this client. */
int http_worker_give(struct http_worker *w, struct http_job *j);
/* A job that is carried out; NULL: none. */
struct http_job *http_worker_take(struct http_worker *w);
/*
 * Frees what waits and ends the threads. False: a request does not return, and the end of
 * the process leaves no more time; then nothing is freed, as its thread still uses it.
 */
bool http_worker_stop(struct http_worker *w);

#endif
