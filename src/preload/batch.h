/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that ibv_wr_*() has begun, until ibv_wr_complete() or ibv_wr_abort(). */
#ifndef PRELOAD_BATCH_H
#define PRELOAD_BATCH_H

#include "preload/data.h"

struct batch {
	struct preload_request *begun;
	struct ibv_sge *sges; /* the entries of all requests, one behind the other */
	unsigned begun_count, begun_room, sge_count, sge_room;
	bool full;            /* out of memory: none of them may be posted */
};

void batch_clear(struct batch *b);
void batch_free(struct batch *b);
/* A new request without data. NULL: out of memory. */
struct preload_request *batch_begin(struct batch *b);
/* The last one. NULL: there is none. */
struct preload_request *batch_last(struct batch *b);
/* Adds entries to the last request. */
void batch_add_sges(struct batch *b, const struct ibv_sge *sges, size_t count);
/* No more is added: each request gets the address of its entries. */
void batch_end(struct batch *b);

#endif
