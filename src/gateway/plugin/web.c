/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of files and endpoints; see web.h. */
#include "gateway/plugin/web.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "util/container_of.h"

static const struct web_file *web_files;
static size_t web_file_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static struct list endpoints = { &endpoints, &endpoints };
static void (*wake_server)(void *arg);
static void *wake_arg;

void web_files_set(const struct web_file *files, size_t count)
{
	web_files = files;
	web_file_count = count;
}

const struct web_file *web_file_find(const char *path)
{
	for (size_t i = 0; i < web_file_count; i++)
		if (!strcmp(web_files[i].path, path))
			return &web_files[i];
	return NULL;
}

/* "/NAME" itself, or with an extension behind it. */
static bool serves(const struct web_endpoint *e, const char *path)
{
	size_t len = strlen(e->path);

	return !strncmp(e->path, path, len) &&
	       (!path[len] || (path[len] == '.' && !strchr(path + len, '/')));
}

static struct web_endpoint *find(const char *path)
{
	list_for_each(e, &endpoints, struct web_endpoint, entry)
		if (serves(e, path))
			return e;
	return NULL;
}

int web_endpoint_add(struct web_endpoint *e)
{
	int ret = 0;

	pthread_mutex_lock(&lock);
	list_for_each(other, &endpoints, struct web_endpoint, entry)
		if (!strcmp(other->path, e->path))
			ret = -EEXIST;
	if (!ret) {
		e->users = 0;
		e->leaving = false;
		list_push(&endpoints, &e->entry);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void web_endpoint_remove(struct web_endpoint *e)
{
	pthread_mutex_lock(&lock);
	list_remove(&e->entry);
	e->leaving = true;
	if (e->users && wake_server)
		wake_server(wake_arg);
	while (e->users)
		pthread_cond_wait(&left, &lock);
	pthread_mutex_unlock(&lock);
}

struct web_endpoint *web_endpoint_get(const char *path)
{
	struct web_endpoint *e;

	pthread_mutex_lock(&lock);
	e = find(path);
	if (e)
		e->users++;
	pthread_mutex_unlock(&lock);
	return e;
}

void web_endpoint_put(struct web_endpoint *e)
{
	pthread_mutex_lock(&lock);
	e->users--;
	pthread_cond_broadcast(&left);
	pthread_mutex_unlock(&lock);
}

bool web_endpoint_is_leaving(struct web_endpoint *e)
{
	bool leaving;

	pthread_mutex_lock(&lock);
	leaving = e->leaving;
	pthread_mutex_unlock(&lock);
	return leaving;
}

void web_set_waker(void (*wake)(void *arg), void *arg)
{
	pthread_mutex_lock(&lock);
	wake_server = wake;
	wake_arg = arg;
	pthread_mutex_unlock(&lock);
}
