/* SPDX-License-Identifier: BSD-2-Clause */
/* From when on requests and completions are heard; see hear.h. */
#include "preload/hear.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/build.h"
#include "preload/listener.h"
#include "preload/poll.h"
#include "preload/post.h"
#include "preload/record.h"
#include "preload/saved.h"

/* Guards objects against their end while their functions are replaced. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool hearing;

/* Another thread of the parent may have had the lock. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* ---- one object ---- */

/* Keeps the functions as they are now. */
static void keep(struct saved *s)
{
	if (s->goes)
		return;
	if (s->context)
		s->ops = s->context->ops;
	if (s->ex)
		s->qp = *s->ex;
	if (s->cq_ex)
		s->cq = *s->cq_ex;
}

static void replace(struct saved *s)
{
	if (s->goes)
		return;
	if (s->context) {
		s->context->ops.post_send = post_heard;
		s->context->ops.poll_cq = poll_heard;
		s->context->ops.req_notify_cq = poll_notify_heard;
	}
	if (s->ex)
		build_hear(s->ex);
	if (s->cq_ex)
		poll_hear(s->cq_ex);
}

static bool is_now(void)
{
	return !preload_listener.later || atomic_load(&hearing);
}

/* It is known from now on; NULL: what it is not. */
static void add(struct saved *s, struct ibv_context *context, struct ibv_qp_ex *ex,
		struct ibv_cq *plain_cq, struct ibv_cq_ex *cq_ex)
{
	if (!s)
		return;
	pthread_mutex_lock(&lock);
	s->context = context;
	s->ex = ex;
	s->plain_cq = plain_cq;
	s->cq_ex = cq_ex;
	s->goes = false;
	keep(s);
	if (is_now())
		replace(s);
	pthread_mutex_unlock(&lock);
}

void hear_context(struct ibv_context *context)
{
	add(saved_make(context), context, NULL, NULL, NULL);
}

void hear_qp(struct ibv_qp_ex *ex)
{
	if (ex->wr_start && saved_find(ex)->own_qp)
		add(saved_make(ex), NULL, ex, NULL, NULL);
}

void hear_cq(struct ibv_cq *cq, struct ibv_cq_ex *ex)
{
	add(saved_make(cq), NULL, NULL, cq, ex && ex->start_poll ? ex : NULL);
}

static void set_goes(const void *object, bool goes)
{
	struct saved *s = (struct saved *)(uintptr_t)saved_find(object);

	pthread_mutex_lock(&lock);
	if (s->key)
		s->goes = goes;
	pthread_mutex_unlock(&lock);
}

void hear_goes(const void *object)
{
	set_goes(object, true);
}

void hear_stays(const void *object)
{
	set_goes(object, false);
}

/* ---- all objects ---- */

/* The program may have asked for events before that was heard. */
static void expect_events(struct saved *s)
{
	struct cq_record *r = s->plain_cq && !s->goes ? s->own_cq : NULL;

	if (r && s->plain_cq->channel)
		atomic_store(&r->has_events, true);
	keep(s);
}

void preload_hear(void)
{
	if (is_now())
		return;
	pthread_mutex_lock(&lock);
	if (!is_now()) {
		saved_each(expect_events);
		/* Other processors see what was kept before they see a function that needs it. */
		atomic_thread_fence(memory_order_seq_cst);
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		saved_each(replace);
		atomic_store(&hearing, true);
	}
	pthread_mutex_unlock(&lock);
}
