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
static atomic_bool any_woken;
static atomic_uint leaving_count;

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

static bool serves(const struct web_endpoint *e, const char *path)
{
	size_t len = strlen(e->path);

	if (strncmp(e->path, path, len))
		return false;
	if (e->match == WEB_BELOW)
		return path[len] == '/';
	return !path[len] || (path[len] == '.' && !strchr(path + len, '/'));
}

static struct web_endpoint *find(const char *path)
{
	struct web_endpoint *best = NULL;

	list_for_each(e, &endpoints, struct web_endpoint, entry)
		if (serves(e, path) && (!best || strlen(e->path) > strlen(best->path)))
			best = e;
	return best;
}

/* With the lock. */
static void put(struct web_endpoint *e)
{
	e->users--;
	if (atomic_load(&e->leaving))
		pthread_cond_broadcast(&left);
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
		atomic_store(&e->leaving, false);
		atomic_store(&e->woken, false);
		list_push(&endpoints, &e->entry);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void web_endpoint_remove(struct web_endpoint *e)
{
	pthread_mutex_lock(&lock);
	list_remove(&e->entry);
	atomic_store(&e->leaving, true);
	atomic_fetch_add(&leaving_count, 1);
	if (e->users && wake_server)
		wake_server(wake_arg);
	while (e->users)
		pthread_cond_wait(&left, &lock);
	atomic_fetch_sub(&leaving_count, 1);
	pthread_mutex_unlock(&lock);
}

bool web_endpoints_leaving(void)
{
	return atomic_load(&leaving_count);
}

void web_endpoint_wake(struct web_endpoint *e)
{
	if (atomic_exchange(&e->woken, true))
		return;
	atomic_store(&any_woken, true);
	pthread_mutex_lock(&lock);
	if (wake_server)
		wake_server(wake_arg);
	pthread_mutex_unlock(&lock);
}

static bool has_turn(struct web_endpoint *e, enum web_turn turn)
{
	switch (turn) {
	case WEB_WOKEN:
		return atomic_exchange(&e->woken, false) && e->users;
	case WEB_TICK:
		return e->users && e->ops->tick;
	default:
		return e->users && e->ops->watch;
	}
}

/* The next one in the list from `l` on whose turn it is. */
static struct web_endpoint *next_from(struct list *l, enum web_turn turn)
{
	for (; l != &endpoints; l = l->next) {
		struct web_endpoint *e = container_of(l, struct web_endpoint, entry);

		if (has_turn(e, turn))
			return e;
	}
	return NULL;
}

struct web_endpoint *web_endpoint_next(struct web_endpoint *after, enum web_turn turn)
{
	struct list *from;
	struct web_endpoint *e;

	if (turn == WEB_WOKEN && !after && !atomic_exchange(&any_woken, false))
		return NULL;
	pthread_mutex_lock(&lock);
	/* One that was taken out meanwhile has no next one: from the start again. */
	if (after && !web_endpoint_is_leaving(after))
		from = after->entry.next;
	else
		from = endpoints.next;
	e = next_from(from, turn);
	if (e)
		e->users++;
	if (after)
		put(after);
	pthread_mutex_unlock(&lock);
	return e;
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
	put(e);
	pthread_mutex_unlock(&lock);
}

bool web_is_served(void)
{
	bool served;

	pthread_mutex_lock(&lock);
	served = wake_server;
	pthread_mutex_unlock(&lock);
	return served;
}

void web_set_waker(void (*wake)(void *arg), void *arg)
{
	pthread_mutex_lock(&lock);
	wake_server = wake;
	wake_arg = arg;
	/* Who called before found no server, and does not call again. */
	if (wake && (atomic_load(&any_woken) || atomic_load(&leaving_count)))
		wake(arg);
	pthread_mutex_unlock(&lock);
}
