/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of messages; see outbox.h. */
#include "gateway/outside/outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

#define ALIGN 8
#define NO_MORE UINT32_MAX /* the rest of the ring is not used */

/* In front of the data of each message. */
struct record {
	uint32_t size;      /* with the data, a multiple of ALIGN */
	uint32_t len;       /* of the data, or NO_MORE */
	uint32_t samples;
	bool confirmed;
	uint64_t tag;
	char data[];
};

static_assert(sizeof(struct record) % ALIGN == 0, "records are aligned");

static struct record *record_at(const struct outbox *o, uint64_t at)
{
	return (struct record *)(void *)(o->ring + at % o->size);
}

static size_t size_of(size_t len)
{
	return (sizeof(struct record) + len + ALIGN - 1) / ALIGN * ALIGN;
}

int outbox_init(struct outbox *o, size_t size)
{
	*o = (struct outbox){ .size = (size + ALIGN - 1) / ALIGN * ALIGN };
	o->ring = malloc(o->size);
	return o->ring ? 0 : -ENOMEM;
}

void outbox_destroy(struct outbox *o)
{
	free(o->ring);
	*o = (struct outbox){ 0 };
}

/* Records do not wrap around, so that half of the ring may be left over. */
bool outbox_could_hold(const struct outbox *o, size_t len)
{
	return len < UINT32_MAX / 2 && size_of(len) + ALIGN <= o->size / 2;
}

bool outbox_has_room(const struct outbox *o, size_t len)
{
	size_t want = size_of(len), free_bytes = o->size - (size_t)(o->head - o->tail);
	size_t to_end = o->size - (size_t)(o->head % o->size);

	return outbox_could_hold(o, len) &&
	       free_bytes >= want + (to_end < want ? to_end : 0);
}

bool outbox_put(struct outbox *o, const struct outbox_message *m)
{
	size_t want = size_of(m->len), to_end = o->size - (size_t)(o->head % o->size);
	bool is_sent = o->sent == o->head;
	struct record *r;

	if (!outbox_has_room(o, m->len))
		return false;
	if (to_end < want) {
		/* At the end there is always room for a size and a length. */
		r = record_at(o, o->head);
		r->size = (uint32_t)to_end;
		r->len = NO_MORE;
		o->head += to_end;
	}
	r = record_at(o, o->head);
	*r = (struct record){ (uint32_t)want, (uint32_t)m->len, m->samples, false, m->tag };
	memcpy(r->data, m->data, m->len);
	o->head += want;
	if (is_sent)
		o->sent = o->head;
	o->messages++;
	o->samples += m->samples;
	return true;
}

/* The record at `*at` or behind it; NULL: there is none. */
static struct record *find(const struct outbox *o, uint64_t *at)
{
	struct record *r;

	if (*at == o->head)
		return NULL;
	r = record_at(o, *at);
	if (r->len != NO_MORE)
		return r;
	*at += r->size;
	assert(*at != o->head);
	return record_at(o, *at);
}

static void show(const struct record *r, struct outbox_message *m)
{
	*m = (struct outbox_message){ r->data, r->len, r->samples, r->tag };
}

bool outbox_first(struct outbox *o, struct outbox_message *m)
{
	struct record *r = find(o, &o->tail);

	if (r)
		show(r, m);
	return r;
}

static uint64_t confirm(struct outbox *o, struct record *r)
{
	if (r->confirmed)
		return 0;
	r->confirmed = true;
	o->messages--;
	o->samples -= r->samples;
	return r->samples;
}

void outbox_drop(struct outbox *o)
{
	struct record *r = find(o, &o->tail);

	assert(r);
	confirm(o, r);
	o->tail += r->size;
	o->sent = MAX(o->sent, o->tail);
}

uint64_t outbox_confirm(struct outbox *o, uint64_t tag, bool all_before)
{
	uint64_t at = o->tail, samples = 0;
	struct record *r;

	/* Tags of messages that are to be sent once more do not count. */
	for (; at < o->sent && (r = find(o, &at)) && at < o->sent; at += r->size) {
		o->looks++;
		if (r->tag == tag || (all_before && r->tag < tag))
			samples += confirm(o, r);
		if (r->tag == tag)
			break;
	}
	while ((r = find(o, &o->tail)) && r->confirmed)
		outbox_drop(o);
	return samples;
}

void outbox_repeat(struct outbox *o)
{
	o->sent = o->tail;
}

static struct record *find_next(struct outbox *o)
{
	struct record *r;

	o->sent = MAX(o->sent, o->tail);
	while ((r = find(o, &o->sent)) && r->confirmed)
		o->sent += r->size;
	return r;
}

bool outbox_next(struct outbox *o, struct outbox_message *m)
{
	struct record *r = find_next(o);

	if (r)
		show(r, m);
	return r;
}

void outbox_repeated(struct outbox *o, uint64_t tag)
{
	struct record *r = find_next(o);

	assert(r);
	r->tag = tag;
	o->sent += r->size;
}

void outbox_give_up(struct outbox *o)
{
	struct record *r = find_next(o);

	assert(r);
	confirm(o, r);
	o->sent += r->size;
	while ((r = find(o, &o->tail)) && r->confirmed)
		outbox_drop(o);
}
