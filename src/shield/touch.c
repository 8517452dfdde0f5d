/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages are brought by the adapter's own WRITEs; see touch.h. */
#include "shield/touch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/data.h"
#include "preload/real.h"
#include "shield/touch_pair.h"

SHIELD_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd);

#define PAGE UINT64_C(4096)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
/* Of a protection domain: then the adapter cannot do it. A page that is not there is one, too. */
#define FAILURES 3u

struct toucher {
	struct toucher *next;
	struct ibv_pd *pd;
	struct touch_pair pair; /* open if it has a completion queue */
	unsigned failures;
};

/* Held while pages are brought. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct toucher *touchers;

/* The queue pairs are the parent's; a child that opens the device has its own. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	touchers = NULL;
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* The toucher of the domain, open. NULL: there is none. */
static struct toucher *toucher_of(struct ibv_pd *pd)
{
	struct toucher *t = touchers;

	while (t && t->pd != pd)
		t = t->next;
	if (!t && (t = calloc(1, sizeof(*t)))) {
		t->pd = pd;
		t->next = touchers;
		touchers = t;
	}
	if (!t || t->failures >= FAILURES)
		return NULL;
	if (!t->pair.cq && !touch_pair_open(&t->pair, pd)) {
		t->failures = FAILURES;
		return NULL;
	}
	return t;
}

/* ---- WRITEs ---- */

/* A byte from each of the next pages, of one request at most. */
static unsigned fill(struct ibv_sge *sges, unsigned room, uint32_t lkey, uint64_t *at, uint64_t end)
{
	unsigned n = 0;

	for (; n < room && *at < end; n++) {
		sges[n] = (struct ibv_sge){ *at, 1, lkey };
		/* The last page of the address space ends at 0. */
		*at = (*at | (PAGE - 1)) + 1;
		if (!*at)
			*at = end;
	}
	return n;
}

/* Waits until the last request has completed. */
static bool finish(const struct touch_pair *p, uint64_t deadline_ns)
{
	struct ibv_wc wc;
	int n;

	do {
		n = preload_poll_cq(p->cq, 1, &wc);
		if (n)
			return n > 0 && wc.status == IBV_WC_SUCCESS;
	} while (shield_now_ns() < deadline_ns);
	return false;
}

/* As many requests as may be on their way, of which the last one has a completion. */
static bool write_some(const struct touch_pair *p, uint32_t lkey, uint64_t *at, uint64_t end)
{
	struct ibv_sge sges[TOUCH_REQUESTS][TOUCH_PIECES];
	struct ibv_send_wr wr[TOUCH_REQUESTS], *bad;
	unsigned count = 0;

	for (; count < TOUCH_REQUESTS && *at < end; count++) {
		wr[count] = (struct ibv_send_wr){
			.sg_list = sges[count], .opcode = IBV_WR_RDMA_WRITE,
			.num_sge = (int)fill(sges[count], p->pieces, lkey, at, end),
			.wr.rdma = { (uintptr_t)p->page, p->sink->rkey },
		};
		if (count)
			wr[count - 1].next = &wr[count];
	}
	if (!count)
		return true;
	wr[count - 1].send_flags = IBV_SEND_SIGNALED;
	return !preload_post_send(p->from, wr, &bad) &&
	       finish(p, shield_now_ns() + SHIELD_TOUCH_NS);
}

uint64_t touch_pages(struct ibv_pd *pd, uint32_t lkey, uint64_t addr, uint64_t length)
{
	const uint64_t deadline_ns = shield_now_ns() + SHIELD_TOUCH_NS, end = addr + length;
	uint64_t at = addr, done = 0;
	int error = errno;
	struct toucher *t;

	pthread_mutex_lock(&lock);
	t = toucher_of(pd);
	while (t && at < end && shield_now_ns() < deadline_ns) {
		if (!write_some(&t->pair, lkey, &at, end)) {
			/* Requests that are on their way end with the queue pair, before the region may go. */
			touch_pair_close(&t->pair);
			t->failures++;
			break;
		}
		done = MIN(at, end) - addr;
	}
	pthread_mutex_unlock(&lock);
	errno = error;
	return done;
}

/* ---- the end ---- */

/* Of one domain, or with NULL of all domains of the context. */
static void close_touchers(const struct ibv_pd *pd, const struct ibv_context *context)
{
	struct toucher **at = &touchers, *t;

	pthread_mutex_lock(&lock);
	while ((t = *at)) {
		if (pd ? t->pd != pd : t->pd->context != context) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		touch_pair_close(&t->pair);
		free(t);
	}
	pthread_mutex_unlock(&lock);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int (*real)(struct ibv_pd *) = real_find("ibv_dealloc_pd", "IBVERBS_1.1");

	/* It would be busy. */
	close_touchers(pd, NULL);
	return real(pd);
}

void touch_context_goes(struct ibv_context *context)
{
	close_touchers(NULL, context);
}
