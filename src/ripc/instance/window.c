/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of return buffers: with one the peer of one connection writes into the bytes that it was
 * offered, as long as it is offered them, and into nothing else.
 *
 * A key is of a memory window of type 2, bound by a work request on the connection's queue pair
 * before the message that tells of it, and invalidated by one before the message that lies in
 * the buffer is delivered. The adapter runs them in the order of the queue, so neither is waited
 * for when a buffer is offered. What is asked back loses its window at once. On an adapter
 * without such windows a key is of a registration of these bytes alone, which costs more.
 *
 * All functions: peer->lock, and the connection is the peer's.
 */
#include <errno.h>
#include <stdlib.h>

#include "ripc/instance/instance.h"

/* Windows of a connection that are kept for the next offers. */
#define KEPT_MAX 64

struct window {
	struct list entry;      /* of the connection */
	struct ibv_mw *mw;
	struct ibv_mr *mr;      /* without windows */
	uint32_t key;
	bool invalidated;       /* posted */
};

static void window_free(struct window *w)
{
	list_remove(&w->entry);
	if (w->mw)
		ibv_dealloc_mw(w->mw);
	if (w->mr)
		ibv_dereg_mr(w->mr);
	free(w);
}

static struct window *window_make(struct conn *c)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	list_init(&w->entry);
	if (!c->r->device.windows)
		return w;
	w->mw = ibv_alloc_mw(c->r->device.pd, IBV_MW_TYPE_2);
	if (w->mw) {
		w->key = w->mw->rkey;
		return w;
	}
	free(w);
	return NULL;
}

static void post_bind(struct conn *c, struct window *w, const struct pool_ref *ref, void *at,
		      size_t bytes)
{
	struct ibv_send_wr wr = {
		.wr_id = work_id(c, WORK_SEND), .opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = w->mw, .rkey = ibv_inc_rkey(w->key),
			     .bind_info = { .mr = ref->mr, .addr = (uintptr_t)at,
					    .length = bytes,
					    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } },
	};

	w->key = wr.bind_mw.rkey;
	/* On a connection that is dead nobody is told of it. */
	if (!conn_post(c, &wr, 0, false))
		w->mw->rkey = w->key;
}

int window_bind(struct conn *c, const struct pool_ref *ref, void *at, size_t bytes,
		struct window **out, uint32_t *key)
{
	struct list *kept = list_pop(&c->windows_kept);
	struct window *w = kept ? list_entry(kept, struct window, entry) : window_make(c);

	if (!w)
		return -ENOBUFS;
	if (kept)
		c->windows_count--;
	if (w->mw) {
		post_bind(c, w, ref, at, bytes);
	} else {
		w->mr = ibv_reg_mr(c->r->device.pd, at, bytes,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!w->mr) {
			window_free(w);
			return -ENOBUFS;
		}
		w->key = w->mr->rkey;
	}
	w->invalidated = false;
	list_push(&c->windows, &w->entry);
	*out = w;
	*key = w->key;
	return 0;
}

int window_invalidate(struct conn *c, struct window *w, uint64_t work)
{
	struct ibv_send_wr wr = { .wr_id = work, .opcode = IBV_WR_LOCAL_INV,
				  .invalidate_rkey = w->key };
	int ret;

	if (!w->mw) {
		ibv_dereg_mr(w->mr);
		w->mr = NULL;
		return 0;
	}
	ret = conn_post(c, &wr, 0, true);
	w->invalidated = !ret;
	return ret ? ret : 1;
}

void window_end(struct conn *c, struct window *w)
{
	if (!w->invalidated || c->windows_count == KEPT_MAX) {
		window_free(w);
		return;
	}
	list_remove(&w->entry);
	list_push(&c->windows_kept, &w->entry);
	c->windows_count++;
}

void windows_end(struct conn *c)
{
	while (!list_empty(&c->windows))
		window_free(list_entry(c->windows.next, struct window, entry));
	while (!list_empty(&c->windows_kept))
		window_free(list_entry(c->windows_kept.next, struct window, entry));
	c->windows_count = 0;
}
