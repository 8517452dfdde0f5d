/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters for calls of the data path, one set per thread. Once a second a thread of the
 * trace writes the sums; it also reports calls that have not returned.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace/calls.h"

#define SECOND_NS UINT64_C(1000000000)

static struct counters *_Atomic all;
static _Thread_local struct counters *own;
static pthread_key_t leaving;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool running;
/* Guards `told`, the sums that were written last. */
static pthread_mutex_t sums_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sums {
	uint64_t calls, items, bytes, empty, failed;
} told[COUNTS];

static void thread_leaves(void *counters)
{
	struct counters *c = counters;

	/* The counters are kept; a new thread continues them. */
	own = NULL;
	atomic_store(&c->used, false);
}

static void init(void)
{
	pthread_key_create(&leaving, thread_leaves);
}

static struct counters *counters_take(void)
{
	struct counters *c;

	for (c = atomic_load(&all); c; c = c->next) {
		bool used = false;

		if (atomic_compare_exchange_strong(&c->used, &used, true))
			break;
	}
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		atomic_init(&c->used, true);
		c->next = atomic_load(&all);
		while (!atomic_compare_exchange_weak(&all, &c->next, c))
			;
	}
	c->tid = trace_tid();
	pthread_once(&once, init);
	pthread_setspecific(leaving, c);
	return c;
}

struct counters *counters_own(void)
{
	if (!own)
		own = counters_take();
	return own;
}

/* sums_lock is held. */
static void sums_take(struct sums now[COUNTS])
{
	memset(now, 0, COUNTS * sizeof(*now));
	for (struct counters *c = atomic_load(&all); c; c = c->next)
		for (unsigned i = 0; i < COUNTS; i++) {
			now[i].calls += c->of[i].calls;
			now[i].items += c->of[i].items;
			now[i].bytes += c->of[i].bytes;
			now[i].empty += c->of[i].empty;
			now[i].failed += c->of[i].failed;
		}
}

static void sum_add(struct text *t, unsigned i, const struct sums *s)
{
	static const char *const names[COUNTS] = { "ibv_post_send", "ibv_post_recv",
						   "ibv_post_srq_recv", "ibv_poll_cq",
						   "ibv_req_notify_cq" };

	if (!s->calls)
		return;
	text_item(t, "%s %" PRIu64, names[i], s->calls);
	if (i == COUNT_NOTIFY)
		return;
	text_add(t, " (%" PRIu64 " %s", s->items, i == COUNT_POLL ? "completions" : "requests");
	if (s->bytes)
		text_add(t, ", %" PRIu64 " bytes", s->bytes);
	if (s->empty)
		text_add(t, ", %" PRIu64 " found none", s->empty);
	if (s->failed)
		text_add(t, ", %" PRIu64 " failed", s->failed);
	text_add(t, ")");
}

static void sums_write(void)
{
	struct sums now[COUNTS];
	struct text t;

	text_clear(&t);
	pthread_mutex_lock(&sums_lock);
	sums_take(now);
	for (unsigned i = 0; i < COUNTS; i++) {
		struct sums d = { now[i].calls - told[i].calls, now[i].items - told[i].items,
				  now[i].bytes - told[i].bytes, now[i].empty - told[i].empty,
				  now[i].failed - told[i].failed };

		if (!t.length)
			text_add(&t, "counted: ");
		sum_add(&t, i, &d);
	}
	memcpy(told, now, sizeof(told));
	pthread_mutex_unlock(&sums_lock);
	if (t.item)
		out_line(realtime_ns(), trace_tid(), t.at);
}

/* Reports calls that have not returned for a second, once each. */
static void waiting_write(void)
{
	for (struct counters *c = atomic_load(&all); c; c = c->next) {
		const struct call *call;
		struct text t;
		uint64_t start = 0;
		uint32_t tid = 0;

		text_clear(&t);
		while (atomic_flag_test_and_set_explicit(&c->lock, memory_order_acquire))
			;
		call = atomic_load(&c->current);
		if (call && monotonic_ns() - call->start_ns > SECOND_NS &&
		    (c->told != call || c->told_start_ns != call->start_ns)) {
			c->told = call;
			c->told_start_ns = call->start_ns;
			start = call->start_ns;
			tid = c->tid;
			text_add(&t, "%s) has not returned yet", call->text.at);
			if (why_waits(call->name))
				text_add(&t, ": %s", why_waits(call->name));
		}
		atomic_flag_clear_explicit(&c->lock, memory_order_release);
		if (start)
			out_line(realtime_ns() - (monotonic_ns() - start), tid, t.at);
	}
}

static void *run(void *unused)
{
	const struct timespec second = { .tv_sec = 1 };

	pthread_setname_np(pthread_self(), "busbar-trace");
	for (;;) {
		nanosleep(&second, NULL);
		if (!trace_data)
			sums_write();
		waiting_write();
	}
	return NULL;
}

static void start(void)
{
	sigset_t every, before;
	pthread_attr_t attr;
	pthread_t thread;

	sigfillset(&every);
	pthread_sigmask(SIG_BLOCK, &every, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Without this thread the sums are written only at the end. */
	(void)pthread_create(&thread, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void count_start(void)
{
	bool no = false;

	if (!atomic_load_explicit(&running, memory_order_relaxed) &&
	    atomic_compare_exchange_strong(&running, &no, true))
		start();
}

static void fork_begins(void)
{
	pthread_mutex_lock(&sums_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&sums_lock);
}

/* The sums begin anew in the child: the parent reports what it has counted. */
static void fork_child(void)
{
	for (struct counters *c = atomic_load(&all); c; c = c->next) {
		atomic_flag_clear(&c->lock);
		if (c == own) {
			c->tid = trace_tid();
		} else {
			atomic_store(&c->current, NULL);
			atomic_store(&c->used, false);
		}
	}
	sums_take(told);
	pthread_mutex_unlock(&sums_lock);
	atomic_store(&running, false);
}

__attribute__((constructor)) static void count_init(void)
{
	pthread_atfork(fork_begins, fork_parent, fork_child);
}

/* At the end of the process: the sums since the last second. */
__attribute__((destructor)) static void count_end(void)
{
	if (atomic_load(&running) && !trace_data)
		sums_write();
}
