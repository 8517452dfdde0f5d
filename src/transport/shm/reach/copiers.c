/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which threads copy by parts (copy.c), and which queue pairs wait for such a thread; see
 * copiers.h.
 */
#include <pthread.h>

#include "hca/object/cq.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/copiers.h"

static struct {
	pthread_mutex_t lock; /* protects all below; taken after sq_lock */
	pthread_cond_t ended; /* a copier ended, or cleared `copying` */
	struct list waiting;  /* shm_qp.copy_entry; served in turn */
	struct list copiers; /* in the order of their numbers */
	uint64_t last_number;
	_Atomic unsigned queued; /* QPs with `copy_queued` */
} copies = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
	.waiting = { &copies.waiting, &copies.waiting },
	.copiers = { &copies.copiers, &copies.copiers },
};

bool shm_copiers_wanted(void)
{
	return atomic_load(&copies.queued);
}

static struct shm_copier *copier_of(const struct hca_qp *qp)
{
	list_for_each(c, &copies.copiers, struct shm_copier, entry)
		if (c->qp == qp)
			return c;
	return NULL;
}

static bool is_waiting(const struct hca_qp *of)
{
	list_for_each(part, &copies.waiting, struct shm_qp, copy_entry)
		if (shm_qp_whole(part) == of)
			return true;
	return false;
}

void shm_copiers_add(struct hca_qp *qp, void (*carry_on)(struct hca_cq *cq))
{
	struct shm_qp *part = shm_qp(qp);

	pthread_mutex_lock(&copies.lock);
	if (part->copy_queued)
		goto out;
	part->copy_queued = true;
	atomic_fetch_add(&copies.queued, 1);
	list_push(&copies.waiting, &part->copy_entry);
	if (qp->send_cq->carried++ == 0)
		atomic_store(&qp->send_cq->carry_on, carry_on);
out:
	pthread_mutex_unlock(&copies.lock);
}

/* The QP is in neither list any more. */
static void dequeue(struct hca_qp *qp)
{
	shm_qp(qp)->copy_queued = false;
	atomic_fetch_sub(&copies.queued, 1);
	if (--qp->send_cq->carried == 0)
		atomic_store(&qp->send_cq->carry_on, NULL);
}

/*
 * The next waiting QP whose send queue completes to `cq`, or, with `cq` NULL, the next one
 * for which no poll has come lately. If none is waiting, a poll is noted in the QPs being
 * copied (`copy_polled`).
 */
static struct hca_qp *next_for(struct hca_cq *cq)
{
	list_for_each(part, &copies.waiting, struct shm_qp, copy_entry) {
		struct hca_qp *qp = shm_qp_whole(part);

		if (cq ? qp->send_cq == cq : !part->copy_polled) {
			part->copy_polled = cq;
			return qp;
		}
	}
	list_for_each(c, &copies.copiers, struct shm_copier, entry)
		if (c->qp->send_cq == cq)
			shm_qp(c->qp)->copy_polled = true;
	return NULL;
}

bool shm_copier_take(struct shm_copier *c, struct hca_cq *cq)
{
	pthread_mutex_lock(&copies.lock);
	c->qp = next_for(cq);
	if (c->qp) {
		list_remove(&shm_qp(c->qp)->copy_entry);
		c->number = ++copies.last_number;
		c->copying = false;
		list_push(&copies.copiers, &c->entry);
	}
	pthread_mutex_unlock(&copies.lock);
	return c->qp;
}

void shm_copier_set(struct shm_copier *c, bool copying)
{
	pthread_mutex_lock(&copies.lock);
	c->copying = copying;
	if (!copying)
		pthread_cond_broadcast(&copies.ended);
	pthread_mutex_unlock(&copies.lock);
}

void shm_copiers_return(struct hca_qp *qp, bool more)
{
	pthread_mutex_lock(&copies.lock);
	if (more)
		list_push(&copies.waiting, &shm_qp(qp)->copy_entry);
	else
		dequeue(qp);
	pthread_mutex_unlock(&copies.lock);
}

void shm_copier_end(struct shm_copier *c)
{
	pthread_mutex_lock(&copies.lock);
	list_remove(&c->entry);
	pthread_cond_broadcast(&copies.ended);
	pthread_mutex_unlock(&copies.lock);
}

void shm_copiers_forget_polls(void)
{
	pthread_mutex_lock(&copies.lock);
	list_for_each(part, &copies.waiting, struct shm_qp, copy_entry)
		part->copy_polled = false;
	pthread_mutex_unlock(&copies.lock);
}

/* True if a copier with this number or a lower one is copying. The lock is held. */
static bool copies_before(uint64_t number)
{
	list_for_each(c, &copies.copiers, struct shm_copier, entry) {
		if (c->number > number)
			return false;
		if (c->copying)
			return true;
	}
	return false;
}

void shm_copy_fence(void)
{
	uint64_t number;

	/* A copier that sets `copying` later finds the key withdrawn. */
	pthread_mutex_lock(&copies.lock);
	number = copies.last_number;
	while (copies_before(number))
		pthread_cond_wait(&copies.ended, &copies.lock);
	pthread_mutex_unlock(&copies.lock);
}

void shm_copy_forget(struct hca_qp *qp)
{
	pthread_mutex_lock(&copies.lock);
	while (copier_of(qp))
		pthread_cond_wait(&copies.ended, &copies.lock);
	if (shm_qp(qp)->copy_queued) {
		/* In a forked child the lists are empty. */
		if (is_waiting(qp))
			list_remove(&shm_qp(qp)->copy_entry);
		dequeue(qp);
	}
	pthread_mutex_unlock(&copies.lock);
}

void shm_copiers_forked(void)
{
	pthread_mutex_init(&copies.lock, NULL);
	pthread_cond_init(&copies.ended, NULL);
	list_init(&copies.waiting);
	list_init(&copies.copiers);
	atomic_store(&copies.queued, 0);
}
