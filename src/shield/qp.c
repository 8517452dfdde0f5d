/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: the shortest RNR wait, and probes of those that make no progress; see shield.h. */
#include "shield/shield.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/real.h"

SHIELD_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device);
SHIELD_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
SHIELD_EXPORT int ibv_destroy_qp(struct ibv_qp *qp);
SHIELD_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

#define BUCKETS 1024u
#define MIN(a, b) ((a) < (b) ? (a) : (b))
/* The watcher sleeps until it is woken when it has found no unfinished work so often. */
#define IDLE_LOOKS 20u
/* Code 0 is the longest wait, code 1 the shortest. */
#define SHORTEST_CODE 1

struct watched {
	struct watched *next;      /* of its bucket, for ever; under `lock` to change */
	struct ibv_qp *_Atomic qp; /* NULL: free */
	uint32_t qpn;
	const struct ibv_context *context; /* numbers of two devices may be the same */
	/* Requests that will have a completion, and completions. */
	_Atomic uint64_t posted, completed;
	_Atomic uint64_t moved_ns; /* the last of either, or a probe */
	_Atomic uint32_t probes;   /* since the last completion */
	/* For each place that probes have in the send queue: so many requests have to complete until it
	 * is free again, since a completion frees what was posted before. Under `lock`. */
	uint64_t free_at[SHIELD_PROBES];
	/* Of a probe: one that the program uses, as the peer permits it. RDMA WRITE before READ, which
	 * may have to wait for others; IBV_WR_SEND: neither. */
	_Atomic int opcode;
};

struct patched {
	struct patched *next;
	struct ibv_context *context;
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
};

/* Guards queue pairs against their destruction while one gets a probe, and changes of lists. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *_Atomic buckets[BUCKETS];
static struct patched *_Atomic patches;
static atomic_int asleep; /* the watcher sleeps until it is woken: a futex */

static const struct patched *patch_of(const struct ibv_context *context)
{
	const struct patched *p = atomic_load_explicit(&patches, memory_order_acquire);

	while (p && p->context != context)
		p = p->next;
	return p;
}

static struct watched *_Atomic *bucket_of(uint32_t qpn)
{
	return &buckets[(qpn ^ qpn >> 10) % BUCKETS];
}

static struct watched *watched_find(const struct ibv_context *context, uint32_t qpn)
{
	struct watched *w = atomic_load_explicit(bucket_of(qpn), memory_order_acquire);

	while (w && !(atomic_load_explicit(&w->qp, memory_order_acquire) && w->qpn == qpn &&
		      w->context == context))
		w = w->next;
	return w;
}

/* ---- probes ---- */

static uint64_t *free_place(struct watched *w)
{
	for (unsigned i = 0; i < SHIELD_PROBES; i++)
		if (w->free_at[i] <= atomic_load(&w->completed))
			return &w->free_at[i];
	return NULL;
}

/* Under `lock`. */
static void probe(struct watched *w, struct ibv_qp *qp, uint64_t now_ns)
{
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)atomic_load(&w->opcode) }, *bad;
	const struct patched *p = patch_of(qp->context);
	uint64_t *place = free_place(w);

	atomic_store(&w->moved_ns, now_ns);
	if (!p || wr.opcode == IBV_WR_SEND || !place)
		return;
	atomic_fetch_add(&w->probes, 1);
	if (p->post_send(qp, &wr, &bad))
		return;
	/* All requests that are before it were counted. */
	*place = atomic_load(&w->posted) + 1;
	atomic_fetch_add(&shield_counts.probes, 1);
}

/* Has any queue pair unfinished work? */
static bool look(void)
{
	const uint64_t now_ns = shield_now_ns();
	bool any = false;

	for (unsigned i = 0; i < BUCKETS; i++) {
		struct watched *w = atomic_load_explicit(&buckets[i], memory_order_acquire);

		for (; w; w = w->next) {
			struct ibv_qp *qp;

			if (atomic_load(&w->posted) == atomic_load(&w->completed))
				continue;
			any = true;
			/* Longer each time: a probe that is lost, too, uses one of the READs. */
			if (now_ns - atomic_load(&w->moved_ns) <
			    SHIELD_PATIENCE_NS << MIN(atomic_load(&w->probes), SHIELD_PROBES))
				continue;
			pthread_mutex_lock(&lock);
			qp = atomic_load(&w->qp);
			if (qp && atomic_load(&w->posted) != atomic_load(&w->completed))
				probe(w, qp, now_ns);
			pthread_mutex_unlock(&lock);
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
		idle = shield_has_regions() && look() ? 0 : idle + 1;
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

static void start_watcher(void)
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

/* ---- posting and polling ---- */

static void note_opcode(struct watched *w, enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		atomic_store_explicit(&w->opcode, IBV_WR_RDMA_WRITE, memory_order_relaxed);
	else if (opcode == IBV_WR_RDMA_READ &&
		 atomic_load_explicit(&w->opcode, memory_order_relaxed) == IBV_WR_SEND)
		atomic_store_explicit(&w->opcode, IBV_WR_RDMA_READ, memory_order_relaxed);
}

static uint64_t signaled(const struct ibv_send_wr *wr)
{
	uint64_t n = 0;

	for (; wr; wr = wr->next)
		n += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
	return n;
}

/* The requests are about to be posted. */
static void count_posted(struct watched *w, const struct ibv_send_wr *wr)
{
	uint64_t n = signaled(wr);

	for (; wr; wr = wr->next)
		note_opcode(w, wr->opcode);
	if (!n)
		return;
	atomic_store_explicit(&w->moved_ns, shield_now_ns(), memory_order_relaxed);
	atomic_fetch_add(&w->posted, n);
	if (atomic_load(&asleep) && atomic_exchange(&asleep, 0))
		syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct patched *p = patch_of(qp->context);
	struct watched *w = watched_find(qp->context, qp->qp_num);
	int ret;

	shield_before_post(qp, wr);
	if (w)
		count_posted(w, wr);
	ret = p->post_send(qp, wr, bad);
	if (ret && w)
		atomic_fetch_sub(&w->posted, signaled(*bad));
	return ret;
}

static bool is_of_send(const struct ibv_wc *wc)
{
	return wc->status != IBV_WC_SUCCESS || !(wc->opcode & IBV_WC_RECV);
}

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	int n = patch_of(cq->context)->poll_cq(cq, entries, wc);

	for (int i = 0; i < n; i++) {
		struct watched *w = is_of_send(&wc[i]) ? watched_find(cq->context, wc[i].qp_num) :
							 NULL;

		if (!w)
			continue;
		atomic_store(&w->moved_ns, shield_now_ns());
		atomic_store(&w->probes, 0);
		/* With an error nothing more is sent; flushes follow, some without a request. */
		if (wc[i].status != IBV_WC_SUCCESS)
			atomic_store(&w->completed, atomic_load(&w->posted));
		else
			atomic_fetch_add(&w->completed, 1);
	}
	return n;
}

void shield_patch(struct ibv_context *context)
{
	struct patched *p;

	pthread_mutex_lock(&lock);
	/* An earlier context, which was closed, may have had the address. */
	p = (struct patched *)(uintptr_t)patch_of(context);
	if (!p && (p = calloc(1, sizeof(*p)))) {
		p->context = context;
		p->post_send = context->ops.post_send;
		p->poll_cq = context->ops.poll_cq;
		p->next = atomic_load(&patches);
		atomic_store_explicit(&patches, p, memory_order_release);
	} else if (p) {
		p->post_send = context->ops.post_send;
		p->poll_cq = context->ops.poll_cq;
	}
	pthread_mutex_unlock(&lock);
	if (!p)
		return;
	context->ops.post_send = post_send;
	context->ops.poll_cq = poll_cq;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *) =
		real_find("ibv_open_device", "IBVERBS_1.1");
	struct ibv_context *context = real(device);

	if (context)
		shield_patch(context);
	return context;
}

/* ---- queue pairs ---- */

static void watch_qp(struct ibv_qp *qp)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct watched *_Atomic *bucket = bucket_of(qp->qp_num);
	struct watched *w;

	pthread_mutex_lock(&lock);
	for (w = atomic_load(bucket); w && atomic_load(&w->qp); w = w->next)
		;
	if (!w && (w = calloc(1, sizeof(*w)))) {
		w->next = atomic_load(bucket);
		atomic_store_explicit(bucket, w, memory_order_release);
	}
	if (w) {
		w->qpn = qp->qp_num;
		w->context = qp->context;
		memset(w->free_at, 0, sizeof(w->free_at));
		atomic_store(&w->posted, 0);
		atomic_store(&w->completed, 0);
		atomic_store(&w->probes, 0);
		atomic_store(&w->opcode, IBV_WR_SEND);
		atomic_store(&w->qp, qp);
	}
	pthread_mutex_unlock(&lock);
	pthread_once(&once, start_watcher);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *) =
		real_find("ibv_create_qp", "IBVERBS_1.1");
	bool probed = (shield_parts() & SHIELD_PROBE) && attr->qp_type == IBV_QPT_RC &&
		      !attr->sq_sig_all && patch_of(pd->context);
	struct ibv_qp_init_attr more = *attr;
	struct ibv_qp *qp;

	more.cap.max_send_wr += SHIELD_PROBES;
	qp = probed ? real(pd, &more) : NULL;
	if (!qp) /* also where the adapter has no room for more */
		return real(pd, attr);
	*attr = more;
	attr->cap.max_send_wr -= SHIELD_PROBES;
	watch_qp(qp);
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*real)(struct ibv_qp *) = real_find("ibv_destroy_qp", "IBVERBS_1.1");
	struct watched *w = watched_find(qp->context, qp->qp_num);
	int ret;

	if (!w)
		return real(qp);
	/* No probe while it goes. The call itself may wait for other threads of the program, so the
	 * lock is not held. */
	pthread_mutex_lock(&lock);
	atomic_store(&w->posted, atomic_load(&w->completed));
	atomic_store(&w->qp, NULL);
	pthread_mutex_unlock(&lock);
	ret = real(qp);
	if (ret)
		watch_qp(qp);
	return ret;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		real_find("ibv_modify_qp", "IBVERBS_1.1");
	struct watched *w = watched_find(qp->context, qp->qp_num);
	struct ibv_qp_attr shortest = *attr;
	int ret;

	if ((shield_parts() & SHIELD_RNR) && (mask & IBV_QP_MIN_RNR_TIMER) &&
	    attr->min_rnr_timer != SHORTEST_CODE) {
		shortest.min_rnr_timer = SHORTEST_CODE;
		atomic_fetch_add(&shield_counts.queue_pairs, 1);
	}
	ret = real(qp, &shortest, mask);
	/* A queue pair that begins anew has nothing unfinished. */
	if (!ret && w && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
		pthread_mutex_lock(&lock);
		atomic_store(&w->completed, atomic_load(&w->posted));
		memset(w->free_at, 0, sizeof(w->free_at));
		pthread_mutex_unlock(&lock);
	}
	return ret;
}
