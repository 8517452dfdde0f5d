/* SPDX-License-Identifier: BSD-2-Clause */
/* See lookup.h. Who asks and the thread share a question; the last one frees it. */
#include "gateway/base/lookup.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "util/clock.h"
#include "util/timed.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)
#define LOOK_NS UINT64_C(20000000)

struct question {
	char *host, *service;
	struct addrinfo hints, *found;
	int ret;
	sem_t answered;
	atomic_uint users;
};

int (*lookup_resolver)(const char *host, const char *service,
		       const struct addrinfo *hints,
		       struct addrinfo **out) = getaddrinfo;

static void put(struct question *q)
{
	if (atomic_fetch_sub(&q->users, 1) > 1)
		return;
	if (q->found)
		freeaddrinfo(q->found);
	sem_destroy(&q->answered);
	free(q->host);
	free(q->service);
	free(q);
}

static void *resolve(void *arg)
{
	struct question *q = arg;

	q->ret = lookup_resolver(q->host, q->service, &q->hints, &q->found);
	if (q->ret)
		q->found = NULL;
	sem_post(&q->answered);
	put(q);
	return NULL;
}

static struct question *make(const char *host, const char *service,
			     const struct addrinfo *hints)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	sem_init(&q->answered, 0, 0);
	atomic_store(&q->users, 1);
	q->hints = *hints;
	q->host = strdup(host);
	q->service = service ? strdup(service) : NULL;
	if (q->host && (!service || q->service))
		return q;
	put(q);
	return NULL;
}

static bool start(struct question *q)
{
	pthread_t thread;

	atomic_fetch_add(&q->users, 1);
	if (thread_start(&thread, "lookup", THREAD_AS_CALLER, resolve, q)) {
		put(q);
		return false;
	}
	pthread_detach(thread);
	return true;
}

static bool wait_for(struct question *q, uint64_t limit_ns, const atomic_bool *cancelled)
{
	uint64_t now = clock_monotonic_ns_slow(), end = now + limit_ns;

	for (; now < end && !ending_has_begun() && !(cancelled && atomic_load(cancelled));
	     now = clock_monotonic_ns_slow()) {
		struct timespec until = timespec_from_ns(MIN(now + LOOK_NS, end));

		if (!timed_sem_wait(&q->answered, &until))
			return true;
	}
	return false;
}

int lookup_address_within(const char *host, const char *service, const struct addrinfo *hints,
			  struct addrinfo **out, uint64_t limit_ns, const atomic_bool *cancelled)
{
	struct addrinfo numeric = *hints;
	struct question *q;
	int ret;

	if (!host)
		return getaddrinfo(host, service, hints, out);
	numeric.ai_flags |= AI_NUMERICHOST;
	ret = getaddrinfo(host, service, &numeric, out);
	if (ret != EAI_NONAME)
		return ret;
	q = make(host, service, hints);
	if (!q)
		return EAI_MEMORY;
	if (!start(q)) {
		put(q);
		return EAI_AGAIN;
	}
	ret = EAI_AGAIN;
	if (wait_for(q, limit_ns, cancelled)) {
		ret = q->ret;
		*out = q->found;
		q->found = NULL;
	}
	put(q);
	return ret;
}

int lookup_address(const char *host, const char *service,
		   const struct addrinfo *hints, struct addrinfo **out)
{
	return lookup_address_within(host, service, hints, out, LIMIT_NS, NULL);
}
