/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of each object; see record.h. */
#include "preload/record.h"

#include <stdlib.h>

#include "preload/saved.h"

struct record *record_of(const struct ibv_qp *qp)
{
	return saved_find(qp)->own_qp;
}

struct record *record_make(const struct ibv_qp *qp)
{
	struct saved *s = saved_make(qp);
	struct record *r = s ? s->own_qp : NULL;

	if (s && !r)
		r = s->own_qp = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	if (r->current)
		batch_clear(r->current);
	r->completes_all = false;
	r->more_send_wr = 0;
	r->lost = false;
	return r;
}

struct batch *record_batch(struct record *r)
{
	if (!r->current)
		r->current = atomic_exchange(&r->spare, NULL);
	if (!r->current)
		r->current = calloc(1, sizeof(*r->current));
	return r->current;
}

struct batch *record_take(struct record *r)
{
	struct batch *b = r->current;

	r->current = NULL;
	return b;
}

void record_give(struct record *r, struct batch *b)
{
	batch_clear(b);
	batch_free(atomic_exchange(&r->spare, b));
}

struct cq_record *cq_record_of(const struct ibv_cq *cq)
{
	return saved_find(cq)->own_cq;
}

struct cq_record *cq_record_make(const struct ibv_cq *cq)
{
	struct saved *s = saved_make(cq);
	struct cq_record *r = s ? s->own_cq : NULL;

	if (s && !r)
		r = s->own_cq = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	atomic_store(&r->more, 0);
	atomic_store(&r->taken, 0);
	atomic_store(&r->has_events, false);
	r->tells_qp = true;
	return r;
}
