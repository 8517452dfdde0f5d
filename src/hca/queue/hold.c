/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that wait in the send queue: for the link with their destination, for room
 * there, or for the end of SQD.
 *
 * A hardware adapter reads the data of a datagram and the address handle within
 * microseconds after posting. Programs rely on that: they reuse the buffer when the peer's
 * answer arrives, or destroy the address handle after the last post. So the data and the
 * handle of datagrams that cannot be sent at once are copied before the posting call
 * returns. Datagrams that are sent at once are not copied here.
 *
 * Each QP has a ring for the copies, with room for a full send queue of the longest
 * datagrams, so it never overflows. The address space is reserved when the QP is created;
 * memory is used when the ring first needs it.
 *
 * Connected services copy nothing: their messages may have a gigabyte, and the buffer
 * belongs to the adapter until the completion (10.7.3.1, ibv_post_send(3)).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hca/limits.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/hold.h"
#include "hca/queue/scatter.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/spin.h"

/* Bytes made accessible at a time: a multiple of any page size. */
#define OPEN_STEP ((size_t)65536)

/* Held while buffers of the program are copied; see hca_hold_fence(). */
static struct spin reading;

static uint32_t room_for(uint32_t data)
{
	return (uint32_t)(sizeof(struct hca_held) + data + CACHE_LINE - 1) &
	       ~(uint32_t)(CACHE_LINE - 1);
}

int hca_hold_init(struct hca_qp *qp)
{
	/* One copy more than the queue has entries, because the last bytes of the ring
	 * are not used when the next copy does not fit in them. */
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

/* Makes `data` accessible up to `end`. Done in steps, so that mlockall() does not allocate the
 * whole ring. False: no memory. */
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

/* Copies address handle and data of an entry. A datagram that is too long is never sent, so its
 * data are not copied. */
static void hold(struct hca_qp *qp, struct hca_swqe *e)
{
	bool inside = e->flags & HCA_SWQE_INLINE;
	uint32_t data = inside || e->length > HCA_UD_MTU ? 0 : e->length;
	struct hca_held *held = take_room(qp->hold, room_for(data));

	/* No memory: buffers and handle are read when the datagram is sent. */
	if (!held)
		return;
	held->ah = *e->ud.ah;
	held->refused = data && hca_sges_read(qp->pd, e->sge, e->num_sge, 0,
					      held->data, data);
	e->ud.ah = &held->ah;
	e->flags |= HCA_SWQE_HELD;
}

void hca_hold_waiting(struct hca_qp *qp)
{
	struct hca_hold *h = qp->hold;
	struct hca_sq *sq = &qp->sq;
	uint32_t i = sq->next;

	/* Entries before `upto` were copied by earlier calls. */
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

	/* Copies are freed in the order in which they were made. */
	h->tail = (size_t)((const uint8_t *)held - h->data) + held->bytes;
	h->count--;
}

void hca_hold_forked(void)
{
	/* A thread of the parent may have held it. */
	reading = (struct spin){ 0 };
}

void hca_hold_fence(void)
{
	hca_lock(&reading);
	hca_unlock(&reading);
}
