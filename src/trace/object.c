/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects that exist, as far as they were made through the trace. A handle that is not
 * in this table is not dereferenced. The table also finds the users of an object that
 * cannot be destroyed.
 */
#include <pthread.h>
#include <stdlib.h>

#include "trace/calls.h"

#define BUCKETS 4096

struct entry {
	void *handle;
	uint64_t serial;
	struct entry *next;
	enum object kind;
	bool ending; /* a call that destroys it is running: must not be dereferenced */
};

static struct entry *buckets[BUCKETS];
static uint64_t serial_last;
/* No traced call is made while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry **bucket_of(const void *handle)
{
	return &buckets[((uintptr_t)handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static struct entry *find(const void *handle)
{
	struct entry *e = *bucket_of(handle);

	while (e && e->handle != handle)
		e = e->next;
	return e;
}

void object_add(enum object kind, void *handle)
{
	struct entry **bucket = bucket_of(handle), *e;

	pthread_mutex_lock(&lock);
	e = find(handle);
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (e) {
			e->handle = handle;
			e->next = *bucket;
			*bucket = e;
		}
	}
	if (e) {
		e->kind = kind;
		e->ending = false;
		e->serial = ++serial_last;
	}
	pthread_mutex_unlock(&lock);
}

uint64_t object_ending(const void *handle)
{
	struct entry *e;
	uint64_t serial = 0;

	pthread_mutex_lock(&lock);
	e = find(handle);
	if (e) {
		e->ending = true;
		serial = e->serial;
	}
	pthread_mutex_unlock(&lock);
	return serial;
}

void object_stays(const void *handle, uint64_t serial)
{
	struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(handle);
	if (e && e->serial == serial)
		e->ending = false;
	pthread_mutex_unlock(&lock);
}

void object_remove(const void *handle, uint64_t serial)
{
	struct entry **at = bucket_of(handle), *e;

	pthread_mutex_lock(&lock);
	while ((e = *at) && (e->handle != handle || e->serial != serial))
		at = &e->next;
	if (e)
		*at = e->next;
	pthread_mutex_unlock(&lock);
	free(e);
}

bool object_lives(enum object kind, const void *handle)
{
	struct entry *e;
	bool lives;

	pthread_mutex_lock(&lock);
	e = find(handle);
	lives = e && e->kind == kind;
	pthread_mutex_unlock(&lock);
	return lives;
}

void object_each(enum object kind, bool (*fn)(void *handle, void *arg), void *arg)
{
	bool more = true;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS && more; i++)
		for (struct entry *e = buckets[i]; e && more; e = e->next)
			if (e->kind == kind && !e->ending)
				more = fn(e->handle, arg);
	pthread_mutex_unlock(&lock);
}

struct qp_search {
	uint32_t qp_num;
	const struct ibv_context *context;
	struct ibv_qp *found;
};

static bool is_it(void *handle, void *arg)
{
	struct ibv_qp *qp = handle;
	struct qp_search *s = arg;

	if (qp->qp_num != s->qp_num || qp->context != s->context)
		return true;
	s->found = qp;
	return false;
}

struct ibv_qp *object_qp(uint32_t qp_num, const struct ibv_context *context)
{
	struct qp_search s = { .qp_num = qp_num, .context = context };

	object_each(OBJECT_QP, is_it, &s);
	return s.found;
}

/* Held during fork(), so that the child gets a consistent table. */
static void fork_begins(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_ends(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void object_init(void)
{
	pthread_atfork(fork_begins, fork_ends, fork_ends);
}
