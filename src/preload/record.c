/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of each queue pair; see record.h. */
#include "preload/record.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "preload/saved.h"

struct record *record_of(const struct ibv_qp *qp)
{
	return saved_find(qp)->own;
}

struct record *record_make(const struct ibv_qp *qp)
{
	struct saved *s = saved_make(qp);
	struct record *r = s ? s->own : NULL;

	if (s && !r)
		r = s->own = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	if (r->current)
		batch_clear(r->current);
	r->completes_all = false;
	r->more_send_wr = 0;
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
