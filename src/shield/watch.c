/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that get probes when they make no progress; see watch.h. */
#include "shield/watch.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/data.h"

#define BUCKETS 1024u
#define MIN(a, b) ((a) < (b) ? (a) : (b))
/* The watcher sleeps until it is woken when it has found no unfinished work so often. */
#define IDLE_LOOKS 20u

/* Guards queue pairs against their destruction while one gets a probe, and changes of lists. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *_Atomic buckets[BUCKETS];
static atomic_int asleep; /* the watcher sleeps until it is woken: a futex */

static struct watched *_Atomic *bucket_of(uint32_t qpn)
{
	return &buckets[(qpn ^ qpn >> 10) % BUCKETS];
}

struct watched *watch_find(const struct ibv_context *context, uint32_t qpn)
{
	struct watched *w = atomic_load_explicit(bucket_of(qpn), memory_order_acquire);

	while (w && !(w->qpn == qpn && w->context == context &&
		      atomic_load_explicit(&w->qp, memory_order_acquire)))
		w = w->next;
	return w;
}

static bool is_unfinished(const struct watched *w)
{
	return atomic_load(&w->posted) > atomic_load(&w->completed);
}

/* ---- probes ---- */

/* Under `lock`. */
static void probe(struct watched *w, struct ibv_qp *qp)
{
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)atomic_load(&w->opcode) }, *bad;

	if (wr.opcode == IBV_WR_SEND)
		return;
	w->probes++;
	if (!probe_begin(&w->in_queue, qp->send_cq, atomic_load(&w->completed), &wr.wr_id))
		return;
	if (preload_post_send(qp, &wr, &bad)) {
		probe_refused(&w->in_queue, wr.wr_id);
		return;
	}
	/* All requests that are before it were counted. */
	if (!w->completes_all)
		probe_posted(&w->in_queue, wr.wr_id, atomic_load(&w->posted) + 1);
	atomic_fetch_add(&shield_counts.probes, 1);
}

/* Under `lock`. Is it time for a probe? Longer each time: one that is lost, too, uses one of the READs. */
static bool is_stuck(struct watched *w, uint64_t now_ns)
{
	uint64_t posted = atomic_load(&w->posted), completed = atomic_load(&w->completed);
	bool moved = posted != w->seen_posted || completed != w->seen_completed;

	if (completed != w->seen_completed)
		w->probes = 0;
	w->seen_posted = posted;
	w->seen_completed = completed;
	if (!moved && now_ns - w->since_ns >=
			      SHIELD_PATIENCE_NS << MIN(w->probes, SHIELD_PROBES)) {
		w->since_ns = now_ns;
		return true;
	}
	if (moved)
		w->since_ns = now_ns;
	return false;
}

static void look_at(struct watched *w, uint64_t now_ns)
{
	struct ibv_qp *qp;

	pthread_mutex_lock(&lock);
	qp = atomic_load(&w->qp);
	if (qp && is_unfinished(w) && is_stuck(w, now_ns))
		probe(w, qp);
	pthread_mutex_unlock(&lock);
}

/* Has any queue pair unfinished work? */
static bool look(void)
{
	const uint64_t now_ns = shield_now_ns();
	bool any = false;

	for (unsigned i = 0; i < BUCKETS; i++) {
		struct watched *w = atomic_load_explicit(&buckets[i], memory_order_acquire);

		for (; w; w = w->next)
			if (is_unfinished(w)) {
				any = true;
				look_at(w, now_ns);
			}
	}
	return any;
}

static void *watch(void *arg)
{
	const struct timespec patience = { 0, SHIELD_PATIENCE_NS / 2 };
	unsigned idle = 0;

	(void)arg;
	pthread_setname_np(pthread_self(), "odp-shield");
	for (;;) {
		idle = look() ? 0 : idle + 1;
		if (idle < IDLE_LOOKS) {
			nanosleep(&patience, NULL);
			continue;
		}
		atomic_store(&asleep, 1);
		/* What was posted before it slept finds nobody to wake. */
		if (!look())
			syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
		atomic_store(&asleep, 0);
		idle = 0;
	}
	return NULL;
}

/* The child has no watcher, and another thread of the parent may have had the lock. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&asleep, 0);
}

static void start(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_atfork(NULL, NULL, forked);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, &attr, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

void watch_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
}

/* ---- requests ---- */

void watch_posting(struct watched *w, uint64_t wr_id)
{
	if (atomic_load_explicit(&w->is_late, memory_order_relaxed) && !atomic_load(&w->has_first)) {
		atomic_store(&w->first_id, wr_id);
		atomic_store(&w->has_first, true);
	}
	atomic_fetch_add(&w->posted, 1);
	if (atomic_load(&asleep) && atomic_exchange(&asleep, 0))
		syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void watch_refused(struct watched *w)
{
	if (atomic_fetch_sub(&w->posted, 1) == 1)
		atomic_store(&w->has_first, false);
}

void watch_completion(struct watched *w, uint64_t wr_id)
{
	if (atomic_load_explicit(&w->is_late, memory_order_relaxed)) {
		if (!atomic_load(&w->has_first) || atomic_load(&w->first_id) != wr_id)
			return;
		atomic_store(&w->is_late, false);
	}
	if (is_unfinished(w))
		atomic_fetch_add(&w->completed, 1);
}

void watch_finished(struct watched *w)
{
	atomic_store(&w->is_late, false);
	atomic_store(&w->completed, atomic_load(&w->posted));
}

/* ---- queue pairs ---- */

static void fill(struct watched *w, struct ibv_qp *qp, bool completes_all)
{
	w->qpn = qp->qp_num;
	w->context = qp->context;
	w->completes_all = completes_all;
	atomic_store(&w->posted, 0);
	atomic_store(&w->completed, 0);
	atomic_store(&w->is_late, !shield_has_regions());
	atomic_store(&w->has_first, false);
	atomic_store(&w->opcode, IBV_WR_SEND);
	w->seen_posted = 0;
	w->seen_completed = 0;
	w->probes = 0;
	atomic_store(&w->qp, qp);
}

void watch_add(struct ibv_qp *qp, bool completes_all)
{
	struct watched *_Atomic *bucket = bucket_of(qp->qp_num);
	struct watched *w;

	pthread_mutex_lock(&lock);
	for (w = atomic_load(bucket); w && atomic_load(&w->qp); w = w->next)
		;
	if (!w && (w = calloc(1, sizeof(*w)))) {
		w->next = atomic_load(bucket);
		atomic_store_explicit(bucket, w, memory_order_release);
	}
	if (w)
		fill(w, qp, completes_all);
	pthread_mutex_unlock(&lock);
}

void watch_remove(struct watched *w)
{
	pthread_mutex_lock(&lock);
	watch_finished(w);
	atomic_store(&w->qp, NULL);
	probe_forget(&w->in_queue);
	pthread_mutex_unlock(&lock);
}

void watch_reset(struct watched *w)
{
	pthread_mutex_lock(&lock);
	watch_finished(w);
	probe_forget(&w->in_queue);
	pthread_mutex_unlock(&lock);
}
