/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of each queue pair. */
#ifndef PRELOAD_RECORD_H
#define PRELOAD_RECORD_H

#include "preload/batch.h"

struct record {
	bool completes_all;
	uint32_t more_send_wr;
	/* From ibv_wr_start() to the end of ibv_wr_complete() or ibv_wr_abort(): one thread is in between,
	 * by the adapter's lock or the program's. */
	struct batch *current;
	/* One that is not in use. Several threads may be behind the end of ibv_wr_complete(). */
	struct batch *_Atomic spare;
};

/* NULL: the queue pair is unknown. */
struct record *record_of(const struct ibv_qp *qp);
/* Of a new queue pair, with nothing begun. NULL: out of memory. */
struct record *record_make(const struct ibv_qp *qp);
/* The current batch. NULL: out of memory. */
struct batch *record_batch(struct record *r);
/* Takes it; who has taken it gives it back. */
struct batch *record_take(struct record *r);
void record_give(struct record *r, struct batch *b);

#endif
