/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers of one message each, taken from the allocator in chunks and kept until the end. */
#ifndef FABRIC_SERVE_POOL_H
#define FABRIC_SERVE_POOL_H

#include "fabric/serve/state.h"

/* One reference, nothing filled in; NULL: the limit is reached, or there is no memory. */
struct serve_buffer *serve_pool_take(struct serve_pool *p);
struct serve_buffer *serve_pool_share(struct serve_buffer *b);
void serve_pool_give(struct serve_pool *p, struct serve_buffer *b);
void serve_pool_free(struct serve_pool *p);

/* Fills in the head for a body of `bytes`. */
void serve_pool_head(struct serve_buffer *b, enum plug_type type, uint32_t a, uint32_t b_word,
		     size_t bytes);

#endif
