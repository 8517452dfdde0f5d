/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs that are followed; see observe.h. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "preload/real.h"
#include "verdict/observe.h"

/* A queue pair stands in one of so many places behind that of its number. */
enum { REACH = 8 };

/* Guards queue pairs against their destruction while they are asked at the end of the program. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_qp *handles[VERDICT_QPS]; /* under `lock` */

static unsigned place_of(uint32_t number)
{
	return (unsigned)(number * UINT32_C(0x9e3779b1) >> 16) % VERDICT_QPS;
}

struct verdict_qp *verdict_qp_find(struct verdict_facts *f, const struct ibv_context *context,
				   uint32_t number)
{
	for (unsigned i = 0, at = place_of(number); i < REACH; i++) {
		struct verdict_qp *q = &f->qps[(at + i) % VERDICT_QPS];

		if (atomic_load_explicit(&q->number, memory_order_acquire) == number &&
		    q->context == (uintptr_t)context &&
		    !atomic_load_explicit(&q->gone_ns, memory_order_relaxed))
			return q;
	}
	return NULL;
}

/* One that was never used, or whose queue pair has gone for the longest time. */
static struct verdict_qp *free_place(struct verdict_facts *f, uint32_t number)
{
	struct verdict_qp *found = NULL;

	for (unsigned i = 0, at = place_of(number); i < REACH; i++) {
		struct verdict_qp *q = &f->qps[(at + i) % VERDICT_QPS];

		if (!q->number)
			return q;
		if (q->gone_ns && (!found || q->gone_ns < found->gone_ns))
			found = q;
	}
	return found;
}

void verdict_qp_made(struct ibv_qp *qp)
{
	struct verdict_facts *f = verdict_facts_make();
	struct verdict_qp *q;

	if (!f)
		return;
	pthread_mutex_lock(&lock);
	q = free_place(f, qp->qp_num);
	if (q) {
		atomic_store(&q->number, 0);
		memset(q, 0, sizeof(*q));
		q->context = (uintptr_t)qp->context;
		q->send_cq = (uintptr_t)qp->send_cq;
		q->receive_cq = (uintptr_t)qp->recv_cq;
		q->life_ns = verdict_now_ns();
		handles[q - f->qps] = qp;
		atomic_store_explicit(&q->number, qp->qp_num, memory_order_release);
	} else {
		atomic_fetch_add(&f->not_followed, 1);
	}
	pthread_mutex_unlock(&lock);
	f->progress_ns = verdict_now_ns();
}

static int query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *) =
		real_find("ibv_query_qp", "IBVERBS_1.1");
	struct ibv_qp_init_attr init;

	return real ? real(qp, attr, mask, &init) : -1;
}

void verdict_qp_ask_peer(struct verdict_qp *q, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { 0 };
	int error = errno;

	if (!q->peer && qp->qp_type == IBV_QPT_RC && !query(qp, &attr, IBV_QP_DEST_QPN))
		q->peer = attr.dest_qp_num;
	errno = error;
}

/* In the error state, with requests that wait, and no error was known. */
static void look_at(struct verdict_facts *f, const struct verdict_qp *q, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int error = errno;

	if (f->since_ns || f->unfetched_ns || q->ended_ns || !verdict_qp_open(q))
		return;
	if (!query(qp, &attr, IBV_QP_STATE) && attr.qp_state == IBV_QPS_ERR) {
		f->unfetched_qp = q->number;
		f->unfetched_requests = (uint64_t)verdict_qp_open(q);
		f->unfetched_ns = verdict_now_ns();
	}
	errno = error;
}

static void forget(struct verdict_facts *f, struct verdict_qp *q)
{
	verdict_emptied(f, q);
	if (q->receives > q->received)
		atomic_fetch_add(&f->receives_lost, q->receives - q->received);
	handles[q - f->qps] = NULL;
	q->gone_ns = verdict_now_ns();
}

void verdict_qp_goes(struct ibv_qp *qp)
{
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = f ? verdict_qp_of(f, qp) : NULL;

	if (!q)
		return;
	pthread_mutex_lock(&lock);
	verdict_qp_ask_peer(q, qp);
	look_at(f, q, qp);
	forget(f, q);
	pthread_mutex_unlock(&lock);
	verdict_reacted(f, q, VERDICT_DESTROYED);
	f->progress_ns = verdict_now_ns();
}

/* While the libraries below this one still work. */
__attribute__((destructor)) static void at_unload(void)
{
	struct verdict_facts *f = verdict_facts();

	if (!f || pthread_mutex_trylock(&lock))
		return;
	for (unsigned i = 0; i < VERDICT_QPS; i++)
		if (handles[i])
			look_at(f, &f->qps[i], handles[i]);
	pthread_mutex_unlock(&lock);
}

void verdict_qp_context_goes(const struct ibv_context *context)
{
	struct verdict_facts *f = verdict_facts();

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; f && i < VERDICT_QPS; i++)
		if (handles[i] && handles[i]->context == context)
			forget(f, &f->qps[i]);
	pthread_mutex_unlock(&lock);
}

static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(handles, 0, sizeof(handles));
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, forked);
}
