/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that have to wait: for the link with their destination, for room, for
 * the end of SQD.
 *
 * An adapter has read the data of a datagram, and what it needs of the address
 * handle, microseconds after the posting. Programs come to rely on that: they take
 * the peer's answer for a sign that the buffer is free again, or destroy the
 * address handle behind the last posting. So what cannot leave at once is copied
 * before the posting call returns; what leaves at once costs nothing more.
 *
 * The copies are in a ring of the QP's own, with room for a full send queue of
 * the longest datagrams: it cannot run out. The memory is reserved with the QP
 * and taken from the system when it is first used.
 *
 * Connected services keep nothing: their messages may be as long as a gigabyte,
 * and the buffer is the adapter's until the completion (10.7.3.1, ibv_post_send(3)).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hca/elide.h"
#include "hca/hold.h"
#include "hca/limits.h"
#include "hca/process.h"
#include "hca/qp.h"
#include "hca/sge.h"
#include "hca/sq.h"
#include "util/container_of.h"
#include "util/spin.h"

/* So much is taken from the system at a time: whole pages of any size. */
#define OPEN_STEP ((size_t)65536)

/* Held while memory of the program is read: see hca_hold_fence(). */
static struct spin reading;

static uint32_t room_for(uint32_t data)
{
	return (uint32_t)(sizeof(struct hca_held) + data + CACHE_LINE - 1) &
	       ~(uint32_t)(CACHE_LINE - 1);
}

int hca_hold_init(struct hca_qp *qp)
{
	/* One more than the queue has: what does not fit in front of the end of
	 * the ring starts again at its beginning. */
	size_t size = ((size_t)qp->sq.limit + 1) * room_for(HCA_UD_MTU);
	struct hca_hold *h;

	if (qp->ibv.qp_type != IBV_QPT_UD || qp->sq.limit == 0)
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->data = mmap(NULL, size, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->data == MAP_FAILED) {
		free(h);
		return -ENOMEM;
	}
	h->size = size;
	qp->hold = h;
	return 0;
}

void hca_hold_fini(struct hca_qp *qp)
{
	if (qp->hold)
		munmap(qp->hold->data, qp->hold->size);
	free(qp->hold);
	qp->hold = NULL;
}

void hca_hold_clear(struct hca_qp *qp)
{
	struct hca_hold *h = qp->hold;

	if (!h)
		return;
	h->count = 0;
	h->head = h->tail = 0;
}

/* Only what is used is opened, so that a program may lock all of its memory. */
static bool open_up_to(struct hca_hold *h, size_t end)
{
	if (likely(end <= h->open))
		return true;
	end = MIN((end + OPEN_STEP - 1) & ~(OPEN_STEP - 1), h->size);
	if (mprotect(h->data + h->open, end - h->open, PROT_READ | PROT_WRITE))
		return false;
	h->open = end;
	return true;
}

static struct hca_held *take_room(struct hca_hold *h, uint32_t bytes)
{
	struct hca_held *held;

	if (h->count == 0)
		h->head = h->tail = 0;
	if (h->head >= h->tail && h->size - h->head < bytes)
		h->head = 0;
	if (!open_up_to(h, h->head + bytes))
		return NULL;
	h->count++;
	held = (struct hca_held *)(void *)(h->data + h->head);
	held->bytes = bytes;
	h->head += bytes;
	return held;
}

/* All data of `e` to `to`; false: a key does not allow it. */
static bool gather(const struct hca_qp *qp, const struct hca_swqe *e, uint8_t *to)
{
	for (unsigned i = 0; i < e->num_sge; i++) {
		const struct ibv_sge *s = &e->sge[i];
		const void *from;

		if (!s->length)
			continue;
		from = hca_sge_resolve(qp->pd, s, 0);
		if (likely(from))
			memcpy(to, from, s->length);
		else if (hca_sge_read(qp->pd, s, 0, to, s->length))
			return false;
		to += s->length;
	}
	return true;
}

/* One that is too long is never sent: its address is enough. */
static void hold(struct hca_qp *qp, struct hca_swqe *e)
{
	bool inside = e->flags & HCA_SWQE_INLINE;
	uint32_t data = inside || e->length > HCA_UD_MTU ? 0 : e->length;
	struct hca_held *held = take_room(qp->hold, room_for(data));

	/* Without memory it is read when it leaves. */
	if (!held)
		return;
	held->ah = *e->ud.ah;
	held->refused = data && !gather(qp, e, held->data);
	e->ud.ah = &held->ah;
	e->flags |= HCA_SWQE_HELD;
}

void hca_hold_waiting(struct hca_qp *qp)
{
	struct hca_hold *h = qp->hold;
	struct hca_sq *sq = &qp->sq;
	uint32_t i = sq->next;

	/* What earlier calls left behind is here already. */
	if (h->count && (int32_t)(h->upto - i) > 0)
		i = h->upto;
	hca_lock(&reading);
	for (; i != sq->head; i++)
		hold(qp, hca_sq_entry(sq, i));
	hca_unlock(&reading);
	h->upto = sq->head;
}

void hca_hold_release(struct hca_qp *qp, const struct hca_swqe *e)
{
	struct hca_hold *h = qp->hold;
	const struct hca_held *held = hca_held(e);

	/* They leave in the order in which they came. */
	h->tail = (size_t)((const uint8_t *)held - h->data) + held->bytes;
	h->count--;
}

void hca_hold_forked(void)
{
	/* A thread that is not here any more may have held it. */
	reading = (struct spin){ 0 };
}

void hca_hold_fence(void)
{
	hca_lock(&reading);
	hca_unlock(&reading);
}
