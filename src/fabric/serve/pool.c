/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers; see pool.h. */
#include "fabric/serve/pool.h"

#include <stdlib.h>

#define CHUNK 64

static bool grow(struct serve_pool *p)
{
	struct serve_buffer **chunks, *chunk;

	if (p->made + CHUNK > SERVE_BUFFERS_MAX)
		return false;
	chunks = realloc(p->chunks, (p->chunk_count + 1) * sizeof(*chunks));
	if (!chunks)
		return false;
	p->chunks = chunks;
	chunk = malloc(CHUNK * sizeof(*chunk));
	if (!chunk)
		return false;
	p->chunks[p->chunk_count++] = chunk;
	p->made += CHUNK;
	for (unsigned i = 0; i < CHUNK; i++) {
		chunk[i].next = p->free;
		p->free = &chunk[i];
	}
	return true;
}

struct serve_buffer *serve_pool_take(struct serve_pool *p)
{
	struct serve_buffer *b;

	if (!p->free && !grow(p))
		return NULL;
	b = p->free;
	p->free = b->next;
	p->used++;
	b->next = NULL;
	b->references = 1;
	b->flow = 0;
	b->host = 0;
	b->bytes = 0;
	b->inside = false;
	return b;
}

struct serve_buffer *serve_pool_share(struct serve_buffer *b)
{
	b->references++;
	return b;
}

void serve_pool_give(struct serve_pool *p, struct serve_buffer *b)
{
	if (!b || --b->references)
		return;
	p->used--;
	b->next = p->free;
	p->free = b;
}

void serve_pool_free(struct serve_pool *p)
{
	for (uint32_t i = 0; i < p->chunk_count; i++)
		free(p->chunks[i]);
	free(p->chunks);
	*p = (struct serve_pool){ 0 };
}

void serve_pool_head(struct serve_buffer *b, enum plug_type type, uint32_t a, uint32_t b_word,
		     size_t bytes)
{
	b->head = (struct plug_head){ .type = (uint16_t)type, .bytes = (uint16_t)bytes, .a = a,
				      .b = b_word };
	b->bytes = (uint16_t)(sizeof(b->head) + bytes);
}
